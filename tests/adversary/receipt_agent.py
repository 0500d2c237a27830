"""The agent of a case of receipts_*.yaml as a program: `python -m playhead.tests.adversary.receipt_agent CASE KEY [LANE]`.

CASE is a file with the case as JSON, KEY is `recorded` or `present`. With LANE it does the steps that it reads, one a line, and
says after each that it is done.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .receipt_sides import Side
from .receipt_wire import Contexts

_SELF = "playhead.tests.adversary.receipt_agent"


class Lanes:
    """The processes of other lanes."""

    def __init__(self, *words: str) -> None:
        """Take the words that each is started with."""
        self._words = words
        self._started: dict[str, asyncio.subprocess.Process] = {}

    async def do(self, lane: str, step: str) -> None:
        """Have a lane do a step, and wait until it has."""
        process = self._started.get(lane)
        if process is None:
            pipe = asyncio.subprocess.PIPE
            process = self._started[lane] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", _SELF, *self._words, lane, stdin=pipe, stdout=pipe
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{step}\n".encode())
        await process.stdin.drain()
        await process.stdout.readline()

    async def end(self) -> None:
        """End all of them."""
        for process in self._started.values():
            await process.communicate()


async def _came(_count: int) -> None:
    """Nobody but the proxy knows what it has."""


async def _play(case: dict[str, Any], words: list[str]) -> None:
    proxy = urlsplit(os.environ["HTTPS_PROXY"])
    run = f"{proxy.username}:{proxy.password}" if proxy.username else ""
    contexts = Contexts(Path(os.environ["SSL_CERT_FILE"]))
    place = (proxy.hostname or "", proxy.port or 0)
    lanes = Lanes(*words[:2])
    side = Side(case, words[1], place, contexts, None, _came, run=run, elsewhere=lanes.do)
    if len(words) == 2:
        await side.play()
        await lanes.end()
        return
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await side.try_step(line.decode().strip())
        print("done", flush=True)
    side.close()


def _main(words: list[str]) -> None:
    case = json.loads(Path(words[0]).read_text("utf-8"))
    asyncio.run(_play(case, words))
    does = case[words[1]]
    if len(words) > 2 or not isinstance(does, dict):
        return
    for name, text in does.get("files", {}).items():
        Path(name).write_text(text)
    sys.stdout.write(does.get("stdout", ""))
    sys.stdout.flush()
    code = does.get("exit", 0)
    if isinstance(code, str):
        os.kill(os.getpid(), signal.Signals[code])
    sys.exit(code)


if __name__ == "__main__":
    _main(sys.argv[1:])
