"""What `just fast` runs starts no process: no proxy of its own, no client, no container."""

import sys

import pytest

from playhead.tests.support.fast import TESTS, is_fast, refuse_processes, starts_processes

FILES = sorted(TESTS.rglob("test_*.py"))


def test_most_tests_of_rules_are_fast_and_no_journey_is() -> None:
    """Whole folders of one kind are on one side."""
    fast = {path.relative_to(TESTS).parts[0] for path in FILES if is_fast(path)}
    assert {"addons", "config", "proxy", "store", "tape", "timeline"} <= fast
    assert fast & {"adversary", "docker", "examples", "journeys"} == set()
    assert all(is_fast(path) for path in FILES if path.is_relative_to(TESTS / "tape" / "diff"))


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        ("import subprocess", True),
        ("import json, subprocess", True),
        ("def f():\n    from subprocess import run", True),
        ("from playhead.tests.support.process import Serve", True),
        ("from playhead.tests.support import counts, prepared", True),
        ("from playhead.tests.support import (\n    counts,\n    prepared,\n)", True),
        ("from ..support import prepared", True),
        ("from playhead.tests.support import counts", False),
        ("import json\nfrom playhead.store import Store", False),
    ],
)
def test_a_file_starts_processes_if_it_imports_what_does(source: str, starts: bool) -> None:
    """At any depth: support modules import the one that forks."""
    assert starts_processes(source, ("store",)) is starts


@pytest.mark.parametrize("event", ["subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"])
def test_a_start_is_refused_while_fast_tests_run(event: str) -> None:
    """Whatever starts it: also code of Playhead, which no import of the test shows."""
    with pytest.raises(AssertionError, match="no test starts a process"):
        refuse_processes(event, ())


def test_the_hook_is_in_force_with_the_option(pytestconfig: pytest.Config) -> None:
    """With --fast a real start fails in this very process."""
    if not pytestconfig.getoption("--fast"):
        pytest.skip("only with --fast")
    import os

    with pytest.raises(AssertionError, match="no test starts a process"):
        os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], {})
