"""A sweep runs its variants over one shared prefix, counts how they end, and goes on where it stopped."""

import asyncio
import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from threading import Event
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from playhead.store import Store
from playhead.tape.exchange import RunId
from playhead.tests.support import prepared, walking_agent
from playhead.tests.support.counts import FULL
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, playhead, wait_until
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.refund_agent import CHAT

STEPS, AT, VARIANTS = (100, 92, 100) if FULL else (12, 10, 4)
AFTER = STEPS - AT + 1
"""Calls of one variant, all of which leave."""


class World(NamedTuple):
    """A model, a folder, and a store with a tape of the agent."""

    model: Origin
    folder: Path

    def write(self, text: str, name: str = "sweep.yaml") -> None:
        """Write a file of variants."""
        (self.folder / name).write_text(text)

    def sweep(self, *words: str, name: str = "sweep.yaml") -> "CompletedProcess[str]":
        """Run it."""
        self.model.requests.clear()
        told = ("--store", "store", "--no-sandbox", "--yes", *words)
        agent = (sys.executable, "-m", walking_agent.__name__, self.model.url, str(STEPS))
        return playhead("sweep", name, *told, "--", *agent, cwd=self.folder, timeout_s=900)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A tape of model calls, each with the answer to the one before."""
    with Origin({"/{tail:.*}": walking_agent.serve}) as model:
        steps = [
            ask(walking_agent.step(number, str(number - 1)), walking_agent.say(str(number)), f"{model.url}{CHAT}")
            for number in range(1, STEPS + 1)
        ]  # fmt: skip
        with Store.open(tmp_path / "store") as store:
            record_run(store, "long", steps, noted={"child_exit": 0})
        yield World(model, tmp_path)


HEAD = f"run: long\nat: {AT}\nlive: [inference]\nreason: a test\n"


def _variants(folder: Path, count: int) -> str:
    """Give variants that each ask the model at the point otherwise."""
    text = "variants:\n"
    for number in range(count):
        body = {"seed": number} if number % 2 else {"temperature": 1, "seed": number}
        (folder / f"{number}.json").write_text(json.dumps(body))
        text += f"  - {{name: v{number}, request_change: {number}.json}}\n"
    return text


@pytest.mark.timeout(1200 if FULL else 120)
def test_the_prefix_is_never_sent_again(world: World) -> None:
    """A hundred variants at step 92 of 100 make 900 calls, counted at the model; each has a folder of its own."""
    world.write(HEAD + _variants(world.folder, VARIANTS))
    done = world.sweep("--json", "--parallel", "2")
    assert done.returncode == 0, done.stderr
    assert world.model.requests == [f"POST {CHAT}"] * (AFTER * VARIANTS)
    told = json.loads(done.stdout)
    assert told["calls"] == AFTER * VARIANTS
    assert [(one["good"], one["bad"], one["unknown"]) for one in told["variants"]] == [
        (number % 2, 1 - number % 2, 0) for number in range(VARIANTS)
    ]
    assert not (world.folder / "walked").exists()
    assert f"sweep of 'long' at {AT}: {VARIANTS} variants" in done.stderr
    assert "never sent again" in done.stderr
    assert f"{AFTER} calls" in done.stderr


def test_a_variant_that_changes_nothing_asks_the_model(world: World) -> None:
    """As the others do, from the point on: it is a sample of the same model, and can be compared with them."""
    (world.folder / "same.json").write_text(json.dumps({"n": 1}))
    same = "times: 2\nvariants:\n  - {name: as it was}\n  - {name: the same, request_change: same.json}\n"
    world.write(HEAD + same)
    done = world.sweep("--json")
    assert done.returncode == 0, done.stderr
    assert len(world.model.requests) == 2 * 2 * AFTER
    told = json.loads(done.stdout)["variants"]
    assert [row["calls"] for row in told] == [2 * AFTER, 2 * AFTER]
    assert told[0]["low"] == told[1]["low"]
    assert "the model is asked in each run, also what the tape answers" in done.stderr


def test_runs_that_ask_nothing_have_no_interval_beside_those_that_do(world: World) -> None:
    """The last answer is given, so that however many runs there are, all of them are one."""
    (world.folder / "bad.json").write_text(json.dumps(walking_agent.say("bad")))
    (world.folder / "same.json").write_text(json.dumps({"n": 1}))
    head = HEAD.replace(f"at: {AT}", f"at: {STEPS}")
    world.write(
        head
        + "variants:\n  - {name: given, answer: bad.json}\n  - {name: asked, request_change: same.json}\n"
    )
    done = world.sweep()
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[1].split()[:6] == ["given", "0", "of", "1", "not", "sampled"]
    assert said[2].split()[:6] == ["asked", "1", "of", "1", "21%", "to"]
    assert said[-1].startswith("(not sampled: no run of it sent a request")
    told = json.loads(world.sweep("--json").stdout)["variants"]
    assert [row["low"] is None for row in told] == [True, False]


def test_a_second_call_does_what_is_left(world: World) -> None:
    """Nothing is run twice: what has been done is noted in a file beside the variants."""
    text = HEAD + _variants(world.folder, 2)
    world.write(text + f"max_calls: {AFTER}\n")
    first = world.sweep()
    assert first.returncode == 121, first.stderr
    assert len(world.model.requests) == AFTER
    assert "1 runs are left" in first.stderr
    assert f"spent {AFTER} calls" in first.stderr
    world.write(text + f"max_calls: {2 * AFTER}\n")
    second = world.sweep()
    assert second.returncode == 0, second.stderr
    assert "1 of them done already" in second.stderr
    assert len(world.model.requests) == AFTER
    third = world.sweep()
    assert third.returncode == 0
    assert world.model.requests == []
    assert third.stdout == second.stdout
    assert [row["variant"] for row in _rows(world)] == ["v0", "v1"]


def test_more_repeats_and_changed_variants_are_run(world: World) -> None:
    """And only these."""
    text = HEAD + _variants(world.folder, 2)
    world.write(text)
    assert world.sweep().returncode == 0
    world.write(text + "times: 2\n")
    assert world.sweep().returncode == 0
    assert len(world.model.requests) == 2 * AFTER
    (world.folder / "1.json").write_text('{"seed": 7}')
    done = world.sweep("--json")
    assert len(world.model.requests) == 2 * AFTER
    told = json.loads(done.stdout)
    assert [len(one["runs"]) for one in told["variants"]] == [2, 2]


def test_a_table_has_the_intervals(world: World) -> None:
    """Of the share of good runs, as Wilson gives it."""
    (world.folder / "bad.json").write_text(json.dumps(walking_agent.say("bad")))
    world.write(
        f"run: long\nat: {STEPS}\ntimes: 2\nvariants:\n  - {{name: as it was}}\n  - {{name: worse, answer: bad.json}}\n"
    )
    done = world.sweep()
    assert done.returncode == 0, done.stderr
    assert world.model.requests == []
    said = done.stdout.splitlines()
    assert said[1].split()[:8] == ["as", "it", "was", "2", "of", "2", "34%", "to"]
    assert said[2].split()[:7] == ["worse", "0", "of", "2", "0%", "to", "66%"]
    assert "nothing leaves" in done.stderr


def test_a_check_judges(world: World) -> None:
    """It finds what the command wrote."""
    (world.folder / "check.sh").write_text(f'grep -qx {STEPS} "$PLAYHEAD_STDOUT"')
    world.write(f"run: long\nat: {STEPS}\ncheck: sh check.sh\nvariants: [{{name: as it was}}]\n")
    done = world.sweep("--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["variants"]
    assert (row["good"], row["bad"]) == (1, 0)


def test_what_another_check_or_agent_made_does_not_count(world: World) -> None:
    """Runs are made again, and it is said why; with the files of then, they count again."""
    check, agent = world.folder / "check.sh", world.folder / "used.txt"
    agent.write_text("old")
    world.write(
        HEAD.replace(f"at: {AT}", f"at: {STEPS}")
        + "check: sh check.sh\nvariants: [{name: as it was}]\n"
    )
    shown = []
    for text, used in (("exit 1", "old"), ("exit 0", "old"), ("exit 0", "new"), ("exit 1", "old")):
        check.write_text(text)
        agent.write_text(used)
        done = world.sweep("--json")
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)["variants"]
        left = [line for line in done.stderr.splitlines() if "count" in line]
        shown.append((row["good"], row["bad"], len(world.model.requests), left))
    by_check = "  1 earlier run does not count: check.sh changed"
    by_both = "  1 earlier run does not count: check.sh and used.txt changed"
    assert shown[0] == (0, 1, 1, [])
    assert shown[1] == (1, 0, 1, [by_check])
    assert shown[2][:3] == (1, 0, 1)
    assert shown[2][3] == [by_both, by_check.replace("check.sh", "used.txt")]
    assert shown[3][:3] == (0, 1, 0)


def _rows(world: World) -> list[dict[str, Any]]:
    """Give the rows of runs that have ended."""
    lines = (world.folder / "sweep.yaml.done").read_text().splitlines()
    return [row for line in lines if "standing" in (row := json.loads(line))]


def test_what_was_not_declared_is_refused_and_tells_nothing(world: World) -> None:
    """A variant that goes on otherwise, with nothing live, is no bad run."""
    (world.folder / "bad.json").write_text(json.dumps(walking_agent.say("bad")))
    world.write(f"run: long\nat: {AT}\nvariants: [{{name: worse, answer: bad.json}}]\n")
    done = world.sweep("--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["variants"]
    assert (row["good"], row["bad"], row["unknown"]) == (0, 0, 1)
    assert world.model.requests == []
    assert _rows(world)[0]["why"].startswith("a request was refused")


def test_a_file_of_what_was_done_that_is_none_is_refused(world: World) -> None:
    """Nothing is run over what cannot be read."""
    world.write(HEAD + _variants(world.folder, 1))
    (world.folder / "sweep.yaml.done").write_text("[]\n")
    done = world.sweep()
    assert done.returncode == 2
    assert "line 1: no run of a sweep" in done.stderr
    assert world.model.requests == []


@contextmanager
def _sweeping(world: World) -> "Iterator[subprocess.Popen[bytes]]":
    """Have a sweep run beside the test; it is killed at the end."""
    told = ("--store", "store", "--no-sandbox", "--yes", "--parallel", "1")
    agent = (sys.executable, "-m", walking_agent.__name__, world.model.url, str(STEPS))
    with prepared.start(
        [*COMMAND, "sweep", "sweep.yaml", *told, "--", *agent],
        cwd=world.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield process
        process.kill()


def _is_free(notes: Path) -> bool:
    """Say whether no run of a sweep that was killed is left, which all have its file locked."""
    with notes.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def test_a_sweep_that_is_killed_goes_on(world: World) -> None:
    """Whatever was under way is run again, and nothing else."""
    world.write(HEAD + "times: 3\n" + _variants(world.folder, 2))
    notes = world.folder / "sweep.yaml.done"
    with _sweeping(world):
        wait_until(lambda: notes.exists() and bool(_rows(world)), 60)
    wait_until(lambda: _is_free(notes), 60)
    done = len(_rows(world))
    assert world.sweep("--json").returncode == 0
    ended = [row for row in _rows(world) if row["standing"] != "unfinished"]
    assert len(ended) == 6
    assert AFTER * (6 - done) <= len(world.model.requests) <= AFTER * (7 - done)


class Held(NamedTuple):
    """A model that keeps the second call after the prefix waiting, and the world that asks it."""

    world: World
    let_go: Event
    asked: list[str]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    """The same tape, with a model that is slow at one call."""
    let_go, asked = Event(), list[str]()

    async def serve(request: web.Request) -> web.Response:
        asked.append(request.path)
        if len(asked) % 2 == 0:
            await asyncio.to_thread(let_go.wait)
        return await walking_agent.serve(request)

    with Origin({"/{tail:.*}": serve}) as model:
        steps = [
            ask(walking_agent.step(number, str(number - 1)), walking_agent.say(str(number)), f"{model.url}{CHAT}")
            for number in range(1, STEPS + 1)
        ]  # fmt: skip
        with Store.open(tmp_path / "store") as store:
            record_run(store, "long", steps, noted={"child_exit": 0})
        yield Held(World(model, tmp_path), let_go, asked)
        let_go.set()


def _stop_sweep(held: Held, count: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Begin a sweep, and end it once its model has been asked so often."""
    with _sweeping(held.world) as process:
        wait_until(lambda: len(held.asked) >= count, 60)
        process.send_signal(how)
        process.wait(60)
    wait_until(lambda: _is_free(held.world.folder / "sweep.yaml.done"), 60)


def test_a_stopped_run_does_not_raise_the_cap_that_nobody_gave(held: Held) -> None:
    """However often the file is called."""
    world = held.world
    world.write(HEAD + "times: 2\n" + _variants(world.folder, 1))
    _stop_sweep(held, 2)
    held.let_go.set()
    done = world.sweep()
    assert done.returncode == 0, done.stderr
    assert f"cap: {2 * max(10, 2 * AFTER)} calls in all" in done.stderr
    assert "used with this file so far: spent 2 calls" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_calls_of_runs_that_were_stopped_count(held: Held, how: signal.Signals) -> None:
    """What left before a sweep was stopped has left: all calls together make no more than the cap allows."""
    world = held.world
    world.write(HEAD + "times: 5\nmax_calls: 4\n" + _variants(world.folder, 1))
    for count in (2, 4):
        _stop_sweep(held, count, how)
    held.let_go.set()
    done = world.sweep()
    assert done.returncode == 121, done.stderr
    assert "nothing was run, the cap is used up; 5 runs are left: spent 4 calls" in done.stderr
    assert len(held.asked) == 4


def test_money_of_a_call_that_was_stopped_counts_with_all_that_was_reserved(held: Held) -> None:
    """What it cost is not known."""
    world = held.world
    world.write(HEAD + "times: 5\ncap: 1\n" + _variants(world.folder, 1))
    _stop_sweep(held, 2)
    held.let_go.set()
    done = world.sweep()
    assert done.returncode == 121, done.stderr
    assert "during a call whose price is not known" in done.stderr
    assert "spent 2 calls, ~ 1.00 USD (1.00 of it estimated)" in done.stderr
    assert " ~ 1.00  " in done.stdout
    assert "(1.00 USD are estimated or reserved" in done.stdout
    assert len(held.asked) == 2


def test_a_cap_counts_what_is_routed(world: World) -> None:
    """As if it went to the service itself: before it is sent, and over all runs."""
    (world.folder / "answer.json").write_text(json.dumps(walking_agent.say("another")))
    with Origin({"/{tail:.*}": walking_agent.serve}) as copy:
        route = f"POST {world.model.url}{CHAT}={copy.url}"
        head = f"run: long\nat: {AT}\nroutes: ['{route}']\nreason: a test\ntimes: 3\nparallel: 1\n"
        variant = "variants:\n  - {name: a, answer: answer.json}\n"
        cap = 0.0035 * AFTER + 0.0005  # of two runs that make AFTER - 1 calls each
        world.write(head + f"cap: {cap:.4f}\n" + variant)
        done = world.sweep("--json")
        assert (done.returncode, world.model.requests) == (121, []), done.stderr
        assert f"price: from there on the tape has of these {AFTER} calls, " in done.stderr
        told = json.loads(done.stdout)
        assert told["calls"] == len(copy.requests) == AFTER
        assert cap - 0.001 < float(told["usd"]) <= cap
        assert told["left"] == 2


def test_calls_of_variants_that_are_gone_count(world: World) -> None:
    """A cap is one of the file, whatever was changed in it."""
    for seed in range(2):
        (world.folder / "0.json").write_text(json.dumps({"seed": seed}))
        world.write(HEAD + f"max_calls: {AFTER}\nvariants: [{{name: v, request_change: 0.json}}]\n")
        done = world.sweep()
        assert (done.returncode, len(world.model.requests)) == ((0, AFTER), (121, 0))[seed]
    assert f"the cap is used up; 1 runs are left: spent {AFTER} calls" in done.stderr


def test_a_run_that_is_not_to_be_found_counts_with_all_that_it_reserved(world: World) -> None:
    """Unless no run was made since, or none is missing."""
    world.write(HEAD + f"max_calls: {2 * AFTER}\n" + _variants(world.folder, 1))
    begun = {"begun": 1, "variant": "v0", "key": "k", "process": 1, "next_run": 1}
    row = json.dumps({**begun, "reserved_calls": 2 * AFTER, "reserved_usd": None})
    notes = world.folder / "sweep.yaml.done"
    notes.write_text(row + "\n")
    assert world.sweep().returncode == 0
    with Store.open(world.folder / "store") as store:
        store.removal.delete([store.runs.get(RunId("long@1"))])
    notes.write_text(row + "\n")
    done = world.sweep()
    assert done.returncode == 121, done.stderr
    assert "its requests are unknown" in done.stderr
    assert world.model.requests == []
