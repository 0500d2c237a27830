"""`playhead serve`: the long-running proxy, controlled by its file."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterator
from functools import partial

from ... import PlayheadError
from ...config import Config, ConfigError, Mode, Watcher
from ...config.value_types import LATEST
from ...tape.exit_codes import ExitCode
from ..engine.event_loop import new_event_loop
from ..operations.find_tape import choose_recording, find_tape_problem, say_which_is_meant
from ..standard_streams import LOG_FORMAT, BackgroundStderr, write_all
from ..trust.ca import open_ca
from ..trust.environment import publish
from .runtime import Runtime

logger = logging.getLogger(__name__)

_RENEWED_EVERY_S = 86_400.0
"""A day: the CA is renewed in its last month."""


def serve(config: Config, watcher: Watcher | None) -> int:
    """Run until SIGINT or SIGTERM; give the exit code, which is 130 for the first and 0 for the second.

    Raises: PlayheadError, before the port is open.
    """
    with _logged_in_background(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(config, watcher))


@contextlib.contextmanager
def _logged_in_background() -> Iterator[None]:
    """Have no client wait for a reader of our stderr."""
    root = logging.getLogger()
    before = root.handlers[:]
    handler = BackgroundStderr()
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    root.handlers[:] = [handler]
    try:
        yield
    finally:
        root.handlers[:] = before
        handler.close()


async def _renew_ca(config: Config) -> None:
    """Have clients that start from now on find a CA that is valid, however long this process runs: its key stays."""
    while True:
        await asyncio.sleep(_RENEWED_EVERY_S)
        try:
            await asyncio.to_thread(
                open_ca, config.store, config.public_ca_dir, upstream_ca=config.upstream_ca
            )
        except PlayheadError as error:
            logger.warning("the CA could not be looked at: %s", error)


async def _serve(config: Config, watcher: Watcher | None) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    loop.add_signal_handler(signal.SIGINT, stop, ExitCode.INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, stop, ExitCode.OK)
    runtime = Runtime(config, watcher=watcher)
    runtime.on_config = partial(_print_config, runtime)
    async with runtime:
        publish(config.public_ca_dir)
        address = await runtime.listen(config.listen)
        _print_address(
            f"playhead: {config.mode.value} on http://{address} "
            f"(store {config.store}, CA {runtime.ca.certificate_file})\n"
        )
        _warn_of_tape(runtime, config)
        renewing = loop.create_task(_renew_ca(config))
        try:
            code = await stopped
        finally:
            renewing.cancel()
        logger.info("stopping")
    return code


def _print_address(line: str) -> None:
    """Print where the proxy listens; one whose stdout cannot be written serves all the same."""
    try:
        write_all(1, line.encode(errors="backslashreplace"))
    except OSError as error:
        logger.warning("stdout cannot be written: %s; %s", error, line.strip())


def _warn_of_tape(runtime: Runtime, config: Config) -> None:
    """Say that requests without credentials are going to be refused, where there is nothing to play for them.

    And where `replay` would play another tape under the name.
    """
    name = config.playback.run
    if config.mode is not Mode.PLAYBACK:
        return
    if problem := find_tape_problem(runtime.store, name):
        logger.warning("playback.run: %s; so requests that name no other run are refused", problem)
    elif name != LATEST:
        told = say_which_is_meant(name, choose_recording(runtime.store, name)[0])
        if told:
            logger.warning("playback.run: %s", told.removeprefix("playhead: "))


def _print_config(runtime: Runtime, found: Config | ConfigError) -> None:
    if isinstance(found, ConfigError):
        logger.warning("the file is broken, the old settings stay:\n%s", found)
    else:
        logger.warning("new settings, mode %s", found.mode.value)
        _warn_of_tape(runtime, found)
