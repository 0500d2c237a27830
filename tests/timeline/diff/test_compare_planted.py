"""First divergences that were planted by somebody who has not read the code: all kinds each day, 200 of them under PLAYHEAD_FULL=1."""

from typing import Any

import pytest

from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tests.adversary.planted.diff import diff
from playhead.tests.support.counts import FULL
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.diff.differing_json_paths import find_places
from playhead.timeline.diff.find_causes import roots
from playhead.timeline.diff.row import Change

_CHANGES = {
    "inserted": Change.ONLY_SECOND,
    "deleted": Change.ONLY_FIRST,
    "swapped": Change.MOVED,
    "changed request": Change.ASKED,
    "changed answer": Change.ANSWERED,
}
CASES = diff(200 if FULL else 24)


@pytest.mark.parametrize("case", CASES, ids=[f"{one['id']}-{one['kind']}" for one in CASES])
def test_a_planted_divergence_is_the_first_and_the_root(case: dict[str, Any]) -> None:
    """The first divergence is where it was planted, in both runs, and everything else follows from it."""
    sides = [InMemory(make_exchanges(case[side])) for side in ("a", "b")]
    compared = compare_acts(*map(read_acts, sides))
    truth, found = case["truth"]["first"], compared.divergence
    if truth is None:
        assert found is None
        return
    assert found is not None
    ends = [
        one.seq if one is not None else len(side.seqs) + 1
        for one, side in zip((found.first, found.second), sides, strict=True)
    ]
    assert ends == [truth["a"], truth["b"]]
    assert found.row.change in {_CHANGES[name] for name in case["truth"]["roots"]}
    assert len(list(roots(compared.rows))) == 1
    if truth["path"]:
        places = find_places(found.row, sides[0], sides[1], compile_rules()).listed
        assert places[0].place.endswith(truth["path"])
