"""A case of receipts_*.yaml whose agent is a command: `playhead record` and `playhead replay` with processes of its own."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from playhead.config import Config
from playhead.store import Store
from playhead.tests.support.process import playhead
from playhead.timeline import build

from .receipt_requests import Asked, read_request
from .receipt_servers import Stage
from .receipt_sides import Case
from .receipt_verdicts import judge


async def launch(
    case: Case, store: Store, config: Config, stage: Stage, folder: Path
) -> dict[str, Any]:
    """Record and replay a case; give what came of it.

    folder: where its files are made.
    """
    name, place = str(case["name"]), folder / str(case["name"])
    place.mkdir()
    stage.begin()
    for asked in _asked_in(case):
        stage.expect(asked)
    flags: list[str | Path] = ["--store", config.store, "-q"]
    flags += ["--upstream-ca", str(config.upstream_ca)]
    code, said = await _run(case, place, "recorded", "record", "--run", name, *flags)
    missed = [one.asked.url for one in stage.expected if not one.met.is_set()]
    if code != _exit_of(case, "recorded") or missed or stage.unexpected:
        why = f"recording: exit {code}; {missed}; {stage.unexpected}; {said[-300:]}"
        return {"outcome": "broken", "problem": why}
    stage.begin()
    own = place / "playhead.yaml"
    own.write_text(yaml.safe_dump(dict(case.get("config", {}))))
    flags += ["--no-sandbox", "-c", own, *case.get("flags", ())]
    code, said = await _run(case, place, "present", "replay", name, *flags)
    info = next((one for one in store.runs.all() if one.id == f"{name}@1"), None)
    if info is None:
        return {"outcome": "no such key", "problem": said[-200:]}
    if stage.unexpected:
        return {"outcome": "leak", "problem": f"left: {stage.unexpected}"}
    passed = "expect" in case and code == _exit_of(case, "present")
    return judge(case, build(store, info), code=0 if passed else code)


async def _run(case: Case, place: Path, key: str, *words: str | Path) -> tuple[int, str]:
    """Run a command of ours with the case's agent; give its exit code and what it said."""
    there, told = place / key, place / "case.json"
    there.mkdir()
    told.write_text(json.dumps(case))
    agent = [sys.executable, "-m", f"{__package__}.receipt_agent", str(told), key]
    done = await asyncio.to_thread(partial(playhead, *words, "--", *agent, cwd=there))
    return done.returncode, done.stderr


def needs_process(case: Case) -> bool:
    """Say whether a case asks for a command of ours, and for processes of its own."""
    keys = {"exit", "stdout", "files"}
    sides = [case["recorded"], case["present"]]
    if "flags" in case or any(isinstance(one, dict) and keys & one.keys() for one in sides):
        return True
    return any(" in " in step for one in sides for step in _steps(one) if isinstance(step, str))


def _steps(side: Any) -> list[Any]:
    found = side.get("steps", []) if isinstance(side, dict) else side
    return list(found) if isinstance(found, list) else []


def _asked_in(case: Case) -> Iterator[Asked]:
    """Give the requests of a recording in their order."""
    for step in _steps(case["recorded"]):
        word, name, *_ = step.split(" ")
        if word in ("ask", "begin", "request"):
            yield read_request(case["requests"][name], str(case.get("transport", "h1")))


def _exit_of(case: Case, key: str) -> int:
    side = case[key]
    code = side.get("exit", 0) if isinstance(side, dict) else 0
    return 128 + signal.Signals[code] if isinstance(code, str) else int(code)
