"""The services of the double refund as processes."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from . import prepared

STORY = "playhead.examples.double_refund"

Fakes = list[tuple[subprocess.Popen[str], str]]
"""The provider and the payment API as processes, each with the URL that it printed."""


@contextlib.contextmanager
def run_fakes(delay: str) -> Iterator[Fakes]:
    """Run both; the payment API answers a first refund late by `delay` seconds."""
    commands = [
        [sys.executable, "-m", f"{STORY}.fake_provider", "--port", "0"],
        [sys.executable, "-m", f"{STORY}.fake_payments", "--port", "0", "--delay", delay],
    ]
    processes = [
        prepared.start(c, imports=["aiohttp.web"], stdout=subprocess.PIPE, text=True)
        for c in commands
    ]
    try:
        lines = [process.stdout.readline().split() for process in processes if process.stdout]
        assert [line[0] for line in lines] == ["ready", "ready"]
        yield [(p, line[1]) for p, line in zip(processes, lines, strict=True)]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
