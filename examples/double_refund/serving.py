"""Run one of the fakes as a process: a free port, one line when ready, a clean end on a signal."""

import asyncio
import signal

from aiohttp import web


def serve(app: web.Application, port: int) -> None:
    """Serve `app` on 127.0.0.1 until SIGINT or SIGTERM; port 0 takes a free one.

    Prints `ready http://127.0.0.1:PORT` once connections are accepted. Requests that are still being
    answered when the signal comes are dropped.
    """
    asyncio.run(_serve(app, port))


async def _serve(app: web.Application, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        print(f"ready http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await ended.wait()
    finally:
        await runner.cleanup()
