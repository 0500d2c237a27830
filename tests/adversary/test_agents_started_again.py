"""An agent under `playhead serve` with `runs.resume: auto` dies alone, and is started again: nothing that its run has is sent twice."""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from playhead.proxy.processes.exit_codes import can_tell
from playhead.store import RunStatus, Store
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import Serve, playhead, wait_until
from playhead.tests.support.resume_world import Upstream

ENDS = ("kill", "3")
"""How an agent ends that had more to do."""
_AGENT = "playhead.tests.support.dying_agent"


class Agents:
    """A proxy, and agents that ask by way of it."""

    def __init__(self, upstream: Upstream, folder: Path, certificates: Certificates) -> None:
        self.upstream = upstream
        self.file = folder / "playhead.yaml"
        self.store = folder / "store"
        self._flags = ("-c", self.file, "--upstream-ca", certificates.root)
        self.begin("auto")

    def begin(self, resume: str, grace: str = "0s") -> None:
        """Start the proxy."""
        self.file.write_text(f"store: {self.store}\nruns: {{resume: {resume}, grace: {grace}}}\n")
        self.proxy = Serve(*self._flags, "--listen", "127.0.0.1:0")
        self.proxy.__enter__()

    def has_ended(self, run: str) -> bool:
        """Say whether a run is sealed."""
        with Store.open(self.store, readonly=True) as store:
            return store.runs.get(run).status is RunStatus.SEALED

    def is_known_to_have_ended(self, run: str) -> bool:
        """Say whether the log of a run has it that its processes have ended with 0, and nothing after that."""
        with Store.open(self.store, readonly=True) as store:
            events = list(store.events.all(store.runs.get(run)))
        return "ended_well" in events[-1].data

    def list_runs(self) -> list[str]:
        """Give the names of all runs."""
        with Store.open(self.store, readonly=True) as store:
            return [one.id for one in store.runs.all()]

    def ask(self, run: str, end: str, *names: str) -> list[int]:
        """Have an agent ask, and end; give the statuses."""
        ca = next((self.store / "ca").glob("*.pem"))
        words = (self.proxy.address, run, ca, self.upstream.url, end, *names)
        command = [sys.executable, "-m", _AGENT, *map(str, words)]
        done = prepared.run(command, imports=(_AGENT,), timeout=60, process_group=0)
        assert done.returncode == (-signal.SIGKILL if end == "kill" else int(end)), done.stderr
        return [int(word) for word in done.stdout.split()]


@pytest.fixture
def agents(tmp_path: Path, certificates: Certificates) -> Iterator[Agents]:
    with Upstream(certificates) as upstream:
        made = Agents(upstream, tmp_path, certificates)
        yield made
        made.proxy.stop()


@pytest.mark.parametrize("end", ENDS)
def test_an_agent_that_died_sends_nothing_twice(agents: Agents, end: str) -> None:
    """Its model calls and effects are held in each of its lives; reads and what is new are sent."""
    sent = agents.upstream.sent
    assert agents.ask("job", end, "m1", "k1", "r1", "e1") == [200] * 4
    assert agents.ask("job", end, "m1", "k1", "r1", "e1", "e2") == [0, 0, 200, 0, 200]
    assert agents.ask("job", "0", "m1", "e1", "n1", "e2", "e3") == [0, 0, 200, 0, 200]
    assert sent == Counter(m1=1, k1=1, r1=2, e1=1, e2=1, n1=1, e3=1)
    _, _, said = agents.proxy.stop()
    assert "is asked for as seq 1 of job before, by another process" in said


def test_one_process_asks_as_often_as_it_likes(agents: Agents) -> None:
    """A retry and a poll are its own."""
    names = ("m1", "e1", "k1", "m1", "e1", "k1", "e1")
    assert agents.ask("job", "0", *names) == [200] * len(names)
    assert agents.upstream.sent == Counter(names)


def test_a_job_that_ended_well_is_done_again_by_the_next(agents: Agents) -> None:
    """Where the kernel tells how it ended: its run ends, too, be the proxy killed after that."""
    if not can_tell():
        pytest.skip("the kernel does not tell how others end")
    names = ("m1", "e1")
    for count in (1, 2):
        assert agents.ask("job", "0", *names) == [200, 200]
        assert agents.upstream.sent == Counter(m1=count, e1=count)
        wait_until(partial(agents.has_ended, agents.list_runs()[-1]))
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto")
    assert agents.ask("job", "0", *names) == [200, 200]
    assert agents.upstream.sent == Counter(m1=3, e1=3)
    assert agents.list_runs() == ["job", "job~2", "job~3"]


@pytest.mark.parametrize("end", [*ENDS, "0"])
def test_a_run_ends_with_its_processes_where_nothing_is_resumed(agents: Agents, end: str) -> None:
    """However they ended: the next of that name begins anew."""
    agents.proxy.stop()
    agents.begin("off")
    assert agents.ask("job", end, "e1") == [200]
    wait_until(lambda: agents.has_ended("job"))
    assert agents.ask("job", end, "e1") == [200]
    assert (agents.list_runs(), agents.upstream.sent) == (["job", "job~2"], Counter(e1=2))


def test_what_goes_on_is_said_and_can_be_ended(agents: Agents) -> None:
    """A run that its proxy's death has left, with an agent that had died before; and a new run is had where that is wanted."""
    names = ("m1", "e1")
    agents.ask("job", "3", *names)
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto")
    assert agents.ask("job", "3", *names) == [200, 200]
    assert agents.upstream.sent == Counter(names)
    assert playhead("seal", "--store", agents.store, "job@1").returncode == 0
    assert agents.ask("job", "3", *names) == [200, 200]
    assert agents.upstream.sent == Counter([*names, *names])
    _, _, said = agents.proxy.stop()
    assert (
        "run job@1 continues job, whose proxy died: what that has is answered from its tape" in said
    )
    assert agents.list_runs() == ["job", "job@1", "job~2"]


def test_a_job_that_ended_well_is_not_gone_on_with_if_the_proxy_dies_next(agents: Agents) -> None:
    """While its run waits for others of its name; whoever came meanwhile and died is gone on with."""
    if not can_tell():
        pytest.skip("the kernel does not tell how others end")
    agents.proxy.stop()
    agents.begin("auto", "60s")
    names = ("m1", "e1")
    for count in (1, 2):
        assert agents.ask("job", "0", *names) == [200, 200]
        assert agents.upstream.sent == Counter(m1=count, e1=count)
        wait_until(partial(agents.is_known_to_have_ended, agents.list_runs()[-1]))
        agents.proxy.stop(signal.SIGKILL)
        agents.begin("auto", "60s")
    assert agents.ask("job", "0", *names) == [200, 200]
    wait_until(partial(agents.is_known_to_have_ended, "job~3"))
    assert agents.ask("job", "kill", "e2") == [200]
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto", "60s")
    assert agents.ask("job", "0", *names, "e2", "e3") == [200] * 4
    assert agents.upstream.sent == Counter(m1=3, e1=3, e2=1, e3=1)
    wait_until(partial(agents.is_known_to_have_ended, "job~3@1"))
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto", "60s")
    assert agents.ask("job", "0", *names) == [200, 200]
    assert agents.upstream.sent == Counter(m1=4, e1=4, e2=1, e3=1)
    assert agents.list_runs() == ["job", "job~2", "job~3", "job~3@1", "job~4"]


def test_what_is_gone_on_with_ends_with_its_agent(agents: Agents) -> None:
    """However fast its answers come from the tape, and its connections go."""
    if not can_tell():
        pytest.skip("the kernel does not tell how others end")
    names = ("m1", "e1", "e2", "k1")
    jobs = [f"job-{number}" for number in range(4)]
    for job in jobs:
        assert agents.ask(job, "kill", *names) == [200] * 4
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto")
    for job in jobs:
        assert agents.ask(job, "0", *names, "r1") == [200] * 5
    for job in jobs:
        wait_until(partial(agents.has_ended, f"{job}@1"))
    assert agents.upstream.sent == Counter(m1=4, e1=4, e2=4, k1=4, r1=4)


@pytest.mark.parametrize(
    ("first", "second", "held"),
    [
        (("m1", "e1"), ("m1",), 1),
        (("r1", "e1"), ("r1", "e1", "r2"), 1),
        (("r1", "e1"), ("r1",), 0),
        (("m1", "k1", "e1"), ("e1", "k1", "m1"), 3),
    ],
)
def test_what_a_second_life_asked_for_once_more_is_not_waited_for(
    agents: Agents, first: tuple[str, ...], second: tuple[str, ...], held: int
) -> None:
    """Only the agent died; it was started again, and died with its proxy: a third life that does as the first did goes on."""
    assert agents.ask("job", "kill", *first) == [200] * len(first)
    assert agents.ask("job", "kill", *second).count(0) == held
    agents.proxy.stop(signal.SIGKILL)
    agents.begin("auto")
    sent = Counter(agents.upstream.sent)
    assert agents.ask("job", "0", *first, "e5") == [200] * (len(first) + 1)
    assert agents.upstream.sent - sent == Counter(e5=1)
