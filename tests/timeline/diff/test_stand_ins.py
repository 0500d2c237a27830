"""Where two texts differ, but for ids that stand for each other."""

import pytest

from playhead.timeline.diff.renaming import Pair, Renaming
from playhead.timeline.diff.row import Change, Row
from playhead.timeline.diff.stand_ins import StandIns

ONE, OTHER, THIRD = "5f2a9c81d4", "8b41ee07c3", "77aa01bb22"


def stand_ins(*known: tuple[str, str], is_proof: bool = False, is_exact: bool = False) -> StandIns:
    """Make them for a row before which some ids stood for each other."""
    renaming = Renaming()
    assert renaming.fits([Pair(one, other, may_begin=True) for one, other in known])
    row = Row(None, None, Change.ASKED)
    row.renaming, row.known = renaming, renaming.count
    assert renaming.fits([Pair(THIRD, "99cc00dd11", may_begin=True)])
    return StandIns(row, is_proof=is_proof, is_exact=is_exact)


CASES = {
    "the same": ("a", "a", None),
    "an id": (f"re_{ONE} is paid", f"re_{OTHER} is paid", None),
    "behind an id": (f"re_{ONE} is paid, 40", f"re_{OTHER} is paid, 41", (24, 24)),
    "before an id": (f"40 for re_{ONE}", f"41 for re_{OTHER}", (1, 1)),
    "another id": (f"re_{ONE} is paid", f"re_{THIRD} is paid", (3, 3)),
    "an id less": (f"re_{ONE} is paid", "it is paid", (0, 0)),
    "one more word behind": (f"re_{ONE}", f"re_{OTHER} now", (13, 13)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_id_hides_nothing_that_is_behind_it(case: str) -> None:
    """The place is that of the first characters that count."""
    one, other, at = CASES[case]
    assert stand_ins((ONE, OTHER)).first_difference(one, other) == at


def test_ids_of_which_nothing_is_known_need_a_proof_if_asked_for() -> None:
    """In a request of a tool, not in the members of a model call."""
    texts = f"re_{ONE}", f"re_{OTHER}"
    assert stand_ins().first_difference(*texts) is None
    assert stand_ins(is_proof=True).first_difference(*texts) == (3, 3)
    assert stand_ins((ONE, OTHER), is_proof=True).first_difference(*texts) is None


def test_what_became_known_later_proves_nothing() -> None:
    """An answer that repeats the id of its request came after it."""
    texts = f"re_{THIRD}", "re_99cc00dd11"
    assert stand_ins(is_proof=True).first_difference(*texts) == (3, 3)


def test_no_id_stands_for_another_where_texts_are_compared_as_they_are() -> None:
    """That is the last resort, if nothing else differs."""
    texts = f"re_{ONE}", f"re_{OTHER}"
    assert stand_ins((ONE, OTHER), is_exact=True).first_difference(*texts) == (3, 3)


def test_dates_of_a_prompt_do_not_count() -> None:
    """In a message they do."""
    texts = "Today is May 3. You sell.", "Today is May 4. You sell."
    assert stand_ins().first_difference(*texts, is_prompt=True) is None
    assert stand_ins().first_difference(*texts) == (13, 13)
    later = "Today is May 3. You sell.", "Today is May 14. You buy."
    assert stand_ins().first_difference(*later, is_prompt=True) == (20, 21)
