"""Append the journal of a recording to the log while its command runs, so that it survives a crash of the proxy."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from ...store import StoreUnwritable
from ...tape.records.events import Event
from .preload_bundle import PreloadBundle, begun, journal

Append = Callable[[int, Event], Awaitable[None]]
"""Done once durable."""
PERIOD_S = 1.0
_BEGIN_S = 0.1


@contextlib.asynccontextmanager
async def keeping(
    preload_bundle: PreloadBundle, find_run: Callable[[], int | None], append: Append
) -> AsyncIterator[None]:
    """Append what a recording is made with as soon as its run has begun, and then its journal now and then.

    find_run: gives the number of the run; None before it has begun.
    What was written last is left to whoever ends the run. On the loop.
    """
    stop = asyncio.Event()
    task = asyncio.get_running_loop().create_task(_keep(preload_bundle, find_run, append, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def _keep(
    preload_bundle: PreloadBundle,
    find_run: Callable[[], int | None],
    append: Append,
    stop: asyncio.Event,
) -> None:
    first = True
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _BEGIN_S if first else PERIOD_S)
        run = find_run()
        if run is None or stop.is_set():
            continue
        # A log that cannot be written has a gap, which says that nobody knows; what cannot be read is tried again.
        with contextlib.suppress(StoreUnwritable, OSError):
            if first:
                await append(run, begun(preload_bundle))
                first = False
            for event in await asyncio.to_thread(list, journal(preload_bundle, ended=False)):
                await append(run, event)
