"""`playhead serve`: the long-running proxy, controlled by its file."""

import asyncio
import logging
import signal

from ...config import Config, ConfigError, Watcher
from ..engine.event_loop import new_event_loop
from ..standard_streams import print_status
from ..trust.environment import publish
from .runtime import Runtime

logger = logging.getLogger(__name__)


def serve(config: Config, watcher: Watcher | None) -> int:
    """Run until SIGINT or SIGTERM; give the exit code.

    Raises: PlayheadError, before the port is open.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(config, watcher))


async def _serve(config: Config, watcher: Watcher | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    runtime = Runtime(config, watcher=watcher)
    runtime.on_config = _print_config
    async with runtime:
        publish(config.public_ca_dir)
        address = await runtime.listen(config.listen)
        print(
            f"playhead: {config.mode.value} on http://{address} "
            f"(store {config.store}, CA {runtime.ca.certificate_file})",
            flush=True,
        )
        await stop.wait()
        logger.info("stopping")
    return 0


def _print_config(found: Config | ConfigError) -> None:
    if isinstance(found, ConfigError):
        print_status(f"playhead: the file is broken, the old settings stay:\n{found}")
    else:
        print_status(f"playhead: new settings, mode {found.mode.value}")
