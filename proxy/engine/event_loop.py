"""The event loop that suits mitmproxy.

mitmproxy wants eager tasks: hooks without an await cost no trip through the loop then. uvloop 0.23 hands
`eager_start` on to the task factory, which CPython 3.13.0's own does not take; this one does.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Make a uvloop, or asyncio's own loop where there is none."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def eager_task(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, Any],
    *,
    name: str | None = None,
    context: Context | None = None,
    eager_start: bool | None = None,
    **_: Any,
) -> asyncio.Task[Any]:
    """Make a task that starts at once."""
    return asyncio.Task(coro, loop=loop, name=name, context=context, eager_start=True)
