"""Two agents that do what comes, as it comes.

python -m playhead.tests.support.queue_agent URL queue     reads a queue, and refunds each order in it
python -m playhead.tests.support.queue_agent URL race      reads two things at once; ends with 3 if the second came first
"""

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

from .refund_agent import send_by_urllib

if TYPE_CHECKING:
    from aiohttp import web

_LATER_S = 0.4


class Services:
    """A queue with two orders, two things of which the second takes longer once both are asked for, and refunds."""

    def __init__(self) -> None:
        self.orders = [7, 8]
        self._second_came = asyncio.Event()

    async def serve(self, request: "web.Request") -> "web.Response":
        """Answer as the services do."""
        from aiohttp import web  # which the agent does without: it would take most of its start

        if request.path == "/queue":
            return web.json_response({"order": self.orders.pop(0) if self.orders else None})
        if request.path == "/first":
            await self._second_came.wait()
        if request.path == "/second":
            self._second_came.set()
            await asyncio.sleep(_LATER_S)
        return web.json_response({"of": request.path})


def read_queue(url: str) -> int:
    """Refund what is in a queue; give the exit code."""
    for _ in range(9):
        _, found = send_by_urllib("GET", f"{url}/queue", None)
        if found.get("order") is None:
            return 0
        send_by_urllib("POST", f"{url}/v1/refunds", {"order": found["order"]})
    return 1


def race(url: str) -> int:
    """Read two things at once; give the exit code."""
    came: list[str] = []

    def read(path: str) -> None:
        send_by_urllib("GET", url + path, None)
        came.append(path)

    threads = [threading.Thread(target=read, args=(path,)) for path in ("/first", "/second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0 if came == ["/first", "/second"] else 3


if __name__ == "__main__":
    sys.exit({"queue": read_queue, "race": race}[sys.argv[2]](sys.argv[1]))
