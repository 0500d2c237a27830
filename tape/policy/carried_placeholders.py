"""Placeholders that answers of a tape gave, and which of them a request carries: plain, escaped, in hex, in base64, in a content coding.

HTTP Basic is base64 of a user and a password. What an agent makes otherwise of a placeholder, such as a hash or a signature, is not
seen, nor a short one, which may stand anywhere by chance.
"""

import re
from collections.abc import Iterable, Iterator

import ahocorasick_rs

from ..exchange import HttpRequest, Seq
from ..records.content_coding import undo_what_came

_CODING = b"content-encoding"
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}|\\+(?:u00[0-9A-Fa-f]{2}|[^u\\])", re.DOTALL)
"""One character as a URL, a form or a string of JSON may have it."""


class CarriedPlaceholders:
    """What was given in the place of secrets, each with the exchange of the tape that gave it. Belongs to the event loop."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seqs: dict[bytes, Seq] = {}
        """By each way in which one may be written."""
        self._automaton: ahocorasick_rs.BytesAhoCorasick | None = None
        """Finds these; None before it is needed again."""

    def give(self, forms: Iterable[bytes], seq: Seq) -> None:
        """Note what an answer has in the place of secrets.

        forms: all ways in which an agent may write these, see `Redactor.list_forms`.
        """
        for form in forms:
            if form not in self._seqs:
                self._seqs[form] = seq
                self._automaton = None

    def find(self, request: HttpRequest) -> Seq | None:
        """Find the exchange of the tape of whose answer a request carries a placeholder."""
        if not self._seqs:
            return None
        if self._automaton is None:
            self._automaton = ahocorasick_rs.BytesAhoCorasick(list(self._seqs))
        texts = list(self._seqs)
        for place in _list_places(request):
            found = self._automaton.find_matches_as_indexes(place)
            if found:
                return self._seqs[texts[found[0][0]]]
        return None


def _list_places(request: HttpRequest) -> Iterator[bytes]:
    """Give all that a request says, and what it means where there are escapes."""
    headers = (*request.headers, *request.trailers)
    places = [request.target.encode("latin-1", "replace"), *(value for _, value in headers)]
    codings = [value for name, value in request.headers if name.lower() == _CODING]
    body = undo_what_came(request.body, b",".join(codings)) if codings else None
    places.append(request.body if body is None else body)
    for place in places:
        yield place
        if b"%" in place or b"\\" in place:
            yield _ESCAPED.sub(_unescape, place)


def _unescape(one: re.Match[bytes]) -> bytes:
    """Give what an escape means; control characters are in no placeholder."""
    text = one[0]
    if text[:1] == b"%":
        return bytes([int(text[1:], 16)])
    text = text.lstrip(b"\\")
    return bytes([int(text[1:], 16)]) if text[:1] == b"u" else text
