"""Receipts, folded from made-up logs.

The tape of most tests: 1 a read, 2 an effect, 3 a model call, 4 telemetry. A playback is told as words:
`served 2` (by tape seq 2), `again 4`, `stubbed 2`, `refused 9`, `refused-telemetry`, `live 3`, `diverged`,
`egress`, `foreign`.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Owner, RunInfo, Store
from playhead.tape.diff.divergence_types import (
    SERVED_ALL_THE_SAME,
    UNKNOWN_OUTCOME,
    Divergence,
    DivergenceKind,
)
from playhead.tape.exchange import (
    Chunk,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    RequestClass,
    RunId,
    Seq,
    VerdictKind,
)
from playhead.tape.matching.idempotency_keys import KEY_ADDED
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import (
    NO_CLASSES,
    make_exchange,
    make_intent,
    make_record,
    make_response,
)
from playhead.timeline import (
    Receipt,
    build,
    exit_code,
    render_divergences,
    render_receipt,
)
from playhead.timeline.receipts.answers.matches import Matches, OptIn
from playhead.timeline.receipts.answers.request_outcomes import Requests
from playhead.timeline.receipts.command.surroundings import Surroundings
from playhead.timeline.receipts.exchange_rows import rows
from playhead.timeline.receipts.receipt_parts import Parts
from playhead.timeline.receipts.render_text import explain_branch
from playhead.web.views.run_facts import read_facts
from playhead.web.views.run_page_sections import view_effects

INFERENCE, READ, EFFECT, TELEMETRY = (
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.EFFECT,
    RequestClass.TELEMETRY,
)
REFUND = "POST https://pay.test/refunds"
CHAT = "POST https://api.openai.com/v1/chat/completions"

TAPE = (
    make_exchange(1, "GET https://docs.test/page?q=1", kind=READ),
    make_exchange(2, REFUND, kind=EFFECT, body=b'{"amount": 5}'),
    make_exchange(3, CHAT, kind=INFERENCE, body=b'{"model": "m"}'),
    make_exchange(4, "POST https://telemetry.test/emit", kind=TELEMETRY),
)
STRANGE = make_exchange(9, "GET https://elsewhere.test/", kind=READ)


@pytest.fixture
async def store(store_dir: Path) -> AsyncIterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


async def record(
    store: Store,
    *exchanges: Exchange,
    name: str = "tape",
    keys: dict[int, bytes] | None = None,
    unfinished: tuple[Exchange, ...] = (),
    seal: bool = True,
) -> RunInfo:
    """Write a recording."""
    run = await store.runs.create(name, mode="record", at_ns=1, classes=NO_CLASSES)
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange, (keys or {}).get(exchange.seq)))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    for exchange in unfinished:
        await store.events.append_durably(run.number, make_intent(exchange))
    if not seal:
        return store.runs.reload(run)
    seqs = tuple(exchange.seq for exchange in unfinished)
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=2, unfinished=seqs)


async def play(
    store: Store,
    tape: RunInfo,
    *told: str | Event,
    seal: bool = True,
    keys: dict[int, bytes] | None = None,
) -> RunInfo:
    """Write a playback; the nth request has seq n."""
    run = await store.runs.create(tape.id, mode="playback", at_ns=3, parent=tape)
    seq = 0
    for item in told:
        if isinstance(item, Event):
            store.events.append(run.number, item)
            continue
        what, _, number = item.partition(" ")
        recorded = TAPE[int(number) - 1] if number and int(number) <= len(TAPE) else STRANGE
        if what in ("diverged", "egress", "foreign"):
            store.events.append(run.number, MADE[what](seq))
            continue
        seq += 1
        if what == "live":
            exchange = replace(recorded, seq=Seq(seq), verdict=VerdictKind.LIVE)
            store.events.append(run.number, make_intent(exchange))
            await store.exchanges.save(run.number, partial(make_record, exchange))
        else:
            store.events.append(run.number, verdict(seq, what, recorded, (keys or {}).get(seq)))
    if not seal:
        store.writer.call(lambda _: None)
        return store.runs.reload(run)
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=4)


def verdict(seq: int, what: str, recorded: Exchange, key: bytes | None = None) -> Event:
    kind = RequestClass.TELEMETRY if what == "refused-telemetry" else recorded.request_class
    data: dict[str, Any] = {
        "seq": seq,
        "method": recorded.request.method,
        "url": recorded.request.url,
        "request_class": kind.value,
        "verdict": {"again": "served", "refused-telemetry": "refused"}.get(what, what),
        "reason": "not on the tape" if "refused" in what else "on tape",
        "fingerprint": recorded.fingerprint,
        "key": key,
    }
    if what in ("served", "again"):
        data |= {"tape_seq": recorded.seq, "match": "repeated" if what == "again" else "exact"}
    return Event(EventKind.VERDICT, 3, data)


MADE: dict[str, Callable[[int], Event]] = {
    "diverged": lambda seq: Event(
        EventKind.DIVERGED,
        3,
        {
            "seq": seq,
            "divergence": {
                "kind": "changed",
                "seq": seq,
                "method": "GET",
                "url": "https://docs.test/page?q=2",
                "nearest": 1,
                "differences": (),
                "text": "nearest on the tape is seq 1",
            },
        },
    ),
    "egress": lambda _: Event(
        EventKind.EGRESS, 3, {"target": "192.0.2.1:443", "by": "guard", "reason": "no live rule"}
    ),
    "foreign": lambda _: Event(
        EventKind.FOREIGN,
        3,
        {"sockets": ({"protocol": "tcp", "address": "192.0.2.1", "port": 443, "process": "curl"},)},
    ),
}

ALL = ("served 1", "served 2", "served 3", "served 4")


# ---- exit codes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "code"),
    [
        # Faithful: everything from the tape; telemetry may be left, repeated, or refused.
        (ALL, 0),
        (("served 3", "served 2", "served 1"), 0),
        ((*ALL, "again 4", "again 4"), 0),
        ((*ALL, "refused-telemetry"), 0),
        # 125: no request was seen, whatever else there was.
        ((), 125),
        (("egress",), 125),
        (("foreign",), 125),
        # 123: something tried to leave, past the proxy or through it.
        ((*ALL, "egress"), 123),
        ((*ALL, "foreign"), 123),
        # 121: refused, stubbed, or diverged in any other way; one of them is enough.
        ((*ALL, "refused 9"), 121),
        ((*ALL, "refused 9", "diverged"), 121),
        ((*ALL, "stubbed 2"), 121),
        ((*ALL, "diverged"), 121),
        # 122: left on the tape.
        (("served 1", "served 2", "served 4"), 122),
        (("again 4",), 122),
        # In this order, where several hold.
        (("egress", "foreign", "diverged"), 125),
        (("served 1", "refused 9", "diverged", "egress"), 123),
        (("served 1", "stubbed 2", "foreign"), 123),
        (("served 1", "egress"), 123),
        (("served 1", "refused 9"), 121),
        (("served 1", "stubbed 2"), 121),
        (("refused 9",), 121),
    ],
    ids=str,
)
async def test_exit_codes(store: Store, told: tuple[str, ...], code: int) -> None:
    """125 untestable, 123 something tried to leave, 121 diverged, 122 not exhausted, 0 faithful."""
    receipt = build(store, await play(store, await record(store, *TAPE), *told))
    assert exit_code(receipt) == code
    assert receipt.faithful is (code == 0)
    assert receipt.to_json()["exit_code"] == code
    assert receipt.to_json()["faithful"] is (code == 0)


async def test_a_recording_has_no_verdict_of_its_own(store: Store) -> None:
    """Its exit code is the child's, and it is neither faithful nor not."""
    receipt = build(store, await record(store, *TAPE))
    assert (exit_code(receipt), receipt.faithful) == (0, None)
    assert receipt.counts["recorded"] == receipt.requests == 4
    assert [effect.seq for effect in receipt.effects] == [2]
    assert receipt.level == "0: log only"


async def test_an_open_run_is_not_judged_yet(store: Store) -> None:
    """What it has done until now is shown."""
    receipt = build(store, await play(store, await record(store, *TAPE), *ALL, seal=False))
    assert receipt.faithful is None
    assert (receipt.status, receipt.counts["served"]) == ("open", 4)
    recording = build(store, await record(store, *TAPE[:2], name="other", seal=False))
    assert (recording.status, recording.faithful, recording.requests) == ("open", None, 2)


async def test_a_playback_whose_process_died_proves_nothing(store_dir: Path) -> None:
    """Its last events may be missing: it is not faithful, however good it looks."""
    with Store.open(store_dir) as store:
        tape = await record(store, *TAPE)
        store.runs.owner = Owner(2**22 + 1, 0.0)
        run = await play(store, tape, *ALL, seal=False)
    with Store.open(store_dir, readonly=True) as store:
        shown = build(store, store.runs.get(run.id))
        assert (shown.status, shown.faithful, exit_code(shown)) == ("recovered", False, 125)
    with Store.open(store_dir) as store:
        receipt = build(store, store.runs.get(run.id))
    assert (receipt.status, receipt.faithful, exit_code(receipt)) == ("recovered", False, 125)
    assert receipt.end == "its process died"


# ---- what is in it -----------------------------------------------------------------------------


async def test_what_was_served_is_counted_by_how_it_matched(store: Store) -> None:
    """Every count of the JSON is there, zeros too."""
    told = ("served 1", "served 2", "again 4", "refused 9", "stubbed 2", "live 3")
    receipt = build(store, await play(store, await record(store, *TAPE), *told))
    assert receipt.to_json()["counts"] == {
        "recorded": 0,
        "served": 3,
        "stubbed": 1,
        "live": 1,
        "sandboxed": 0,
        "hypothetical": 0,
        "refused": 1,
        "unused": 1,
    }
    assert receipt.matched == {"exact": 2, "repeated": 1}
    assert receipt.requests == len(told)
    assert [(row["seq"], row["url"]) for row in receipt.refused] == [(4, "https://elsewhere.test/")]
    assert [row["seq"] for row in receipt.live] == [6]


async def test_what_is_left_on_the_tape_is_listed_by_seq(store: Store) -> None:
    """Not telemetry, not what has no outcome: that could not have been served."""
    late_first = (TAPE[2], TAPE[0], TAPE[1], TAPE[3])
    tape = await record(
        store, *late_first, unfinished=(make_exchange(5, "GET https://docs.test/x"),)
    )
    receipt = build(store, await play(store, tape, "served 2"))
    assert [row["seq"] for row in receipt.unused] == [1, 3]
    assert receipt.unused[0] == {"seq": 1, "method": "GET", "url": "https://docs.test/page?q=1"}


async def test_an_effect_under_way_at_the_end_of_the_tape_is_unused_unless_it_was_asked_for(
    store: Store,
) -> None:
    """It may have happened: a replay that leaves it out is another run, and one that asks for it cannot be answered."""
    tape = await record(store, TAPE[0], unfinished=(replace(TAPE[1], seq=Seq(2)),))
    left_out = build(store, await play(store, tape, "served 1"))
    assert [(row["seq"], row["outcome"]) for row in left_out.unused] == [(2, "unknown")]
    assert exit_code(left_out) == 122
    assert "(outcome unknown)" in render_receipt(left_out)
    text = UNKNOWN_OUTCOME.format(2)
    told = Divergence(DivergenceKind.UNEXPECTED, Seq(2), "POST", "https://x/", Seq(2), (), text)
    event = Event(EventKind.DIVERGED, 3, {"seq": 2, "divergence": told.to_json()})
    assert not build(store, await play(store, tape, "served 1", "refused 9", event)).unused


@pytest.mark.parametrize(
    ("live", "left"),
    [
        ((), [1, 2, 3]),
        ((("* *://api.openai.com", "inference"),), [1, 2]),
        ((("* *://api.openai.com", "read"),), [1, 2, 3]),
        ((("GET https://docs.test/page", None),), [2, 3]),
        ((("GET https://docs.test/page?q=1", None),), [2, 3]),
        ((("GET https://docs.test/page?q=2", None),), [1, 2, 3]),
        ((("https://docs.test:8443/", None), ("POST https://pay.test/*", None)), [1, 3]),
        ((("not a pattern", None), ("*://*", None)), []),
    ],
    ids=str,
)
async def test_what_goes_live_is_never_unused(
    store: Store, live: tuple[tuple[str, str | None], ...], left: list[int]
) -> None:
    """A live rule goes before the tape, so that what it names can never be served from there."""
    tape = await record(store, *TAPE)
    run = await play(store, tape, Event(EventKind.NOTED, 3, {"live": live}), "again 4")
    assert [row["seq"] for row in build(store, run).unused] == left


async def test_a_missing_tape_is_said(store: Store) -> None:
    """A receipt can be printed again when its tape is in another store."""
    tape = replace(await record(store, *TAPE), id=RunId("elsewhere"), number=999)
    receipt = build(store, await play(store, tape, *ALL))
    assert "'elsewhere' is not in this store" in receipt.warnings[0]
    assert receipt.counts["served"] == 4


async def test_notes_of_the_launcher_are_taken_up(store: Store) -> None:
    """Exit code of the child, containment, and texts for people."""
    notes = (
        Event(EventKind.NOTED, 3, {"text": "the file was reloaded"}),
        Event(EventKind.NOTED, 3, {"child_exit": 7, "contained": True}),
    )
    receipt = build(store, await play(store, await record(store, *TAPE), *notes, *ALL))
    document = receipt.to_json()
    assert (document["child_exit"], document["contained"]) == (7, True)
    assert document["warnings"] == ["the file was reloaded"]


@pytest.mark.parametrize(
    ("told", "level"),
    [
        (ALL, "3: tools, state and model from the tape, the clock live"),
        (("live 3",), "3: tools and state from the tape, the model live"),
        (("live 1",), "1: tools partly live"),
        (("live 2", "live 3"), "1: tools partly live"),
    ],
    ids=str,
)
async def test_the_fidelity_level_that_was_reached(
    store: Store, told: tuple[str, ...], level: str
) -> None:
    """By what went live."""
    assert build(store, await play(store, await record(store, *TAPE), *told)).level == level


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({}, "4: everything from the tape, the clock too"),
        ({"missing": "C"}, "3: tools, state and model from the tape, the clock in part"),
    ],
    ids=["all", "not all"],
)
async def test_a_missing_clock_prevents_fidelity_level_4(
    store: Store, changed: dict[str, str], level: str
) -> None:
    """Also where every process had a preload: a library that was recorded with may not be there now."""
    told = {"level": "full", "preloaded": 1, "processes": 1, **changed}
    note = Event(EventKind.NOTED, 3, {"determinism": told})
    assert build(store, await play(store, await record(store, *TAPE), note, *ALL)).level == level


# ---- effects -----------------------------------------------------------------------------------


def refund(seq: int, body: bytes = b'{"amount": 5}', **changes: Any) -> Exchange:
    return make_exchange(seq, REFUND, kind=EFFECT, body=body, **changes)


@pytest.mark.parametrize(
    ("repeat", "note"),
    [
        ((1, "safe retry", False), "safe retry of seq 1"),
        (
            (1, "possible duplicate", True),
            "possible duplicate of seq 1, whose answer the client had not seen",
        ),
    ],
)
async def test_a_repeat_that_the_log_tells_of_is_told(
    store: Store, repeat: tuple[int, str, bool], note: str
) -> None:
    """Whether the client had seen the first answer is known to who was there alone."""
    run = await store.runs.create("tape", mode="record", at_ns=1, classes=NO_CLASSES)
    for exchange, more in ((refund(1), {}), (refund(2, b"written otherwise"), {"repeat": repeat})):
        intent = make_intent(exchange)
        store.events.append(run.number, replace(intent, data={**intent.data, **more}))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    sealed = await store.runs.seal(run, reason="the command ended with 0", at_ns=2)
    assert [effect.note for effect in build(store, sealed).effects] == ["", note]


LATE = make_response(b"{}", head_us=3_000_000)


@pytest.mark.parametrize(
    ("exchange", "outcome"),
    [
        (refund(1), "200"),
        (refund(1, response=make_response(status=503)), "503"),
        (refund(1, response=LATE, gone=Gone(1_000_000, 0, False)), "client left after 1.0 s; 200 came at 3.0 s"),
        (refund(1, response=None, gone=Gone(1_000_000, 0, False)), "client left after 1.0 s; no answer was seen"),
        (refund(1, gone=Gone(1_500_000, 0, True)), "200, client left after 1.5 s"),
        (
            refund(1, response=None, fault=Fault(FaultKind.RESET, Phase.HEAD, RedactedText("reset by peer"), 5)),
            "reset in head: reset by peer",
        ),
        (
            refund(1, response=make_response(b"x", chunks=(Chunk(1, 1),), complete=False),
                   fault=Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), 5)),
            "cut in body: closed",
        ),
        (refund(1, response=None), "no answer"),
    ],
)  # fmt: skip
async def test_what_came_of_an_effect(store: Store, exchange: Exchange, outcome: str) -> None:
    """For the client and for the server; in a playback as the tape has it."""
    tape = await record(store, exchange)
    (effect,) = build(store, tape).effects
    assert (effect.answered_by, effect.outcome) == ("upstream", outcome)
    assert (effect.method, effect.url, effect.summary) == (
        "POST",
        "https://pay.test/refunds",
        '{"amount": 5}',
    )
    (played,) = build(store, await play(store, tape, verdict(1, "served", exchange))).effects
    assert (played.answered_by, played.outcome) == ("tape seq 1", outcome)


async def test_effects_that_were_not_executed_say_so(store: Store) -> None:
    """Refused, stubbed, or sent by a live rule."""
    run = await play(store, await record(store, *TAPE), "refused 2", "stubbed 2", "live 2")
    told = [(effect.answered_by, effect.outcome) for effect in build(store, run).effects]
    assert told == [("refused", "not on the tape"), ("effect rule", ""), ("live rule", "200")]


async def test_an_effect_without_an_outcome_is_unknown(store_dir: Path) -> None:
    """Never `not sent`: in a sealed run as unfinished, in a recovered one as unknown."""
    with Store.open(store_dir) as store:
        sealed = await record(store, TAPE[0], unfinished=(refund(2),), name="sealed")
        receipt = build(store, sealed)
        assert receipt.unfinished == [2]
        assert [effect.outcome for effect in receipt.effects] == [
            "unknown: no outcome was recorded"
        ]
        store.runs.owner = Owner(2**22 + 1, 0.0)
        await record(
            store, TAPE[0], unfinished=(refund(2), refund(3, b"x")), name="died", seal=False
        )
    with Store.open(store_dir) as store:
        receipt = build(store, store.runs.get("died"))
        assert (receipt.status, receipt.unfinished) == ("recovered", [2, 3])
        assert {effect.outcome for effect in receipt.effects} == {
            "unknown: no outcome was recorded"
        }
        assert receipt.to_json()["unfinished"] == [2, 3]
        listed = rows(store, store.runs.get("died"))
        assert [row["outcome"] for row in listed] == ["200, 2 bytes", "unknown", "unknown"]


async def test_failures_below_http_and_warnings_are_listed(store: Store) -> None:
    """Of any class."""
    failed = make_exchange(
        1, response=None, fault=Fault(FaultKind.DNS, Phase.CONNECT, RedactedText("no such name"), 5)
    )
    odd = make_exchange(2, warnings=("its body was cut at 64 MB",))
    receipt = build(store, await record(store, failed, odd))
    assert receipt.faults == [{"seq": 1, "kind": "dns", "phase": "connect", "text": "no such name"}]
    assert receipt.warnings == ["seq 2: its body was cut at 64 MB"]


async def test_what_cannot_be_held_against_its_tape_is_not_called_faithful(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what was unused of a tape that is gone; what diverged is known all the same."""
    tape = await record(store, *TAPE)
    good, bad = await play(store, tape, *ALL), await play(store, tape, "refused 9")
    monkeypatch.setattr(store.runs, "find_tape", lambda _: None)
    receipt = build(store, good)
    assert (receipt.faithful, exit_code(receipt)) == (False, 125)
    assert receipt.warnings == ["its tape 'tape' is not in this store any more"]
    assert exit_code(build(store, bad)) == 121


# ---- bounds ------------------------------------------------------------------------------------


def diverged(seq: int, kind: DivergenceKind = DivergenceKind.CHANGED) -> Event:
    """A divergence in the log."""
    made = Divergence(kind, Seq(seq), "GET", "https://docs.test/", text=f"number {seq}")
    return Event(EventKind.DIVERGED, 3, {"seq": seq, "divergence": made.to_json()})


async def test_the_root_is_the_divergence_with_the_smallest_seq(store: Store) -> None:
    """However they were written down; what was left out of a WebSocket or of the tape is never before it."""
    kinds = DivergenceKind
    told: list[str | Event] = [
        "served 1",
        diverged(4),
        diverged(1, kinds.UNUSED),
        diverged(2, kinds.EXHAUSTED),
    ]
    receipt = build(store, await play(store, await record(store, *TAPE), *told, diverged(3)))
    assert receipt.root is not None
    assert (receipt.root["seq"], receipt.root["kind"]) == (2, "exhausted")
    followed = receipt.to_json()["followed"]
    assert followed == {"count": 5, "by_kind": {"changed": 2, "unused": 3}}
    assert [row["seq"] for row in receipt.divergences] == [1, 2, 3, 4]
    text = render_receipt(receipt)
    assert "seq 2  exhausted" in text
    assert "followed by 5 more: 2 changed, 3 unused" in text
    assert "number 3" not in text
    assert "number 3" in render_divergences(receipt)


async def test_an_unused_exchange_is_the_root_if_nothing_else_diverged(store: Store) -> None:
    """The first of it; and a faithful run has none."""
    tape = await record(store, *TAPE)
    left = build(store, await play(store, tape, "served 1")).to_json()
    assert (left["root"]["kind"], left["root"]["seq"]) == ("unused", 2)
    assert left["followed"] == {"count": 1, "by_kind": {"unused": 1}}
    assert (left["exit_code"], left["divergences"]) == (122, [])
    faithful = build(store, await play(store, tape, *ALL)).to_json()
    assert (faithful["root"], faithful["followed"]["count"]) == (None, 0)


@pytest.mark.parametrize("kept", [False, True])
async def test_what_had_begun_to_be_answered_when_the_recording_died_is_unused(
    store: Store, kept: bool
) -> None:
    """As an open WebSocket, which is read by its method; of a read that nothing had come of nobody misses anything."""
    run = await store.runs.create("tape", mode="record", at_ns=1, classes=NO_CLASSES)
    exchange = make_exchange(1, "GET https://docs.test/ws")
    store.events.append(run.number, make_intent(exchange))
    if kept:
        store.exchanges.save_unwaited(run.number, partial(make_record, exchange, final=False))
    tape = await store.runs.seal(run, reason="x", at_ns=2)
    receipt = build(store, await play(store, tape, "refused 2"))
    assert receipt.counts["unused"] == kept


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ([(41, "worker")], "1 process of the command still runs (41 worker): what it does from now on is not compared"),
        ([(41, "a"), (42, "b")], "2 processes of the command still run (41 a, 42 b): what they do from now on is not compared"),
        ([(0, "worker")], "1 process of the command was ended with the sandbox (worker): what it would have done is not compared"),
    ],
)  # fmt: skip
async def test_processes_that_the_command_leaves_behind_are_named(
    store: Store, left: list[tuple[int, str]], told: str
) -> None:
    """What they do is missed: a replay is faithful but for them, and a recording warns."""
    tape = await record(store, *TAPE)
    ended = Event(EventKind.NOTED, 3, {"child_exit": 0, "left_running": left})
    receipt = build(store, await play(store, tape, *ALL, ended))
    assert (receipt.faithful, exit_code(receipt)) == (False, 0)
    assert receipt.faithful_but_for == ["processes that outlived the command"]
    assert told in receipt.warnings
    assert told in render_receipt(receipt)
    rows = [{"pid": pid or None, "name": name} for pid, name in left]
    assert receipt.to_json()["left_running"] == rows


async def test_lists_are_bounded_and_counts_are_exact(store: Store) -> None:
    """However long a run is."""
    many = 2500
    run = await store.runs.create("tape", mode="record", at_ns=1, classes=NO_CLASSES)
    for seq in range(1, many + 1):
        exchange = make_exchange(seq, f"GET https://docs.test/{seq}", warnings=("w",))
        store.events.append(run.number, make_intent(exchange))
        store.exchanges.save_unwaited(run.number, partial(make_record, exchange))
    tape = await store.runs.seal(run, reason="x", at_ns=2)
    told = [
        verdict(seq, "refused", make_exchange(9, f"GET https://elsewhere.test/{seq}"))
        for seq in range(1, many + 1)
    ]
    played = await play(store, tape, *told, *(MADE["egress"](1) for _ in range(1500)))
    receipt = build(store, played)
    assert (receipt.counts["unused"], receipt.counts["refused"]) == (many, many)
    document = receipt.to_json()
    assert {name: len(document[name]) for name in ("unused", "refused", "egress")} == {
        "unused": 1000,
        "refused": 1000,
        "egress": 1000,
    }
    assert [row["seq"] for row in receipt.unused] == list(range(1, 1001))
    assert len(build(store, tape).warnings) == 1000
    omitted = {"unused": 1500, "refused": 1500, "egress": 500}
    assert document["rows_omitted"].items() >= omitted.items()
    assert build(store, tape).to_json()["rows_omitted"] == {"warnings": 1500}


async def test_effects_beyond_the_listed_ones_are_counted(store: Store) -> None:
    """All of them, and all possible duplicates among them."""
    many = 1240
    run = await store.runs.create("pay", mode="record", at_ns=1, classes=NO_CLASSES)
    for seq in range(1, many + 1):
        exchange = make_exchange(seq, "POST https://pay.test/v1/refunds", kind=EFFECT)
        intent = make_intent(exchange)
        if seq > 1120:
            repeat = [1, "possible duplicate", False]
            intent = replace(intent, data={**intent.data, "repeat": repeat})
        store.events.append(run.number, intent)
        store.exchanges.save_unwaited(run.number, partial(make_record, exchange))
    tape = await store.runs.seal(run, reason="x", at_ns=2)
    facts = read_facts(store, tape)
    assert (facts.effects, facts.duplicates) == (many, 120)
    receipt = build(store, tape)
    document = receipt.to_json()
    assert len(document["effects"]) == 1000
    assert document["rows_omitted"] == {"effects": 240}
    assert "… and 1228 more" in render_receipt(receipt)
    assert [row["seq"] for row in view_effects(store, tape, 2)] == [many - 1, many]


def test_what_is_decided_by_rows_is_decided_by_all_of_them() -> None:
    """Also by those that are not listed: the classes that were live, the rules that injected, what gates held."""
    parts, many = Parts(), 1001
    for seq in range(1, many + 1):
        last = seq == many
        asked = {"seq": seq, "method": "POST", "url": "https://a.test/"}
        intent = {**asked, "request_class": "effect" if last else "inference"}
        fault = {"seq": seq, "rule": "z" if last else "a", "inject": "cut", "nth": seq, "seed": 1}
        held = {**asked, "digest": "", "reason": "", "rule": "r"}
        parts.requests.take(Event(EventKind.INTENT, 1, intent), parts.advice, playing=True)
        parts.injected.take(Event(EventKind.INJECTED, 1, fault))
        parts.gates.take(Event(EventKind.HELD, 1, held))
    parts.branch.declared = {"at": 1, "changes": (), "live": (), "routes": (), "answers": ()}
    for seq in range(1, many + 1):
        parts.branch.take(Event(EventKind.INTENT, 1, {"seq": seq, "asked_otherwise": True}))
    receipt = Receipt("r", "tape", "playback", "sealed", parts=parts)
    assert receipt.level == "1: tools partly live"
    assert list(parts.injected.rules) == ["a", "z"]
    assert parts.injected.find_last(None) is None  # it is not listed
    assert many in parts.gates.seqs
    assert "… and 989 more" in parts.gates.lines()[-1]
    assert "1001 asked otherwise" in parts.branch.lines()[0]
    omitted = dict.fromkeys(("gates", "injected", "live", "branch.asked_otherwise"), 1)
    assert receipt.to_json()["rows_omitted"] == omitted


def test_receipts_of_nothing() -> None:
    """An empty one can be judged and shown."""
    assert exit_code(Receipt("r", None, "playback", "sealed")) == 125
    assert Receipt("r", None, "record", "sealed").to_json()["requests"] == 0


def contained(sandbox: dict[str, Any]) -> Receipt:
    """The receipt of a playback of one request in a sandbox."""
    parts = Parts(Requests(1), surroundings=Surroundings(True, sandbox))
    return Receipt("r", None, "playback", "sealed", parts=parts)


@pytest.mark.parametrize(("packets", "code"), [(0, 0), (1, 123)])
def test_a_packet_that_left_a_sandbox_is_an_attempt_to_leave(packets: int, code: int) -> None:
    """By whatever device; the kernel has counted it, where nothing else was seen."""
    receipt = contained({"strict": False, "counters": {"packets_out": packets}})
    assert exit_code(receipt) == code


@pytest.mark.parametrize("tapped", [True, False])
def test_attempts_to_leave_that_could_not_be_read_are_told(tapped: bool) -> None:
    """A receipt without any is faithful, and says that there may have been some."""
    receipt = contained({"strict": False, "counters": {"packets_out": 0}, "tapped": tapped})
    shown = "could not be read from packets here" in render_receipt(receipt)
    assert (exit_code(receipt), shown) == (0, not tapped)


@pytest.mark.parametrize(
    ("live", "text"),
    [
        (0, "contained: 0 packets left the machine"),
        (1, "contained: 0 packets left past the proxy, 1 request sent out by live rules"),
        (2, "contained: 0 packets left past the proxy, 2 requests sent out by live rules"),
    ],
)
def test_no_receipt_with_live_requests_says_that_nothing_left(live: int, text: str) -> None:
    """What went out by a live rule left the machine, though no packet got past the proxy."""
    receipt = contained({"strict": False, "counters": {"packets_out": 0}})
    receipt.counts["live"] = live
    shown = render_receipt(receipt)
    assert text in shown
    assert ("left the machine" in shown) is (live == 0)


# ---- model drift -----------------------------------------------------------------------------------


def opt_in(recorded: str, asked: str) -> Event:
    return Event(EventKind.NOTED, 3, {"allow_model_drift": [recorded, asked]})


def drifted(seq: int, tape_seq: int, *allowed: str) -> Event:
    """A model call that was served because of opt-ins."""
    event = verdict(seq, "served", replace(TAPE[2], seq=Seq(tape_seq)))
    more = {"match": "drifted", "allowed": list(allowed), "tape_seq": tape_seq}
    return replace(event, data={**event.data, **more})


async def test_what_drift_let_through_is_counted_by_opt_in(store: Store) -> None:
    """One that nothing needed is listed too; of seqs the first hundred."""
    tape = await record(store, *(replace(TAPE[2], seq=Seq(seq)) for seq in range(1, 121)))
    told = [drifted(seq, seq, "m=n") for seq in range(1, 120)]
    both = drifted(120, 120, "m=n", "d=e")
    run = await play(store, tape, opt_in("m", "n"), opt_in("d", "e"), opt_in("x", "x"), *told, both)
    receipt = build(store, run)
    assert receipt.matched == {"drifted": 120}
    assert [(one.allowed, one.served, len(one.seqs)) for one in receipt.model_drift] == [
        ("m=n", 120, 100),
        ("d=e", 1, 1),
        ("x=x", 0, 0),
    ]
    assert (receipt.faithful, receipt.faithful_but_for) == (False, ["m=n", "d=e"])
    assert exit_code(receipt) == 0
    text = render_receipt(receipt)
    assert "FAITHFUL BUT FOR MODEL DRIFT, allowed as m=n, d=e: replay of tape" in text
    assert "m=n: served 120, seq 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 …\n" in text


@pytest.mark.parametrize(
    ("drift", "late", "verdict"),
    [
        (["m=n"], [], "FAITHFUL BUT FOR MODEL DRIFT, allowed as m=n: "),
        ([], [2], "FAITHFUL BUT FOR late answers served: "),
        (["m=n"], [2], "FAITHFUL BUT FOR MODEL DRIFT, allowed as m=n, AND FOR late answers served: "),
    ],
)  # fmt: skip
def test_what_is_no_drift_is_not_called_drift(
    drift: list[str], late: list[int], verdict: str
) -> None:
    """The first line names each by what it is."""
    matches = Matches(model_drift=[OptIn(one, 1) for one in drift])
    parts = Parts(Requests(1, late=late), matches)
    receipt = Receipt("r", "tape", "playback", "sealed", parts=parts)
    assert verdict in render_receipt(receipt)


@pytest.mark.parametrize("told", ["diverged", "egress", "foreign", "refused 9"])
async def test_a_replay_that_failed_is_faithful_but_for_nothing(store: Store, told: str) -> None:
    """The opt-in is listed, and is no excuse."""
    tape = await record(store, TAPE[2])
    run = await play(store, tape, opt_in("m", "n"), drifted(1, 3, "m=n"), told)
    receipt = build(store, run)
    assert exit_code(receipt) in (121, 123)
    assert (receipt.faithful, receipt.faithful_but_for) == (False, [])
    assert [one.served for one in receipt.model_drift] == [1]
    assert "NOT FAITHFUL: replay of tape" in render_receipt(receipt)
    assert "FAITHFUL BUT" not in render_receipt(receipt)


@pytest.mark.parametrize(
    ("count", "named"), [(2, "seq 1, 2 differ"), (60, " and 48 more differ")], ids=["few", "many"]
)
def test_a_replay_that_needed_a_rule_names_its_requests(count: int, named: str) -> None:
    """In the text, too, of which the verdict says no place."""
    (line,) = Matches(ignored_content=list(range(1, count + 1))).lines()
    assert line.startswith("ignored content: seq 1, 2")
    assert named in line


async def test_an_open_playback_is_not_called_anything_yet(store: Store) -> None:
    """However it will end."""
    tape = await record(store, TAPE[2])
    run = await play(store, tape, opt_in("m", "n"), drifted(1, 3, "m=n"), seal=False)
    receipt = build(store, run)
    assert (receipt.faithful, receipt.faithful_but_for) == (None, [])


async def test_an_effect_whose_key_drifted_is_noted(store: Store) -> None:
    """With both seqs; the replay is not faithful."""
    tape = await record(store, TAPE[1])
    event = verdict(1, "served", TAPE[1])
    what = "carries no idempotency key, and was recorded with one"
    run = await play(store, tape, replace(event, data={**event.data, "drifted": what}))
    receipt = build(store, run)
    assert receipt.drifted == [{"kind": "drifted", "seq": 1, "tape_seq": 2, "what": what}]
    assert receipt.faithful is False
    assert exit_code(receipt) == 121


@pytest.mark.parametrize(
    ("what", "code"),
    [(KEY_ADDED, 0), ("carries no idempotency key, and was recorded with one", 121)],
)
async def test_an_effect_that_is_named_now_may_stand_before_the_point_of_a_branch(
    store: Store, what: str, code: int
) -> None:
    """It is the fix for a retry that paid twice; other differences there make the branch one of something else."""
    tape = await record(store, TAPE[1], TAPE[2])
    text = SERVED_ALL_THE_SAME.format(what)
    row = Divergence(DivergenceKind.DRIFTED, Seq(1), "POST", "https://a/", Seq(2), (), text)
    branch = {"at": 3, "changes": True, "live": [], "routes": [], "answers": []}
    run = await play(
        store,
        tape,
        Event(EventKind.NOTED, 3, {"branch": branch}),
        verdict(1, "served", TAPE[1]),
        Event(EventKind.DIVERGED, 3, {"seq": 1, "divergence": row.to_json()}),
        Event(EventKind.NOTED, 3, {"branched": [2, 3]}),
        verdict(2, "served", TAPE[2]),
    )
    receipt = build(store, run)
    assert exit_code(receipt) == code
    says = "a request before exchange 3 is not as it was recorded; it was served all the same"
    assert (says in explain_branch(receipt)) is bool(code)
