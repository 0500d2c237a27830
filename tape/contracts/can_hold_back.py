"""Which answers can be held back until they are checked: complete, small and successful ones."""

from ..exchange import Headers

STREAMS = (
    b"text/event-stream",
    b"application/vnd.amazon.eventstream",
    b"application/x-ndjson",
    b"application/jsonl",
)
"""Types of content that is of use before it has ended."""
_BODILESS = frozenset({204, 205})


def is_stream(headers: Headers) -> bool:
    """Say whether an answer's head announces a stream."""
    kinds = (value.strip().lower() for name, value in headers if name.lower() == b"content-type")
    return any(kind.startswith(STREAMS) for kind in kinds)


def is_judged(status: int) -> bool:
    """Say whether an answer with this status is one that a contract speaks of."""
    return 200 <= status < 300 and status not in _BODILESS


def can_hold(method: str, status: int, headers: Headers) -> bool:
    """Say by its head whether an answer can be held back, its size aside."""
    return method != "HEAD" and is_judged(status) and not is_stream(headers)
