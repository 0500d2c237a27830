"""Find the requests that have a value in common: by it one may say which other one is meant, as a release says which hold.

Such a value is made by the client, and is no throw-away all the same: under a rule that ignores it, another hold could be released.
A request that was sent again has the values of the first one, and means nothing by it. What a model is asked is looked at elsewhere
(`freshness.py`), and telemetry tells of requests that it changes nothing in.
"""

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from ...config.schema import Classes
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.diff.align import scrubbed_key
from ...tape.exchange import Exchange, Request, RequestClass
from ...tape.matching.index import reclassify
from ...tape.playback.websocket import as_request
from .told_texts import read_all_ways
from .words import find_parts

_PASSED = (RequestClass.INFERENCE, RequestClass.TELEMETRY)


class Holders:
    """The requests of one recording that have some words."""

    def __init__(self) -> None:
        """Begin with none."""
        self._keys: dict[bytes, set[bytes]] = {}
        """By word what their requests are but for ids and numbers."""

    def add(self, words: set[bytes], request: Request) -> None:
        """Add a request that has some words."""
        if words:
            key = _key(request)
            for word in words:
                self._keys.setdefault(word, set()).add(key)

    def has_another(self, words: set[bytes], request: Request) -> bool:
        """Say whether a request has one of some words that is not the same as this one, sent again."""
        keys = {key for word in words for key in self._keys.get(word, ())}
        return bool(keys) and keys != {_key(request)}


def find_holders(store: Store, run: RunInfo, classes: Classes, wanted: set[bytes]) -> Holders:
    """Find the requests of a recording, and messages of its clients, that have some words. Blocking, reads it once."""
    found = Holders()
    if not wanted:
        return found
    for recorded in store.exchanges.all(run):
        exchange = reclassify(recorded, classes)
        if exchange.request_class not in _PASSED:
            for request in _read_requests(store, run, exchange):
                parts = {part for text in _read_texts(request) for part in find_parts(text)}
                found.add(wanted & parts, request)
    return found


def _key(request: Request) -> bytes:
    """Give what a request is but for ids and times."""
    return request.method.encode("utf-8", "surrogatepass") + b" " + scrubbed_key(request)


def _read_requests(store: Store, run: RunInfo, exchange: Exchange) -> Iterator[Request]:
    """Give a request, and what its client said on its WebSocket."""
    yield exchange.request
    if exchange.websocket is not None:
        for message in store.messages.all(run, exchange.seq, -1):
            if message.from_client:
                yield as_request(exchange.request, message.data)


def _read_texts(request: Request) -> Iterator[bytes]:
    fields = (value for _, value in (*request.headers, *request.trailers))
    target = unquote_to_bytes(request.target.encode("utf-8", "surrogatepass"))
    yield b"\n".join((target, *fields))
    yield from read_all_ways(open_body(request)[0])
