"""Every case of receipts_*.yaml: recorded through a real proxy, replayed with another client, and what its receipt says, as JSON.

`python -m playhead.tests.adversary.receipts [FILE ...] [-k WORD]` runs on a machine of its own, where every name leads to servers on loopback.
FILE is `changed`, `unchanged` or `held_out`; WORD is in the names of the cases.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, ConfigError, Mode, loads
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.timeline import build

from .place import enter_with_hosts, in_memory
from .receipt_commands import launch, needs_process
from .receipt_requests import hosts_of
from .receipt_servers import Servers, Stage
from .receipt_sides import Case, Side
from .receipt_verdicts import judge
from .receipt_wire import Contexts

FOLDER = Path(__file__).parent
_SETTLE_S = 3.0
_EVERY = 12
"""Every so many cases of a kind are tried each day."""
FILES = ("changed", "unchanged")
OPEN: dict[str, Any] = yaml.safe_load((FOLDER / "receipts_open.yaml").read_text("utf-8"))
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def read_cases(file: str) -> list[dict[str, Any]]:
    """Read the cases of `changed`, `unchanged` or `held_out`, each with all requests that it may name."""
    read = yaml.load((FOLDER / f"receipts_{file}.yaml").read_text("utf-8"), _LOADER)
    both = read["changed"] + read["unchanged"] if file == "held_out" else read["cases"]
    named = read.get("requests", {})
    return [{**case, "requests": {**named, **case.get("requests", {})}} for case in both]


def cases_of(file: str) -> list[dict[str, Any]]:
    """Read the cases of a file that were not taken out."""
    return [case for case in read_cases(file) if case["name"] not in OPEN["removed"]]


def tried(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the cases that are tried today: all, or each twelfth of its kind, but none that starts commands of ours."""
    if FULL:
        return cases
    alike: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        if not needs_process(case):
            alike.setdefault(case["kind"], []).append(case)
    names = {case["name"] for kind in alike.values() for case in kind[::_EVERY]}
    return [case for case in cases if case["name"] in names]


class Theatre:
    """A proxy with its servers, for one case after another."""

    side: type[Side] = Side

    def __init__(self, running: Running, stage: Stage, folder: Path) -> None:
        """Take what is running.

        folder: that of the configuration.
        """
        self._running, self._stage, self._folder = running, stage, folder
        self._contexts = Contexts(running.ca)
        self._proxy = (running.address.host, running.address.port)
        self._base = running.registry.config

    async def play(self, case: Case) -> dict[str, Any]:
        """Record and replay a case; give its row."""
        row: dict[str, Any] = {"name": case["name"], "kind": case["kind"]}
        if needs_process(case):
            told = (self._running.store, self._base, self._stage, self._folder)
            return row | await launch(case, *told)
        recorded = await self._side(case, "recorded")
        if recorded is not None:
            self._put_placeholders(case, recorded)
        if recorded is None:
            return row | {"outcome": "broken", "problem": "the recording made no run"}
        if recorded.problems and case["kind"] != "tunnel":
            return row | {"outcome": "broken", "problem": f"recording: {recorded.problems}"}
        unexpected = self._stage.unexpected
        if unexpected:
            return row | {"outcome": "broken", "problem": f"servers do not know {unexpected}"}
        config, problem = self._config(case)
        present = await self._side(case, "present", config)
        if present is None:
            return row | {"outcome": "green", "problem": "the replay made no run"}
        store = self._running.store
        receipt = build(store, store.runs.get(RunId(f"{case['name']}@1")))
        row |= judge(case, receipt, recorded, present)
        if self._stage.unexpected:
            row |= {"outcome": "leak", "problem": f"left: {self._stage.unexpected}"}
        if problem:
            row |= {"outcome": "no such key", "problem": f"{problem}; {row['outcome']}"}
        return row

    def _put_placeholders(self, case: Case, recorded: Side) -> None:
        """Put what redaction has put into answers into those of the recording, too: the receipt declares it."""
        store = self._running.store
        tape = store.runs.get(RunId(str(case["name"])))
        for exchange in store.exchanges.all(tape):
            if exchange.response is None or not exchange.redactions:
                continue
            if exchange.seq <= len(recorded.answers):
                got = recorded.answers[exchange.seq - 1][1]
                if len(got.body) == len(exchange.response.body):
                    got.body[:] = exchange.response.body

    async def _side(self, case: Case, key: str, config: Config | None = None) -> Side | None:
        """Play one side in a run of its own, and end the run."""
        self._stage.begin()
        recording = config is None
        registry = self._running.registry
        registry.config = config or self._base
        name = str(case["name"]) if recording else f"{case['name']}@1"
        side = self.side(
            case,
            key,
            self._proxy,
            self._contexts,
            self._stage if recording else None,
            lambda count: self._came(name, count),
        )
        await side.play()
        for one in self._stage.expected:
            one.released.set()
        open_run = self._find(name)
        if open_run is None:
            return None
        await _left(open_run)
        await open_run.settled(_SETTLE_S)
        await self._running.end(name)
        return side

    def _find(self, name: str) -> OpenRun | None:
        found = (one for one in self._running.registry.open if one.info and one.info.id == name)
        return next(found, None)

    async def _came(self, name: str, count: int) -> None:
        """Wait until the proxy has decided on so many requests."""
        for _ in range(1000):
            run = self._find(name)
            if run is not None and run.on_the_way.requests >= count and _is_decided(run):
                return
            await asyncio.sleep(0.001)

    def _config(self, case: Case) -> tuple[Config, str]:
        own, problem = dict(case.get("config", {})), ""
        try:
            config = loads(yaml.safe_dump(own), base=self._folder)
        except ConfigError as error:
            config, problem = loads("", base=self._folder), f"configuration: {error}"[:150]
        base = self._base
        changed = dataclasses.replace(
            config, mode=Mode.PLAYBACK, store=base.store, upstream_ca=base.upstream_ca
        )
        return changed, problem


async def _left(run: OpenRun) -> None:
    """Wait until the proxy has noticed that its clients are gone."""
    for _ in range(1000):
        if not run.clients:
            return
        await asyncio.sleep(0.001)


def _is_decided(run: OpenRun) -> bool:
    return all(one.decision is not None for one in run.on_the_way.pending_exchanges)


async def _play(
    cases: list[dict[str, Any]], folder: Path, names: list[str]
) -> list[dict[str, Any]]:
    trust = make_certificates(folder / "certificates", tuple(names))
    stage = Stage()
    config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=trust.root)
    rows = []
    async with Servers(trust.chain, stage), running_engine(config) as running:
        theatre = Theatre(running, stage, folder)
        for case in cases:
            rows.append(await theatre.play(case))
    return rows


def _main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("files", nargs="*", default=FILES)
    words.add_argument("-k", default="")
    words.add_argument("--kind", default="")
    words.add_argument("--text", action="store_true")
    given = words.parse_args()
    every = [(file, cases_of(file)) for file in given.files]
    chosen = [
        case
        for _, cases in every
        for case in (cases if given.k else tried(cases))
        if given.k in case["name"] and given.kind in ("", case["kind"])
    ]
    names = sorted({name for case in chosen for name in hosts_of(case)} | {"api.example.test"})
    enter_with_hosts(names)
    with in_memory() as folder, contextlib.redirect_stdout(sys.stderr):
        rows = asyncio.run(_play(chosen, folder, names))
    if not given.text:
        json.dump(rows, sys.stdout)
        return
    for row in rows:
        if row["problem"]:
            print(f"{row['outcome']:9} {row['kind']:11} {row['name']}\n    {row['problem']}")
    print(sorted(Counter((row["kind"], row["outcome"]) for row in rows).items()))


if __name__ == "__main__":
    _main()
