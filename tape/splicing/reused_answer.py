"""A recorded answer as one that is given to another request than the one it answered."""

from ...config import Answer
from ..exchange import Exchange
from ..policy.branch import HYPOTHETICAL
from ..records.content_coding import read_codings, undo_coding
from ..stubs.synthesize import UNTRUE

_CODING = b"content-encoding"
_BODILESS = (204, 304)


def make_answer(exchange: Exchange) -> Answer | None:
    """Give it; None where there is none, or not a whole one."""
    response = exchange.response
    if response is None or response.spilled is not None or exchange.fault is not None:
        return None
    if exchange.gone is not None or exchange.websocket is not None or not response.complete:
        return None
    coding = read_codings(response.headers)
    body = undo_coding(response.body, coding) if coding else response.body
    kept_coding = body is None
    body = response.body if body is None else body
    fields = tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in response.headers
        if name.lower() not in UNTRUE
        and (kept_coding or name.lower() != _CODING)
        and value.isascii()
    )
    length = (("content-length", str(len(body))),) if response.status not in _BODILESS else ()
    return Answer(response.status, (*fields, *length), body, HYPOTHETICAL)
