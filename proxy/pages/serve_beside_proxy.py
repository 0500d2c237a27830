"""The process that serves the pages of a proxy: `python -m playhead.proxy.pages.serve_beside_proxy SOCKET`.

The proxy tells it on standard input what it serves; it says `ready` on standard output, and ends once standard input does.
"""

import asyncio
import os
import pickle
import signal
import socket
import sys

from ..control.http.access import Guard
from ..control.http.serving import serve_on
from .application import Application
from .server import SWITCH_S
from .sessions import Links
from .store_reader import Library, end_process


def main(path: str) -> int:
    """Serve until the proxy has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the proxy ends this process
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    config, guard, key = pickle.loads(sys.stdin.buffer.read(size))  # our own proxy's
    sys.setswitchinterval(SWITCH_S)
    library = Library(config)
    try:
        asyncio.run(_serve(path, library, guard, key))
    finally:
        closed = library.close()
    if not closed:
        end_process(0)
    return 0


async def _serve(path: str, library: Library, guard: Guard, key: bytes) -> None:
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    ready.bind(path)
    os.chmod(path, 0o600)
    ready.listen(128)
    ready.setblocking(False)
    application = Application(library, guard, Links(key, _now))
    runner = await serve_on([ready], application, None)
    loop.add_reader(sys.stdin.fileno(), gone.set)
    loop.add_signal_handler(signal.SIGTERM, gone.set)
    os.write(1, b"ready\n")
    try:
        await gone.wait()
    finally:
        application.close()
        await runner.cleanup()


def _now() -> float:
    import time

    return time.time_ns() / 1e9


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
