"""What compaction dropped, planted by somebody who has not read the code; all 60 under PLAYHEAD_FULL=1."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from playhead.tests.adversary.planted.context import context
from playhead.tests.support.counts import FULL
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.watch_contexts import Looked

CASES = context(60 if FULL else 10)
_KINDS = {"message": ("user", "assistant")}
WRAPPED = len('{"result": ""}')
"""Bytes around a result as Gemini has it, which is an object."""


@dataclass(frozen=True)
class Told:
    """Something that is told to be lost."""

    kind: str
    name: str
    text: str
    origin: int = 0
    left: int | None = None


def told_of(looked: Looked) -> list[Told]:
    """Give all that is told to be lost in a request."""
    told = [Told("tool", "", one) for one in looked.tools]
    told += [Told("system line", "", one) for one in looked.system]
    return told + [
        Told(one.part.what, one.part.name, one.part.text, one.origin, one.left)
        for one in looked.lost
    ]


def is_same(planted: str, told: str) -> bool:
    """Say whether two texts are the same, one of them perhaps as JSON."""
    if planted == told or told == json.dumps({"result": planted}, ensure_ascii=False):
        return True
    try:
        return bool(json.loads(planted) == json.loads(told))
    except ValueError:
        return planted.strip() == told.strip()


def take(told: list[Told], item: dict[str, Any]) -> Told | None:
    """Take what is told of a planted item out of a list."""
    for one in told:
        of_kind = one.kind in _KINDS.get(item["kind"], (item["kind"],))
        if of_kind and is_same(item["text"], one.text) and item["name"] in ("", one.name):
            told.remove(one)
            return one
    return None


@pytest.mark.parametrize("case", CASES, ids=[f"{one['id']}-{one['kind']}" for one in CASES])
def test_what_was_planted_as_lost_is_told_and_nothing_else(case: dict[str, Any]) -> None:
    """Each part that is gone is told with the seq that had it first; where nothing is gone nothing is told."""
    exchanges = InMemory(make_exchanges(case["run"]))
    compactions = {one["seq"]: one for one in case["truth"]["compactions"]}
    for looked in look_at(exchanges, None):
        told, planted = told_of(looked), compactions.pop(looked.seq, None)
        if planted is None:
            assert told == []
            continue
        assert looked.before in (planted["before"], planted["summary"])
        for item in planted["items"]:
            found = take(told, item)
            assert found is not None or item["optional"], item
            if found is None:
                continue
            assert found.origin in (0, item["origin"], *item["origins"])
            assert (found.left is not None) == (item["fate"] == "shortened")
            if found.left is not None:
                assert found.left - item["left"] in (0, WRAPPED)
        assert told == []
    assert not compactions
