"""Exchanges and events as bytes: a round trip, and nothing but BadRecord for what is no record."""

import contextlib
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import (
    Alpn,
    Chunk,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    Redaction,
)
from playhead.tape.records.codec import (
    Apart,
    BadRecord,
    decode_exchange,
    encode_exchange,
    encode_rest,
    split_exchange,
    unpack,
)
from playhead.tape.records.events import (
    CHAIN_START,
    Event,
    EventKind,
    check_link,
    decode_event,
    encode_event,
)
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.tests.support.strategies import exchanges, plain_values


@given(exchanges())
def test_an_exchange_comes_back_as_it_was(exchange: Exchange) -> None:
    """Every field, every byte, lone surrogates included."""
    assert decode_exchange(encode_exchange(exchange)) == exchange


@given(exchanges())
def test_the_bodies_of_a_packed_exchange_are_found(exchange: Exchange) -> None:
    """Without unpacking it: both are where it says, and nothing else is."""
    value, answer_at, body_at = split_exchange(encode_exchange(exchange))
    answered = exchange.response.body if exchange.response is not None else b""
    assert unpack(value[answer_at:body_at]) == answered
    assert unpack(value[body_at:]) == exchange.request.body
    with pytest.raises(BadRecord):
        split_exchange(value[: body_at - 1])


@given(exchanges())
def test_an_exchange_whose_parts_were_kept_apart_comes_back(exchange: Exchange) -> None:
    """Nothing that is written depends on what is left out."""
    request, response = exchange.request, exchange.response
    answer = (response.headers, response.body) if response is not None else (None, None)
    apart = Apart(request.headers, request.body, *answer)
    assert decode_exchange(encode_rest(exchange), apart) == exchange


@given(
    st.sampled_from(list(EventKind)),
    st.integers(0, 2**62),
    st.dictionaries(st.text(max_size=8).filter(lambda key: key != "seq"), plain_values, max_size=4),
    st.integers(1, 2**40),
    st.binary(min_size=16, max_size=16),
)
def test_an_event_comes_back_and_follows_the_one_before(
    kind: EventKind, at_ns: int, data: dict[str, Any], number: int, before: bytes
) -> None:
    """Its link holds for the hash it was chained to, and for no other."""
    value, link = encode_event(Event(kind, at_ns, data), before)
    assert decode_event(value, number) == Event(kind, at_ns, data, number)
    assert check_link(value, before) == link
    assert check_link(value, bytes([before[0] ^ 1]) + before[1:]) is None


@tries(60)
@given(st.binary(max_size=300))
def test_bytes_that_are_no_record_are_a_bad_record(data: bytes) -> None:
    """Reading trusts nothing."""
    for decode in (unpack, decode_exchange, lambda value: decode_event(value, 1)):
        with contextlib.suppress(BadRecord):
            decode(data)


@tries(60)
@given(plain_values, st.data())
def test_a_value_of_another_shape_is_a_bad_record(value: Any, data: st.DataObject) -> None:
    """Any one place of a sound exchange replaced by anything: read as a sound exchange, or refused."""
    sound = msgpack.unpackb(encode_exchange(_whole()))
    places = list(_places(sound))
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = value
    try:
        decoded = decode_exchange(msgpack.packb(sound, unicode_errors="surrogatepass"))
    except BadRecord:
        return
    assert decode_exchange(encode_exchange(decoded)) == decoded


@tries(60)
@given(st.data())
def test_a_flipped_byte_is_read_or_refused(data: st.DataObject) -> None:
    """Nothing but BadRecord comes out of a damaged exchange or event."""
    sound = bytearray(encode_exchange(_whole()))
    sound[data.draw(st.integers(0, len(sound) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BadRecord):
        decode_exchange(bytes(sound))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        # A header field that is a number: bytes(2**50) would be a petabyte.
        (("request", 6, 0, 0), 2**50),
        (("request", 6, 0, 1), 2**63),
        (("response", "headers", 0, 0), 2**50),
        (("response", "chunks", 0, 1), 2**40),
        (("response", "chunks", 0, 1), -1),
        (("response", "complete"), "yes"),
        (("seq",), "1"),
        (("seq",), True),
        (("fingerprint",), "text"),
        (("fault",), ("reset", "body", b"bytes", 1)),
        (("gone",), (1, 2)),
        (("class",), "unheard of"),
        (("alpn",), ((1,), None)),
    ],
    ids=str,
)
def test_a_wrong_type_is_told_where_it_is_read(path: tuple[Any, ...], value: Any) -> None:
    """Not where somebody computes with it later, and nothing is converted."""
    sound = msgpack.unpackb(encode_exchange(_whole()))
    holder = sound[1]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(BadRecord, match="not an exchange"):
        decode_exchange(msgpack.packb(sound))


@pytest.mark.parametrize("position", [2, 3])
def test_a_body_that_is_no_bytes_is_a_bad_record(position: int) -> None:
    """Neither text nor a number is taken for a body."""
    sound = msgpack.unpackb(encode_exchange(_whole()))
    sound[position] = "text"
    with pytest.raises(BadRecord):
        decode_exchange(msgpack.packb(sound))


def test_pieces_that_do_not_add_up_are_a_bad_record() -> None:
    """Or the rest of a body would silently not be served."""
    exchange = make_exchange(response=make_response(b"abcdef", chunks=(Chunk(1, 3),)))
    with pytest.raises(BadRecord, match="pieces of 3 bytes in a body of 6"):
        decode_exchange(encode_exchange(exchange))


def test_another_version_is_named() -> None:
    """A newer record says which format it has and which is read."""
    value = msgpack.unpackb(encode_exchange(make_exchange()))
    with pytest.raises(BadRecord, match="format 2; this version reads 1"):
        decode_exchange(msgpack.packb([2, *value[1:]]))
    packed = msgpack.packb({"v": 7, "k": "noted", "t": 1, "d": {}})
    with pytest.raises(BadRecord, match="format 7"):
        decode_event(CHAIN_START + packed, 1)


@pytest.mark.parametrize(
    "value",
    [
        {"v": 1, "k": "noted", "t": 1, "d": "no map"},
        {"v": 1, "k": "noted", "t": "now", "d": {}},
        {"v": 1, "k": "noted", "t": 1, "d": {"seq": "one"}},
        {"v": 1, "k": "unheard of", "t": 1, "d": {}},
        {"v": 1},
        [1],
        None,
    ],
    ids=str,
)
def test_an_event_of_another_shape_is_a_bad_record(value: Any) -> None:
    """Whoever reads events may rely on kind, time, map and seq."""
    with pytest.raises(BadRecord):
        decode_event(CHAIN_START + msgpack.packb(value), 1)


def test_a_message_is_one_short_line() -> None:
    """Recorded values are hostile, and go into error messages."""
    sound = msgpack.unpackb(encode_exchange(make_exchange()))
    sound[1]["reason"] = ["\n\x1b[2J" * 10_000]
    with pytest.raises(BadRecord) as caught:
        decode_exchange(msgpack.packb(sound))
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def _whole() -> Exchange:
    """An exchange in which every field is there."""
    return replace(
        make_exchange(response=make_response(b"abc", chunks=(Chunk(1, 1), Chunk(2, 2)))),
        fault=Fault(FaultKind.RESET, Phase.BODY, RedactedText("reset by peer"), 5),
        gone=Gone(4, 1, True),
        redactions=(Redaction("request.header.cookie", "cookie"),),
        warnings=("a warning",),
        alpn=Alpn((b"h2", b"http/1.1"), b"h2"),
    )


def _places(value: Any) -> Any:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65535, 65536, 70_000])
def test_an_exchange_is_plain_msgpack(size: int) -> None:
    """Whatever the length of its bodies; its hash is over these very bytes."""
    response = make_response(b"a" * size)
    exchange = make_exchange(1, body=b"q" * (70_000 - size), response=response)
    encoded = encode_exchange(exchange)
    assert msgpack.packb(msgpack.unpackb(encoded)) == encoded
    assert decode_exchange(encoded) == exchange
