"""`playhead stdio -- SERVER`: find the run, and record or play the server that is named; without a run, be the server."""

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path, PurePath
from urllib.parse import quote

from ...config import Mode
from ...tape.canonical.json_rpc_client_ids import STDIO_HOST
from ...tape.headers.shipped_lists import STDIO_COMMAND, STDIO_INSTANCE
from ..errors import EngineError
from ..processes.unstartable_command import explain_start
from ..standard_streams import print_status
from ..trust.variables import TABLE, Holds, names
from .client_pipe import Pipe
from .find_proxy import Place, find_place
from .http import Fields
from .messages import LineTooLong
from .server import Server

_STARTERS = frozenset(
    (
        "python",
        "python3",
        "node",
        "npx",
        "bunx",
        "bun",
        "deno",
        "uv",
        "uvx",
        "docker",
        "sh",
        "bash",
        "env",
        "java",
    )
)
"""Programs that start a server which is named behind them."""
_WORDS = frozenset(("run", "tool", "exec", "x", "-m", "-jar"))
_MOST_COMMAND = 2000
"""Characters of a command that are kept."""


def run_stdio(command: Sequence[str], name: str | None) -> int:
    """Carry the messages of a client and a server; give the server's exit code.

    name: of the server; made of its command where there is none.
    Raises: EngineError.
    """
    named = quote(name or name_server(command), safe="@")
    place = asyncio.run(find_place(named))
    if place is None or place.mode == Mode.PASSTHROUGH:
        why = "no proxy of Playhead's was found" if place is None else "the proxy records nothing"
        print_status(f"playhead stdio: {why}; {command[0]!r} runs as without it")
        _become(command)
    assert place is not None
    code = asyncio.run(_carry(place, command, named))
    if code < 0:
        # As the server: whoever started us reads the signal that ended it.
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
    return code if code >= 0 else 128 - code


def name_server(command: Sequence[str]) -> str:
    """Make a name for a server of the command that starts it."""
    first = PurePath(command[0]).name
    if first.rstrip("0123456789.") not in _STARTERS and first not in _STARTERS:
        return first
    named = (word for word in command[1:] if not word.startswith("-") and word not in _WORDS)
    found = next(named, first)
    return found if found.startswith("@") else PurePath(found).name or first


def _become(command: Sequence[str]) -> None:
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        raise explain_start(command, error.errno or 0, error.strerror or str(error)) from error


async def _carry(place: Place, command: Sequence[str], name: str) -> int:
    url = f"http://{STDIO_HOST}/{name}"
    told = quote(shlex.join(command)[:_MOST_COMMAND], safe=" /=:,.@+'\"-_{}[]()*?!;#~$&|<>^")
    fields: Fields = ((STDIO_COMMAND, told.encode("ascii")),)
    if place.instance:
        fields = (*fields, (STDIO_INSTANCE, place.instance.encode("ascii")))
    try:
        if place.mode == Mode.PLAYBACK:
            return await Pipe(place.proxy, url, fields, None).run()
        async with Server(command, _environment(), Path(place.sockets)) as server:
            _pass_on(server)
            fields = (*fields, (b"playhead-stdio", server.name.encode()))
            return await Pipe(place.proxy, url, fields, server).run()
    except LineTooLong as error:
        raise EngineError(str(error), "a message of MCP is one line") from error


def _environment() -> dict[str, str]:
    """Give the variables of a server that is recorded: what it does itself is behind its answers, and is not part of the tape."""
    led = {name for row in TABLE if row.holds is Holds.PROXY for name in names(row)}
    return {name: value for name, value in os.environ.items() if name not in led}


def _pass_on(server: Server) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, server.signal, number)
