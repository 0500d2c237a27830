"""What is asked of an agent: recorded whole, replayed faithfully with nothing up, and a planted change told.

`python -m playhead.tests.agents.trial NAME FOLDER REPLAYS RESULT` leaves the network, and writes a `Trial` to RESULT.
"""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from playhead.tests.agents.catalog import load_agent
from playhead.tests.agents.install import find_version
from playhead.tests.agents.stage import Ended, Stage, enter

CHANGED = "two pears"
"""What stands in the notes of a replay with a planted change."""


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
    red: bool = False
    root_right: bool = False
    told: bool = False
    """Whether the agent's own output holds what was refused."""
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether all of it is as it should be."""
        replayed = bool(self.verdicts) and all(self.verdicts)
        return replayed and self.seen == self.recorded and self.red and self.root_right


def try_agent(stage: Stage, replays: int) -> Trial:
    """Record an agent, replay it, and replay it once more with a change."""
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
    trial.red = bool(done.receipt) and done.receipt.get("faithful") is not True
    trial.root_right = _is_in_notes(done.receipt)
    trial.told = "refused" in done.output and "Playhead" in done.output
    return trial


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
    name, folder, replays, result = sys.argv[1:]
    agent = load_agent(name)
    enter()
    trial = try_agent(Stage(agent, Path(folder)), int(replays))
    Path(result).write_bytes(msgspec.json.encode(trial))
