"""Processes that each run a command once."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from playhead.proxy.experiments import workers as workers_module
from playhead.proxy.experiments.workers import Work, Workers, run_all

_INTERRUPTED = """
import os, signal
from playhead.proxy.experiments.workers import Workers

maker = os.getpid()
os.register_at_fork(after_in_parent=lambda: os.kill(maker, signal.SIGINT))
with Workers(1) as workers:
    workers.start(1, lambda files: signal.pause())
print("went on")
"""


@pytest.mark.parametrize("again", range(3))
def test_a_ctrl_c_while_one_is_made_ends_it(again: int) -> None:
    """It is lost where it comes while Python tidies up behind the fork."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-2, ""), done.stderr
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"


def test_a_run_is_made_by_what_those_before_it_have_used() -> None:
    """With one at a time none is prepared while another goes on: it would not know what that has used of a cap."""
    ended = list[int]()

    def make() -> Iterator[tuple[int, Work]]:
        for number in range(3):
            assert ended == list(range(number))
            yield number, lambda _files: {}

    with Workers(1) as workers:
        for done in run_all(workers, make()):
            ended.append(done.name)
    assert ended == [0, 1, 2]


def test_a_run_that_does_not_end_is_said_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time that it has taken; it ends once that was said."""
    reading, writing = os.pipe()
    said = list[str]()

    def hear(text: str) -> None:
        said.append(text)
        os.write(writing, b".")

    monkeypatch.setattr(workers_module, "SILENCE_S", 0.01)
    monkeypatch.setattr(workers_module, "print_status", hear)
    with Workers(1) as workers:
        workers.start(1, lambda _files: {"read": len(os.read(reading, 1))})
        assert workers.wait().result == {"read": 1}
    assert said[0] == "  waiting for 1 run: 0 s; it has no time limit"
