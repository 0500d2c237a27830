"""What telemetry that is not on the tape is answered with."""

import json

import pytest

from playhead.tape.exchange import Request
from playhead.tape.policy.telemetry_answer import empty_success

JSON = b"application/json"
PROTOBUF = b"application/x-protobuf"


def asked(line: str, content_type: bytes = JSON) -> Request:
    """Make a request of `METHOD host/path`."""
    method, place = line.split()
    host, _, path = place.partition("/")
    fields = ((b"content-type", content_type),) if content_type else ()
    return Request(method, "https", host, 443, f"/{path}", "HTTP/1.1", fields)


CASES = [
    # Method and place, content type, status, body
    ("POST ab.chatgpt.com/otlp/v1/metrics", JSON, 200, b"{}"),
    ("POST ab.chatgpt.com/otlp/v1/metrics", PROTOBUF, 200, b""),
    ("POST x.example.com/otlp/v1/traces", b"application/json; charset=utf-8", 200, b"{}"),
    ("POST api.anthropic.com/api/event_logging/v2/batch", JSON, 200, b"{}"),
    ("POST api.anthropic.com/api/eval/sdk-1", JSON, 200, b'{"features":{}}'),
    ("POST play.googleapis.com/log", JSON, 200, b""),
    ("POST x.rum.aliyuncs.com/", b"text/plain", 200, b""),
    ("POST api.openai.com/v1/traces/ingest", JSON, 204, b""),
    ("POST api.smith.langchain.com/runs/multipart", b"multipart/form-data", 202, b"{}"),
    ("PATCH api.smith.langchain.com/runs/1", JSON, 202, b"{}"),
    (
        "POST cloud.langfuse.com/api/public/ingestion",
        JSON,
        207,
        b'{"successes":[],"errors":[]}',
    ),
    ("POST us.i.posthog.com/batch/", JSON, 200, b'{"status":1}'),
    ("POST statsigapi.net/v1/rgstr", JSON, 202, b'{"success":true}'),
    ("POST api.segment.io/v1/batch", JSON, 200, b'{"success":true}'),
    ("POST api2.amplitude.com/2/httpapi", JSON, 200, b'{"code":200}'),
    ("POST o1.ingest.sentry.io/api/1/envelope/", b"application/x-sentry-envelope", 200, b"{}"),
    ("POST http-intake.logs.datadoghq.com/api/v2/logs", JSON, 202, b"{}"),
    # One that a configuration declares
    ("POST t.example.com/x", JSON, 200, b"{}"),
    ("POST t.example.com/x", b"text/plain", 200, b""),
    ("POST t.example.com/x", b"", 200, b""),
]


@pytest.mark.parametrize(("line", "content_type", "status", "body"), CASES)
def test_a_post_is_a_success_without_content(
    line: str, content_type: bytes, status: int, body: bytes
) -> None:
    """The exporter takes what it sent for delivered, and has nothing to act on."""
    answer = empty_success(asked(line, content_type))
    assert answer is not None
    assert (answer.status, answer.body) == (status, body)
    kinds = dict(answer.headers).get(b"content-type", b"")
    assert (kinds == JSON) is bool(body)
    assert not body or json.loads(body) is not None
    assert not answer.trailers


def test_an_exporter_over_grpc_gets_an_empty_message() -> None:
    """One message without fields, and the status of success in the trailers."""
    place = "POST x/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    answer = empty_success(asked(place, b"application/grpc"))
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"\0\0\0\0\0")
    assert dict(answer.headers)[b"content-type"] == b"application/grpc"
    assert answer.trailers == ((b"grpc-status", b"0"),)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "CONNECT"])
def test_nothing_else_is_a_success(method: str) -> None:
    """What would be read is not made up, and nothing is said to be deleted."""
    assert empty_success(asked(f"{method} t.example.com/x")) is None
