"""The trace that a request belongs to, as tracing systems write it into header fields.

Such fields are noise in matching: each run has others. They are how a run is found from a trace.

Source: W3C Trace Context (`traceparent`), B3 (`b3`, `x-b3-traceid`), AWS X-Ray (`x-amzn-trace-id`), Google Cloud
(`x-cloud-trace-context`), Jaeger (`uber-trace-id`). Some libraries write ids in capitals.
"""

import re

from ..exchange import Headers

_FIELDS: dict[bytes, re.Pattern[bytes]] = {
    b"traceparent": re.compile(rb"\s*[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}"),
    b"b3": re.compile(rb"\s*([0-9a-f]{32}|[0-9a-f]{16})-"),
    b"x-b3-traceid": re.compile(rb"\s*([0-9a-f]{32}|[0-9a-f]{16})\s*$"),
    b"x-amzn-trace-id": re.compile(rb".{0,256}?Root=(1-[0-9a-f]{8}-[0-9a-f]{24})"),
    b"x-cloud-trace-context": re.compile(rb"\s*([0-9a-f]{32})\b"),
    b"uber-trace-id": re.compile(rb"\s*([0-9a-f]{1,32}):"),
}
_HEX = re.compile(rb"\b[0-9A-Fa-f]{1,32}\b")
_ASKED = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{16,32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?")
_XRAY = re.compile(r"(?:Root=)?(1-[0-9a-f]{8}-[0-9a-f]{24})", re.IGNORECASE)


def find_traces(headers: Headers) -> tuple[str, ...]:
    """Give the ids of the traces that header fields name, each once; nothing for most requests."""
    found: dict[str, None] = {}
    for name, value in headers:
        pattern = _FIELDS.get(name.lower())
        match = pattern.match(_lower_ids(value)) if pattern is not None else None
        if match is not None:
            # Jaeger leaves out the zeros that an id begins with.
            digits = match[1].decode()
            found[digits if "-" in digits else digits.zfill(16 if len(digits) <= 16 else 32)] = None
    return tuple(found)


def _lower_ids(value: bytes) -> bytes:
    """Give a field with its ids in small letters; the names in it are left as they are."""
    return _HEX.sub(lambda found: found[0].lower(), value)


def is_same_trace(one: str, other: str) -> bool:
    """Say whether two ids are of one trace: X-Ray writes hyphens into it, and of 64 bits it is the end of one of 128."""
    one, other = _plain(one), _plain(other)
    return one.endswith(other) or other.endswith(one)


def _plain(trace: str) -> str:
    return trace.lower().removeprefix("1-").replace("-", "")


def parse_trace(text: str) -> str:
    """Read the id of a trace, or a whole `traceparent`.

    Raises: ValueError.
    """
    short = text.strip()
    found = _XRAY.fullmatch(short) or _ASKED.fullmatch(short.lower())
    if found is None:
        raise ValueError(
            f"{text!r} is no trace: expected 32 hexadecimal digits, or a whole traceparent"
        )
    return found[1].lower()
