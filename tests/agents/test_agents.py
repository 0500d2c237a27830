"""Four agents of the catalog, as `just agents` runs them all: recorded, replayed, and told of a change."""

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from playhead.tests.agents.catalog import load_agent, load_agents
from playhead.tests.agents.trial import Trial
from playhead.tests.support.machine import NONE

CHEAP = ("langgraph", "openai-agents", "pydantic-ai", "smolagents")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CHEAP)
def test_an_agent_is_recorded_and_replayed_as_it_is(name: str) -> None:
    """All that its servers saw is on the tape, a replay with nothing up is faithful, and each planted change is the root."""
    agent = load_agent(name)
    if not agent.is_installed:
        pytest.skip(f"{agent.title} is not installed: run `just agents {name}`")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        trial = _try(name, Path(folder))
    assert not trial.problem
    assert trial.seen == trial.recorded > 0
    assert trial.verdicts == [True], trial.root
    assert set(trial.planted) == {"file", "tool result", "answer"}
    for what, one in trial.planted.items():
        assert (one.red, one.root_right) == (True, True), what
    assert trial.planted["file"].told


def _try(name: str, folder: Path) -> Trial:
    # Outside of /tmp, which is empty there.
    result = folder / "result.json"
    words = [name, str(folder / "stage"), "1", str(result)]
    done = subprocess.run(
        [sys.executable, "-m", "playhead.tests.agents.trial", *words],
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    if done.returncode == NONE:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(result.read_bytes(), type=Trial)


def test_every_agent_can_be_had_from_somewhere() -> None:
    """Each names its packages, and a command; no two have one title."""
    agents = load_agents()
    assert all(agent.npm or agent.pypi for agent in agents)
    assert all(agent.command and agent.version for agent in agents)
    assert len({agent.title for agent in agents}) == len(agents)
