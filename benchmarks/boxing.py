"""What the start of the sandbox costs over the proxy's own: medians, against the bar of 0.5 s.

uv run python benchmarks/boxing.py [ROUNDS]

A replay of a command that does nothing, outside the sandbox and inside, in turn. Of the sandbox's parts, each alone,
the same.
"""

import asyncio
import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playhead.proxy.sandbox.filesystem.bubblewrap import make_files
from playhead.proxy.sandbox.filesystem.masking import Plan, make_plan
from playhead.proxy.sandbox.sandbox import Sandbox
from playhead.store import Store
from playhead.tests.support.recordings import ask, record_run

BAR_S = 0.5
ROUNDS = 20
COMMAND = [sys.executable, "-m", "playhead.proxy.cli", "replay", "tape", "-q", "--store"]


def replay(store: Path, *flags: str) -> None:
    """Replay nothing: the run asks for nothing, which is told by the code."""
    command = [*COMMAND, str(store), *flags, "--", "true"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode in (122, 125), done.stderr


async def sandbox(plan: Plan, files: list[str]) -> None:
    """Start a sandbox without a proxy around it, and a command in it."""
    made = Sandbox(["true"], os.environ, plan, files=files)
    (await made.open()).close()
    await made.start()
    assert await made.wait() == 0
    made.close()


def cpu_s() -> float:
    """Give the time that processors have worked for us and our children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(rounds: int) -> int:
    """Print a table; give 1 where the bar is not met."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = folder / "store"
        stack.enter_context(contextlib.chdir(folder))
        with Store.open(store) as opened:
            record_run(opened, "tape", [ask()])

        roots = folder / "roots.pem"
        roots.touch()

        def plan() -> Plan:
            given = {**os.environ, "HOME": str(folder)}
            return make_plan(given, "true", bundle=roots, store=store, public=store / "ca")

        made = plan()
        tried: dict[str, Callable[[], object]] = {
            "a replay outside": lambda: replay(store, "--no-sandbox"),
            "a replay in the sandbox": lambda: replay(store),
            "what is to be hidden": plan,
            "namespaces and their first process": lambda: asyncio.run(sandbox(made, [])),
        }
        if shutil.which("bwrap"):
            (folder / "work").mkdir()
            os.chdir(folder / "work")
            given = {**os.environ, "HOME": str(folder / "home")}
            words = make_files(given, ["true"], public=store / "ca", shared=[]).words()
            tried["the same, with bubblewrap"] = lambda: asyncio.run(sandbox(made, words))
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in tried}
        for _ in range(rounds):
            for name, act in tried.items():
                begun, used = time.perf_counter(), cpu_s()
                act()
                took[name].append((time.perf_counter() - begun, cpu_s() - used))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in took.items()
    }
    print(f"{'median of ' + str(rounds):<40}{'clock':>8}{'CPU':>8}  ms")
    for name, (clock, cpu) in medians.items():
        print(f"{name:<40}{clock * 1e3:>8.1f}{cpu * 1e3:>8.1f}")
    more = medians["a replay in the sandbox"][0] - medians["a replay outside"][0]
    print(f"the sandbox over the proxy's own start: {more:.3f} s (bar {BAR_S} s)")
    return 0 if more <= BAR_S else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
