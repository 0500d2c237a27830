"""The cases themselves: there are as many as the page is held to, and each stands in the store where it is looked for."""

from collections import Counter
from pathlib import Path

from playhead.store import Store
from playhead.tape.diff.divergence_types import DivergenceKind
from playhead.tape.exchange import FaultKind, MessageKind, RepeatKind, RequestClass, VerdictKind
from playhead.tape.records.check_event_fields import check_event
from playhead.tape.records.events import EventKind
from playhead.tests.support.counts import FULL
from playhead.tests.support.looking_back import ask
from playhead.tests.web.cases.hostile_store import (
    HEAVY,
    HEAVY_SEQS,
    LARGE,
    LIGHT,
    NAMES,
    RUN,
    SEQS,
    write_hostile_store,
)
from playhead.tests.web.cases.kinds_store import (
    BRANCH,
    CRASHED,
    PLAN,
    PLAYED,
    STOPPED,
    make_plan,
    write_kinds_store,
)
from playhead.tests.web.cases.kinds_store import RUN as EVERY
from playhead.tests.web.cases.payloads import PAYLOADS

KINDS = {"html", "svg", "css", "template", "scheme", "terminal", "unicode", "bytes", "json", "shell", "heavy"}  # fmt: skip


def test_there_are_payloads_of_every_kind() -> None:
    """No name and no marker is there twice, and a marker is in its payload unless that is compressed."""
    assert len(PAYLOADS) >= 60
    assert {one.kind for one in PAYLOADS} == KINDS
    assert [
        name for name, count in Counter(one.name for one in PAYLOADS).items() if count > 1
    ] == []
    unmarked = [
        one.name for one in PAYLOADS if not one.coding and one.marker.encode() not in one.data
    ]
    assert unmarked == []


def test_every_payload_stands_in_the_store(tmp_path: Path) -> None:
    """In a model call and in an effect, or in a body alone; the store verifies, and the terminal shows no escape."""
    folder = write_hostile_store(tmp_path / "store")
    with Store.open(folder, readonly=True) as store:
        run, heavy = store.runs.get(RUN), store.runs.get(HEAVY)
        for payload in (*LIGHT, *LARGE):
            if payload.is_heavy:
                made = store.exchanges.find(heavy, HEAVY_SEQS[payload.name])
                assert made is not None
                assert made.request.body == payload.data, payload.name
                continue
            call, effect = SEQS[payload.name]
            assert store.exchanges.holds(run, call)
            made = store.exchanges.find(run, effect)
            assert made is not None
            assert made.response is not None
            assert made.response.body == payload.data, payload.name
        assert {one.id for one in store.runs.all()} >= {*NAMES, RUN, HEAVY}
    assert len(NAMES) >= (40 if FULL else 5)
    for words in (("runs",), ("effects", RUN), ("show", RUN, 1), ("note", RUN)):
        shown = ask(folder, *words)
        assert shown.exception is None, words
        assert not set(shown.output) & {
            *map(chr, range(10)),
            *map(chr, range(11, 32)),
            "\x9b",
            "\u202e",
        }, words


LATER = {EventKind.JOURNAL, EventKind.REWRITTEN, EventKind.RECOVERED}
"""Kinds that no exchange of the page has: of a clock, of a rewrite, and of a process that is yet to open the store."""


def test_there_is_one_of_every_kind(tmp_path: Path) -> None:
    """The lists are the enums: a new kind fails here until the plan has it; each event has the shape of its kind."""
    making, seqs = make_plan()
    exchanges = making.tape.exchanges
    assert len(seqs) == len(PLAN)
    assert list(seqs.values()) == [one.seq for one in exchanges]
    assert {one.fault.kind for one in exchanges if one.fault} == {*FaultKind}
    assert {one.request_class for one in exchanges} == {*RequestClass}
    assert {one.repeat.kind for one in exchanges if one.repeat} == {*RepeatKind}
    told = {one.kind for messages in making.messages.values() for one in messages}
    assert told == {*MessageKind}
    folder = write_kinds_store(tmp_path / "store")
    kinds, verdicts, diverged = set(), {VerdictKind.HELD.value}, set()
    with Store.open(folder, readonly=True) as store:
        runs = store.runs.all()
        assert {one.id for one in runs} == {EVERY, PLAYED, BRANCH, CRASHED, STOPPED}
        for run in runs:
            verdicts |= {one.verdict.value for one in store.exchanges.all(run)}
            for event in store.events.all(run):
                check_event(event)
                kinds.add(event.kind)
                if "divergence" in event.data:
                    diverged.add(event.data["divergence"]["kind"])
                elif event.kind is EventKind.VERDICT:
                    verdicts.add(event.data["verdict"])
    assert kinds == {*EventKind} - LATER
    assert verdicts == {one.value for one in VerdictKind}
    assert diverged == {one.value for one in DivergenceKind}


def test_every_kind_can_be_asked_about_on_the_command_line(tmp_path: Path) -> None:
    """So that the page, which shows what commands print, has something to show."""
    folder = write_kinds_store(tmp_path / "store")
    _, seqs = make_plan()
    for run in (EVERY, PLAYED, BRANCH, CRASHED, STOPPED):
        for word in ("show", "receipt", "effects", "cache", "cost"):
            assert ask(folder, word, run).exception is None, (word, run)
    for name, seq in seqs.items():
        assert ask(folder, "show", EVERY, seq).exception is None, name
