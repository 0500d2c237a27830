"""Secrets in a body that is too large to be held."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import Request
from playhead.tape.redaction.redact_large_body import OVERLAP_BYTES, WINDOW_BYTES
from playhead.tape.redaction.redactor import Redactor

KEY = b"tk7Qm2+/Zp9x=Ab3_Lr-58fW0yC1vv"


def learned() -> Redactor:
    """Give a redactor that has seen the key."""
    made = Redactor(b"k" * 32)
    headers = ((b"authorization", b"Bearer " + KEY),)
    made.request(Request("GET", "https", "a.example", 443, "/", "HTTP/1.1", headers))
    return made


def through(body: bytes, sizes: list[int]) -> tuple[bytes, bytes, int]:
    """Give what comes out of a body in pieces of these sizes, what is compared, and the most that was held."""
    stream = learned().stream((), answer=True)
    assert stream is not None
    pieces, at, most = [], 0, 0
    while at < len(body):
        for size in sizes:
            pieces.append(stream.feed(body[at : at + size]))
            most = max(most, stream._size)
            at += size
    pieces.append(stream.finish())
    return b"".join(p.data for p in pieces), b"".join(p.compared for p in pieces), most


@given(
    st.lists(st.integers(0, 3 * WINDOW_BYTES), min_size=1, max_size=6),
    st.lists(st.sampled_from([1000, 4096, 65536, 300_000]), min_size=1, max_size=3),
)
def test_a_secret_is_found_wherever_it_stands(places: list[int], sizes: list[int]) -> None:
    """Also where two windows or pieces meet; the length and all else stand."""
    body = bytearray(b"x y. " * (3 * WINDOW_BYTES // 5 + 20))
    for place in places:
        body[place : place + len(KEY) + 2] = b" " + KEY + b" "
    whole = bytes(body)
    out, compared, _ = through(whole, sizes)
    assert len(out) == len(whole)
    assert KEY not in out
    if KEY in whole:
        assert compared.count(b"(secret)") >= 1
    marks = [index for index in range(0, len(whole), 997) if whole[index] == out[index]]
    assert len(marks) > len(whole) // 997 - 10


@pytest.mark.parametrize(
    "at", [WINDOW_BYTES - OVERLAP_BYTES + shift for shift in (-40, -29, -15, -1, 0, 1)]
)
def test_a_secret_across_the_edge_of_a_window_is_found(at: int) -> None:
    """Where the first window is given out a secret may begin before and end after."""
    body = b"." * at + KEY + b"." * WINDOW_BYTES
    out, _, _ = through(body, [8192])
    assert KEY not in out
    assert out[:at] == body[:at]
    assert out[at + len(KEY) :] == body[at + len(KEY) :]


def test_a_body_without_a_secret_comes_out_as_it_was_in_bounded_memory() -> None:
    """Whatever its size, no more than two windows are held."""
    body = random.Random(1).randbytes(4 * 1024 * 1024)
    out, compared, most = through(body, [65536])
    assert out == body == compared
    assert most < 2 * WINDOW_BYTES


def test_a_coded_body_is_left_alone() -> None:
    """What is compressed holds no text."""
    assert learned().stream(((b"Content-Encoding", b"gzip"),), answer=True) is None


PASSWORDS = [f"kX9vQ2mL7pR4tZ8wB{number}".encode() for number in range(5)]


def placeholders(*values: bytes, before: int = 0) -> tuple[tuple[bytes, bool], ...]:
    """Give what is remembered of the secrets of a request."""
    stream = Redactor(b"k" * 32).stream((), answer=False)
    assert stream is not None
    stream.feed(b" " * before)
    for value in values:
        stream.feed(b'{"api_key": "%b", "password": "%b"}\n' % (value, value) + b" " * 999)
    stream.finish()
    return stream.replaced


def test_what_was_replaced_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """By value, wherever the windows end, and whether it is in a place of credentials; of many the rest by one hash."""
    stands_for = Redactor(b"k" * 32).stands_for
    found = placeholders(*PASSWORDS)
    assert found == tuple((stands_for(one), own) for one in PASSWORDS for own in (True, False))
    assert placeholders(*PASSWORDS, before=WINDOW_BYTES) == found
    monkeypatch.setattr("playhead.tape.redaction.redact_large_body.MAX_PLACES", 4)
    few = placeholders(*PASSWORDS)
    assert (few[:4], len(few)) == (found[:4], 5)
    assert placeholders(*PASSWORDS[:4], PASSWORDS[0])[4] != few[4]
    assert placeholders(*PASSWORDS, before=WINDOW_BYTES)[4] == few[4]
