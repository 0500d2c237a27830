"""What is asked of an agent: recorded whole, replayed faithfully with nothing up, and each planted change told.

`python -m playhead.tests.agents.trial NAME FOLDER REPLAYS RESULT [FLAG...]` leaves the network, and writes a `Trial` to RESULT.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from playhead.tests.agents.catalog import load_agent
from playhead.tests.agents.install import find_version
from playhead.tests.agents.plant import (
    Edit,
    change_model_answer,
    change_tool_result,
    is_model_root,
    is_tool_root,
    plant,
)
from playhead.tests.agents.stage import Ended, Stage, enter

CHANGED = "two pears"
"""What stands in the notes of a replay with a planted change."""


class Planted(msgspec.Struct, frozen=True):
    """What came of a replay with a change."""

    red: bool
    root_right: bool
    told: bool
    """Whether the agent's own output holds what was refused."""


class Trial(msgspec.Struct):
    """What came of an agent. Written to a file of its own."""

    name: str
    title: str
    version: str = ""
    date: str = ""
    seen: int = 0
    """Requests that reached the Internet."""
    recorded: int = 0
    """Exchanges on the tape that were answered from there; what nobody could be connected to is not counted."""
    verdicts: list[bool] = []
    root: str = ""
    """Of the first replay that was not faithful."""
    planted: dict[str, Planted] = {}
    """By what was changed: `file`, `tool result` or `answer`; without those that this agent has nothing of."""
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether all of it is as it should be."""
        replayed = bool(self.verdicts) and all(self.verdicts)
        right = all(one.red and one.root_right for one in self.planted.values())
        return replayed and self.seen == self.recorded and right


def try_agent(stage: Stage, replays: int) -> Trial:
    """Record an agent, replay it, and replay it once more with each change."""
    trial = Trial(stage.agent.name, stage.agent.title)
    trial.version = find_version(stage.agent, stage.environment())
    done = stage.record(f"{stage.agent.name}")
    trial.seen = len(stage.seen())
    counts = done.receipt.get("counts", {})
    trial.recorded = counts.get("recorded", 0) - _unconnected(done.receipt)
    if done.code:
        trial.problem = f"recording ended with {done.code}: {_last(done)}"
        return trial
    for _ in range(replays):
        done = stage.replay(stage.agent.name)
        trial.verdicts.append(done.receipt.get("faithful") is True and done.code == 0)
        if not trial.verdicts[-1] and not trial.root:
            trial.root = _root(done.receipt) or _ending(done)
    done = stage.replay(stage.agent.name, _plant)
    trial.planted["file"] = _judge(done, _is_in_notes)
    for what, (edit, is_root) in _IN_THE_TAPE.items():
        name = f"{stage.agent.name}-{what.replace(' ', '-')}"
        if plant(stage.store, stage.agent.name, name, edit):
            trial.planted[what] = _judge(stage.replay(name), is_root)
    return trial


_Judge = Callable[[dict[str, Any]], bool]
_IN_THE_TAPE: dict[str, tuple[Edit, _Judge]] = {
    "tool result": (change_tool_result, is_tool_root),
    "answer": (change_model_answer, is_model_root),
}


def _judge(done: Ended, is_root: _Judge) -> Planted:
    return Planted(
        red=bool(done.receipt) and done.receipt.get("faithful") is not True,
        root_right=is_root(done.receipt),
        told="refused" in done.output and "Playhead" in done.output,
    )


def _plant(stage: Stage) -> None:
    (stage.work / "notes.txt").write_text(f"{CHANGED}\n")


def _is_in_notes(receipt: dict[str, Any]) -> bool:
    """Say whether the root is the call that told the model what stands in the notes, at that place."""
    differences = (receipt.get("root") or {}).get("differences", ())
    return any(CHANGED in unquote(str(one.get("asked"))) for one in differences)


def _unconnected(receipt: dict[str, Any]) -> int:
    return sum(one.get("phase") == "connect" for one in receipt.get("faults", ()))


def _root(receipt: dict[str, Any]) -> str:
    root = receipt.get("root")
    if root is None:
        return ""
    places = ", ".join(f"`{one['place']}`" for one in root["differences"][:3])
    return f"{root['kind']}: {root['method']} {root['url'].partition('?')[0]} {places}"


def _ending(done: Ended) -> str:
    warnings = done.receipt.get("faithful_but_for") or done.receipt.get("warnings")
    return f"ended with {done.code}, {warnings or 'without a receipt'}: {_last(done)}"


def _last(done: Ended) -> str:
    return "".join(done.output.strip().splitlines()[-1:])[:200]


if __name__ == "__main__":
    name, folder, replays, result, *flags = sys.argv[1:]
    agent = load_agent(name)
    agent = msgspec.structs.replace(agent, record=[*agent.record, *flags])
    enter()
    trial = try_agent(Stage(agent, Path(folder)), int(replays))
    Path(result).write_bytes(msgspec.json.encode(trial))
