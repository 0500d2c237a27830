"""An agent under `playhead serve` with `runs.resume: auto` dies alone, and is started again: nothing that its run has is sent twice."""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import Serve
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

    def begin(self, resume: str) -> None:
        """Start the proxy."""
        self.file.write_text(f"store: {self.store}\nruns: {{resume: {resume}, grace: 0s}}\n")
        self.proxy = Serve(*self._flags, "--listen", "127.0.0.1:0")
        self.proxy.__enter__()

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
