"""Placeholders that stand in a text, and those that a search adds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.redaction.rewriting.merge_spans import merge
from playhead.tape.redaction.search import Span
from playhead.tests.support.counts import tries

SIZE = 40


def _spans(cuts: list[int], kind: str) -> list[Span]:
    """Every other piece between sorted cuts."""
    return [
        Span(first, last - first, kind)
        for first, last in zip(cuts[::2], cuts[1::2], strict=False)
        if last > first
    ]


_CUTS = st.lists(st.integers(0, SIZE), max_size=12).map(sorted)


def _replaced(text: bytes, spans: list[Span]) -> bytes:
    for one in spans:
        text = text[: one.at] + b"#" * one.size + text[one.at + one.size :]
    return text


@pytest.mark.parametrize(
    ("old", "found", "spans", "fresh"),
    [
        # Found again: it stays.
        ([(4, 6)], [(4, 6)], [(4, 6)], []),
        ([(4, 6)], [(5, 2)], [(4, 6)], []),
        ([(4, 6), (10, 3)], [(5, 7)], [(4, 6), (10, 3)], []),
        # Beside it: both stand.
        ([(4, 6)], [(12, 3)], [(4, 6), (12, 3)], [(12, 3)]),
        # Beyond it: all of it is one.
        ([(4, 6)], [(2, 10)], [(2, 10)], [(2, 10)]),
        ([(4, 6)], [(8, 5)], [(4, 9)], [(4, 9)]),
        ([(4, 6)], [(2, 4), (8, 5)], [(2, 11)], [(2, 11)]),
        ([], [(1, 2)], [(1, 2)], [(1, 2)]),
    ],
)
def test_what_stands_there_stays(
    old: list[tuple[int, int]],
    found: list[tuple[int, int]],
    spans: list[tuple[int, int]],
    fresh: list[tuple[int, int]],
) -> None:
    """A find inside of placeholders is one of them; one that reaches beyond is new."""
    text = bytes(range(97, 117))
    new = [Span(*one, "new") for one in found]
    made = merge(text, [Span(*one, "old") for one in old], _replaced(text, new), new)
    assert [one[:2] for one in made.spans] == spans
    assert [one[:2] for one in made.fresh] == fresh


@given(_CUTS, _CUTS)
@tries(200)
def test_what_is_merged_can_be_stored(old_cuts: list[int], new_cuts: list[int]) -> None:
    """Spans in order, none in another; nothing changes outside of what is new, and all that was found is hidden."""
    text = bytes(range(97, 97 + SIZE))  # none is what stands for a secret here
    old, found = _spans(old_cuts, "old"), _spans(new_cuts, "new")
    made = merge(text, old, _replaced(text, found), found)
    ends = 0
    for one in made.spans:
        assert one.at >= ends
        ends = one.at + one.size
    covered = {at for one in made.spans for at in range(one.at, one.at + one.size)}
    new = {at for one in made.fresh for at in range(one.at, one.at + one.size)}
    assert all(made.data[at] == text[at] for at in range(SIZE) if at not in new)
    assert covered == {at for one in (*old, *found) for at in range(one.at, one.at + one.size)}
    assert set(made.fresh) <= set(made.spans)
