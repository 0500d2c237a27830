"""Originals: an answer without its secrets, and what was replaced in it, are the answer as it came."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import (
    Chunk,
    Close,
    Exchange,
    Interim,
    Message,
    MessageKind,
    RawAnswer,
    RawInterim,
    RedactedText,
    Secret,
    Seq,
    Spilled,
    WebSocketSummary,
)
from playhead.tape.records.codec import BadRecord, pack_map, unpack
from playhead.tape.records.redacted_originals import (
    pack_originals,
    put,
    put_back,
    restore_answer,
    restore_message,
)
from playhead.tests.support.exchanges import make_exchange, make_response, raw_response
from playhead.tests.support.strategies import exchanges

CLOSED = WebSocketSummary(0, 0, Close(1, True, 1000, RedactedText("bye now"), (1000, RedactedText("ok"))))  # fmt: skip


def _kept(body: bytes = b"a 123 b 456", **more: Any) -> Exchange:
    places = (Secret("body", 2, 3, "key"), Secret("body", 8, 3, "key"))
    return make_exchange(1, response=make_response(body, secrets=places, **more), websocket=CLOSED)


def _came(kept: Exchange, body: bytes = b"a xyz b uvw", **more: Any) -> RawAnswer:
    assert kept.response is not None
    return RawAnswer(raw_response(replace(kept.response, body=body, secrets=(), **more)))


def test_places_are_put_back() -> None:
    """Of a body only what was replaced is kept."""
    kept = _kept()
    came = _came(kept)
    packed = pack_originals(came, kept)
    assert packed is not None
    assert unpack(packed)["pieces"] == ((2, b"xyz"), (8, b"uvw"))
    assert restore_answer(kept, packed) == came


def test_what_has_another_length_is_kept_whole() -> None:
    """A body whose coding was undone, with the pieces in which it came."""
    kept = _kept(chunks=(Chunk(1, 11),))
    came = _came(kept, b"coded", chunks=(Chunk(1, 3), Chunk(2, 2)))
    packed = pack_originals(came, kept)
    assert packed is not None
    assert restore_answer(kept, packed) == came


def test_heads_interim_answers_and_reasons_come_back() -> None:
    """Whatever else redaction replaces in an answer."""
    kept = replace(_kept(b"a xyz b uvw"), interim=(Interim(1, 103, b"", ((b"link", b"now"),)),))
    raw = _came(kept, headers=((b"set-cookie", b"was"),), trailers=((b"t", b"was"),), reason=b"was")
    came = replace(raw, interim=(RawInterim(1, 103, b"", ((b"link", b"was"),)),), close=("bye was", "ok"))  # fmt: skip
    packed = pack_originals(came, kept)
    assert packed is not None
    assert restore_answer(kept, packed) == came


@given(exchanges())
def test_where_nothing_was_replaced_nothing_is_kept(exchange: Exchange) -> None:
    """Most answers hold no secret."""
    answer = exchange.response
    if answer is not None:
        answer = replace(answer, secrets=())
    exchange = replace(exchange, response=answer)
    raw = raw_response(answer) if answer is not None else None
    interim = tuple(RawInterim(*one) for one in exchange.interim)
    assert pack_originals(RawAnswer(raw, interim), exchange) is None


def test_an_answer_with_a_part_that_was_not_searched_has_none() -> None:
    """Nobody knows what is in it, so it is not kept anywhere."""
    kept = _kept()
    assert kept.response is not None
    places = (Secret("body", 2, 9, "unsearched:00"),)
    kept = replace(kept, response=replace(kept.response, secrets=places))
    assert pack_originals(_came(kept), kept) is None


def test_a_body_in_a_file_has_all_of_its_places_or_none() -> None:
    """What is remembered of a large body is bounded."""
    kept = _kept(b"", spilled=Spilled(b"d" * 32, 11, b"m" * 32))
    came = replace(_came(kept, b""), pieces=((2, b"xyz"), (8, b"uvw")))
    packed = pack_originals(came, kept)
    assert packed is not None
    assert restore_answer(kept, packed).pieces == came.pieces
    assert pack_originals(replace(came, pieces=came.pieces[:1]), kept) is None


@given(st.lists(st.integers(1, 6), min_size=1), st.binary(min_size=40, max_size=40))
def test_places_are_put_back_whatever_pieces_a_body_comes_in(sizes: list[int], was: bytes) -> None:
    """One may begin in a piece and end in another."""
    body, originals = bytes(40), [(0, was[:2]), (5, was[5:16]), (16, was[16:17]), (38, was[38:])]
    pieces, at = [], 0
    for size in (*sizes, 40):
        data = body[at : at + size]
        pieces.append((Chunk(0, len(data)), data))
        at += len(data)
    whole = put(body, originals)
    assert b"".join(data for _, data in put_back(iter(pieces), originals)) == whole
    assert (whole[5:17], whole[2:5], whole[38:]) == (was[5:17], bytes(3), was[38:])


@pytest.mark.parametrize(
    "change",
    [
        {"check": b"another" * 2},
        {"pieces": ((2, b"xyz"),)},
        {"pieces": ((2, b"xyzz"), (8, b"uvw"))},
        {"pieces": ((1 << 40, b"xyz"), (8, b"uvw"))},
        {"pieces": 5},
        {"headers": ((b"a", 1),)},
        {"body": 1 << 40, "chunks": ()},
        {"body": b"four", "chunks": ((1, 3, 0, 0),)},
        {"interim": ((1, 103, "", ()),)},
        {"close": ("one",)},
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object]) -> None:
    """Never anything but a `BadRecord`, whatever a file says."""
    kept = _kept()
    packed = pack_originals(_came(kept), kept)
    assert packed is not None
    with pytest.raises(BadRecord):
        restore_answer(kept, pack_map({**unpack(packed), **change}))
    with pytest.raises(BadRecord):
        restore_answer(replace(kept, response=make_response(b"a 124 b 456")), packed)


def test_a_message_comes_back() -> None:
    """With the bytes that it had; others are not its own."""
    kept = Message(1, False, MessageKind.TEXT, b"a 123 b", (3, 4), Seq(2), (Secret("body", 2, 3, "key"),))  # fmt: skip
    assert restore_message(kept, b"a xyz b").data == b"a xyz b"
    for wrong in (b"a xyz c", b"a xyz", b""):
        with pytest.raises(BadRecord):
            restore_message(kept, wrong)
