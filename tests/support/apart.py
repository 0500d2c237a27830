"""What a program of the tests tells that runs by itself, in a machine of its own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from .machine import NONE


def told_by(module: str, *words: str, timeout_s: float) -> Any:
    """Run a module of this folder to its end; give the JSON that it printed.

    Skips the test where it may have no machine of its own, with its reason.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"playhead.tests.support.{module}", *words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode == NONE:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
