"""Give an exchange as text, for a search: its bodies as they were sent, and as a person reads them.

Programs write what is not English, blanks and slashes in other ways: JSON escapes, percent-encoding, entities of HTML, another charset.
A text that has such signs is given once more without them, also where they are inside each other, as in JSON in a form.
"""

import html
import re
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus

from ...tape.exchange import Exchange, HttpRequest, HttpResponse
from ...tape.records.content_coding import read_charset, read_codings, undo_coding
from ...tape.records.json_escapes import unescape

_MOST = 64 * 1024 * 1024
"""Bytes that a compressed body is unpacked into."""
_DEPTH = 3
"""Ways of writing inside each other that are undone."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")


def read_texts(exchange: Exchange) -> tuple[str, ...]:
    """Give what was sent and what was answered, without compression, and what either and the URL say; nothing of a body in a file of its own."""
    found = dict.fromkeys(read_plain(exchange.request.url, "form"))
    for one in (exchange.request, exchange.response):
        text = _read(one)
        if one is not None and text:
            found |= dict.fromkeys((text, *read_plain(text, _kind(one))))
    return tuple(found)


def _read(one: HttpRequest | HttpResponse | None) -> str:
    if one is None or one.spilled is not None or not one.body:
        return ""
    coding = read_codings(one.headers)
    plain = undo_coding(one.body, coding, _MOST) if coding else one.body
    plain = one.body if plain is None else plain
    try:
        return plain.decode(read_charset(one.header(b"content-type") or b"") or "utf-8", "replace")
    except (LookupError, ValueError):  # no charset that is known
        return plain.decode("utf-8", "replace")


def _kind(one: HttpRequest | HttpResponse) -> str:
    """Say which way of writing a body has all over."""
    told = (one.header(b"content-type") or b"").lower()
    if b"form-urlencoded" in told:
        return "form"
    return "markup" if b"html" in told or b"xml" in told else "text"


def read_plain(text: str, kind: str = "text") -> Iterator[str]:
    """Give a text without its ways of writing, after each that is undone; nothing of one that has none.

    kind: `form`, also of a URL, where a plus is a blank; `markup`, or `text`.
    """
    for _ in range(_DEPTH):
        before = text
        for undo in (_undo_percent, _undo_entities, _undo_escapes):
            told = undo(text, kind)
            if told != text:
                yield told
            text = told
        if text == before:
            return


def _undo_percent(text: str, kind: str) -> str:
    if kind == "form":
        return unquote_plus(text)
    return unquote(text) if "%" in text and _PERCENT.search(text) is not None else text


def _undo_entities(text: str, kind: str) -> str:
    if kind == "markup":
        return html.unescape(text)
    # Elsewhere only what ends as one: `&copy=1` is a parameter.
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _undo_escapes(text: str, _kind: str) -> str:
    return unescape(text)
