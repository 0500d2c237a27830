"""The index of a run: what its log tells at once is what its exchanges tell later, and idle time is a gap."""

from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.run.exchange_events import outcome_event
from playhead.store import RunInfo, Store
from playhead.tape.exchange import Exchange, RequestClass
from playhead.tape.policy.approval_decision import Ruling
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.looking_back import write_store
from playhead.tests.web.cases.refund_store import CAUSE, DUPLICATE, RUN, STEPS, write_refund_store
from playhead.timeline.receipts.effects import effects_of
from playhead.timeline.receipts.gaps import Gaps
from playhead.timeline.receipts.render_text import render_effects
from playhead.timeline.steps.before_effects import find_before_effects
from playhead.timeline.steps.read_run import RunReader
from playhead.web.views.run_index import Mark, RunIndex, tell_results
from playhead.web.views.scrubber_stops import Scrubbers
from playhead.web.views.step_rows import fold_steps
from playhead.web.views.timeline_strip import Axis, draw_strip

_S = 1_000_000_000


def read_whole(store: Store, run: RunInfo) -> RunIndex:
    """Give the index of a run, read to its end in small parts."""
    index = RunIndex(store, run)
    while index.read_log(9):
        pass
    while index.read_steps(9):
        pass
    return index


def test_the_log_alone_is_enough_to_scrub(tmp_path: Path) -> None:
    """Seqs, effects and times are there before any exchange is read."""
    with Store.open(write_refund_store(tmp_path / "store"), readonly=True) as store:
        index = RunIndex(store, store.runs.get(RUN))
        while index.read_log(3):
            pass
        assert list(index.seqs) == list(range(1, STEPS + 1))
        assert [index.seqs[at] for at in sorted(index.effects)] == [CAUSE, DUPLICATE]
        assert index.stepped == 0
        told = Scrubbers(index).move("effects", 0, "last")
        assert told is not None
        assert (told["seq"], told["position"], told["of_total"]) == (DUPLICATE, 2, 2)
        # What was not read has no lane so far.
        told = Scrubbers(index).place("lane", 3)
        assert (told["of_total"], told["next"], told["complete"]) == (0, None, False)
        while index.read_steps(1):
            pass
        assert index.complete
        told = Scrubbers(index).place("lane", 3)
        assert (told["of_total"], told["complete"]) == (STEPS, True)
        assert index.marks[index.nearest(DUPLICATE)] & Mark.DUPLICATE
        assert set(index.lanes) == {1}
        assert [step["kind"] for step in index.pages.get(0)] == ["model call", "tool call"]


async def _write_idle(store: Store) -> None:
    run = await store.runs.create("idle", mode="record", at_ns=1)
    for seq, at_s in ((1, 0), (2, 1), (3, 600), (4, 601)):
        kind = RequestClass.EFFECT if seq == 3 else RequestClass.READ
        exchange = make_exchange(seq, kind=kind, started_ns=(1000 + at_s) * _S, end_us=500_000)
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    await store.runs.seal(run, reason="done", at_ns=2000 * _S)


def test_idle_time_is_folded_with_its_length(tmp_path: Path) -> None:
    """Ten minutes take no more room than the gap's own; places go up, and lead back to their exchange."""
    with Store.open(write_store(tmp_path / "store", _write_idle), readonly=True) as store:
        index = RunIndex(store, store.runs.get("idle"))
        while index.read_log(100):
            pass
        (gap,) = index.gaps
        assert (gap.position, gap.length_us) == (2, 598_500_000)
        assert index.active_us < 5_000_000
        axis = Axis(index)
        places = [axis.begin(at) for at in range(4)]
        assert places == sorted(places)
        assert [axis.find(place + 1e-9) for place in places] == [0, 1, 2, 3]
        told = draw_strip(index, 100)
        assert [one["text"] for one in told["gaps"]] == ["idle 9 min 58 s"]
        kinds = told["lanes"][0]["kinds"]
        assert sum(kinds["http"][2::3]) == 3
        assert sum(kinds["effect"][2::3]) == 1


async def test_what_comes_late_is_taken_in(tmp_path: Path) -> None:
    """An outcome, and a whole exchange, that arrive between two looks: the sealed run has no step that is under way."""
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("late", mode="record", at_ns=1)
        first, second = (make_exchange(seq, kind=RequestClass.EFFECT) for seq in (1, 2))
        await store.events.append_durably(run.number, make_intent(first))
        index = RunIndex(store, store.runs.get("late"))
        _read(index)
        begun = index.revision
        assert (len(index), index.stepped) == (1, 0)
        assert index.marks[0] & Mark.OPEN
        await store.exchanges.save(run.number, partial(make_record, first))
        while index.read_log(100):
            pass
        assert index.revision > begun
        # The log is not read again before the steps are.
        store.events.append(run.number, make_intent(second))
        await store.exchanges.save(run.number, partial(make_record, second))
        await store.runs.seal(run, reason="done", at_ns=9)
        while index.read_steps(10):
            pass
        assert index.complete
        assert (len(index), index.stepped) == (2, 2)
        assert [index.pages.get(at)[0]["text"] for at in (0, 1)] == ["200, 2 bytes"] * 2
        assert not any(mark & Mark.OPEN for mark in index.marks)
        assert sorted(index.effects) == [0, 1]


def _read(index: RunIndex) -> None:
    while index.read_log(100):
        pass
    while index.read_steps(10):
        pass


@pytest.mark.parametrize("is_held", [True, False])
async def test_what_is_decided_late_is_at_its_place(tmp_path: Path, is_held: bool) -> None:
    """A request that was held while later ones went on, or whose event a crash left: with its steps, and none of another's."""
    made = {
        seq: make_exchange(
            seq,
            kind=RequestClass.EFFECT if seq == 2 else RequestClass.READ,
            started_ns=(1000 + seq) * _S,
            end_us=500_000,
        )
        for seq in (1, 2, 3, 4)
    }
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("late", mode="record", at_ns=1)

        async def save(seq: int) -> None:
            store.events.append(run.number, make_intent(made[seq]))
            await store.exchanges.save(run.number, partial(make_record, made[seq]))

        await save(1)
        index = RunIndex(store, store.runs.get("late"))
        if is_held:
            data = {**make_intent(made[2]).data, "digest": "d", "reason": "", "deadline_s": 1.0}
            store.events.append(run.number, Event(EventKind.HELD, 1002 * _S, data))
        await save(3)
        _read_all(index)
        assert list(index.seqs) == ([1, 2, 3] if is_held else [1, 3])
        assert index.effects == {}
        assert Scrubbers(index).stops("effects", 0) == array("I")
        await save(2)
        await save(4)
        await store.runs.seal(run, reason="done", at_ns=2000 * _S)
        index.info = store.runs.get("late")
        _read_all(index)
        fresh = RunIndex(store, index.info)
        _read_all(fresh)
        for one in (index, fresh):
            assert one.complete
            assert list(one.seqs) == [1, 2, 3, 4]
            assert list(one.effects) == [1]
            steps = [one.pages.get(at) for at in range(4)]
            assert [{step["seq"] for step in those} for those in steps] == [{1}, {2}, {3}, {4}]
            assert one.step_count == sum(map(len, steps))
            assert list(one.active) == sorted(one.active)
            assert list(one.took) == [500_000] * 4


def _read_all(index: RunIndex) -> None:
    while index.read_log(100):
        pass
    while index.read_steps(100):
        pass


def test_a_step_takes_as_long_as_its_exchange(tmp_path: Path) -> None:
    """Of a stream whose client goes later the log has an earlier end; `show` has the one of the exchange."""

    async def write(store: Store) -> None:
        run = await store.runs.create("r", mode="record", at_ns=1)
        early, late = make_exchange(1, end_us=100), make_exchange(1, end_us=250)
        store.events.append(run.number, make_intent(early))
        store.events.append(run.number, outcome_event(early))
        await store.exchanges.save(run.number, partial(make_record, late))
        await store.runs.seal(run, reason="it ended", at_ns=2)

    with Store.open(write_store(tmp_path / "store", write), readonly=True) as store:
        index = read_whole(store, store.runs.get("r"))
        (step,) = (one for one in index.pages.get(0) if one["took_us"] is not None)
        assert (step["took_us"], list(index.took)) == (250, [250])


def test_before_an_effect_is_what_rewind_says(tmp_path: Path) -> None:
    """The model call that asked for it, and nothing where none came before it."""
    with Store.open(write_refund_store(tmp_path / "store"), readonly=True) as store:
        for run in store.runs.all():
            index = read_whole(store, run)
            for one in find_before_effects(RunReader(store, run).read()):
                assert index.before_effect(one.effect) == one.seq

    async def write(store: Store) -> None:
        run = await store.runs.create("r", mode="record", at_ns=1)
        for seq, kind in ((1, RequestClass.READ), (2, RequestClass.EFFECT)):
            exchange = make_exchange(seq, request_class=kind)
            store.events.append(run.number, make_intent(exchange))
            await store.exchanges.save(run.number, partial(make_record, exchange))
        await store.runs.seal(run, reason="it ended", at_ns=2)

    with Store.open(write_store(tmp_path / "other", write), readonly=True) as store:
        index = read_whole(store, store.runs.get("r"))
        assert list(index.effects) == [1]
        assert index.before_effect(2) is None


def _held(exchange: Exchange, at_s: float) -> Event:
    data = {**make_intent(exchange).data, "digest": "d", "rule": "r", "reason": "", "deadline_s": 1}
    return Event(EventKind.HELD, _at(at_s), data)


def _ruled(seq: int, ruling: Ruling, at_s: float) -> Event:
    data = {"seq": seq, "ruling": ruling.value, "by": "", "via": "", "reason": ""}
    return Event(EventKind.RULED, _at(at_s), data)


def _at(at_s: float) -> int:
    return round((1000 + at_s) * _S)


@pytest.mark.parametrize("ruling", [None, *Ruling])
async def test_what_a_gate_holds_lasts_until_that_is_decided(
    tmp_path: Path, ruling: Ruling | None
) -> None:
    """Its wait is no idle gap, and it overlaps nothing that came behind it; without an end it lasts until the last sign of life."""

    def make(seq: int, at_s: float, **more: Any) -> Exchange:
        return make_exchange(seq, started_ns=_at(at_s), **more)

    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("r", mode="record", at_ns=1)

        async def save(exchange: Exchange) -> None:
            await store.exchanges.save(run.number, partial(make_record, exchange))

        first, last = make(1, 0, end_us=100_000), make(3, 20, end_us=500_000)
        gated = make(2, 1, kind=RequestClass.EFFECT, end_us=9_000_000)
        store.events.append(run.number, make_intent(first))
        await save(first)
        store.events.append(run.number, _held(gated, 1))
        if ruling is not None:
            store.events.append(run.number, _ruled(2, ruling, 9))
            if ruling is Ruling.APPROVED:
                store.events.append(run.number, make_intent(gated))
            else:
                data = {**make_intent(gated).data, "verdict": "refused", "reason": "gate"}
                store.events.append(run.number, Event(EventKind.VERDICT, _at(9), data))
            await save(gated)
        store.events.append(run.number, make_intent(last))
        await save(last)
        await store.runs.seal(run, reason="done", at_ns=_at(3000))
        index = RunIndex(store, store.runs.get("r"))
        for read in (index.read_log, index.read_steps):  # the log alone says it, too
            while read(3):
                pass
            check_outcome(index, ruling)
            axis = Axis(index)
            begins, ends = [axis.begin(at) for at in range(3)], [axis.end(at) for at in range(3)]
            assert max(ends) == ends[2] == 1
            if ruling is None:
                assert index.gaps == []
                assert ends[1] == 1
                assert index.active_us == 20_500_000
                continue
            (gap,) = index.gaps
            ended_s = 10 if ruling is Ruling.APPROVED else 9
            assert (gap.position, gap.length_us) == (2, (20 - ended_s) * 1_000_000)
            assert begins[1] < ends[1] < begins[2]
            assert index.active_us == (ended_s * 1_000_000) + 500_000
            told = draw_strip(index, 100)
            first_bin, behind, _ = told["lanes"][0]["kinds"]["effect"]
            assert (first_bin, behind) == (int(begins[1] * 100), int(ends[1] * 100) + 1)


def check_outcome(index: RunIndex, ruling: Ruling | None) -> None:
    """The line of a step, and the list of effects, say what became of it as `effects` does."""
    said = fold_steps(2, index.pages.get(1))["said"]
    if index.stepped:
        assert said == ("[held, rule r:]" if ruling is None else f"[held: {ruling.value}]")
    listed, _ = effects_of(index.store, index.info)
    told = {
        one.seq: [line.strip() for line in render_effects(index.info, [one], 0, Gaps())]
        for one in listed
    }
    for seq, result in tell_results(index, {2}).items():
        assert set(result.split("; ")) <= set(told[seq])
        assert (f"held by a gate: {ruling}" in result) is (ruling is not None)
    assert bool(tell_results(index, {2})) is (ruling is not None)


async def test_what_another_one_was_under_way_for_is_no_gap(tmp_path: Path) -> None:
    """Time goes on at its own pace while a slow request waits, and a stream that stays open for long makes nothing busy."""
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("r", mode="record", at_ns=1)
        # A slow one, one beside it, one behind an hour, and one that is open all the time.
        times = {1: (0, 5000), 2: (1, 31), 3: (11, 12), 4: (4000, 4001)}
        made = {
            seq: make_exchange(seq, started_ns=_at(begin), end_us=(end - begin) * 1_000_000)
            for seq, (begin, end) in times.items()
        }
        moments = sorted(
            (at, seq, at == begin) for seq, (begin, end) in times.items() for at in (begin, end)
        )
        for _, seq, begins in moments:
            if begins:
                store.events.append(run.number, make_intent(made[seq]))
            else:
                await store.exchanges.save(run.number, partial(make_record, made[seq]))
        await store.runs.seal(run, reason="done", at_ns=_at(6000))
        index = read_whole(store, store.runs.get("r"))
        (gap,) = index.gaps
        assert (gap.position, gap.length_us) == (3, (4000 - 31) * 1_000_000)
        assert list(index.active) == [0, 1_000_000, 11_000_000, 31_000_000]
        axis = Axis(index)
        ends = [axis.end(at) for at in range(4)]
        assert ends[0] == max(ends) == 1
        assert axis.begin(2) < ends[2] < ends[1] < axis.begin(3) < ends[3] < 1


async def test_what_a_tape_answered_ends_before_the_next_one_comes(tmp_path: Path) -> None:
    """A playback does not wait as long as the recorded answer took."""
    with Store.open(tmp_path / "store") as store:
        tape = await store.runs.create("tape", mode="record", at_ns=1)
        for seq in (1, 2):
            exchange = make_exchange(seq, started_ns=_at(seq * 30), end_us=20_000_000)
            store.events.append(tape.number, make_intent(exchange))
            await store.exchanges.save(tape.number, partial(make_record, exchange))
        await store.runs.seal(tape, reason="done", at_ns=_at(99))
        run = await store.runs.create("tape", mode="playback", at_ns=2, parent=tape)
        for seq in (1, 2):
            data = {**make_intent(make_exchange(seq)).data, "verdict": "served", "tape_seq": seq}
            store.events.append(
                run.number, Event(EventKind.VERDICT, _at(100 + seq), {**data, "reason": "on tape"})
            )
        await store.runs.seal(run, reason="done", at_ns=_at(200))
        index = read_whole(store, store.runs.get("tape@1"))
        assert list(index.took) == [20_000_000] * 2
        axis = Axis(index)
        assert axis.end(0) <= axis.begin(1) <= axis.end(1) == 1


async def test_an_effect_that_was_the_last_sign_of_life_is_drawn(tmp_path: Path) -> None:
    """It begins where the strip ends."""
    first = make_exchange(1, started_ns=1000 * _S, end_us=500_000)
    last = make_exchange(2, kind=RequestClass.EFFECT, started_ns=1001 * _S)
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("killed", mode="record", at_ns=1000 * _S)
        store.events.append(run.number, make_intent(first))
        await store.exchanges.save(run.number, partial(make_record, first))
        await store.events.append_durably(run.number, make_intent(last))
        told = draw_strip(read_whole(store, run), 100)
    drawn = [one["kinds"]["effect"] for one in told["lanes"] if "effect" in one["kinds"]]
    assert drawn == [[99, 100, 1]]
