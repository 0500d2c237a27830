"""`playhead ui`: serve the pages of a store on loopback until it is ended."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass

from ...config import Config
from ...web.render import warm_up
from ...web.views.addresses import run_path
from ..control.address import open_token
from ..control.http.access import Guard, make_own_name
from ..control.http.listen_on_loopback import HOSTS, PAIR, listen_at
from ..control.http.serving import serve_on
from ..errors import EngineError
from .application import Application
from .sessions import Links, Rights
from .store_reader import Library, end_process

SWITCH_S = 0.001
"""How long one thread computes before another may: pages are asked for while runs are read."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What `playhead ui` is to show."""

    run: str | None = None
    port: int = 0
    browser: bool = True
    rights: Rights = Rights.READ
    words: tuple[str, ...] = ()
    """Flags that give another command the same configuration."""
    command: tuple[str, ...] = ()
    """What may be run again; empty for nothing."""


def serve_pages(config: Config, shown: Shown, say: Callable[[str], None] = print) -> int:
    """Serve until SIGINT or SIGTERM; give the exit code.

    say: is told the link.
    Raises: StoreError; EngineError, where the port cannot be had; UnknownRun.
    """
    sys.setswitchinterval(SWITCH_S)
    library = Library(config, shown.words)
    try:
        if shown.run is not None:
            library.store.runs.get(shown.run)
        listening = _bind(shown.port)
        code = asyncio.run(_serve(library, listening, shown, say))
    except BaseException:
        library.close()
        raise
    if not library.close():
        end_process(code)
    return code


async def _serve(
    library: Library,
    listening: list[socket.socket],
    shown: Shown,
    say: Callable[[str], None],
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    port = listening[0].getsockname()[1]
    name = make_own_name()
    links = Links(secrets.token_bytes(32), lambda: time.time_ns() / 1e9)
    guard = Guard(open_token(library.config), "http", port, HOSTS | {name}, own=name)
    application = Application(library, guard, links, shown.command)
    runner = await serve_on(listening, application, None)

    def make_link() -> str:
        path = "/runs" if shown.run is None else run_path(shown.run)
        return f"http://{PAIR[0]}:{port}{path}?token={links.make(shown.rights)}"

    try:
        say(make_link())
        # What the first page needs is read before somebody asks for it.
        loop.run_in_executor(library.threads, warm_up)
        if shown.browser:
            # Its own: the one that is printed is good when this one was used.
            await asyncio.to_thread(_open_browser, make_link())
        await stop.wait()
    finally:
        application.close()
        await runner.cleanup()
    return 0


def _bind(port: int) -> list[socket.socket]:
    try:
        return listen_at(PAIR[0], port)
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"the page cannot listen on 127.0.0.1:{port}: {getattr(error, 'strerror', None) or error}",
            "choose another --port; 0 takes a free one",
        ) from error


def _open_browser(link: str) -> None:
    """Open a link where there is a screen; a browser of text would take the terminal."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(link)
