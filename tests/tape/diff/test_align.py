"""Which request of one recording is which of another."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.diff.align import (
    Alignment,
    InOrder,
    Item,
    align,
    align_in_order,
    scrub,
    scrubbed_key,
)
from playhead.tape.diff.nearest import distance
from playhead.tape.diff.path_shape import path_shape
from playhead.tape.exchange import Fingerprint, Request, Seq
from playhead.tests.support.dialects import make_request

HOST = "https://api.test"


def items(*asked: Request) -> list[Item]:
    """Number requests, with their bodies as fingerprints."""
    return [
        Item(
            Seq(seq),
            Fingerprint(one.target.encode() + one.body),
            one.method,
            one.scheme + one.host,
            one.path,
        )
        for seq, one in enumerate(asked, start=1)
    ]


def aligned(first: list[Request], second: list[Request]) -> Alignment:
    def near(one: Seq, other: Seq) -> float:
        return distance(scrub(first[one - 1]), scrub(second[other - 1]))

    def key(asked: list[Request], seq: Seq) -> bytes:
        return scrubbed_key(asked[seq - 1])

    return align(items(*first), items(*second), near, (partial(key, first), partial(key, second)))


def call(text: str, **more: object) -> Request:
    return make_request(f"{HOST}/v1/call", {"text": text, **more})


def test_equal_requests_are_partners_in_their_order() -> None:
    """FIFO, as a replay serves them."""
    found = aligned([call("a"), call("b"), call("a")], [call("a"), call("a"), call("b")])
    assert (found.pairs, found.same) == (((1, 1), (2, 3), (3, 2)), 3)


def test_parallel_calls_in_another_order_find_their_partners() -> None:
    """By what they say, whatever ids and times they carry."""
    one = [call(f"item {n}", id=f"{n:08x}-0000-4000-8000-00000000000{n}") for n in range(8)]
    two = [
        call(f"item {n}", id=f"{n:08x}-1111-4111-8111-11111111111{n}")
        for n in (3, 1, 0, 2, 7, 6, 5, 4)
    ]
    pairs = aligned(one, two).pairs
    assert dict(pairs) == {1: 3, 2: 2, 3: 4, 4: 1, 5: 8, 6: 7, 7: 6, 8: 5}


def test_of_equally_near_ones_the_order_decides() -> None:
    """Same text, other ids."""
    one = [call("same", at=1_700_000_000 + n) for n in range(4)]
    two = [call("same", at=1_800_000_000 + n) for n in range(4)]
    assert aligned(one, two).pairs == ((1, 1), (2, 2), (3, 3), (4, 4))


def test_what_has_no_partner_is_listed() -> None:
    """One call more, another endpoint."""
    other = make_request(f"{HOST}/other", {})
    found = aligned([call("a"), call("b, longer than the rest")], [other, call("a")])
    assert (found.pairs, found.same) == (((1, 2),), 1)
    assert (found.only_first, found.only_second) == ((2,), (1,))


def test_an_id_in_the_path_does_not_part_them() -> None:
    """Nor does another origin, if nothing nearer is left."""
    one = [make_request(f"{HOST}/v1/threads/thread_1a/runs", {"n": 1})]
    two = [make_request(f"{HOST}/v1/threads/thread_2b/runs", {"n": 1})]
    assert aligned(one, two).pairs == ((1, 1),)
    elsewhere = [make_request("https://api.other/v1/threads/thread_2b/runs", {"n": 1})]
    assert aligned(one, elsewhere).pairs == ((1, 1),)


def test_a_long_run_with_a_call_left_out_stays_aligned() -> None:
    """Beyond the size at which each pair is looked at."""
    one = [call(f"step {n}", id=f"{n:032x}") for n in range(60)]
    two = [call(f"step {n}", id=f"{n + 999:032x}") for n in range(60) if n != 7]
    found = aligned(one, two)
    assert found.only_first == (8,)
    assert all(to == at if at < 8 else to == at - 1 for at, to in found.pairs)


@given(st.permutations(range(6)), st.lists(st.integers(0, 3), max_size=6))
def test_each_request_is_in_one_place(order: list[int], left_out: list[int]) -> None:
    """A partner, or the list of those without."""
    one = [call(f"{n}" * 5) for n in order]
    two = [call(f"{n}" * 5 + "x") for n in range(6) if n not in left_out]
    found = aligned(one, two)
    assert sorted([at for at, _ in found.pairs] + [*found.only_first]) == list(range(1, 7))
    assert sorted([to for _, to in found.pairs] + [*found.only_second]) == list(
        range(1, len(two) + 1)
    )


def test_a_path_shape_keeps_versions_and_calls() -> None:
    """What names the endpoint, not what it is about."""
    assert path_shape("/v1/orders/17/items") == "/v1/orders/*/items"
    assert (
        path_shape("/v1beta/models/gemini-3:generateContent") == "/v1beta/models/*:generateContent"
    )


# ---- in order ----------------------------------------------------------------------------------------


def _in_order(first: str, second: str) -> InOrder:
    """Align two words: a letter is the same question, its case another answer to it."""

    def keys(letter: str) -> tuple[str, str]:
        return letter, letter.lower()

    def alike(one: int, other: int) -> float:
        return 0.5 if first[one].isdigit() and second[other].isdigit() else 0.0

    return align_in_order([keys(one) for one in first], [keys(one) for one in second], alike)


@pytest.mark.parametrize(
    ("first", "second", "moved", "only_first", "only_second"),
    [
        ("abc", "abc", (), (), ()),
        ("abc", "aBc", (), (), ()),
        # what was put in or left out moves nothing
        ("abcd", "acd", (), (1,), ()),
        ("acd", "abcd", (), (), (1,)),
        # what changed places is told as moved
        ("abcd", "acbd", ((2, 1),), (), ()),
        ("abcde", "bcdea", ((0, 4),), (), ()),
        # what is alike is a pair, and nothing else is
        ("a1b", "a2b", (), (), ()),
        ("axb", "ayb", (), (1,), (1,)),
        ("", "ab", (), (), (0, 1)),
    ],
)
def test_two_sequences_are_aligned_in_order(
    first: str, second: str, moved: object, only_first: object, only_second: object
) -> None:
    """Partners are in order on both sides; what is the same elsewhere has moved; the rest has no partner."""
    found = _in_order(first, second)
    assert (found.moved, found.only_first, found.only_second) == (moved, only_first, only_second)
    assert list(found.pairs) == sorted(found.pairs)
    assert [other for _, other in found.pairs] == sorted(other for _, other in found.pairs)


def test_a_long_gap_is_weighed_near_its_diagonal() -> None:
    """A gap of 1,000 by 1,000 is aligned in bounded time, also where no key is shared."""
    keys = [((side, at),) for side in (0, 1) for at in range(1000)]
    found = align_in_order(keys[:1000], keys[1000:], lambda one, other: float(one == other))
    assert found.pairs == tuple((at, at) for at in range(1000))
