"""kill -9 of an agent, with its proxy or alone, at random points of forty steps: resumed, nothing with an outcome is sent again."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from playhead.config import Config
from playhead.proxy.control.gate_commands import decide, find_held
from playhead.proxy.errors import NotAnswered
from playhead.store import RunStatus, Store, StoreError
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.records.events import EventKind
from playhead.tests.support import prepared, resume_agent
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.full_disk import until
from playhead.tests.support.process import COMMAND
from playhead.tests.support.resume_world import Upstream
from playhead.timeline import build

KILLS = 100 if FULL else 3
_LONG_S = 60.0


class Place(NamedTuple):
    """Where a run crashes."""

    after: int
    """Requests that the upstream has had by then, of one process."""
    answered: bool
    """Whether the last one is answered before."""
    alone: bool = False
    """Whether only the agent is killed, and its proxy ends the run."""


class Course(NamedTuple):
    """What is known of the effects of a run that crashed."""

    known: set[str]
    unknown: set[str]


@pytest.fixture(scope="module")
def upstream(certificates: Certificates) -> Iterator[Upstream]:
    with Upstream(certificates) as made:
        yield made


class Agent:
    """Runs the agent under a command of ours, and kills both."""

    def __init__(self, store: Path, upstream: Upstream, root: Path) -> None:
        self.config = Config(store=store)
        self._upstream = upstream
        self.command: tuple[str, ...] = (sys.executable, "-m", resume_agent.__name__, upstream.url)
        self._flags = ("--store", store, "--upstream-ca", root, "-q")

    def start(self, verb: str, *words: str) -> subprocess.Popen[bytes]:
        """Begin."""
        flags = [str(flag) for flag in (*self._flags, *words)]
        return prepared.start(
            [*COMMAND, verb, *flags, "--", *self.command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run_until(self, place: Place, verb: str, *words: str) -> None:
        """Kill it -9 at a place, agent and proxy."""
        self._upstream.stop_at(place.after, answered=place.answered)
        process = self.start(verb, *words)
        with _Approver(self.config):
            reached = self._upstream.stopped.wait(_LONG_S)
        assert reached, process.communicate()
        if place.answered:
            time.sleep(random.Random(place.after).random() * 0.01)  # wherever that is
        proxy = psutil.Process(process.pid)
        for one in (*proxy.children(recursive=True), *([] if place.alone else [proxy])):
            one.send_signal(signal.SIGKILL)
        if place.alone:  # it waits for late answers
            self._upstream.go_on()
        process.communicate()
        self._upstream.go_on()

    def finish(self, verb: str, *words: str) -> tuple[str, set[str]]:
        """Run it to its end, and approve whatever is held; give its answer and the names of what was held."""
        process = self.start(verb, *words)
        with _Approver(self.config) as approver:
            out, err = process.communicate(timeout=_LONG_S)
        assert process.returncode == 0, err.decode()
        return out.decode().split()[-1], approver.held


class _Approver:
    """Approves what is held, beside a run."""

    def __init__(self, config: Config) -> None:
        self.held: set[str] = set()
        self._config = config
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "_Approver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)

    def _work(self) -> None:
        while not self._ended.wait(0.02):
            try:
                for row in find_held(self._config).gates:
                    self.held.add(_name(row["url"]))
                    assert "without an outcome" in row["reason"]
                    decide(self._config, "approve", row["id"], row["digest"], "a test")
            except (StoreError, NotAnswered):  # nobody is there yet, or any more
                continue


def _count_starts(file: Path) -> int:
    return len(file.read_bytes()) if file.exists() else 0


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _ended(store: Path) -> RunStatus:
    with Store.open(store) as opened:
        return opened.runs.get("r").status


def _find_unused(store: Path) -> list[dict[str, Any]]:
    """Give what the receipt of the last run says was left on its tape."""
    with Store.open(store) as opened:
        last = max(opened.runs.all(), key=lambda run: run.number)
        return list(build(opened, last).unused)


def find_course(store: Path, name: str) -> Course:
    """Read which effects of a run were answered."""
    effects: dict[int, str] = {}
    with Store.open(store) as opened:
        info = opened.runs.get(name)
        for event in opened.events.all(info):
            if event.kind is not EventKind.INTENT:
                continue
            if event.data["request_class"] == RequestClass.EFFECT.value:
                effects[event.seq] = _name(event.data["url"])
        kept = {seq: opened.exchanges.find(info, Seq(seq)) for seq in effects}
        known = {
            effects[seq]
            for seq, one in kept.items()
            # One whose agent died first has an outcome without an answer.
            if one is not None and one.response is not None and one.response.complete
        }
    return Course(known, set(effects.values()) - known)


@pytest.mark.timeout(60 + 20 * KILLS)
def test_nothing_with_an_outcome_is_sent_again(
    tmp_path: Path, upstream: Upstream, certificates: Certificates
) -> None:
    """Every unknown effect is at a gate, the answer is the same, and the upstream counts; a half of the runs crash twice."""
    chance = random.Random(23)
    whole = Agent(tmp_path / "whole", upstream, certificates.root)
    expected, _ = whole.finish("record", "--run", "whole")
    for kill in range(KILLS):
        upstream.sent.clear()
        agent = Agent(tmp_path / f"{kill}", upstream, certificates.root)
        alone = kill % 3 == 2
        # An agent that is killed alone after its last answer may have ended by then, with 0.
        most = resume_agent.STEPS - alone
        first = Place(chance.randrange(1, most + 1), bool(chance.randrange(2)), alone)
        agent.run_until(first, "record", "--run", "r")
        courses = [find_course(agent.config.store, "r")]
        assert _ended(agent.config.store) is (RunStatus.SEALED if alone else RunStatus.RECOVERED)
        left = resume_agent.STEPS - first.after
        if kill % 2 and left > 1:
            second = Place(chance.randrange(1, left), bool(chance.randrange(2)))
            agent.run_until(second, "resume", "--yes", "--no-sandbox", "r")
            courses.append(find_course(agent.config.store, "r@1"))
        answer, held = agent.finish("resume", "--yes", "--no-sandbox", "r")
        assert answer == expected, (kill, first)
        unknown = courses[-1].unknown
        assert held == unknown, (kill, first, courses)
        again = Counter(name for course in courses for name in course.unknown)
        for name, count in upstream.sent.items():
            if name[0] in "ek":
                # Of what was under way nobody knows whether it had left the machine.
                assert 1 <= count <= 1 + again[name], (kill, first, name)
        assert _find_unused(agent.config.store) == [], (kill, first)
        known = {name for course in courses for name in course.known}
        assert not known & {name for name, count in upstream.sent.items() if count > 1} - set(again)


def test_of_two_that_resume_at_once_one_runs_its_command(
    tmp_path: Path, upstream: Upstream, certificates: Certificates
) -> None:
    """The other is told so before its command does anything."""
    upstream.sent.clear()
    agent = Agent(tmp_path / "store", upstream, certificates.root)
    agent.run_until(Place(20, True), "record", "--run", "r")
    known = find_course(agent.config.store, "r").known
    starts, go = tmp_path / "starts", tmp_path / "go"
    agent.command = (
        *("sh", "-c", 'printf x >> "$0"; until [ -e "$1" ]; do sleep 0.1; done; shift; exec "$@"'),
        *(str(starts), str(go), *agent.command),
    )
    both = [agent.start("resume", "--yes", "--no-sandbox", "r") for _ in range(2)]
    with _Approver(agent.config):
        assert until(lambda: any(one.poll() is not None for one in both))
        loser, winner = sorted(both, key=lambda one: one.poll() is None)
        out, err = loser.communicate(timeout=_LONG_S)
        go.touch()
        winner.communicate(timeout=_LONG_S)
    assert (loser.returncode, out) == (2, b""), err
    assert b"is being resumed as" in err
    assert (winner.returncode, _count_starts(starts)) == (0, 1)
    assert all(upstream.sent[name] == 1 for name in known)
