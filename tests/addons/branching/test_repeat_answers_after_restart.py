"""What a resumed run has already, and another process of its name asks for once more."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from playhead.addons.branching.repeat_answers_after_restart import (
    find_given,
    find_given_to_another,
    note_given,
)
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.addons.run.playback_state import PlaybackState
from playhead.config import Mode
from playhead.tape.exchange import Fingerprint, RequestClass
from playhead.tape.policy.resume import Resume, Resumption
from playhead.tests.support.pending import NotedRun, make_pending

EFFECT, INFERENCE, READ = RequestClass.EFFECT, RequestClass.INFERENCE, RequestClass.READ
SAME, OTHER = b"one", b"two"


class Asking:
    """A resumed run, and who asks in it."""

    def __init__(self, *, is_shared: bool = True) -> None:
        self.run = NotedRun(mode=Mode.PLAYBACK)
        resumption = Resumption(Resume(is_shared=is_shared))
        self.playback = cast("PlaybackState", SimpleNamespace(resumption=resumption))

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
    note_given(asking.ask(first, kind, seq=3), asking.playback)
    again = asking.ask(then, kind, seq=9)
    found = await find_given_to_another(again, asking.playback)
    assert found == (3 if held else None)


async def test_of_several_processes_that_asked_each_may_ask_again() -> None:
    """Workers of one agent do the same."""
    asking = Asking()
    for pid in (7, 8):
        note_given(asking.ask(pid, EFFECT, seq=pid), asking.playback)
    for pid, given in ((8, None), (7, None), (9, 7)):
        again = asking.ask(pid, EFFECT, seq=20)
        assert await find_given_to_another(again, asking.playback) == given


async def test_what_was_not_given_is_not_found() -> None:
    """Another request, and a run that a command resumes: there no other process comes by its name."""
    asking = Asking()
    note_given(asking.ask(7, EFFECT, seq=1), asking.playback)
    assert find_given(asking.ask(8, EFFECT, seq=2, fingerprint=OTHER), asking.playback) is None
    alone = Asking(is_shared=False)
    note_given(alone.ask(7, EFFECT, seq=1), alone.playback)
    assert find_given(alone.ask(8, EFFECT, seq=2), alone.playback) is None
