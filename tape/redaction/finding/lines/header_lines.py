"""Find the secrets of a header line in a text: what the field itself would hide (`..secrets_in_heads`), if it looks like a secret.

The fields are those of `credential_fields.HEADERS` whose names no other head reads, and those that send a client somewhere. A value is a scheme
and parameters (RFC 9110 section 11.4), a signature with what it was made by, a list, or a URL.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from ....records.credential_parts import find_in_protocols
from ...credential_fields import (
    AUTHORIZATION,
    COOKIE,
    HEADERS,
    OPEN_PARAMETERS,
    SECRET,
    SIGNATURE,
    TOKEN,
    URL_HEADERS,
    find_header,
)
from ...looks_like_secret import is_placeholder, is_random, is_strong
from ..pattern_prefilter import Head
from ..searched_text import Context, Found, Side, Strings, side_before

_READ_BY_NAME = ("key", "token", "secret", "jwt", "jwt-assertion", "authorization")
"""Ends of names that are read as those of any value."""
_SENDING = URL_HEADERS - {"referer"}
"""Fields of answers that send a client somewhere: to where the code of a grant is read."""
_PROTOCOLS = "sec-websocket-protocol"
_NAMES = (
    *(
        name
        for name, kind in HEADERS.items()
        if kind != COOKIE and not name.endswith(_READ_BY_NAME)
    ),
    *sorted(_SENDING),
    _PROTOCOLS,
)
_LONGEST_FIRST = sorted(_NAMES, key=len, reverse=True)
_BETWEEN = r"\\{0,7}[\"']?\s?:\s?(?:\[(?:\s|\\{1,7}n){0,24})?\\{0,7}[\"']?"
"""What is between a name and its value, in JSON too, where it may be the first one of a list."""
HEADER_LINE = Head(f"(?:{'|'.join(_LONGEST_FIRST)}){_BETWEEN}[A-Za-z0-9/]", caseless=True)
_NAME = re.compile(
    rb"[\"']?\\{0,7}(?:(?:\s|n\\{1,7}){0,24}\[)?\s?:\s?[\"']?\\{0,7}(%s)"
    % "|".join(name[::-1] for name in _LONGEST_FIRST).encode(),
    re.IGNORECASE,
)
"""The end of a head, read backwards."""
_LONGEST_NAME = 96
_LONGEST = 4096
_LINE_END = re.compile(rb"[\r\n]|\\+[nr]")
"""In strings of JSON, too."""
_MOST_ITEMS = 32
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9-]{1,24}[ \t]+(?=[A-Za-z0-9])")
PARAMETERS = re.compile(
    rb"(?i)(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))authorization\\*[\"']?\s{0,2}[:=]\s{0,2}\\*[\"']?[A-Za-z][A-Za-z0-9-]{1,24}[ \t]+(?=[A-Za-z_-]{1,40}[ \t]?=[^=])"
)
"""An `authorization` up to its first parameter."""
_ITEM = re.compile(
    rb"(?:(?P<name>[A-Za-z_][\w-]{0,40})[ \t]?=[ \t]?(?![=\s]))?"
    rb"(?:(?P<quote>\\*[\"'])(?P<quoted>[^\"'\\\r\n]{0,4096})(?P=quote)|(?P<plain>[^\s,;\"'\\<>]{1,4096}))"
)
_NEXT = re.compile(rb"[ \t]*[,;][ \t]*|[ \t]+(?=[A-Za-z_][\w-]{0,40}=)")
_LEAST = 16
_TOKEN = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")
_URL = re.compile(rb"[^\s\"'<>\\]{1,4096}")
_CODE = re.compile(rb"[?&#]code=([^&#;]{16,2048})")
_STATE = re.compile(rb"[?&#]state=[^&#;]")


def find_in_header_line(context: Context, end: int, strings: Strings) -> list[Found] | None:
    """Look at the value of a field whose name ends a head."""
    data = context.data
    strings.judged = False
    start = end - 1
    read = _NAME.match(data[max(0, start - _LONGEST_NAME) : start][::-1])
    if read is None or side_before(data, start - read.end()) is not Side.FREE:
        return None
    name = read[1][::-1].decode().lower()
    if name in _SENDING:
        return _find_code(data, start) or None
    stop = _end_of_line(data, start)
    if name == _PROTOCOLS:
        return _find_protocols(data, start, stop) or None
    kind = find_header(name) or AUTHORIZATION
    scheme = _SCHEME.match(data, start, stop)
    return (
        find_parameters(data, start, stop, kind)
        or (find_parameters(data, scheme.end(), stop, kind) if scheme else None)
        or None
    )


def find_in_authorization(data: bytes, start: int) -> list[Found]:
    """Find the secrets among the parameters of an `authorization` that begins about here."""
    read = PARAMETERS.search(data, max(0, start - 40), start + 40)
    if read is None:
        return []
    return find_parameters(data, read.end(), _end_of_line(data, read.end()), AUTHORIZATION)


def _end_of_line(data: bytes, start: int) -> int:
    stop = min(len(data), start + _LONGEST)
    found = _LINE_END.search(data, start, stop)
    return found.start() if found else stop


def find_parameters(data: bytes, start: int, stop: int, kind: str) -> list[Found]:
    """Find the secrets of a list of values, with or without names."""
    return [
        Found(*place, kind, learn=kind != SIGNATURE)
        for name, place in _items(data, start, stop)
        if name.lower() not in OPEN_PARAMETERS and _is_secret(data[slice(*place)])
    ]


def _items(data: bytes, start: int, stop: int) -> Iterator[tuple[bytes, tuple[int, int]]]:
    for _ in range(_MOST_ITEMS):
        item = _ITEM.match(data, start, stop)
        if item is None:
            return
        first, last = item.span("plain" if item["quote"] is None else "quoted")
        name = item["name"] or b""
        if name.lower() == b"credential" and (slash := data.find(b"/", first, last)) >= 0:
            last = slash  # what is behind it says for whom it was signed
        elif not name and (colon := data.find(b":", first, last)) >= 0:
            first = colon + 1  # an account and its signature
        yield name, (first, last)
        following = _NEXT.match(data, item.end(), stop)
        if following is None:
            return
        start = following.end()


def _is_secret(value: bytes) -> bool:
    if len(value) < _LEAST or is_placeholder(value):
        return False
    return is_strong(value) or (_TOKEN.fullmatch(value) is not None and is_random(value))


def _find_code(data: bytes, start: int) -> list[Found]:
    """Find the code of an OAuth grant: `state` is beside it (RFC 6749 section 4.1.2)."""
    url = _URL.match(data, start)
    if url is None or _STATE.search(url[0]) is None:
        return []
    return [
        Found(start + code.start(1), start + code.end(1), TOKEN, learn=True)
        for code in _CODE.finditer(url[0])
        if is_random(unquote_to_bytes(code[1]))
    ]


def _find_protocols(data: bytes, start: int, stop: int) -> list[Found]:
    """Find the secrets among the subprotocols of a WebSocket."""
    return [
        Found(start + first, start + last, SECRET, learn=True)
        for first, last in find_in_protocols(data[start:stop])
        if is_strong(data[start + first : start + last])
    ]
