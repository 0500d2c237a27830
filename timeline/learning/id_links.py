"""Say whether ids tie requests together: a profile links these, and leaves other tokens out; no rule ignores them.

Of what a pattern of a profile finds (`tie_requests`):

1. It has letters, or stands in a word with letters, as a time does in `read_file_1732464000000_0`: a number alone says when, or how long.
2. One of the first recording stands for one of the second, and back, wherever they are.
3. One comes in more than one place: in several requests, or several times in one.

Of a place that a rule would ignore (`Holders`): another request has a value of it, too. By it one may say which other one is meant, as a
release says which hold: if it is ignored, another hold could be released. A request that was sent again has the values of the first
one, and means nothing by it. What a model is asked is looked at elsewhere (`seen_before_sent.py`), and telemetry tells of requests that it
changes nothing in.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

from ...config.schema import Classes
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.canonical.regex_masks import Pattern, find_ids, what_is_left
from ...tape.diff.align import scrubbed_key
from ...tape.exchange import Exchange, Request, RequestClass
from ...tape.matching.index import reclassify
from ...tape.playback.websocket import as_request
from .answer_texts import read_all_ways
from .identifying_words import find_parts

_PASSED = (RequestClass.INFERENCE, RequestClass.TELEMETRY)
_WORD = re.compile("(?=.*[A-Za-z])[0-9A-Za-z_.:-]{8,128}")


def tie_requests(regex: str, requests: Iterable[Iterable[tuple[str, str]]]) -> bool:
    """Say whether a pattern finds ids that tie requests together.

    requests: what stands in its place in each request of two recordings.
    """
    pattern = Pattern(regex)
    stands_for: dict[bytes, bytes] = {}
    came_from: dict[bytes, bytes] = {}
    count: Counter[bytes] = Counter()
    for values in requests:
        for old, new in values:
            if len(what_is_left(old, (pattern,))) == 1 and len(what_is_left(new, (pattern,))) == 1:
                continue
            olds, news = (list(find_ids(text, [pattern])) for text in (old, new))
            if len(olds) != len(news):
                return False
            for one, other in zip(olds, news, strict=True):
                if not (_is_id(one) and _is_id(other)):
                    return False
                if stands_for.setdefault(one, other) != other:
                    return False
                if came_from.setdefault(other, one) != one:
                    return False
                count[one] += 1
    return any(number > 1 for number in count.values())


def _is_id(found: bytes) -> bool:
    text = found.decode("utf-8", "replace")
    return bool(_WORD.fullmatch(text))


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
