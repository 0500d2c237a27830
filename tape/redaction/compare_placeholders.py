"""Redaction markers: in a canonical form a placeholder counts only by its place.

A tape plays under other credentials, dummy ones too, and in a store with another key, because nothing of a secret is in the form that
is looked up but that there is one. Its kind is not: the same value is found by the name of its place in one request, and because an
earlier one had it in the next. Whether it is the recorded value is compared afterwards (`tape/matching`).
"""

import re
from bisect import bisect
from collections.abc import Iterable
from dataclasses import replace

from ..exchange import (
    ANOTHER,
    BODY,
    TARGET,
    UNSEARCHED,
    Headers,
    Message,
    MessageKind,
    Request,
    Secret,
)
from .credential_fields import QUERY, SECRET, is_query_secret

PAIRS = re.compile(rb"""([?#&;])([^=?#&;\s<>"']+)=([^&#;\s<>"']*)""")
USERS = re.compile(rb"""((?:[A-Za-z][A-Za-z0-9+.-]*:|(?<![^\s<"'=,;]))//)([^/?#\s<>"'\\]+)@""")
"""User and password of URLs."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BEHIND = tuple(bytes([code]) for code in b",]} \t\r\n")


def mark_text(data: bytes, secrets: Iterable[Secret], *, json: bool) -> bytes:
    """Give a text with its placeholders replaced by their kinds; in JSON it stays JSON."""
    form = b"\\u0000(%s)" if json else b"\x00(%s)"
    secrets = list(secrets)
    numbers = find_numbers(data, secrets) if json else frozenset[int]()
    parts: list[bytes] = []
    at = 0
    for secret in secrets:
        mark = form % _word(secret.kind).encode()
        parts += (data[at : secret.at], b'"%b"' % mark if secret.at in numbers else mark)
        at = secret.at + secret.size
    parts.append(data[at:])
    return b"".join(parts)


def find_numbers(data: bytes, secrets: Iterable[Secret]) -> frozenset[int]:
    """Find the places that are numbers of JSON, as those of cards may be."""
    found = {
        one.at
        for one in secrets
        if one.part == BODY
        and data[one.at : one.at + one.size].isdigit()
        and data[one.at + one.size : one.at + one.size + 1] in _BEHIND
    }
    starts = sorted(found)
    for string in _STRING.finditer(data) if found else ():
        first, behind = bisect(starts, string.start()), bisect(starts, string.end())
        found.difference_update(starts[first:behind])
    return frozenset(found)


def _word(kind: str) -> str:
    if kind == ANOTHER:
        return kind
    # Its hash is compared as a value is: another store has another key.
    return UNSEARCHED if kind.startswith(UNSEARCHED) else SECRET


def mark_request(request: Request, *, json: bool) -> Request:
    """Give a request as it is compared, where it holds placeholders.

    json: whether its body is JSON.
    """
    body = request.body
    inside = [secret for secret in request.secrets if secret.part == BODY]
    if inside and body:  # else it lies in a file, and its hash was taken of what is compared
        body = mark_text(body, inside, json=json)
    parts: list[str] = []
    at = 0
    for secret in request.secrets:
        if secret.part == TARGET:
            parts += (request.target[at : secret.at], f"%00({_word(secret.kind)})")
            at = secret.at + secret.size
    parts.append(request.target[at:])
    return replace(request, target="".join(parts), body=body, secrets=())


def mark_fields(headers: Headers) -> Headers:
    """Give header fields as they are compared: the secrets of URLs in one count by kind."""
    text = b"".join([value for _, value in headers])
    if b"?" not in text and b"#" not in text and not (b"@" in text and b"//" in text):
        return headers
    return tuple((name, _mark_urls(value)) for name, value in headers)


def _mark_urls(value: bytes) -> bytes:
    if b"?" in value or b"#" in value:
        value = PAIRS.sub(_mark_pair, value)
    return USERS.sub(_mark_user, value) if b"@" in value else value


def _mark_user(user: re.Match[bytes]) -> bytes:
    marked = [b"%00(secret)" if one else one for one in user[2].split(b":")]
    return b"%b%b@" % (user[1], b":".join(marked))


def _mark_pair(pair: re.Match[bytes]) -> bytes:
    kind = kind_of_pair(pair)
    return b"%b%b=%%00(%b)" % (pair[1], pair[2], kind.encode()) if kind else pair[0]


def kind_of_pair(pair: re.Match[bytes]) -> str | None:
    """Give the kind of secret that a pair of a URL holds; one without a value holds none."""
    name = pair[2].decode("latin-1").lower()
    return QUERY.get(name) if pair[3] and is_query_secret(name, pair[3].decode("latin-1")) else None


def mark_message(message: Message) -> bytes:
    """Give the data of a message of a WebSocket as it is compared."""
    if not message.secrets:
        return message.data
    return mark_text(message.data, message.secrets, json=message.kind is MessageKind.TEXT)


def blank(data: bytes, secrets: Iterable[Secret], start: int) -> bytes:
    """Give a piece of a body that begins at `start` with NUL for each byte of a placeholder."""
    for secret in secrets:
        first, last = max(0, secret.at - start), secret.at + secret.size - start
        if secret.part == BODY and last > 0 and first < len(data):
            last = min(last, len(data))
            data = data[:first] + bytes(last - first) + data[last:]
    return data
