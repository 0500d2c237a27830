"""Which POSTs are telemetry by path and body, at whichever host: protocols of exporters that anybody may host.

1. The path alone is not enough: a shop may keep its orders under `/v1/logs`. The body has to have the form of the protocol.
2. In doubt it is none, and so an effect: a body that is too large to be read, that is broken, or that has a member which the
   protocol does not have.
3. Of Protocol Buffers the content type and the outer messages count (`otlp_messages.py`). Where a secret of a kept body was
   replaced, lengths are no longer right, and the tag of the first member counts alone.

Source: opentelemetry-proto 1.3, "OTLP/HTTP"; the ingestion API of Langfuse 3; Sentry's "Envelopes" and "Store Endpoint"; the
exporter of traces of OpenAI Agents SDK 0.24.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..canonical.canonical_request import open_body
from ..exchange import BODY, HttpRequest
from .otlp_messages import is_export

MAX_REPORT = 8 * 1024 * 1024
"""Bytes of a body beyond which it is no telemetry."""

_PROTOBUF = (b"application/x-protobuf", b"application/protobuf")
_FIRST_MEMBER = b"\x0a"
"""Tag of member 1, which is a message: the resources of all three signals."""
_UNSET = msgspec.UNSET
_SIGNALS = {"traces": "resourceSpans", "metrics": "resourceMetrics", "logs": "resourceLogs"}
_PART = frozenset(("resource", "scopeSpans", "scopeMetrics", "scopeLogs", "schemaUrl"))
"""Members of what a resource reports."""
_HUMP = re.compile("_([a-z])")


def is_report(request: HttpRequest) -> bool:
    """Say whether a request reports to a collector of telemetry."""
    if request.method != "POST" or request.spilled is not None:
        return False
    reads = next((reads for path, reads in _READERS if path.fullmatch(request.path)), None)
    if reads is None:
        return False
    body = open_body(request)[0]
    if not 0 < len(body) <= MAX_REPORT:
        return False
    try:
        return reads(request, body)
    except (ValueError, RecursionError):
        return False


_read_signals = msgspec.json.Decoder(dict[str, list[dict[str, msgspec.Raw]]]).decode
"""OTLP in JSON: one of its three signals."""


def _spell(names: Iterable[str]) -> list[str]:
    """Give names of members as the protocol spells them: JSON of Protocol Buffers may have either spelling of each."""
    return [_HUMP.sub(lambda found: found[1].upper(), name) for name in names]


def _reads_otlp(request: HttpRequest, body: bytes) -> bool:
    signal = request.path.rpartition("/")[2]
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind in _PROTOBUF:
        replaced = any(one.part == BODY for one in request.secrets)
        return body.startswith(_FIRST_MEMBER) and (replaced or is_export(body, signal))
    found = _read_signals(body)
    return _spell(found) == [_SIGNALS[signal]] and all(
        len(set(names)) == len(names) and _PART.issuperset(names)
        for parts in found.values()
        for names in map(_spell, parts)
    )


class _Traced(msgspec.Struct):
    object: str


class _Traces(msgspec.Struct, forbid_unknown_fields=True):
    data: list[_Traced]


_read_traces = msgspec.json.Decoder(_Traces).decode


def _reads_openai_traces(_request: HttpRequest, body: bytes) -> bool:
    data = _read_traces(body).data
    return bool(data) and all(one.object in ("trace", "trace.span") for one in data)


class _Ingested(msgspec.Struct):
    id: str
    type: str
    timestamp: str
    body: msgspec.Raw


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    batch: list[_Ingested]
    metadata: msgspec.Raw | msgspec.UnsetType = _UNSET


_read_batch = msgspec.json.Decoder(_Batch).decode
_INGESTED = re.compile(
    "(?:trace|span|generation|event|observation|score)-(?:create|update)|sdk-log"
)


def _reads_langfuse(_request: HttpRequest, body: bytes) -> bool:
    batch = _read_batch(body).batch
    return bool(batch) and all(_INGESTED.fullmatch(one.type) for one in batch)


_read_members = msgspec.json.Decoder(dict[str, Any]).decode
_HEADS = frozenset(("event_id", "sent_at", "dsn", "sdk"))
"""Members of an envelope's head, of which one is there."""
_ITEMS = frozenset(
    (
        *("event", "transaction", "attachment", "session", "sessions", "client_report", "check_in"),
        *("user_report", "feedback", "replay_event", "replay_recording", "replay_video"),
        *("profile", "profile_chunk", "span", "log", "otel_log", "trace_metric", "statsd"),
        *("metric_meta", "raw_security", "nel", "form_data", "unreal_report"),
    )
)
"""What the first item of an envelope may be. Source: Sentry's "Envelope Items"."""
_EVENT = frozenset(("platform", "exception", "level", "logger", "sdk"))
"""Members of an event beside its id, of which one is there."""
_MEMBERS = _EVENT | frozenset(
    (
        *("event_id", "timestamp", "start_timestamp", "received", "type", "version", "project"),
        *(
            "message",
            "logentry",
            "transaction",
            "transaction_info",
            "culprit",
            "server_name",
            "site",
        ),
        *("release", "dist", "environment", "tags", "extra", "modules", "fingerprint", "checksum"),
        *(
            "errors",
            "stacktrace",
            "template",
            "breadcrumbs",
            "user",
            "request",
            "contexts",
            "threads",
        ),
        *("debug_meta", "spans", "measurements", "time_spent", "repos", "http", "query", "session"),
        *("_meta", "_metrics", "key_id", "trimHeadFrames"),
    )
)
"""All members of an event, those of older clients too. Source: Sentry's "Event Payloads", Raven for Python and JavaScript."""
_OLD_MEMBERS = ("sentry.interfaces.", "session:")
"""How further members of older clients begin."""
_EVENT_ID = re.compile("[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _reads_envelope(_request: HttpRequest, body: bytes) -> bool:
    head, _, rest = body.partition(b"\n")
    item = rest.partition(b"\n")[0]
    if _HEADS.isdisjoint(_read_members(head)):
        return False
    kind = _read_members(item).get("type")
    return isinstance(kind, str) and kind in _ITEMS


def _reads_event(_request: HttpRequest, body: bytes) -> bool:
    event = _read_members(body)
    named = event.get("event_id")
    return (
        isinstance(named, str)
        and _EVENT_ID.fullmatch(named) is not None
        and not _EVENT.isdisjoint(event)
        and all(name in _MEMBERS or name.startswith(_OLD_MEMBERS) for name in event)
    )


_READERS: tuple[tuple[re.Pattern[str], Callable[[HttpRequest, bytes], bool]], ...] = (
    (re.compile("(?:/.*)?/v1/(?:traces|metrics|logs)"), _reads_otlp),
    (re.compile("(?:/.*)?/v1/traces/ingest"), _reads_openai_traces),
    (re.compile("(?:/.*)?/api/public/ingestion"), _reads_langfuse),
    (re.compile("(?:/.*)?/api/[0-9]+/envelope/?"), _reads_envelope),
    (re.compile("(?:/.*)?/api/[0-9]+/store/?"), _reads_event),
)
"""Path and what reads the body, for each protocol."""
