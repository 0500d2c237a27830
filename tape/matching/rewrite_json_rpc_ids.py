"""Rewrite recorded JSON-RPC ids in an answer to those of the current client.

A request of JSON-RPC is found without its id (`json_rpc_client_ids.py`), so its recorded answer may name it otherwise than the
client does now. Rules:

1. Each id that differs is written over in place; every other byte and every boundary between pieces stays, and
   `content-length` is corrected, digests of the body are left out. Where no id differs, nothing is touched, nor is an answer that is neither JSON
   nor an event stream.
2. A body with a content coding is served decoded, without the field that says so, only where an id has to change.
3. An event stream that was asked for with GET may answer requests of the same origin and MCP session: its ids
   are those known when a piece is played. It is left alone where it has a content coding or a length.
4. What is not understood stays as recorded, and so does a body that lies in a file because of its size.

Pure: it remembers and rewrites, and does no I/O.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..canonical.canonical_request import MAX_PARSED, BodyKind, open_body
from ..canonical.json_rpc_client_ids import (
    Names,
    Place,
    find_cancelled,
    find_names,
    find_places,
    parse_id,
)
from ..exchange import Chunk, Exchange, HttpResponse, Request, RequestClass
from ..headers.shipped_lists import DIGESTS, MCP_SESSION
from ..records.content_coding import read_codings, undo_what_came

MAX_NAMES = 10_000
"""Ids remembered for an origin and session; the oldest are forgotten."""
MAX_ORIGINS = 256
_MAX_UNDONE = 32 * 1024 * 1024
"""Bytes that may be decoded to find where pieces end in a coded body; beyond, it comes in one piece."""

_Origin = tuple[str, str, int, bytes]


class Spelling:
    """Writes ids over, piece by piece."""

    def __init__(self, places: list[Place], find: Callable[[Place], bytes | None]) -> None:
        """Write what `find` gives over each of `places`; None leaves it, and so does the same id."""
        self._places = places
        self._starts = [place.start for place in places]
        self._find = find
        self._found: dict[int, bytes | None] = {}
        self._at = 0

    def take(self, data: bytes) -> bytes:
        """Give what stands for the next piece of the body.

        An id that is split stands whole in the piece in which it began, so a piece may become empty.
        """
        start, end = self._at, self._at + len(data)
        self._at = end
        parts: list[bytes] = []
        done = start
        index = max(0, bisect_right(self._starts, start) - 1)
        for number in range(index, len(self._places)):
            place = self._places[number]
            if place.start >= end:
                break
            if place.end <= start:
                continue
            new = self._new(number)
            if new is None:
                continue
            if place.start >= start:
                parts += (data[done - start : place.start - start], new)
            done = min(place.end, end)
        if done == start and not parts:
            return data
        return b"".join((*parts, data[done - start :]))

    def growth(self) -> int | None:
        """Give by how many bytes the body grows, as known now; None where nothing changes."""
        grown = None
        for number, place in enumerate(self._places):
            new = self._new(number)
            if new is not None:
                grown = (grown or 0) + len(new) - (place.end - place.start)
        return grown

    def _new(self, number: int) -> bytes | None:
        # Asked once: what is known of an id may change while its two halves are played.
        if number not in self._found:
            place = self._places[number]
            new = self._find(place)
            self._found[number] = new if new is None or parse_id(new) != place.key else None
        return self._found[number]


class IdRewriting:
    """What the requests of one playback are called now, and their answers with these names."""

    def __init__(self) -> None:
        """Begin with no ids rewritten."""
        self._known: dict[_Origin, Names] = {}

    def answer(self, asked: Request, exchange: Exchange) -> tuple[Exchange, Spelling | None]:
        """Give an exchange as it is to be played for a request, and what to do to each piece of its answer."""
        response, spelling = self.rewrite(asked, exchange, exchange.response)
        if response is not exchange.response:
            exchange = replace(exchange, response=response)
        return exchange, spelling

    def rewrite[Answer: HttpResponse](
        self, asked: Request, exchange: Exchange, response: Answer | None
    ) -> tuple[Answer | None, Spelling | None]:
        """Give a recorded answer as it is to be played for a request, and what to do to each piece of it.

        exchange: whose answer it is.
        """
        origin = _origin(asked)
        known = self._known.get(origin)
        recorded = exchange.request
        if asked.body and (known is not None or asked.body != recorded.body):
            names = _names(recorded, asked)
            if names is not None:
                self._note(origin, names)
                return _rewritten(response, names)
        if asked.method == "GET":
            return response, self._follow(origin, exchange)
        return response, None

    def cancels_another(self, asked: Request, recorded: Request) -> bool:
        """Say whether a request cancels another one than the recorded request that would answer it did."""
        known = self._known.get(_origin(asked))
        for then, now in find_cancelled(recorded.body, asked.body):
            written = known.ids.get(then) if known is not None else None
            if now != (then if written is None else parse_id(written)):
                return True
        return False

    def _note(self, origin: _Origin, names: Names) -> None:
        known = self._known.setdefault(origin, Names({}, {}))
        for mine, new in zip(known, names, strict=True):
            for key, written in new.items():
                mine.pop(key, None)
                if parse_id(written) != key:
                    mine[key] = written
                    if len(mine) > MAX_NAMES:
                        del mine[next(iter(mine))]
        if not any(known):
            del self._known[origin]
        elif len(self._known) > MAX_ORIGINS:
            del self._known[next(iter(self._known))]

    def _follow(self, origin: _Origin, exchange: Exchange) -> Spelling | None:
        response = exchange.response
        if (
            response is None
            or exchange.request_class is RequestClass.INFERENCE
            or not response.is_events
            or b"jsonrpc" not in response.body
            or response.header(b"content-encoding") is not None
            or response.header(b"content-length") is not None
        ):
            return None
        places = find_places(response.body, events=True)
        if not places:
            return None

        def find(place: Place) -> bytes | None:
            known = self._known.get(origin)
            return None if known is None else known.find(place)

        return Spelling(places, find)


def _origin(request: Request) -> _Origin:
    session = request.header(MCP_SESSION) or b""
    return request.scheme, request.host, request.port, session


def _names(recorded: Request, asked: Request) -> Names | None:
    bodies = []
    for request in (recorded, asked):
        body, content = open_body(request)
        if request.spilled is not None or content is None or content.kind is not BodyKind.JSON:
            return None
        bodies.append(body)
    return find_names(*bodies)


def _rewritten[Answer: HttpResponse](
    response: Answer | None, names: Names
) -> tuple[Answer | None, Spelling | None]:
    if response is None or response.spilled is not None or not response.body:
        return response, None
    events = response.is_events
    coding = read_codings(response.headers)
    plain = undo_what_came(response.body, coding, MAX_PARSED) if coding else response.body
    if plain is None:
        return response, None
    spelling = Spelling(find_places(plain, events=events), names.find)
    growth = spelling.growth()
    if growth is None:
        return response, None
    if coding:
        growth += len(plain) - len(response.body)
        response = _decoded(response, coding, plain)
    fields = [one for one in response.headers if one[0].lower() not in DIGESTS]
    headers = tuple(_lengthened(name, value, growth) for name, value in fields)
    return replace(response, headers=headers), spelling


def _lengthened(name: bytes, value: bytes, growth: int) -> tuple[bytes, bytes]:
    if name.lower() == b"content-length" and value.isdigit():
        return name, b"%d" % max(0, int(value) + growth)
    return name, value


def _decoded[Answer: HttpResponse](response: Answer, coding: bytes, plain: bytes) -> Answer:
    headers = tuple(field for field in response.headers if field[0].lower() != b"content-encoding")
    chunks = tuple(_decoded_chunks(response, coding, plain))
    return replace(response, headers=headers, body=plain, chunks=chunks)


def _decoded_chunks(response: HttpResponse, coding: bytes, plain: bytes) -> Iterator[Chunk]:
    """Give the pieces again, each with what could be read of the body once it had come."""
    chunks = response.chunks
    come, done = 0, 0
    for number, chunk in enumerate(chunks, 1):
        come += chunk.size
        if number == len(chunks):
            size = len(plain)
        elif len(plain) * len(chunks) > _MAX_UNDONE:
            size = 0
        else:
            size = len(undo_what_came(response.body[:come], coding, MAX_PARSED) or b"")
        yield chunk._replace(size=max(0, size - done))
        done = max(done, size)
