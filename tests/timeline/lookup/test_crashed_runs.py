"""What is known of a run that crashed: which effects may have happened, and whose client died with it."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.store import Record, Store, StoreError
from playhead.store.tables.run_info import Owner
from playhead.tape.exchange import (
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Lane,
    Phase,
    RedactedText,
    RequestClass,
    Response,
    Seq,
)
from playhead.tape.policy.resume import Resume
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_record,
    make_response,
    raw_of,
)
from playhead.timeline.lookup.crashed_runs import RunStopped, find_crashed, find_failure, read_crash

EFFECT, READ = RequestClass.EFFECT, RequestClass.READ
UNSENT = Fault(FaultKind.DENIED, Phase.CONNECT, RedactedText("not sent"), 1, Ending.RST)
CUT = Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), 1, Ending.RST)
WHOLE, PART = make_response(), replace(make_response(), complete=False)
LEFT_US = 5_000_000


def crash(folder: Path, exchange: Exchange, *, later_s: int | None = None) -> Resume:
    """Write a run in which a client left one exchange after five seconds, and that crashed; read what is known of it.

    later_s: when something else was asked for, in seconds after the first; None for never.
    """
    left = replace(exchange, gone=Gone(LEFT_US, 0, head=False))
    outcome = {"seq": left.seq, "gone_us": LEFT_US}

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        run = await store.runs.create("r", mode="record", at_ns=1)
        store.events.append(run.number, make_intent(left))
        event = Event(EventKind.OUTCOME, left.started_ns + 9_000_000_000, outcome)
        await store.exchanges.save(run.number, lambda: Record(left, raw_of(left), event))
        if later_s is not None:
            other = make_exchange(2)
            at_ns = left.started_ns + later_s * 1_000_000_000
            await store.events.append_durably(run.number, replace(make_intent(other), at_ns=at_ns))

    with Store.open(folder) as store:
        asyncio.run(write(store))
    with Store.open(folder) as store:
        return read_crash(store, store.runs.get("r"))


@pytest.mark.parametrize(
    ("kind", "response", "fault", "became"),
    [
        (EFFECT, WHOLE, None, "given"),
        (EFFECT, None, CUT, "given"),
        (EFFECT, PART, None, "unknown"),
        (EFFECT, None, None, "unknown"),
        (EFFECT, None, UNSENT, "asked anew"),
        (READ, WHOLE, None, "given"),
        (READ, PART, None, "asked anew"),
        (READ, None, None, "asked anew"),
        (READ, PART, CUT, "asked anew"),
    ],
)
def test_a_client_that_died_with_the_run_has_not_given_up(
    tmp_path: Path,
    kind: RequestClass,
    response: Response | None,
    fault: Fault | None,
    became: str,
) -> None:
    """It is given what came whole; an effect that nobody heard of again may have happened, unless it was not sent."""
    known = crash(tmp_path, make_exchange(1, kind=kind, response=response, fault=fault))
    assert (known.died == {Seq(1)}) is (became == "given")
    assert (known.unanswered == {Seq(1)}) is (became != "given")
    assert [one.seq for one in known.unknown] == [1] * (became == "unknown")


@pytest.mark.parametrize(("later_s", "gave_up"), [(4, False), (6, True)])
def test_a_client_that_went_on_has_given_up(tmp_path: Path, later_s: int, gave_up: bool) -> None:
    """What it asked for after it had left says so; what was asked for before says nothing."""
    known = crash(tmp_path, make_exchange(1, kind=EFFECT), later_s=later_s)
    assert (known.died == set()) is gave_up


@pytest.mark.parametrize(
    ("ruling", "left"),
    [
        ("approved", [(3, False)]),
        ("approved and cut", [(3, False), (2, True)]),
        ("denied", [(3, False)]),
        ("expired", [(2, True), (3, True)]),
    ],
)
def test_nothing_waits_for_the_retry_of_what_was_decided_on(
    tmp_path: Path, ruling: str, left: list[tuple[int, bool]]
) -> None:
    """A run that resumed a crashed one crashed, too: its agent was answered, and did not ask once more."""
    attempts = [make_exchange(seq, kind=EFFECT) for seq in (2, 3)]
    held = {**dict.fromkeys(("method", "url", "digest", "rule", "reason"), ""), "deadline_s": 1.0}
    ruled = {**dict.fromkeys(("digest", "by", "via", "reason"), ""), "ruling": ruling.split()[0]}

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        run = await store.runs.create("r", mode="record", at_ns=1)
        for one in attempts:
            await store.events.append_durably(run.number, make_intent(one))
        new = await store.runs.create("r", mode="playback", at_ns=2, parent=run, resumes=True)
        events = [
            Event(EventKind.HELD, 3, {"seq": 2, "unknown_effect": ("r", 2), **held}),
            Event(EventKind.RULED, 4, {"seq": 2, **ruled}),
        ]
        if ruling.startswith("approved"):
            intent = make_intent(attempts[0])
            events.append(replace(intent, data={**intent.data, "unknown_effect": ("r", 2)}))
        if ruling == "approved":
            events.append(Event(EventKind.OUTCOME, 5, {"seq": 2}))
        for event in events:
            await store.events.append_durably(new.number, event)

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        known = read_crash(store, store.runs.get("r@1"))
    assert [(one.seq, one.is_awaited) for one in known.unknown] == left
    sent_before = [other.row for one in known.unknown for other in one.earlier]
    assert sent_before == ([("r", 2)] if ruling == "approved and cut" else [])


def test_a_run_that_was_stopped_is_not_gone_on_with(tmp_path: Path) -> None:
    """The stop holds although the process that refused its requests has died; nor is what resumed it, be it before it sent anything."""

    def stop(at_ns: int) -> Event:
        return Event(EventKind.STOPPED, at_ns, {"by": "ann", "pid": 5, "reason": "it pays twice"})

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        stopped = await store.runs.create("s", mode="record", at_ns=1)
        await store.events.append_durably(stopped.number, stop(2))
        crashed = await store.runs.create("r", mode="record", at_ns=1)
        again = await store.runs.create("r", mode="playback", at_ns=3, parent=crashed, resumes=True)
        await store.events.append_durably(again.number, stop(4))

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        for name in ("s", "r"):
            with pytest.raises(RunStopped, match="was stopped by ann: it pays twice"):
                find_crashed(store, name)
        with pytest.raises(RunStopped):
            read_crash(store, store.runs.get("s"))


@pytest.mark.parametrize("later", [False, True])
def test_a_run_whose_processes_had_ended_well_has_not_crashed(
    tmp_path: Path, *, later: bool
) -> None:
    """Unless one asked for more after that."""
    asked = [make_intent(make_exchange(seq)) for seq in (1, 2)]
    ended = Event(EventKind.NOTED, 5, {"ended_well": 1})

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        run = await store.runs.create("r", mode="record", at_ns=1)
        for event in (asked[0], ended, *asked[1 : 1 + later]):
            await store.events.append_durably(run.number, event)

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        if later:
            assert find_crashed(store, "r").id == "r"
            return
        with pytest.raises(StoreError, match="all its processes had ended with 0"):
            find_crashed(store, "r", or_failed=False)


_JOINED = Event(EventKind.NOTED, 2, {"joined": True})
_HELD = {"method": "POST", "url": "https://a.test/e", "digest": "d", "rule": "r", "reason": "s"}


class Asked(NamedTuple):
    """A request of a run that processes join by its name."""

    what: str
    kind: RequestClass
    lane: int
    given: int = 0
    """The earlier request that was the same, for which it is held."""
    sent: bool = True


@pytest.mark.parametrize(
    ("asked", "joined", "repeated", "unanswered"),
    [
        # A second process asks for an effect once more, and reads what it likes.
        (
            [
                *(Asked("e", EFFECT, 1), Asked("r", READ, 2), Asked("e", EFFECT, 2, 1, sent=False)),
                *(Asked("s", READ, 2), Asked("s", READ, 1), Asked("f", EFFECT, 2)),
            ],
            True,
            {3, 4, 5},
            {3},
        ),
        # One that was let out has an answer, and need not be asked for.
        ([Asked("e", EFFECT, 1), Asked("e", EFFECT, 2, 1)], True, {2}, set()),
        ([Asked("r", READ, 1), Asked("r", READ, 2), Asked("s", READ, 2)], True, {2, 3}, set()),
        ([Asked("r", READ, 1), Asked("r", READ, 2), Asked("s", READ, 2)], False, set(), set()),
        ([Asked("r", READ, 1), Asked("r", READ, 1), Asked("s", READ, 2)], True, set(), set()),
        ([Asked("r", READ, 1), Asked("r", READ, 0)], True, set(), set()),
    ],
)
def test_what_was_asked_for_once_more_is_not_waited_for(
    tmp_path: Path,
    asked: list[Asked],
    joined: bool,
    repeated: set[int],
    unanswered: set[int],
) -> None:
    """A process that goes on with the run does as the first did alone."""

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        run = await store.runs.create("r", mode="record", at_ns=1)
        if joined:
            store.events.append(run.number, _JOINED)
        for seq, one in enumerate(asked, 1):
            exchange = replace(
                make_exchange(seq, f"GET https://a.test/{one.what}"),
                request_class=one.kind,
                lane=Lane(one.lane),
            )
            if one.given:
                held = Event(EventKind.HELD, 3, {"seq": seq, **_HELD, "given": one.given})
                store.events.append(run.number, held)
            if one.sent:
                store.events.append(run.number, make_intent(exchange))
            await store.exchanges.save(run.number, partial(make_record, exchange))

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        known = read_crash(store, store.runs.get("r"))
    assert known.repeated == repeated
    assert known.unanswered == unanswered


class Row(NamedTuple):
    """An exchange of a run whose command failed."""

    exchange: Exchange
    asked_s: int
    ended_s: int | None
    """None where it has no outcome."""


def _row(
    seq: int, asked_s: int, ended_s: int | None, status: int = 503, kind: RequestClass = READ
) -> Row:
    response = None if ended_s is None else make_response(status=status)
    return Row(make_exchange(seq, kind=kind, response=response), asked_s, ended_s)


def _stream(seq: int, last: bytes) -> Row:
    """A model call whose answer is a stream: its head says that all is well."""
    began = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "usage": {}}}\n\n'
    asked = b'{"model": "claude-opus-4-5", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}'
    sent = ((b"Content-Type", b"text/event-stream"),)
    answer = make_response(began + last, headers=sent)
    call = make_exchange(
        seq,
        "POST https://api.anthropic.com/v1/messages",
        kind=RequestClass.INFERENCE,
        body=asked,
        response=answer,
    )
    return Row(call, seq, seq + 1)


@pytest.mark.parametrize(
    ("rows", "anew"),
    [
        ([_row(1, 0, 1, 200), _row(2, 2, 3)], {2}),
        ([_row(1, 0, 1), _row(2, 2, 3), _row(3, 4, 5)], {1, 2, 3}),
        ([_row(1, 0, 1), _row(2, 2, 3, 200)], {1, 2}),
        ([_row(1, 0, 1, 200), _row(2, 2, 3), _row(3, 4, 5, 200)], {2, 3}),
        ([_row(1, 0, 1), _row(2, 2, 3, 200, RequestClass.INFERENCE)], set()),
        ([_row(1, 0, 1), _row(2, 2, 3, 200, EFFECT), _row(3, 4, 5, 200)], set()),
        ([_row(1, 0, 1), _row(2, 2, 3, kind=EFFECT)], set()),
        ([_row(1, 0, 1), _row(2, 2, 3, kind=RequestClass.TELEMETRY)], {1}),
        ([_row(1, 0, 1), _row(2, 2, 3, 400)], {1, 2}),
        # What was asked for while it was under way says nothing.
        ([_row(1, 0, 5), _row(2, 1, 2, 200, EFFECT)], {1}),
        ([_row(1, 0, 2), _row(2, 1, 4, 200, EFFECT), _row(3, 3, 5)], {1, 3}),
        ([_row(1, 0, 1), _row(2, 2, None, kind=EFFECT)], set()),
        (
            [
                _stream(
                    1,
                    b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n',
                )
            ],
            {1},
        ),
        ([_stream(1, b'event: message_stop\ndata: {"type": "message_stop"}\n\n')], set()),
    ],
)
def test_what_a_command_failed_of_is_asked_anew(
    tmp_path: Path, rows: list[Row], anew: set[int]
) -> None:
    """Failed model calls and reads that were followed by reads alone, and these; never an effect with an outcome."""

    async def write(store: Store) -> None:
        run = await store.runs.create("r", mode="record", at_ns=1)
        for one in rows:
            intent = replace(make_intent(one.exchange), at_ns=one.asked_s * 1_000_000_000 + 1)
            store.events.append(run.number, intent)
        for one in rows:
            if one.ended_s is not None:
                _save(store, run.number, one)
        noted = Event(EventKind.NOTED, 99, {"child_exit": 1, "command": ("agent",)})
        await store.events.append_durably(run.number, noted)
        await store.runs.seal(run, reason="the command ended with 1", at_ns=100)

    def _save(store: Store, number: int, one: Row) -> None:
        ended_ns = (one.ended_s or 0) * 1_000_000_000 + 1
        outcome = Event(EventKind.OUTCOME, ended_ns, {"seq": one.exchange.seq})
        saved = Record(one.exchange, raw_of(one.exchange), outcome)
        store.exchanges.save(number, lambda: saved)

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        assert find_failure(store, store.runs.get("r")) == "command ended with 1"
        assert read_crash(store, find_crashed(store, "r")).unanswered == anew
        with pytest.raises(StoreError, match="has not crashed"):
            find_crashed(store, "r", or_failed=False)
