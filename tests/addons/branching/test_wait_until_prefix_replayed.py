"""What is behind the crash point of a resumed run, and comes before all of the prefix was asked for."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from playhead.addons.branching.wait_until_prefix_replayed import wait_for_prefix
from playhead.addons.run.exchange_parts.prepared_request import Lookup
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.addons.run.playback_state import PlaybackState
from playhead.config import Mode
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.resume import Resume, Resumption, UnknownEffect
from playhead.tests.support.exchanges import make_request
from playhead.tests.support.pending import NotedRun, make_pending

E5 = UnknownEffect("r", Seq(5), "POST", "https://api.test/x", b"five", None, Seq(5))
E6 = UnknownEffect("r", Seq(6), "POST", "https://api.test/y", b"six", None, Seq(6))


class Playback:
    """As much of a playback as is asked: what of its tape was served."""

    def __init__(self, resume: Resume, prefix: int) -> None:
        self.served: set[Seq] = set()
        self.resumption = Resumption(resume)
        self.resumption.expect(frozenset(Seq(one) for one in range(1, prefix + 1)))

    def find_awaited(self, *, is_unknown: bool = False) -> Seq | None:
        return self.resumption.find_awaited(self.served.__contains__, is_unknown=is_unknown)

    def serve(self, seq: int) -> None:
        self.served.add(Seq(seq))
        self.resumption.note_change()


def asked(unknown: UnknownEffect | None = None) -> PendingExchange:
    """A request that the tape does not hold."""
    pending = make_pending(
        NotedRun(mode=Mode.PLAYBACK), "POST https://api.test/x", RequestClass.EFFECT
    )
    pending.find(Lookup(unknown=unknown))
    return pending


def begin(pending: PendingExchange, playback: Playback) -> "asyncio.Task[Any]":
    """Have it wait."""
    waiting = wait_for_prefix(pending, cast("PlaybackState", playback))
    return asyncio.ensure_future(waiting)


async def turn() -> None:
    """Let who waits look again."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_who_asks_for_one_thing_after_the_other_is_not_waited_for() -> None:
    """What comes instead of the rest of the prefix is another course."""
    assert await begin(asked(), Playback(Resume(), 2)) == 1


async def test_a_request_behind_the_prefix_goes_on_at_once() -> None:
    """Nothing is left to wait for."""
    assert await begin(asked(), Playback(Resume(), 0)) is None


async def test_others_may_ask_for_the_rest_where_things_ran_at_once() -> None:
    """It goes on with the last of them, and not before."""
    playback = Playback(Resume(parallel=True), 2)
    waiting = begin(asked(), playback)
    await turn()
    playback.serve(2)
    await turn()
    assert not waiting.done()
    playback.serve(1)
    assert await waiting is None


async def test_an_effect_without_an_outcome_waits_though_nothing_else_ran_at_once() -> None:
    """Nobody waited for its answer then: more was asked for behind it."""
    early = replace(E5, place=Seq(0))
    playback = Playback(Resume((early,)), 1)
    waiting = begin(asked(early), playback)
    await turn()
    assert not waiting.done()
    playback.serve(1)
    assert await waiting is None


async def test_an_effect_without_an_outcome_that_comes_before_its_turn_is_not_waited_for() -> None:
    """All that is missing came before it then, one after the other: this is another course."""
    assert await begin(asked(E5), Playback(Resume((E5,)), 4)) == 1


async def test_what_comes_after_waits_for_effects_without_an_outcome_and_they_for_no_other() -> (
    None
):
    """Two of them, asked for one after the other."""
    playback = Playback(Resume((E5, E6), parallel=True), 0)
    assert await begin(asked(E5), playback) is None
    waiting = begin(asked(), playback)
    for one in (E5, E6):
        await turn()
        assert not waiting.done()
        request = make_request(f"{one.method} {one.url}")
        playback.resumption.take_unknown(request, one.fingerprint, same_rules=True)
    assert await waiting is None


async def test_who_waits_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Once, with what is missing: else nobody knows why the agent stands still."""
    playback = Playback(Resume(parallel=True), 3)
    waiting = begin(asked(), playback)
    for one in (1, 2, 3):
        await turn()
        playback.serve(one)
    assert await waiting is None
    assert [one.getMessage() for one in caplog.records] == [
        ":1: POST https://api.test/x waits up to 30 s, since exchange 1 of the tape has to be asked for again first"
    ]


async def test_a_divergence_ends_the_waiting() -> None:
    """Of whatever request: nothing leaves any more."""
    playback = Playback(Resume(parallel=True), 2)
    waiting = begin(asked(), playback)
    await turn()
    playback.resumption.diverge("another one")
    playback.resumption.diverge("and another")
    assert await waiting == 1
    assert playback.resumption.diverged == "another one"


@pytest.mark.parametrize("how", ["finished", "left"])
async def test_a_client_that_leaves_waits_no_longer(how: str) -> None:
    """It is noticed with the next change."""
    playback, pending = Playback(Resume(parallel=True), 2), asked()
    waiting = begin(pending, playback)
    await turn()
    if how == "finished":
        pending.finish()
    else:
        pending.client_left()
    playback.resumption.note_change()
    assert await waiting == 1
