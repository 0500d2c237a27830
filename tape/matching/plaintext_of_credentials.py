"""Find whether an earlier answer or request of the tape says, in plain, what a recorded credential stands for.

Either is kept as it came where nothing in it is known as a secret: a token in HTML, in a text, in a member without a
telling name. Once the agent sends it as a credential, the tape has a placeholder in that place. Which value that stands for
nobody can say from the placeholder, but what was said can be tried: a placeholder has the length of its value and
its signs, and the store's key gives it again.
"""

import html
import re
from collections.abc import Callable, Iterator

from ..canonical.canonical_request import MAX_PARSED
from ..exchange import Exchange, Request, Response, Seq
from ..records.content_coding import read_codings, undo_what_came
from ..records.redacted_value_spelling import list_texts_in_base64

_MOST_ANSWERS = 100
_MOST_BYTES = 4 * 1024 * 1024
_MOST_BYTES_ASKED = 1024 * 1024
"""Of requests: each of a conversation says all that was said before."""
_MOST_TRIED = 20_000
_SHORTEST = 8
"""Bytes of a value that is looked for; shorter ones are words that stand anywhere."""
_SHORTEST_CODE = 6
"""Of one with a digit, as the code in a mail: it is looked for between signs alone."""
_DIGIT = re.compile(rb"[0-9]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|\\/")
_CODED = frozenset(b"+/_-")
"""Signs that may have been letters or digits, as part of base64, and the other way round."""

Read = Callable[[Seq], Exchange | None]


class PlainAnswers:
    """The answers and requests of one tape, as far as they are looked through."""

    def __init__(self, read: Read, stands_for: Callable[[bytes], bytes]) -> None:
        """Begin with nothing.

        read: gives an exchange of the tape; None where it cannot be read.
        stands_for: gives the placeholder of a value, with the tape's key.
        """
        self._read = read
        self._stands_for = stands_for
        self._known: dict[bytes, bool] = {}

    def say(self, placeholder: bytes, before: Seq) -> bool:
        """Say whether one of the last answers or requests before a recorded one has the value that a placeholder stands for.

        May read the tape.
        """
        known = self._known.get(placeholder)
        if known is None:
            known = self._known[placeholder] = self._look(placeholder, before)
        return known

    def _look(self, placeholder: bytes, before: Seq) -> bool:
        form = b"(" + b"".join(map(_class_of, placeholder)) + b")"
        if len(placeholder) >= _SHORTEST:
            pattern = re.compile(b"(?=" + form + b")")
        elif len(placeholder) >= _SHORTEST_CODE and _DIGIT.search(placeholder):
            pattern = re.compile(b"(?<![A-Za-z0-9])(?=" + form + b"(?![A-Za-z0-9]))")
        else:
            return False
        for part, most in ((_read_answer, _MOST_BYTES), (_read_request, _MOST_BYTES_ASKED)):
            if self._look_in(part, most, pattern, placeholder, before):
                return True
        return False

    def _look_in(
        self,
        part: Callable[[Exchange], Iterator[bytes]],
        most_bytes: int,
        pattern: re.Pattern[bytes],
        placeholder: bytes,
        before: Seq,
    ) -> bool:
        left, tried = most_bytes, _MOST_TRIED
        for number in range(before - 1, max(0, before - 1 - _MOST_ANSWERS), -1):
            exchange = self._read(Seq(number))
            for text in part(exchange) if exchange is not None else ():
                left -= len(text)
                if left < 0:
                    return False
                for found in pattern.finditer(text):
                    tried -= 1
                    if tried < 0:
                        return False
                    if self._stands_for(found[1]) == placeholder:
                        return True
        return False


def _class_of(code: int) -> bytes:
    """Give the characters that a placeholder may have this one for; see `redaction/placeholders/same_form_value.py`."""
    if code in _CODED:
        return b"[A-Za-z0-9+/_-]"
    one = bytes([code])
    if code >= 0x80:  # of a letter, which becomes another one
        return rb"[\x80-\xff]"
    return b"[A-Za-z0-9]" if one.isalnum() else re.escape(one)


def _read_answer(exchange: Exchange) -> Iterator[bytes]:
    response = exchange.response
    if response is not None:
        yield from _read_texts(b"\n".join([value for _, value in response.headers]))
        yield from _read_texts(_body(response))


def _read_request(exchange: Exchange) -> Iterator[bytes]:
    yield from _read_texts(_body(exchange.request))


def _read_texts(text: bytes) -> Iterator[bytes]:
    """Give a text as it came, and with its escapes undone, of which there are those of URLs, JSON and HTML; each also out of base64."""
    for plain in _read_escapes(text):
        yield plain
        yield from list_texts_in_base64(plain)


def _read_escapes(text: bytes) -> Iterator[bytes]:
    yield text
    if b"&" in text:
        plain = html.unescape(text.decode("utf-8", "replace")).encode("utf-8", "replace")
        if plain != text:
            yield plain
    if (b"%" in text or b"\\" in text) and (plain := _ESCAPE.sub(_undo, text)) != text:
        yield plain


def _undo(escape: re.Match[bytes]) -> bytes:
    if escape[2]:
        return chr(int(escape[2], 16)).encode()
    return bytes([int(escape[1], 16)]) if escape[1] else b"/"


def _body(message: Request | Response) -> bytes:
    codings = read_codings(message.headers) if message.body else b""
    if not codings:
        return message.body
    return undo_what_came(message.body, codings, MAX_PARSED) or b""
