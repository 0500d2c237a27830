"""Idempotency keys compared with the tape: presence and sharing, never values."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import Seq
from playhead.tape.matching import idempotency_keys as keys
from playhead.tape.matching.idempotency_keys import KeyPairs, find_keys
from playhead.tests.support.exchanges import make_request

GAINED = "carries an idempotency key, and was recorded without one"
LOST = "carries no idempotency key, and was recorded with one"
SHARED = "shares its idempotency key with seq 1; on the tape the two have different ones"
APART = (
    "has another idempotency key than the effect recorded as seq 11; on the tape the two share one"
)


@pytest.mark.parametrize(
    ("asked", "recorded", "told"),
    [
        # as recorded, whatever the values
        ("-", "-", [""]),
        ("a", "x", [""]),
        ("ab", "xy", ["", ""]),
        ("aa", "xx", ["", ""]),
        ("aba", "xyx", ["", "", ""]),
        ("ab", "ba", ["", ""]),
        ("a-a", "x-x", ["", "", ""]),
        # presence
        ("a", "-", [GAINED]),
        ("-", "x", [LOST]),
        ("-a", "xy", [LOST, ""]),
        # sharing
        ("aa", "xy", ["", SHARED]),
        ("ab", "xx", ["", APART]),
        ("aab", "xyy", ["", SHARED, APART.replace("11", "12")]),
    ],
)
def test_a_key_is_compared_by_being_there_and_by_whose_it_is_too(
    asked: str, recorded: str, told: list[str]
) -> None:
    """Effects 1, 2 ... of the replay, served from 11, 12 ...; a letter is a key, `-` none."""
    pairs = KeyPairs()
    found = [
        pairs.compare(Seq(at), key(one), Seq(10 + at), key(other))
        for at, (one, other) in enumerate(zip(asked, recorded, strict=True), start=1)
    ]
    assert found == told


def key(letters: str) -> dict[str, bytes]:
    """Keys of names that are numbers; `-` is none."""
    return {str(at): one.encode() for at, one in enumerate(letters) if one != "-"}


@pytest.mark.parametrize(
    ("asked", "recorded", "told"),
    [
        # of two keys each counts by itself
        (["cx", "dx"], ["ap", "bp"], ["", ""]),
        (["cx", "dy"], ["ap", "bp"], ["", APART]),
        (["cx", "cy"], ["ap", "ap"], ["", APART]),
        (["cx", "dx"], ["ap", "ap"], ["", APART]),
        (["cx", "dx"], ["ap", "bq"], ["", SHARED]),
        (["cx", "c-"], ["ap", "ap"], ["", LOST]),
        (["cx", "cx"], ["ap", "a-"], ["", GAINED]),
        # also where another effect shares one of the two in another name
        (["cx", "x-"], ["ap", "p-"], ["", ""]),
        (["cx", "z-"], ["ap", "p-"], ["", APART]),
        (["cx", "c-"], ["ap", "p-"], ["", SHARED]),
    ],
)
def test_each_of_several_keys_is_compared(
    asked: list[str], recorded: list[str], told: list[str]
) -> None:
    """Services read one of them each, and nobody knows which."""
    pairs = KeyPairs()
    found = [
        pairs.compare(Seq(at), key(one), Seq(10 + at), key(other))
        for at, (one, other) in enumerate(zip(asked, recorded, strict=True), start=1)
    ]
    assert found == told


def test_the_keys_of_a_request_are_told_apart_by_name_and_order() -> None:
    """A later value of one name is another key; equal values are told as equal, whatever their name."""
    fields = (
        *((b"Idempotency-Key", b"a"), (b"PayPal-Request-Id", b"a")),
        *((b"Idempotency-Key", b"b"), (b"X-Idempotency-Key", b"")),
    )
    found = find_keys(replace(make_request("POST https://pay.test/"), headers=fields))
    assert list(found) == ["idempotency-key", "idempotency-key#2", "paypal-request-id"]
    assert found["idempotency-key"] == found["paypal-request-id"] != found["idempotency-key#2"]


@given(st.lists(st.sampled_from("abc-")), st.permutations("abc"))
def test_other_values_alone_never_differ(recorded: list[str], values: list[str]) -> None:
    """Each key replaced by another one."""
    other = {"-": "-", **dict(zip("abc", values, strict=True))}
    pairs = KeyPairs()
    for at, one in enumerate(recorded):
        assert not pairs.compare(Seq(at), key(other[one]), Seq(at), key(one))


def test_a_run_with_many_keys_is_remembered_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten: what is told then is nothing, never something wrong."""
    monkeypatch.setattr(keys, "_MOST", 2)
    pairs = KeyPairs()
    for at, (one, other) in enumerate(zip("abc", "xyz", strict=True)):
        assert not pairs.compare(Seq(at), key(one), Seq(at), key(other))
    assert not pairs.compare(Seq(4), key("a"), Seq(4), key("w"))
    assert pairs.compare(Seq(5), key("c"), Seq(5), key("w"))
