"""What a run has already, and another process of its name asks for once more."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from playhead.addons.deciding.given_to_another_process import (
    asks_for_given,
    find_given,
    find_given_to_another,
    forget_given,
    note_given,
)
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.tape.exchange import Fingerprint, RequestClass
from playhead.tape.policy.resume import GivenRequests
from playhead.tests.support.pending import NotedRun, make_pending

EFFECT, INFERENCE, READ = RequestClass.EFFECT, RequestClass.INFERENCE, RequestClass.READ
SAME, OTHER = b"one", b"two"


class Asking:
    """A run, and who asks in it."""

    def __init__(self, *, is_shared: bool = True) -> None:
        self.run = NotedRun()
        self.run.members.given = GivenRequests() if is_shared else None

    def ask(
        self, pid: int, kind: RequestClass, *, seq: int, fingerprint: bytes = SAME
    ) -> PendingExchange:
        """A request of a process; 0 for one that cannot be seen."""
        pending = make_pending(self.run, "POST https://api.test/x", kind, seq=seq)
        looking: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        looking.set_result(SimpleNamespace(pid=pid) if pid else None)
        self.run.lanes.look(pending.flow.client_conn.id, looking)
        pending.identify(Fingerprint(fingerprint), None)
        return pending


@pytest.mark.parametrize(
    ("kind", "first", "then", "held"),
    [
        (EFFECT, 7, 8, True),
        (EFFECT, 7, 7, False),
        (EFFECT, 7, 0, True),
        (EFFECT, 0, 7, True),
        (EFFECT, 0, 0, True),
        (INFERENCE, 7, 8, True),
        (INFERENCE, 7, 7, False),
        # Calls that are sampled several times are alike, and change nothing.
        (INFERENCE, 7, 0, False),
        (INFERENCE, 0, 0, False),
        (READ, 7, 8, False),
    ],
)
async def test_what_another_process_was_given_is_found(
    kind: RequestClass, first: int, then: int, held: bool
) -> None:
    """One that cannot be seen may be another."""
    asking = Asking()
    note_given(asking.ask(first, kind, seq=3))
    again = asking.ask(then, kind, seq=9)
    found = await find_given_to_another(again)
    assert found == (3 if held else None)


async def test_of_several_processes_that_asked_each_may_ask_again() -> None:
    """Workers of one agent do the same."""
    asking = Asking()
    for pid in (7, 8):
        note_given(asking.ask(pid, EFFECT, seq=pid))
    for pid, given in ((8, None), (7, None), (9, 7)):
        again = asking.ask(pid, EFFECT, seq=20)
        assert await find_given_to_another(again) == given


async def test_what_was_not_given_is_not_found() -> None:
    """Another request, and a run that a command resumes: there no other process comes by its name."""
    asking = Asking()
    note_given(asking.ask(7, EFFECT, seq=1))
    assert find_given(asking.ask(8, EFFECT, seq=2, fingerprint=OTHER)) is None
    alone = Asking(is_shared=False)
    note_given(alone.ask(7, EFFECT, seq=1))
    assert find_given(alone.ask(8, EFFECT, seq=2)) is None
    assert not asks_for_given(alone.ask(8, EFFECT, seq=3))
    assert asks_for_given(asking.ask(8, EFFECT, seq=3))
    assert not asks_for_given(asking.ask(8, READ, seq=4))


async def test_one_connection_is_one_process() -> None:
    """Be it one that cannot be seen."""
    asking = Asking()
    first = asking.ask(0, EFFECT, seq=1)
    note_given(first)
    again = asking.ask(0, EFFECT, seq=2)
    again.flow.client_conn = first.flow.client_conn
    assert await find_given_to_another(again) is None


async def test_what_was_not_sent_is_forgotten() -> None:
    """Unless the same was asked for before it."""
    asking = Asking()
    first, again = asking.ask(7, EFFECT, seq=1), asking.ask(8, EFFECT, seq=2)
    note_given(first)
    forget_given(again)
    assert find_given(again) is not None
    forget_given(first)
    assert find_given(again) is None
