"""Lanes of eight frameworks with sub-agents, planted by somebody who has not read the code; all 40 under PLAYHEAD_FULL=1."""

from typing import Any

import pytest

from playhead.tests.adversary.planted.lanes import lanes
from playhead.tests.support.counts import FULL
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.steps import Step, StepKind, Tracer

CASES = lanes(40 if FULL else 16)


def trace(case: dict[str, Any]) -> tuple[dict[int, Step], Tracer]:
    """Give the model calls of a run by seq, and who traced them."""
    tracer, steps = Tracer(), list[Step]()
    for exchange in make_exchanges(case["run"]):
        steps += tracer.add(exchange)
    steps += tracer.end()
    return {step.seq: step for step in steps if step.kind is StepKind.MODEL_CALL}, tracer


@pytest.mark.parametrize("case", CASES, ids=[f"{one['id']}-{one['kind']}" for one in CASES])
def test_each_planted_agent_is_a_lane(case: dict[str, Any]) -> None:
    """The calls of one agent have one lane, those of two have two, and a lane is of the one that asked for it."""
    calls, tracer = trace(case)
    truth = {one["seq"]: one for one in case["truth"]["calls"]}
    assert calls.keys() == truth.keys()
    assert {seq: step.aside or None for seq, step in calls.items()} == {
        seq: one["aside"] for seq, one in truth.items()
    }
    spoken = [seq for seq, one in truth.items() if one["lane"] is not None]
    pairs = {(truth[seq]["lane"], calls[seq].lane) for seq in spoken}
    names = {lane: name for name, lane in pairs}
    assert len(pairs) == len(names) == len({name for name, _ in pairs})
    parents = {lane.number: names.get(lane.parent) for lane in tracer.lanes}
    for seq in spoken:
        allowed = [truth[seq]["parent"], *truth[seq]["parents"]]
        assert parents[calls[seq].lane] in allowed
