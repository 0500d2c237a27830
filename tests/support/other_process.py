"""Another process that has a store open, or records into it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN = """
import sys
from pathlib import Path
from playhead.store import Store

with Store.open(Path(sys.argv[1]), readonly=True):
    print("open", flush=True)
    input()
"""
_RECORD = """
import asyncio, sys
from pathlib import Path
from playhead.store import Store

async def begin(store):
    await store.runs.create(sys.argv[2], mode="record", at_ns=1)

with Store.open(Path(sys.argv[1])) as store:
    asyncio.run(begin(store))
    print("open", flush=True)
    input()
"""


@contextmanager
def opened_elsewhere(store: Path) -> Iterator[int]:
    """Have another process hold a store open; gives its pid."""
    with _child(_OPEN, store) as pid:
        yield pid


@contextmanager
def recording_elsewhere(store: Path, name: str) -> Iterator[int]:
    """Have another process record a run; gives its pid."""
    with _child(_RECORD, store, name) as pid:
        yield pid


@contextmanager
def _child(program: str, *arguments: object) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process.pid
        process.communicate(b"\n", timeout=20)
