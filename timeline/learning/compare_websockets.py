"""Compare the client's messages of two WebSockets.

Each is compared with the one of the same place among the client's, as a playback does: there they come in the tape's
order or not at all. Messages are read one by one, since there may be many.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from ...tape.canonical.canonical_request import Masks
from ...tape.exchange import Message
from ...tape.playback.websocket import is_same


class Said(NamedTuple):
    """A message of the client."""

    number: int
    """Its place among the messages, from 0."""
    message: Message


Pair = tuple[Said | None, Said | None]
"""Of the same place among the client's; None where one side said no more."""


def find_strays(one: Iterable[Message], other: Iterable[Message], masks: Masks) -> Iterator[Pair]:
    """Give the messages of the client that a playback of one would not take for the other's."""
    for pair in zip_longest(_said(one), _said(other)):
        if not _are_same(*pair, masks):
            yield pair


def _said(messages: Iterable[Message]) -> Iterator[Said]:
    for number, message in enumerate(messages):
        if message.from_client:
            yield Said(number, message)


def _are_same(one: Said | None, other: Said | None, masks: Masks) -> bool:
    if one is None or other is None or one.message.kind is not other.message.kind:
        return False
    return is_same(one.message.kind, one.message.data, other.message.data, masks)
