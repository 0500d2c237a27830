"""Give the bodies of an exchange as text, for a search."""

from ...tape.exchange import Exchange, HttpRequest, HttpResponse
from ...tape.records.content_coding import read_codings, undo_coding

_MOST = 64 * 1024 * 1024
"""Bytes that a compressed body is unpacked into."""


def read_bodies(exchange: Exchange) -> tuple[str, ...]:
    """Give what was sent and what was answered, without compression; nothing of a body that is in a file of its own."""
    return tuple(filter(None, map(_read, (exchange.request, exchange.response))))


def _read(one: HttpRequest | HttpResponse | None) -> str:
    if one is None or one.spilled is not None or not one.body:
        return ""
    coding = read_codings(one.headers)
    plain = undo_coding(one.body, coding, _MOST) if coding else one.body
    return (one.body if plain is None else plain).decode("utf-8", "replace")
