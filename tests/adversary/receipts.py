"""Every case of receipts_*.yaml: recorded through a real proxy, replayed with another client, and what its receipt says, as JSON.

`python -m playhead.tests.adversary.receipts [FILE ...] [-k WORD]` runs on a machine of its own, where every name leads to servers on loopback.
FILE is `changed`, `unchanged` or `held_out`; WORD is in the names of the cases.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, ConfigError, Mode, loads
from playhead.tape.exchange import RunId
from playhead.tests.support import machine
from playhead.tests.support.certificates import make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.process import playhead
from playhead.timeline import Receipt, build
from playhead.timeline.receipts.render_text import render_receipt

from .place import RESOLVER, in_memory
from .receipt_clients import Got
from .receipt_requests import Asked, hosts_of, read_request
from .receipt_servers import Servers, Stage
from .receipt_sides import Case, Side
from .receipt_wire import Contexts

FOLDER = Path(__file__).parent
KINDS = ("http", "credentials", "grpc", "websocket", "tunnel", "order", "delivery", "agent")
_SETTLE_S = 3.0
_EVERY = 12
"""Every so many cases of a kind are tried each day."""
_FIELDS = ("model", "temperature", "top_p", "seed", "tools", "system")
_WHOLE = ("exit code", "stdout", "files")
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date"}
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


def is_tried(case: Case, cases: list[dict[str, Any]]) -> bool:
    """Say whether a case is tried today: always, or each twelfth of its kind, but none that starts commands of ours."""
    if FULL:
        return True
    alike = [one["name"] for one in cases if one["kind"] == case["kind"] and not needs_process(one)]
    return case["name"] in alike and alike.index(case["name"]) % _EVERY == 0


class Theatre:
    """A proxy with its servers, for one case after another."""

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
            return row | await self._launch(case)
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
        receipt = build(store, store.get_run(RunId(f"{case['name']}@1")))
        row |= _verdict(case, receipt, recorded, present)
        if self._stage.unexpected:
            row |= {"outcome": "leak", "problem": f"left: {self._stage.unexpected}"}
        if problem:
            row |= {"outcome": "no such key", "problem": f"{problem}; {row['outcome']}"}
        return row

    def _put_placeholders(self, case: Case, recorded: Side) -> None:
        """Put what redaction has put into answers into those of the recording, too: the receipt declares it."""
        store = self._running.store
        tape = store.get_run(RunId(str(case["name"])))
        for exchange in store.exchanges(tape):
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
        side = Side(
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
        await open_run.settled(_SETTLE_S)
        await self._running.end(name)
        return side

    async def _launch(self, case: Case) -> dict[str, Any]:
        """Record and replay a case as a command of ours would."""
        name, place = str(case["name"]), self._folder / str(case["name"])
        place.mkdir()
        (place / "case.json").write_text(json.dumps(case))
        (place / "playhead.yaml").write_text(yaml.safe_dump(dict(case.get("config", {}))))
        flags = ["--store", self._base.store, "--upstream-ca", str(self._base.upstream_ca), "-q"]
        agent = [sys.executable, "-m", f"{__package__}.receipt_agent", str(place / "case.json")]

        async def run(*words: str | Path, key: str) -> int:
            there = place / key
            there.mkdir()
            work = partial(playhead, *words, "--", *agent, key, cwd=there)
            done = await asyncio.to_thread(work)
            said.append(done.stderr)
            return done.returncode

        said: list[str] = []
        self._stage.begin()
        for asked in _asked_in(case):
            self._stage.expect(asked)
        code = await run("record", "--run", name, *flags, key="recorded")
        wants = _exit_of(case, "recorded")
        missed = [one.asked.url for one in self._stage.expected if not one.met.is_set()]
        if code != wants or missed or self._stage.unexpected:
            told = f"recording: exit {code}, not {wants}; {missed}; {said[-1][-300:]}"
            return {"outcome": "broken", "problem": told}
        self._stage.begin()
        more = ["-c", place / "playhead.yaml", *case.get("flags", ())]
        code = await run("replay", name, "--no-sandbox", *more, *flags, key="present")
        store = self._running.store
        runs = [info for info in store.runs() if info.id == f"{name}@1"]
        if not runs:
            return {"outcome": "no such key", "problem": said[-1][-200:]}
        receipt = build(store, runs[0])
        if self._stage.unexpected:
            return {"outcome": "leak", "problem": f"left: {self._stage.unexpected}"}
        told = receipt.to_json() | {"problems": [], "exit_code": code}
        text = render_receipt(receipt)
        if "cause" in case:
            return _judge_changed(case, told, text)
        if code == _exit_of(case, "present"):
            told["exit_code"] = 0
        return _judge_unchanged(case, told, text, None, None)

    def _find(self, name: str) -> OpenRun | None:
        found = (one for one in self._running.registry.open if one.info and one.info.id == name)
        return next(found, None)

    async def _came(self, name: str, count: int) -> None:
        """Wait until the proxy has decided on so many requests."""
        for _ in range(1000):
            run = self._find(name)
            if run is not None and run.requests >= count and _is_decided(run):
                return
            await asyncio.sleep(0.001)

    def _config(self, case: Case) -> tuple[Config, str]:
        own: dict[str, Any] = dict(case.get("config", {}))
        played, problem = {"mode": Mode.PLAYBACK, "store": self._base.store}, ""
        try:
            config = loads(yaml.safe_dump(own), base=self._folder)
        except ConfigError as error:
            config, problem = loads("", base=self._folder), f"configuration: {error}"[:150]
        return (
            dataclasses.replace(config, upstream_ca=self._base.upstream_ca, **played),
            problem,
        )


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


def _is_decided(run: OpenRun) -> bool:
    return all(one.decision is not None for one in run.pending_exchanges)


def _verdict(case: Case, receipt: Receipt, recorded: Side, present: Side) -> dict[str, Any]:
    told = receipt.to_json()
    text = render_receipt(receipt)
    told["problems"] = present.problems
    if "cause" in case:
        return _judge_changed(case, told, text)
    return _judge_unchanged(case, told, text, recorded, present)


def _judge_changed(case: Case, told: Mapping[str, Any], text: str) -> dict[str, Any]:
    root = told["root"]
    said = _shown(told)
    if told["faithful"] is not False or told["exit_code"] not in (121, 122, 123, 125):
        return {"outcome": "green", "problem": f"served: {said}"}
    causes = case["cause"] if isinstance(case["cause"], list) else [case["cause"]]
    if any(names_cause(cause, root, told, text) for cause in causes):
        return {"outcome": "right", "problem": ""}
    return {"outcome": "other", "problem": f"{causes} expected: {said}"}


def names_cause(
    cause: str, root: Mapping[str, Any] | None, told: Mapping[str, Any], text: str
) -> bool:
    """Say whether a receipt names a cause of the cases."""
    if cause in _WHOLE:
        return any(cause in line and "then" in line and "now" in line for line in text.splitlines())
    if cause == "late":
        return any("--late served" in row["text"] for row in told["divergences"])
    if root is None:
        return False
    kind, _, place = cause.partition(": ")
    if root["kind"] != kind:
        return False
    if not place:
        return True
    if kind in ("unexpected", "unused"):
        return place in root["text"]
    places = [row["place"] for row in root["differences"]]
    if kind == "drifted" and place in _FIELDS:
        return any(place in one for one in places)
    return any(
        one == place or one.startswith(tuple(place + sign for sign in ".[ ")) for one in places
    )


def _shown(told: Mapping[str, Any]) -> str:
    root = told["root"]
    if root is None:
        return f"no divergence, exit {told['exit_code']}, {told['matched']}, {told['problems']}"
    places = [row["place"] for row in root["differences"]]
    return f"{root['kind']} {places} ({root['text'][:160]})"


def _judge_unchanged(
    case: Case, told: Mapping[str, Any], text: str, recorded: Side | None, present: Side | None
) -> dict[str, Any]:
    if told["faithful"] is not True or told["exit_code"] != 0:
        return {"outcome": "refused", "problem": _shown(told)}
    problem = ""
    _, _, reported = str(case["expect"]).partition("reported: ")
    if reported and not (
        reported in told["headers_differ"]
        or reported in told["credentials_merged"]
        or (" " in reported and reported.split(" ")[1] in text)
    ):
        problem = (
            f"{reported} is not reported: {told['headers_differ']}, {told['credentials_merged']}"
        )
    matched = case.get("matched")
    if matched and set(told["matched"]) != {matched}:
        problem = f"matched {told['matched']}, not {matched}"
    wrong = _compare_answers(case, recorded, present) if recorded and present else ""
    if wrong:
        return {"outcome": "wrong", "problem": wrong}
    return {"outcome": "reported otherwise" if problem else "served", "problem": problem}


def _compare_answers(case: Case, recorded: Side, present: Side) -> str:
    if case["kind"] in ("grpc", "websocket"):
        gets = [one.get("gets") for one in _listed(case["present"])]
        for place, heard in enumerate(present.heard):
            number = gets[place] or place + 1
            if heard != recorded.heard[number - 1]:
                return f"heard {heard}, not {recorded.heard[number - 1]}"
        return ""
    if case["kind"] in ("http", "credentials"):
        gets = [one.get("gets") for one in _listed(case["present"])]
        pairs = [
            (one, recorded.answers[(gets[place] or place + 1) - 1])
            for place, one in enumerate(present.answers)
            if (gets[place] or place + 1) <= len(recorded.answers)
        ]
    else:
        pairs = list(_by_request(recorded, present))
    for (asked, now), (asked_then, then) in pairs:
        if _comparable(asked_then, then, asked) != _comparable(asked, now, asked):
            return f"{asked.url}: answered {_comparable(asked, now, asked)!r:.200}, not {_comparable(asked_then, then, asked)!r:.200}"
    return ""


def _by_request(recorded: Side, present: Side) -> Iterator[Any]:
    waiting: dict[Any, list[Any]] = {}
    for pair in recorded.answers:
        if not pair[1].ended:
            continue
        waiting.setdefault((pair[0].method, pair[0].url, pair[0].body), []).append(pair)
    for asked, got in present.answers:
        found = waiting.get((asked.method, asked.url, asked.body))
        if found and got.ended:
            yield (asked, got), found.pop(0)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _comparable(asked: Asked, got: Got, now: Asked) -> tuple[Any, ...]:
    headers = sorted((name.lower(), value) for name, value in got.headers)
    body = bytes(got.body)
    if asked.rpc_id is not None:
        then, new = (json.dumps({"id": one.rpc_id})[1:-1].encode() for one in (asked, now))
        body = body.replace(then, new)
    kept = [pair for pair in headers if pair[0] not in _HOP]
    interim = [(status, sorted(fields)) for status, fields in got.interim if status != 100]
    return got.status, kept, body, got.trailers, interim


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
        for case in cases
        if given.k in case["name"]
        and given.kind in ("", case["kind"])
        and (given.k or is_tried(case, cases))
    ]
    names = sorted({name for case in chosen for name in hosts_of(case)} | {"api.example.test"})
    hosts = f"127.0.0.1 localhost\n127.0.0.1 {' '.join(names)}\n"
    machine.enter_or_exit(
        0, {**RESOLVER, "/etc/hosts": hosts, "/etc/nsswitch.conf": "hosts: files\n"}
    )
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
