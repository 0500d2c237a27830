"""Which POSTs are telemetry by path and body, at hosts that may be anybody's."""

import gzip
import json
from typing import Any

import pytest

from playhead.config import Classes, parse_match
from playhead.tape.classify.by_body import class_now
from playhead.tape.classify.telemetry_bodies import MAX_REPORT
from playhead.tape.exchange import Request, RequestClass, Spilled

EFFECT, TELEMETRY = RequestClass.EFFECT, RequestClass.TELEMETRY
JSON, PROTOBUF = b"application/json", b"application/x-protobuf"
RESOURCE = {"resource": {"attributes": []}, "scopeSpans": []}
INGESTED = {"id": "1", "type": "trace-create", "timestamp": "2026-11-24T12:00:00Z", "body": {}}
ENVELOPE = b'{"sent_at":"2026-11-24T12:00:00Z","dsn":"https://k@sentry.example.com/4"}\n{"type":"event"}\n{}'


def post(path: str, body: Any, kind: bytes = JSON, *more: tuple[bytes, bytes]) -> Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = ((b"content-type", kind), *more)
    return Request("POST", "https", "gateway.example.com", 443, path, "HTTP/1.1", fields, data)


GZIP = (b"content-encoding", b"gzip")
REPORTS = [
    # OpenTelemetry over HTTP, in JSON and Protocol Buffers, compressed or not
    post("/otlp/v1/traces", {"resourceSpans": [RESOURCE]}),
    post("/v1/metrics", {"resourceMetrics": [{"resource": {}, "scopeMetrics": []}]}),
    post("/collect/otlp/v1/logs", {"resourceLogs": []}),
    post(
        "/v1/logs",
        {"resource_logs": [{"resource": {}, "scope_logs": []}]},
        b"application/json; charset=utf-8",
    ),
    # either spelling of each member, behind any white space
    post("/v1/logs", b" " * 200 + b'{"resource_logs": [{"scope_logs": []}]}'),
    post("/v1/traces", {"resource_spans": [{"resource": {}, "scopeSpans": [], "schema_url": ""}]}),
    post("/v1/traces", {"resourceSpans": [{"scope_spans": []}, RESOURCE]}),
    post("/v1/traces", b"\x0a\x02\x0a\x00", PROTOBUF),
    post("/v1/traces", b"\x0a\x16\x12\x14\x12\x12\x0a\x10" + bytes(16), PROTOBUF),
    post("/v1/metrics", b"\x0a\x07\x12\x05\x12\x03\x0a\x01n", PROTOBUF),
    post("/v1/traces", gzip.compress(b"\x0a\x02\x0a\x00"), PROTOBUF, GZIP),
    post("/v1/traces", gzip.compress(b'{"resourceSpans":[]}'), JSON, GZIP),
    # OpenAI Agents SDK, Langfuse, Sentry
    post("/v1/traces/ingest", {"data": [{"object": "trace", "id": "t"}, {"object": "trace.span"}]}),
    post("/api/public/ingestion", {"batch": [INGESTED], "metadata": {}}),
    post("/api/public/otel/v1/traces", {"resourceSpans": [RESOURCE]}),
    post("/api/4/envelope/", ENVELOPE, b"application/x-sentry-envelope"),
    post("/api/4/envelope", gzip.compress(ENVELOPE), b"text/plain;charset=UTF-8", GZIP),
    post("/api/4/store/", {"event_id": "9f86d081884c7d659a2feaa0c55ad015", "platform": "python"}),
    post(
        "/api/4/store/",
        {
            "event_id": "9f86d081884c7d659a2feaa0c55ad015",
            "level": "error",
            "sentry.interfaces.Message": {},
            "extra": {"order": 7},
        },
    ),
]
DEEDS = [
    # other bodies at these paths
    post("/otlp/v1/traces", {"order": 7}),
    post("/otlp/v1/traces", b""),
    post("/otlp/v1/traces", b"[]"),
    post("/otlp/v1/traces", b"resourceSpans=1", b"application/x-www-form-urlencoded"),
    post("/v1/logs", {"message": "paid", "level": "info"}),
    post("/v1/logs", {"resourceSpans": [RESOURCE]}),
    post("/v1/logs", {"resourceLogs": [], "order": 7}),
    post("/v1/logs", {"resourceLogs": {}}),
    post("/v1/logs", {"resourceLogs": [], "resourceSpans": []}),
    post("/v1/logs", {"resourceLogs": [], "resource_logs": []}),
    post("/v1/logs", {"resourceLogs": [{"scopeLogs": [], "scope_logs": []}]}),
    post("/v1/logs", {"resource_Logs": []}),
    post("/v1/logs", {"resourceLogs": None}),
    post("/v1/metrics", b"\x12\x00", PROTOBUF),
    post("/v1/logs", b"\x0a\x0etransfer 1 EUR", PROTOBUF),
    post("/v1/logs", b"\x0a\x09\x0a\x07\x0a\x05alice", PROTOBUF),
    post("/v1/traces", b"\x0a\x02\x0a\x00\x12\x00", PROTOBUF),
    post("/v1/traces", b"\x0a\x02\x0a", PROTOBUF),
    post("/v1/traces", b"\x0a\x08\x12\x06\x12\x04\x0a\x02ab", PROTOBUF),
    post("/v1/traces", {"resourceSpans": [{"pay": "eve"}]}),
    post("/v1/metrics", b"\x0a\x02\x0a\x00", b"application/octet-stream"),
    post("/v1/traces/ingest", {"data": [{"object": "order"}]}),
    post("/v1/traces/ingest", {"data": []}),
    post("/api/public/ingestion", {"batch": [{**INGESTED, "type": "order-create"}]}),
    post("/api/public/ingestion", {"batch": [{"id": "1"}]}),
    post("/api/public/ingestion", {"batch": [INGESTED], "order": 7}),
    post("/api/4/envelope/", {"to": "somebody", "subject": "x"}),
    post("/api/4/envelope/", b'{"event_id":"x"}\n{"type":"payment"}\n{"amount":1}\n'),
    post("/api/4/envelope/", b'{"event_id":"x"}\n{"type":["event"]}\n{}\n'),
    post("/api/4/envelope/", b'{"sdk":{}}\n{"signer":"x"}'),
    post("/api/4/store/", {"item": 7}),
    post("/api/4/store/", {"event_id": "1", "tickets": 2}),
    post("/api/4/store/", {"event_id": "1", "platform": "python"}),
    post(
        "/api/4/store/",
        {
            "event_id": "9f86d081884c7d659a2feaa0c55ad015",
            "platform": "python",
            "order": {"amount": 5},
        },
    ),
    # the same bodies elsewhere
    post("/v1/orders", {"resourceSpans": [RESOURCE]}),
    post("/api/public/scores", {"batch": [INGESTED]}),
    post(
        "/api/shop/store/", {"event_id": "9f86d081884c7d659a2feaa0c55ad015", "platform": "python"}
    ),
    # analytics of others at a host of one's own
    post("/engage", {"$set": {"plan": "paid"}}),
    post("/v1/identify", {"userId": "7", "traits": {}}),
]


@pytest.mark.parametrize("request_", REPORTS)
def test_a_report_is_telemetry_at_any_host(request_: Request) -> None:
    """Its path and its body are those of an exporter's protocol; a pattern of the configuration goes first."""
    assert class_now(request_, Classes()) is TELEMETRY
    own = Classes(effect=(parse_match("POST *://gateway.example.com"),))
    assert class_now(request_, own) is EFFECT


@pytest.mark.parametrize("request_", DEEDS)
def test_all_else_is_an_effect(request_: Request) -> None:
    """Another body at the path of a collector, or its body at another path."""
    assert class_now(request_, Classes()) is EFFECT


def test_what_cannot_be_read_is_an_effect() -> None:
    """A body that is too large, wherever it is, or is sent by another method."""
    spilled = Spilled(b"", MAX_REPORT + 1, b"")
    large = b'{"resourceSpans":[]' + b" " * MAX_REPORT + b"}"
    asked = post("/v1/traces", large)
    assert class_now(asked, Classes()) is EFFECT
    fields = asked.headers
    place = ("https", "gateway.example.com", 443, "/v1/traces", "HTTP/1.1", fields)
    assert class_now(Request("POST", *place, spilled=spilled), Classes()) is EFFECT
    assert class_now(Request("PUT", *place, b'{"resourceSpans":[]}'), Classes()) is EFFECT
