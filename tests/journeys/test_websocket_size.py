"""Long conversations, and a recorder that dies over one: seen from outside, with the proxy as a process."""

import asyncio
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tests.support.process import Serve, wait_until
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.websocket import (
    BINARY,
    TEXT,
    Peer,
    RawServer,
    WebsocketOrigin,
    closing,
    frame,
)
from playhead.timeline import build

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
MESSAGE_BYTES = 256 * 1024
MESSAGES = (200 if FULL else 12) * 1024 * 1024 // MESSAGE_BYTES
SMALL = 100_000 if FULL else 1_500
"""Messages of a few bytes."""
GROWTH_BYTES = 30 * 1024 * 1024

_ANONYMOUS = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


def memory_of(pid: int) -> int:
    """Bytes of a process that are no file's: the store is mapped, and its pages are the system's."""
    found = _ANONYMOUS.search(Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


class Growth:
    """How much more memory a process took than when this was made, at its highest."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = memory_of(pid)
        self.bytes = 0

    def look(self) -> None:
        self.bytes = max(self.bytes, memory_of(self._pid) - self._before)


async def _flood(server: RawServer) -> None:
    """Say what is asked for: how many messages of which size; then count what comes."""
    await server.accept()
    asked = await server.hear()
    assert asked is not None
    count, size = map(int, asked.payload.split())
    piece = bytes(size)
    for _ in range(count):
        await server.say(frame(BINARY, piece, masked=False))
    counted = 0
    while (came := await server.hear()) is not None and came.opcode == BINARY:
        counted += 1
    await server.say(frame(TEXT, b"%d" % counted, masked=False), closing(masked=False))
    await server.hear()


async def _both_ways(
    address: str, target: str, count: int, size: int, look: Callable[[], None]
) -> list[str]:
    """Take as many messages as are asked for, and give as many back."""
    peer = await Peer.open(address, target, f"/{count}x{size}")
    peer.send(frame(TEXT, b"%d %d" % (count, size)))
    for number in range(count):
        came = await peer.read()
        assert came is not None
        assert len(came.payload) == size
        if not number % 16:
            look()
    piece = bytes(size)
    for number in range(count):
        peer.send(frame(BINARY, piece))
        await peer.connection.writer.drain()
        if not number % 16:
            look()
    peer.send(frame(TEXT, b"done"))
    seen = [str(await peer.read()), str(await peer.read())]
    peer.send(closing())
    await peer.close()
    return seen


async def _converse(conversation: Conversation) -> None:
    await _flood(RawServer(conversation))


@pytest.mark.timeout(600 if FULL else 60)
def test_memory_does_not_grow_with_a_conversation(store_dir: Path) -> None:
    """Large messages and many small ones, both ways, while recording and from the tape."""
    flags = ("--store", store_dir, "--listen", "127.0.0.1:0", "--run", "tape")
    shapes = [(8, MESSAGE_BYTES), (MESSAGES, MESSAGE_BYTES), (SMALL, 16)]
    grown: dict[str, list[int]] = {}
    with RawOrigin(_converse) as origin:
        for mode in ("record", "playback"):
            with Serve("--mode", mode, *flags) as proxy:
                for place, (count, size) in enumerate(shapes):
                    growth = Growth(proxy.process.pid)
                    talk = _both_ways(
                        proxy.address, f"127.0.0.1:{origin.port}", count, size, growth.look
                    )
                    assert asyncio.run(talk) == [f"text {count}", "close 1000"]
                    growth.look()
                    if place:  # the first warms up
                        grown.setdefault(mode, []).append(growth.bytes)
            if mode == "record":
                origin.stop()
    with Store.open(store_dir, readonly=True) as store:
        receipt = build(store, store.runs.get("tape@1"))
    assert receipt.faithful
    print(grown)
    assert max(grown["record"]) < GROWTH_BYTES, grown
    assert max(grown["playback"]) < GROWTH_BYTES, grown


def test_a_recorder_that_dies_leaves_its_messages(store_dir: Path) -> None:
    """What was committed is played, up to where the connection ended."""
    flags = ("--store", store_dir, "--listen", "127.0.0.1:0", "--run", "tape")

    async def talk(address: str, target: str, after: Callable[[], None]) -> list[str]:
        peer = await Peer.open(address, target)
        seen = []
        for word in (b"one", b"two"):
            peer.send(frame(TEXT, word))
            seen.append(str(await peer.read()))
        await asyncio.to_thread(after)
        seen += await peer.rest()
        await peer.close()
        return seen

    def written() -> bool:
        with Store.open(store_dir, readonly=True) as store:
            return len(list(store.messages.all(store.runs.get("tape"), 1))) == 4

    with WebsocketOrigin() as origin:
        with Serve("--mode", "record", *flags) as proxy:

            def kill() -> None:
                wait_until(written)
                proxy.stop(signal.SIGKILL)

            first = asyncio.run(talk(proxy.address, origin.target, kill))
        origin.stop()
        with Serve("--mode", "playback", *flags) as proxy:
            second = asyncio.run(talk(proxy.address, origin.target, lambda: None))
    assert first[:2] == second[:2] == ["text one", "text two"]
    assert second[2:] == ["end"]
    with Store.open(store_dir, readonly=True) as store:
        assert store.runs.get("tape").status.value == "recovered"
        receipt = build(store, store.runs.get("tape@1"))
    assert receipt.divergences == []
