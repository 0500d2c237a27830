"""Which element of one list is which of another."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tests.support.counts import tries
from playhead.timeline.diff.align_lists import Pair, align_lists


def align(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Align words: those that begin with one letter may have come in each other's place."""
    return list(
        align_lists(old, new, lambda one, other: one == other, lambda one: one, lambda one: one[:1])
    )


CASES: dict[str, tuple[str, str, list[Pair]]] = {
    "nothing": ("", "", []),
    "one more in front": ("a b", "c a b", [(None, 0), (0, 1), (1, 2)]),
    "one less in the midst": ("a b c", "a c", [(0, 0), (1, None), (2, 1)]),
    "one changed": ("a b1 c", "a b2 c", [(0, 0), (1, 1), (2, 2)]),
    "one changed behind one more": ("a b1 c", "x a b2 c", [(None, 0), (0, 1), (1, 2), (2, 3)]),
    "one of another kind": ("a b c", "a x c", [(0, 0), (1, 1), (2, 2)]),
    "all in one": ("u1 a u2", "u3", [(0, 0), (1, None), (2, None)]),
    "another order": ("a b c", "c a b", [(0, 0), (1, 1), (2, 2)]),
    "one less and one more": ("a b c d", "a c x d", [(0, 0), (1, None), (2, 1), (None, 2), (3, 3)]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_put_in_moves_nothing(case: str) -> None:
    """The same elements are pairs, whatever is before them."""
    old, new, pairs = CASES[case]
    assert align(old.split(), new.split()) == pairs


_words = st.lists(st.sampled_from(("a", "a1", "a2", "b", "b1", "c")), max_size=8)


@given(old=_words, new=_words)
@tries(60)
def test_each_element_is_given_once_and_in_order(old: list[str], new: list[str]) -> None:
    """Of both lists."""
    pairs = align(old, new)
    assert [at for at, _ in pairs if at is not None] == list(range(len(old)))
    assert [there for _, there in pairs if there is not None] == list(range(len(new)))
