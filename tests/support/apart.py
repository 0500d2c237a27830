"""What a program of the tests tells that runs by itself, in a machine of its own."""

import json
import sys
from typing import Any

import pytest

from . import prepared
from .machine import NONE


def told_by(module: str, *words: str, timeout_s: float) -> Any:
    """Run a module of this folder to its end; give the JSON that it printed.

    Skips the test where it may have no machine of its own, with its reason.
    """
    done = prepared.run(
        [sys.executable, "-m", f"playhead.tests.support.{module}", *words],
        imports=prepared.FOR_OURS,
        text=True,
        timeout=timeout_s,
    )
    if done.returncode == NONE:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
