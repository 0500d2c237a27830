"""Which runs have been kept long enough: a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config.schema import Retention
from playhead.tape.policy.retention import Listed, decide_retention

DAY = 86_400 * 10**9
NOW = 1000 * DAY
RULES = Retention(
    keep_s=90 * 86_400.0, labels=(("ci", 86_400.0), ("incident", None), ("audit", 365 * 86_400.0))
)


def run(
    number: int, days: float | None, parent: int = 0, labels: str = "", *, pinned: bool = False
) -> Listed:
    """A run that ended so many days ago; None: it has not."""
    ended = 0 if days is None else NOW - int(days * DAY)
    return Listed(number, f"r{number}", ended, parent, tuple(labels.split()), pinned)


@pytest.mark.parametrize(
    ("runs", "goes", "reason"),
    [
        # age, since the end
        ([run(1, 91)], [1], "ended 91d ago, retention.keep is 90d"),
        ([run(1, 90)], [], "ended 90d ago, retention.keep is 90d"),
        ([run(1, 0)], [], "ended 0s ago"),
        # what has not ended, what is pinned
        ([run(1, None)], [], "it has not ended"),
        ([run(1, 500, pinned=True)], [], "it is pinned"),
        # labels: the longest of those that are named; others say nothing
        ([run(1, 2, labels="ci")], [1], "retention.labels.ci is 1d"),
        ([run(1, 500, labels="incident")], [], "retention.labels.incident is forever"),
        ([run(1, 500, labels="ci incident")], [], "retention.labels.incident is forever"),
        ([run(1, 100, labels="audit ci")], [], "retention.labels.audit is 365d"),
        ([run(1, 366, labels="audit ci")], [1], "retention.labels.audit is 365d"),
        ([run(1, 91, labels="other")], [1], "retention.keep"),
        # a tape stays for what plays it, down the whole line
        ([run(1, 91), run(2, 1, parent=1)], [], "r2 plays it"),
        ([run(1, 91), run(2, 91, parent=1)], [1, 2], "retention.keep"),
        ([run(1, 91), run(2, 91, parent=1), run(3, None, parent=2)], [], "r2 plays it"),
        ([run(1, 91), run(2, 91, parent=1, pinned=True)], [], "r2 plays it"),
        ([run(1, 1), run(2, 91, parent=1)], [2], "ended 1d ago"),
        # its tape may be gone
        ([run(5, 91, parent=1)], [5], "retention.keep"),
    ],
)
def test_runs_go_and_stay(runs: list[Listed], goes: list[int], reason: str) -> None:
    """Which go, and why the first goes or stays."""
    found = decide_retention(runs, RULES, NOW)
    assert [one.run.number for one in found if one.goes] == goes
    assert reason in found[0].reason


def test_nothing_goes_unless_a_time_is_given() -> None:
    """The default keeps all."""
    assert not any(one.goes for one in decide_retention([run(1, 999)], Retention(), NOW))


@given(
    st.lists(st.tuples(st.floats(0, 200), st.integers(0, 8), st.booleans()), max_size=8),
)
def test_no_tape_goes_before_what_plays_it(drawn: list[tuple[float, int, bool]]) -> None:
    """Whatever the ages and lines of descent."""
    runs = [
        run(number, days, parent if parent < number else 0, pinned=pinned)
        for number, (days, parent, pinned) in enumerate(drawn, start=1)
    ]
    goes = {one.run.number for one in decide_retention(runs, RULES, NOW) if one.goes}
    for one in runs:
        assert one.number in goes or one.parent not in goes
