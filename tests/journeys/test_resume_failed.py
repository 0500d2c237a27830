"""A command that failed while its proxy went on: its run is resumed as a crashed one is, and what it failed of is asked for anew."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support import resume_agent
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import playhead
from playhead.tests.support.resume_agent import plan
from playhead.tests.support.resume_world import Upstream

_MODEL, _READ, _EFFECT = (
    next(step for step in range(20, 40) if plan(step) == kind) for kind in "mre"
)


class Agent:
    """The agent of forty steps, which ends with an error at the first answer that is one."""

    def __init__(self, store: Path, upstream: Upstream, certificates: Certificates) -> None:
        self._flags = ("--store", store, "--upstream-ca", certificates.root)
        self._command = ("--", sys.executable, "-m", resume_agent.__name__, upstream.url)

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it."""
        return playhead(verb, *self._flags, *words, *self._command)

    def resume(self) -> subprocess.CompletedProcess[str]:
        """Go on with it."""
        return self.run("resume", "--yes", "--no-sandbox", "r")


@pytest.fixture(scope="module")
def upstream(certificates: Certificates) -> Iterator[Upstream]:
    with Upstream(certificates) as made:
        yield made


@pytest.fixture
def agent(tmp_path: Path, upstream: Upstream, certificates: Certificates) -> Agent:
    upstream.sent.clear()
    upstream.failing = ()
    return Agent(tmp_path / "store", upstream, certificates)


@pytest.mark.parametrize("step", [_MODEL, _READ])
def test_an_agent_that_failed_of_an_answer_is_given_another(
    agent: Agent, upstream: Upstream, step: int
) -> None:
    """The failed call is asked for once more, and nothing else; who fails again is resumed again."""
    upstream.failing = {step + 1, step + 2}
    assert agent.run("record", "--run", "r").returncode == 1
    again = agent.resume()
    assert again.returncode == 1, again.stderr
    assert "resumes 'r', whose command ended with 1" in again.stderr
    done = agent.resume()
    assert done.returncode == 0, done.stderr
    assert "resumes 'r@1', which is the last run that resumed 'r', whose command" in done.stderr
    times = sorted(upstream.sent.values())
    assert times == [1] * (resume_agent.STEPS - 1) + [3]


def test_an_effect_that_failed_is_not_sent_again(agent: Agent, upstream: Upstream) -> None:
    """It has an outcome: its error is given again."""
    upstream.failing = {_EFFECT + 1}
    assert agent.run("record", "--run", "r").returncode == 1
    assert agent.resume().returncode == 1
    assert set(upstream.sent.values()) == {1}


def test_a_command_that_did_not_fail_has_nothing_to_go_on_with(agent: Agent) -> None:
    """It is said how it ended, and what there is instead."""
    assert agent.run("record", "--run", "r").returncode == 0
    refused = agent.resume()
    assert refused.returncode == 2
    assert "run 'r' has not crashed: it ended (the command ended with 0)" in refused.stderr
    assert "playhead branch r --at SEQ" in refused.stderr


def test_a_later_recording_that_failed_is_named(agent: Agent, upstream: Upstream) -> None:
    """Of the two of one name it is the one that is meant."""
    assert agent.run("record", "--run", "r").returncode == 0
    upstream.failing = {resume_agent.STEPS + 3}
    assert agent.run("record", "--run", "r").returncode == 1
    refused = agent.resume()
    assert refused.returncode == 2
    assert "playhead resume 'r~2' -- COMMAND" in refused.stderr
