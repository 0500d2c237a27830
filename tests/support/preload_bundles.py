"""Programs run with a preload, without a proxy or a store: recorded, and replayed with the journal of that."""

import json
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playhead.proxy.determinism.clock_journal import write_journals
from playhead.proxy.determinism.preload_bundle import PreloadBundle


@dataclass
class Ran:
    """A program that has ended."""

    out: str
    err: str
    told: dict[str, Any]
    """As in the receipt."""
    rows: list[dict[str, Any]]
    """The journal."""

    @property
    def said(self) -> list[list[str]]:
        said: list[list[str]] = json.loads(self.out)
        return said


def run(
    preload_bundle: PreloadBundle,
    python: str,
    *arguments: str | Path,
    context: str = "0",
    **environ: str,
) -> Ran:
    """Run a program with a preload bundle, and close that.

    context: of its process.
    """
    command = [python, *map(str, arguments)]
    given = {**os.environ, "PYTHONWARNINGS": "ignore", **environ}
    try:
        done = subprocess.run(
            command,
            env={**preload_bundle.variables(given), "PLAYHEAD_LANE": context},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        report = preload_bundle.report(command)
        return Ran(done.stdout, done.stderr, report.to_json(), list(preload_bundle.clock_reads()))
    finally:
        preload_bundle.close()


def new_kit(*, libc: bool = False) -> PreloadBundle:
    """A preload bundle for a recording.

    libc: with the library for programs that are neither Python nor Node, where it can be compiled.
    """
    preload_bundle = PreloadBundle.for_recording("full", {}, library=libc)
    assert preload_bundle is not None
    return preload_bundle


def again(
    preload_bundle: PreloadBundle,
    rows: list[dict[str, Any]],
    level: str = "full",
    *,
    short_sleeps: bool = False,
) -> PreloadBundle:
    """A preload bundle for a replay."""
    made = PreloadBundle(
        replace(preload_bundle.basis, level=level), recorded=True, short_sleeps=short_sleeps
    )
    write_journals(rows, made._tape)
    return made
