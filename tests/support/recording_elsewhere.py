"""A run that another process is recording."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TOLD = """
import asyncio, sys
from pathlib import Path
from playhead.store import Store

async def begin(store):
    await store.create_run(sys.argv[2], mode="record", at_ns=1)

with Store.open(Path(sys.argv[1])) as store:
    asyncio.run(begin(store))
    print("open", flush=True)
    input()
"""


@contextmanager
def recording_elsewhere(store: Path, name: str) -> Iterator[int]:
    """Have another process record a run; gives its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", _TOLD, str(store), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process.pid
        process.communicate(b"\n", timeout=20)
