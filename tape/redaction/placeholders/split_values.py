"""List the placeholders of a stored text, each as a client reads it: one that a stream says in several events is one value.

So is one that is in base64 together with the bytes around it: a client that decodes it has the value alone.

A piece of such a value is no value. Remembered as one, it would be replaced wherever else its characters are, and the whole value,
which the client sends back, would be taken for a secret that nobody has seen.

Secrets that go on in the next event are marked (`PIECE`). On tapes of before they are not: there a list of tokens, one an event,
looks as one token in pieces does. So both are listed.
"""

from collections.abc import Sequence

from ...exchange import PIECE, Secret
from ...records.redacted_value_spelling import read_coded
from ..finding.join_stream_pieces import find_spelled
from .placeholder import unescape

_Place = tuple[int, int]


def list_values(data: bytes, secrets: Sequence[Secret], *, events: bool | None) -> list[bytes]:
    """List the values at some places of a text without their escapes, in the order in which they begin.

    secrets: those of this text alone.
    events: whether the text is a stream of events, or else lines or items of JSON; None for neither.
    """
    places = sorted({(one.at, one.at + one.size) for one in secrets})
    marked = {one.at for one in secrets if one.coded == PIECE}
    coded = {(one.at, one.at + one.size): one.coded for one in secrets}
    if events is None or len(places) < 2:
        return [_read(data, [place], coded[place]) for place in places]
    behind = _find_next(data, places, marked, events=events)
    inside = set(behind.values())
    values: list[bytes] = []
    for place in places:
        if not marked:
            values.append(_read(data, [place], coded[place]))
        if place in inside or (not marked and place not in behind):
            continue
        pieces = [place]
        while (following := behind.get(pieces[-1])) is not None:
            pieces.append(following)
        values.append(_read(data, pieces, coded[place]))
    return values


def _read(data: bytes, pieces: list[_Place], coded: str) -> bytes:
    """Give the value of some pieces.

    coded: how the first says that it is written.
    """
    raw = unescape(b"".join([data[start:end] for start, end in pieces]))
    plain = read_coded(raw, coded) if coded else raw
    return raw if plain is raw else unescape(plain)


def _find_next(
    data: bytes, places: list[_Place], marked: set[int], *, events: bool
) -> dict[_Place, _Place]:
    """Find which place goes on in which other one: it ends with a piece of the stream, and the other begins with the next piece.

    marked: where those begin that others go on in; empty where nobody knows.
    """
    begins = {start: (start, end) for start, end in places if not marked or start in marked}
    ends = {end: (start, end) for start, end in places}
    found: dict[_Place, _Place] = {}
    for spelled in find_spelled(data, events=events):
        before = -1
        for start, end in spelled.places():
            one, other = ends.get(before), begins.get(start)
            if one is not None and other is not None and one < other:
                found.setdefault(one, other)
            before = end
    return found
