"""Write what a server said in the order in which it said it.

Its lines come in the answers of many requests at once. Each has its number, and waits for those before it; a number that does
not come, since a playback did not ask what it answers, is given up after three seconds.
"""

import asyncio
import heapq
import os

_GAP_S = 3.0


class InOrder:
    """Standard output, on which lines with numbers come in their order."""

    def __init__(self) -> None:
        """Begin with line 1."""
        self._next = 1
        self._waiting: list[tuple[int, int, bytes, asyncio.Event]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._outgoing: asyncio.Queue[tuple[bytes, asyncio.Event]] = asyncio.Queue()
        self._writing = asyncio.get_running_loop().create_task(self._write())

    async def put(self, number: int, data: bytes) -> None:
        """Write a line once those before it are written; 0 for one that has no number."""
        written = asyncio.Event()
        self._count += 1
        heapq.heappush(self._waiting, (number, self._count, data, written))
        self._release()
        await written.wait()

    def close(self) -> None:
        """Write no more."""
        self._writing.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _release(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._next:
            number, _, data, written = heapq.heappop(self._waiting)
            self._next = max(self._next, number + 1)
            self._outgoing.put_nowait((data, written))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_GAP_S, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        self._next = self._waiting[0][0]
        self._release()

    async def _write(self) -> None:
        while True:
            data, written = await self._outgoing.get()
            await asyncio.to_thread(_write_whole, data)
            written.set()


def _write_whole(data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(1, view) :]
    except OSError:
        pass  # the client reads no more, and hangs up soon
