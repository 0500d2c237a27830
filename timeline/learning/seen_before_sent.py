"""Say whether values were there before the client sent them: then the client has not made them, whatever their place is called.

Words are looked for in the command line and environment of either recording, in the names of the files that its command changed, in what a
model was asked, and in earlier answers. What a command reads from files is in no recording: so this proves nothing alone, and the name of a place
has to say that its values are made anew (`tape/diff/field_name_meaning.py`).
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.diff.suggest_rule import CONTENT_KEYS
from ...tape.exchange import Exchange, RequestClass
from ...tape.records.events import EventKind
from ..receipts.command.command_end import find_command, find_files
from .answer_texts import Spelling, read_all_ways, read_answer_texts
from .identifying_words import HashWord, find_parts, find_words, list_derived

When = tuple[int, int]
"""How many requests had arrived, and the message's place in its WebSocket, or -1; in order of time where one
comes from the other."""


class Told(NamedTuple):
    """A text that a run was told."""

    when: When
    text: bytes | None
    """None where it cannot be searched."""
    is_question: bool = False
    """Whether a model is asked it. Who names a value there had it before, unless an answer brought it in between."""


_UNSEARCHED = b""
"""Among the words that were told: what was not searched, in which any word may be."""
_NO_WORD = re.compile(rb"[^0-9a-z]")
_BEFORE_ALL = 0, -2


def read_told(
    store: Store, run: RunInfo, runs: Iterable[RunInfo], asks_a_model: Callable[[Exchange], bool]
) -> Iterator[Told]:
    """Give what a run was told, and when; blocking, reads it once.

    runs: whose commands may have brought something.
    asks_a_model: whether what a request asks counts as told.
    """
    for one in runs:
        for word in find_command(store.events.all(one)):
            yield from (Told(_BEFORE_ALL, text) for text in _read_word(word))
        for name in find_files(store, one):
            for text in read_all_ways(name.encode("utf-8", "surrogatepass")):
                yield Told(_BEFORE_ALL, text)
    for exchange in store.exchanges.all(run):
        is_model = asks_a_model(exchange)
        if is_model:
            body = open_body(exchange.request)[0]
            # Of what is no JSON nobody knows what is its question: it may have the value itself.
            is_json = body[:1] in (b"{", b"[")
            at: When = exchange.seq, -2 if is_json else -1
            for text in read_all_ways(read_question(body)):
                yield Told(at, text, is_question=is_json)
        yield from read_answer(store, run, exchange)
        if exchange.websocket is not None and is_model:
            for number, message in enumerate(store.messages.all(run, exchange.seq, -1)):
                if message.from_client:
                    is_json = message.data[:1] in (b"{", b"[")
                    for text in read_all_ways(read_question(message.data)):
                        yield Told((message.after, number - 1), text, is_question=is_json)


def is_told(
    values: Iterable[str], command: Iterable[str], before: Iterable[Exchange], until_s: float
) -> bool:
    """Say whether the words of a request were in a command line, or in what a model was asked and what was answered before.

    until_s: on the clock `time.monotonic`, when to give up: then they may have been.
    """
    wanted = {
        word for value in values for word in find_words(value.encode("utf-8", "surrogatepass"))
    }
    if any(_find_slices(text, wanted) for word in command for text in _read_word(word)):
        return True
    for exchange in before:
        if time.monotonic() > until_s:
            return True
        if exchange.request_class is RequestClass.INFERENCE and _has(
            read_question(open_body(exchange.request)[0]), wanted
        ):
            return True
        for text in read_answer_texts(exchange):
            if text is None or wanted & find_parts(text) or time.monotonic() > until_s:
                return True
    return False


def _read_word(word: str) -> Iterator[bytes]:
    """Give what a word of a command says, and what may be derived from it."""
    told = word.encode("utf-8", "surrogatepass")
    yield from read_all_ways(told)
    for one in dict.fromkeys((told, told.partition(b"=")[2])):
        yield from list_derived(one)


def _has(told: bytes, wanted: set[bytes]) -> bool:
    return any(wanted & find_parts(text) for text in read_all_ways(told))


def read_answers(store: Store, run: RunInfo) -> Iterator[Told]:
    """Give what was answered, in the order of the requests, and what servers sent on WebSockets."""
    for exchange in store.exchanges.all(run):
        yield from read_answer(store, run, exchange)


def read_answer(store: Store, run: RunInfo, exchange: Exchange) -> Iterator[Told]:
    """Give what one request was answered, in all its texts."""
    for text in read_answer_texts(exchange, store):
        yield Told((exchange.seq, -1), text)
    if exchange.websocket is not None:
        spelling = Spelling()
        for number, message in enumerate(store.messages.all(run, exchange.seq, -1)):
            if not message.from_client:
                for text in spelling.add(message.data):
                    yield Told((message.after, number), text)


def read_question(body: bytes) -> bytes:
    """Give what a model is asked by a body: all of it where it is no JSON."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return b" ".join(_questions(tree))


def _questions(tree: Any) -> Iterator[bytes]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name in CONTENT_KEYS:
                yield json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            else:
                yield from _questions(value)
    elif isinstance(tree, list):
        for one in tree:
            yield from _questions(one)


def find_first(told: Iterable[Told], wanted: set[bytes]) -> dict[bytes, When]:
    """Find when words were told first, of texts in the order of time; for `Known`.

    A word that a model is asked was there from the beginning, wherever it is sent before, if no answer had it until then.
    """
    found: dict[bytes, When] = {}
    for when, text, is_question in told:
        for word in {_UNSEARCHED} if text is None else wanted & find_parts(text):
            at = _BEFORE_ALL if is_question and word not in found else when
            found[word] = min(at, found.get(word, at))
        if when == _BEFORE_ALL and text is not None:
            found.update(dict.fromkeys(_find_slices(text, wanted), when))
    return found


def _find_slices(text: bytes, wanted: set[bytes]) -> set[bytes]:
    """Find the words that are a part of a text: of the short texts of a command any slice may have been sent."""
    run = _NO_WORD.sub(b"", text.lower())
    return {word for word in wanted if word in run} | (wanted & find_parts(text))


def find_given(
    store: Store, runs: Iterable[RunInfo], wanted: set[bytes], hashed: HashWord | None
) -> dict[bytes, When]:
    """Find the words that the environment of a command had; none if nobody knows the key of its hashes. Blocking."""
    if hashed is None:
        return {}
    given = {
        one
        for run in runs
        for event in store.events.all(run)
        if event.kind is EventKind.NOTED
        for one in event.data.get("environment", ())
    }
    return {word: _BEFORE_ALL for word in wanted if hashed(word) in given}


class Known:
    """The words that one recording was told, for the values of one place in the order in which they were sent.

    A word that the client sent there first is its own: that an answer repeats it changes nothing.
    """

    def __init__(self, told: Mapping[bytes, When]) -> None:
        self._told = told
        self._own = set[bytes]()

    def is_unsearched(self, before: When) -> bool:
        """Say whether some of what was told before was not searched."""
        return self._told.get(_UNSEARCHED, before) < before

    def holds(self, value: str, before: When, *, is_time: bool) -> bool:
        """Say whether a value was told before it was sent, or may have been: without a word nobody knows. Of a time all words have to be."""
        if self.is_unsearched(before):
            return True
        words = find_words(value.encode("utf-8", "surrogatepass"))
        if not words:
            return not is_time
        told = {
            one for one in words if self._told.get(one, before) < before and one not in self._own
        }
        if told and (not is_time or told == words):
            return True
        self._own |= words - told
        return False
