"""Questions about runs in a store, asked on the command line as a person does."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from click.testing import CliRunner, Result

from playhead.proxy.cli import cli
from playhead.store import Store


def write_store(folder: Path, write: Callable[[Store], Awaitable[object]]) -> Path:
    """Make a store, have something written into it, and give its folder."""

    async def open_and_write() -> None:
        with Store.open(folder) as store:
            await write(store)

    # On a thread, so that a test with a loop of its own can call this too.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(open_and_write())).result()
    return folder


def ask(store: Path, *words: str | int) -> Result:
    """Run a command on a store."""
    arguments = [*map(str, words), "--store", str(store)]
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def output(store: Path, *words: str | int) -> str:
    """Run a command that succeeds; give what it prints."""
    done = ask(store, *words)
    assert done.exception is None, done.exception
    return done.stdout
