"""Processes that each run a command once."""

import subprocess
import sys

import pytest

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
