"""What is new in each exchange of a run, as bytes: a request repeats its conversation, which was looked at before.

A run of 1,000 model calls has hundreds of megabytes of which all but a few are repetitions. What a request has in common with an
earlier one at its beginning and its end is left out, so that looking for a value in a run costs little more than reading it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...tape.canonical.canonical_request import open_body
from ...tape.diff.request_differences import common_prefix
from ...tape.exchange import Exchange
from ...tape.matching.traceable_values import answer_body
from ...tape.records.codec import EncodedExchange, decode_exchange, encode_exchange, split_exchange
from ..state.calls_before import Exchanges

_KEPT = 12
"""Requests that the next one is compared with: the last of as many conversations."""
_SHORT = 512
"""Bytes below which a request is looked at whole."""
_OVERLAP = 256
"""Bytes of what is known that are looked at with what is new, since a value may begin there."""
_HEADS = {0xC4: 2, 0xC5: 3, 0xC6: 5}
"""Bytes that msgpack puts before others, by the first of them."""
_CODED = re.compile(rb"(?i)content-encoding")
_SPELT = {
    b"/v1/messages": ("text", "partial_json", "thinking"),
    b"/chat/completions": ("content", "arguments", "reasoning_content", "reasoning", "refusal"),
    b"/responses": ("delta",),
    b"enerateContent": ("text",),
    b"": (
        *("text", "partial_json", "thinking", "content", "arguments", "delta", "input"),
        *("refusal", "reasoning", "reasoning_content"),
    ),
}
"""Members of events that a stream spells something out in, by what the URL has; the last are those of any."""
_MEMBERS = {url: [f'"{name}":"'.encode() for name in names] for url, names in _SPELT.items()}


@dataclass(slots=True)
class Fresh:
    """An exchange, and what is new in it."""

    seq: int
    packed: EncodedExchange
    after: int
    """Bytes of the body of the request, from its beginning, that an earlier one had."""
    asked: bytes
    """What is new in that body, and a little around it."""
    answered: bytes
    """The body of the answer."""
    head: bytes
    """All but the bodies."""

    @property
    def text(self) -> bytes:
        """All that is new: fields, bodies, and what a stream spells out piece by piece."""
        head, spelt = self.head, b""
        if b"event" in head or b"ndjson" in head:
            spelt = spell(self.answered, next(url for url in _SPELT if url in head))
        return b"\n".join((head, self.answered, spelt, self.asked))

    @property
    def is_websocket(self) -> bool:
        """Whether its messages are apart from it."""
        return b"\xacconversation" in self.head

    @property
    def is_apart(self) -> bool:
        """Whether a body of it is in a file of its own."""
        return b"\xa7spilled" in self.head

    def exchange(self) -> Exchange:
        """Unpack it."""
        return decode_exchange(self.packed.value)


def spell(data: bytes, url: bytes = b"") -> bytes:
    """Put together what the events of a stream spell out, still as it is encoded in JSON.

    url: one of `_SPELT`.
    """
    is_escaped = b"\\" in data
    plain = data.replace(b"\\\\", b"\1").replace(b'\\"', b"\0") if is_escaped else data
    plain = plain.replace(b'": "', b'":"')
    found = []
    for name in _MEMBERS[url]:
        found += [piece.partition(b'"')[0] for piece in plain.split(name)[1:]]
    spelt = b"".join(found)
    return spelt.replace(b"\0", b'\\"').replace(b"\1", b"\\\\") if is_escaped else spelt


class Conversations:
    """The last requests, one a conversation."""

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, int]] = []
        """Each with how much of it the one behind it is likely to repeat."""

    def take(self, body: bytes) -> tuple[int, bytes]:
        """Give how much of a body was there before, from its beginning, and what is new."""
        if len(body) < _SHORT:
            return 0, body
        best, known = self._find(body)
        if known < 0:
            self._keep(body, len(body) * 4 // 5)
            return 0, body
        old, _ = self._kept.pop(known)
        rest = len(old) - best
        end = rest if body.endswith(old[best:]) else _common_end(old, body, best)
        self._keep(body, len(body) - rest)
        return best, body[max(0, best - _OVERLAP) : len(body) - max(0, end - _OVERLAP)]

    def _find(self, body: bytes) -> tuple[int, int]:
        """Find the request that begins most like a body: the bytes in common, and its place; -1 where none does."""
        for at in range(len(self._kept) - 1, -1, -1):
            old, likely = self._kept[at]
            # A few bytes tell most conversations apart; the rest is then compared at once.
            if old[likely - 64 : likely] == body[likely - 64 : likely] and body.startswith(
                old[:likely]
            ):
                return likely + common_prefix(old[likely:], body[likely : len(old)]), at
        found = [(common_prefix(old, body), at) for at, (old, _) in enumerate(self._kept)]
        best, known = max(found, default=(0, -1))
        return (best, known) if known >= 0 and best >= len(self._kept[known][0]) // 8 else (0, -1)

    def _keep(self, body: bytes, likely: int) -> None:
        self._kept.append((body, max(64, likely)))
        del self._kept[:-_KEPT]


def _common_end(one: bytes, other: bytes, begin: int) -> int:
    """Count the bytes that two bodies end with, as far as that is not what they begin with."""
    low, high = 0, min(len(one), len(other)) - begin
    while low < high:
        middle = (low + high + 1) // 2
        if one.endswith(other[len(other) - middle :]):
            low = middle
        else:
            high = middle - 1
    return low


def read_fresh(exchanges: Exchanges, until: int) -> Iterator[Fresh]:
    """Give the exchanges of a run before a seq, in order, with what is new in each.

    Raises: LogCorrupt.
    """
    known = Conversations()
    for seq, packed in _packed(exchanges, [one for one in exchanges.seqs if one < until]):
        value, at = packed.value, packed.body_at
        body, answered = value[at + _HEADS.get(value[at], 0) :], value[packed.answer_at : at]
        head = value[: packed.answer_at]
        if (b"ncoding" in head or b"NCODING" in head) and _CODED.search(head) is not None:
            exchange = decode_exchange(value)
            body = open_body(exchange.request)[0]
            answered = answer_body(exchange.response) if exchange.response is not None else b""
        after, asked = known.take(body)
        yield Fresh(seq, packed, after, asked, answered, head)


def _packed(exchanges: Exchanges, seqs: list[int]) -> Iterator[tuple[int, EncodedExchange]]:
    if exchanges.info.parent is None:
        yield from exchanges.store.exchanges.raw(exchanges.info, seqs)
        return
    for seq in seqs:  # what a tape answered to a playback is found there
        found = exchanges.find(seq)
        if found is not None:
            yield seq, split_exchange(encode_exchange(found))
