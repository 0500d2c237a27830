"""Whether one body goes on from another."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.store.deltas.is_continuation import Body, Span, Traces, common_ends, find_added
from playhead.tests.support.conversations import words
from playhead.tests.support.counts import tries

_pieces = st.lists(st.sampled_from([b"a", b"b" * 100, b"c" * 5000, b"d" * 70_000]), max_size=6)


def body(data: bytes) -> Body:
    """A body as it stands in a value: behind something else."""
    return Body(b"head of any length " * (len(data) % 5) + data, 19 * (len(data) % 5))


def fresh(old: bytes, added: tuple[int, int], new: bytes) -> Span | None:
    a, b = body(old), body(new)
    return find_added(a, Span(*added), b, common_ends(a, b))


@given(_pieces.map(b"".join), _pieces.map(b"".join))
def test_what_is_in_common_is_in_common(old: bytes, new: bytes) -> None:
    """Never more than there is, never overlapping, and at most some bytes less."""
    start, end = common_ends(body(old), body(new))
    assert old[:start] == new[:start]
    assert old[len(old) - end :] == new[len(new) - end :]
    assert start + end <= min(len(old), len(new))
    exact = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    assert exact - start < 32


def test_a_body_that_grew_goes_on() -> None:
    """At its end, or in the middle where the system prompt stands behind the messages."""
    head, last, more = (words(name, 2000).encode() for name in ("head", "last", "more"))
    tail = words("tail", 3000).encode()
    found = fresh(head + last + tail, (2000, 4000), head + last + more + tail)
    assert found is not None
    assert found.start in range(4000 - 32, 4001)
    assert found.end in range(6000, 6033)
    assert fresh(head + last, (2000, 4000), head + last + more) is not None


def test_a_body_goes_on_though_it_starts_anew() -> None:
    """A clock in the system prompt, a summary in the place of the first half: the newest text stands in it."""
    first, last, more = (words(name, 3000).encode() for name in ("first", "last", "more"))
    old = b"12:01" + first + last + b"]}"
    for new in (b"12:02" + first + last + more + b"]}", b"summary" + last + more + b"]}"):
        found = fresh(old, (3005, 6005), new)
        assert found is not None
        assert more in new[found.start : found.end]
        assert len(more) <= found.end - found.start < 4500


def test_what_only_begins_alike_does_not_go_on() -> None:
    """A second agent shares the system prompt, and nothing that the first one's last step brought."""
    system = words("system", 30_000).encode()
    old = system + words("one", 500).encode()
    assert fresh(old, (30_000, 30_500), system + words("two", 500).encode()) is None
    assert fresh(old, (30_000, 30_500), system) is None


def test_short_bodies_are_compared_too() -> None:
    """Shorter than a sample, or empty."""
    for old, new in ((b"", b""), (b"a", b"b"), (b"abc", b""), (b"", b"abc")):
        assert fresh(old, (0, len(old)), new) in (None, Span(0, len(new)), Span(0, 0))


@tries(60)
@given(
    st.lists(
        st.sampled_from([b"a" * 30, b"b" * 45, b"{clock 7}", b"x", bytes(range(64))]), max_size=12
    ),
    st.lists(
        st.sampled_from([b"a" * 30, b"b" * 45, b"{clock 8}", b"y", bytes(range(64))]), max_size=12
    ),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.binary(max_size=9),
)
def test_a_body_without_traces_has_nothing_in_common(
    old: list[bytes], new: list[bytes], part: tuple[float, float], before: bytes
) -> None:
    """A quick no is what the comparison itself would have said."""
    one = Body(before + b"".join(old), len(before))
    other = Body(before * 2 + b"".join(new), 2 * len(before))
    start, end = sorted(round(share * one.size) for share in part)
    added = Span(start, end)
    if not Traces.of(one, added).may_be_in(other, Traces.ends_of(other)):
        assert common_ends(one, other) == (0, 0)
        assert find_added(one, added, other, common_ends(one, other)) is None
