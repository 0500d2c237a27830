"""Which lane a client belongs to, and which request of a lane was passed by others."""

import asyncio
import threading
from collections.abc import Callable
from typing import NamedTuple

import pytest
from mitmproxy.connection import Client, ConnectionState

from playhead.addons.order.client_process_lanes import Lanes
from playhead.tape.exchange import Lane, Seq
from playhead.tests.support.exchanges import make_exchange


class Seen(NamedTuple):
    """A process as it is seen at a connection."""

    pid: int


def connect(port: int) -> Client:
    """A new connection from this port."""
    return Client(
        peername=("127.0.0.1", port),
        sockname=("127.0.0.1", 8080),
        timestamp_start=1.0,
        state=ConnectionState.OPEN,
    )


Find = Callable[[tuple[str, int], tuple[str, int]], Seen | None]


def look(lanes: Lanes, client: Client, find: Find) -> None:
    """Have the process of a client looked for on a thread, as the registry does."""
    ends = client.peername[:2], client.sockname[:2]
    lanes.look(client.id, asyncio.get_running_loop().run_in_executor(None, find, *ends))


class Clients:
    """Clients of made-up processes, by port."""

    def __init__(self, processes: dict[int, int | None]) -> None:
        self.lanes = Lanes()
        self.clients = {port: connect(port) for port in processes}
        self._processes = processes
        for client in self.clients.values():
            look(self.lanes, client, self._find)

    def _find(self, peer: tuple[str, int], _: tuple[str, int]) -> Seen | None:
        pid = self._processes[peer[1]]
        return None if pid is None else Seen(pid)

    def id(self, port: int) -> str:
        """Id of the connection from a port."""
        return self.clients[port].id

    def take(self, tape_seq: int, lane: int | None, seq: int, port: int) -> tuple[Seq, ...]:
        """Have an exchange of the tape served."""
        recorded = make_exchange(tape_seq, lane=None if lane is None else Lane(lane))
        return self.lanes.take(recorded, Seq(seq), self.id(port))


async def test_connections_of_one_process_are_one_lane() -> None:
    """Each further process has the next number; one that cannot be seen has none."""
    clients = Clients({1: 700, 2: 700, 3: 800, 4: None})
    numbers = [await clients.lanes.find_number(clients.id(port)) for port in (1, 2, 3, 4)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert sorted(numbers) == [0, 1, 1, 2] or sorted(numbers) == [0, 1, 2, 2]
    assert await clients.lanes.find_number("never seen") == 0


async def test_a_process_that_is_still_looked_for_is_waited_for() -> None:
    """It is needed where an outcome is written, and is there by then."""
    lanes, client, there = Lanes(), connect(1), threading.Event()

    def find(_peer: tuple[str, int], _local: tuple[str, int]) -> Seen:
        there.wait(5)
        return Seen(700)

    look(lanes, client, find)
    there.set()
    assert await lanes.find_number(client.id) == 1


async def test_a_look_that_fails_is_a_process_that_cannot_be_seen() -> None:
    """Whatever the kernel says."""
    lanes, client = Lanes(), connect(1)

    def find(_peer: tuple[str, int], _local: tuple[str, int]) -> Seen:
        raise OSError

    look(lanes, client, find)
    assert await lanes.find_number(client.id) == 0


PASSED: list[tuple[str, int, int, int, set[int], bool]] = [
    # name, port of the first one, its seq, seq of the late one, what waits, whether it is told
    ("of one process", 1, 1, 2, set(), True),
    ("of another process", 3, 1, 2, set(), False),
    ("of a process that cannot be seen", 4, 1, 2, set(), True),
    ("that came later, and was decided first", 1, 3, 2, set(), False),
    ("that was not answered yet", 1, 1, 2, {1}, False),
]


@pytest.mark.parametrize(
    ("port", "first", "late", "waiting", "told"),
    [row[1:] for row in PASSED],
    ids=[row[0] for row in PASSED],
)
async def test_a_request_is_late_behind_one(
    port: int, first: int, late: int, waiting: set[int], told: bool
) -> None:
    """It came before, was answered, and is of the same lane as far as that can be seen."""
    clients = Clients({1: 700, 2: 700, 3: 800, 4: None})
    assert clients.take(8, 1, first, port) == ()
    later = clients.take(5, 1, late, 2)
    assert later == (8,)
    found = await clients.lanes.find_first(
        Seq(late), clients.id(2), later, lambda seq: seq == 8, {Seq(one) for one in waiting}
    )
    assert (found is not None) is told
    if found is not None:
        assert found[1].seq == first


async def test_what_is_recorded_in_a_playback_goes_on_with_the_tapes_lanes() -> None:
    """A process that was served from one is of that lane; another one is of none that the tape has."""
    clients = Clients({1: 800, 2: 700, 3: 700, 4: 900, 5: None})
    for port in (1, 2, 3, 4, 5):
        await clients.lanes.find_number(clients.id(port))
    clients.take(1, 5, 1, 2)
    clients.take(2, 3, 2, 1)
    lanes = [await clients.lanes.find_lane(clients.id(port)) for port in (1, 2, 3, 4, 5)]
    assert lanes[:3] == [3, 5, 5]
    assert lanes[3] > 5
    assert lanes[4] == 0


async def test_a_tape_without_lanes_has_no_order() -> None:
    """Older tapes, and imported ones."""
    clients = Clients({1: 700})
    assert clients.take(8, None, 1, 1) == ()
    assert clients.take(5, None, 2, 1) == ()
