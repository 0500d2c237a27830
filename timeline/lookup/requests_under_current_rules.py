"""The requests of a tape as they would have been recorded under the rules of now.

A rule that a tape was recorded without has left the values of its places there. What is asked now has placeholders in them, so the
tape's have to be placeholders, too, made with the same key: then values are compared as on a tape that was recorded with the rule.
What was replaced while recording stays as it is.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

from ...tape.exchange import BODY, Exchange, Message, Request, Seq


class Redacts(Protocol):
    """Redacts what is stored, and keeps what was replaced."""

    def asked(self, exchange: Exchange) -> Request:
        """Give the request of an exchange under the rules of now; itself where nothing changes."""

    def stored_message(self, message: Message, number: int) -> tuple[Message, object]:
        """Give a message of a WebSocket under the rules of now, and what changed."""


class _Changed(NamedTuple):
    """A request whose values were replaced: all but the bytes of its body that stay."""

    bare: Request
    body: bytes | None
    """None where its length stays: then `pieces` say what is new."""
    pieces: tuple[tuple[int, bytes], ...]

    def put_into(self, request: Request) -> Request:
        body = self.body
        if body is None:
            data = bytearray(request.body)
            for at, piece in self.pieces:
                data[at : at + len(piece)] = piece
            body = bytes(data)
        return replace(self.bare, body=body)


class RecordedRequests:
    """Redacts the requests of one tape, each once. May be used from any thread."""

    def __init__(self, make: Callable[[], Redacts], *, needed: bool = False) -> None:
        """Redact nothing yet.

        make: makes what redacts, with the key and the rules of now; what it learns of the tape nobody else knows.
        needed: whether the tape may have been recorded under other rules.
        """
        self._make = make
        self.needed = needed
        """Without it each request is as it is stored."""
        self._redacts: Redacts | None = None
        self._changed: dict[Seq, _Changed | None] = {}
        """By exchange, since what is found in one depends on those that were read before it."""
        self._lock = threading.Lock()

    def find(self, exchange: Exchange) -> Exchange:
        """Give an exchange of the tape with its request under the rules of now; a body in a file stays as it is."""
        if not self.needed:
            return exchange
        with self._lock:
            if exchange.seq in self._changed:
                changed = self._changed[exchange.seq]
                if changed is None:
                    return exchange
                return replace(exchange, request=changed.put_into(exchange.request))
            request = self._open().asked(exchange)
            if request is exchange.request:
                self._changed[exchange.seq] = None
                return exchange
            self._changed[exchange.seq] = _compare(exchange.request, request)
            return replace(exchange, request=request)

    def find_messages(self, messages: Iterator[Message]) -> Iterator[Message]:
        """Give the messages of a WebSocket of the tape, those of the client under the rules of now."""
        if not self.needed:
            return messages
        return map(self._find_message, messages)

    def _find_message(self, message: Message) -> Message:
        if not message.from_client:
            return message
        with self._lock:
            return self._open().stored_message(message, 0)[0]

    def _open(self) -> Redacts:
        if self._redacts is None:
            self._redacts = self._make()
        return self._redacts


def _compare(old: Request, new: Request) -> _Changed:
    bare = replace(new, body=b"")
    if len(old.body) != len(new.body):
        return _Changed(bare, new.body, ())
    inside = [one for one in new.secrets if one.part == BODY]
    pieces = tuple((one.at, new.body[one.at : one.at + one.size]) for one in inside)
    return _Changed(bare, None, pieces)
