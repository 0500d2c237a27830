"""How a helper of the benchmarks is told what to do: lines of JSON, over standard input and output.

The first line says what to do; each further line `go` asks for one more result. The end of standard input
ends the helper. Whatever goes wrong is a result too: `{"error": TEXT}`.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Job = Callable[[dict[str, Any]], Awaitable[None]]


def say(result: dict[str, Any]) -> None:
    """Give a result."""
    print(json.dumps(result), flush=True)


async def go() -> None:
    """Wait until the next thing is asked for.

    Raises: SystemExit when nothing more is.
    """
    if (await _line()).strip() != "go":
        raise SystemExit


async def rest() -> None:
    """Keep what is open until standard input ends."""
    while await _line():
        pass


async def serve(jobs: Mapping[str, Job]) -> None:
    """Do what the first line of standard input tells."""
    told = json.loads(await _line() or "{}")
    try:
        await jobs[told["do"]](told)
    except* (OSError, TimeoutError, ssl.SSLError) as group:
        fault = group.exceptions[0]
        while isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        say({"error": f"{type(fault).__name__}: {fault}"})


async def _line() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
