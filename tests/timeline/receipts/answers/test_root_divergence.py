"""Which divergence a receipt names as the root, and what is folded under it.

The tape: 1 and 2 reads of start-up, 3 a model call, 4 a read of a tool, 5 an effect, 6 a model call, 7 telemetry. A playback is a
list of words, one a request: `served N`, `changed N`, `unexpected N`, `exhausted N` (refused, nearest to tape seq N),
`discarded 7`. `changed N of M` says that the differing value came from the recorded answer to tape seq M; `changed N by S` that it
came from the answer given to seq S of the playback. `strayed N back B` is a message of the WebSocket that was opened B requests
before. `again` repeats the request before it, which is refused as it was.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import RunInfo, Store
from playhead.tape.exchange import Exchange, Fault, FaultKind, Phase, RedactedText, RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import NO_CLASSES, make_exchange, make_intent, make_record
from playhead.timeline import Receipt, build, exit_code, render_divergences, render_receipt

CHAT = "POST https://api.openai.com/v1/chat/completions"
TAPE = (
    make_exchange(1, "GET https://api.example.com/settings", kind=RequestClass.READ),
    make_exchange(2, "GET https://api.example.com/models", kind=RequestClass.READ),
    make_exchange(3, CHAT, kind=RequestClass.INFERENCE, body=b'{"n": 1}'),
    make_exchange(4, "GET https://docs.example.com/page", kind=RequestClass.READ),
    make_exchange(5, "POST https://pay.example.com/refunds", kind=RequestClass.EFFECT),
    make_exchange(6, CHAT, kind=RequestClass.INFERENCE, body=b'{"n": 2}'),
    make_exchange(7, "POST https://t.example.com/emit", kind=RequestClass.TELEMETRY),
)


@pytest.fixture
async def store(store_dir: Path) -> AsyncIterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


async def record(store: Store, *exchanges: Exchange, classes: bytes = NO_CLASSES) -> RunInfo:
    run = await store.runs.create("tape", mode="record", at_ns=1, classes=classes)
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=2)


async def play(store: Store, tape: RunInfo, *told: str) -> RunInfo:
    run = await store.runs.create(tape.id, mode="playback", at_ns=3, parent=tape)
    last = ""
    for seq, words in enumerate(told, 1):
        last = last if words == "again" else words
        for event in _events(seq, last.split()):
            store.events.append(run.number, event)
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=4)


def _events(seq: int, words: list[str]) -> list[Event]:
    what, number = words[0], int(words[1])
    differences: tuple[dict[str, str], ...] = ()
    if what == "strayed":
        what, seq = "changed", seq - int(words[-1])
        differences = ({"place": "message[4].$.x", "recorded": "1", "asked": "2"},)
    recorded = TAPE[number - 1]
    asked: dict[str, Any] = {
        "seq": seq,
        "method": recorded.request.method,
        "url": recorded.request.url,
        "request_class": recorded.request_class.value,
        "fingerprint": recorded.fingerprint if what == "served" else f"{words}".encode(),
        "key": None,
        "reason": "",
    }
    if what in ("served", "discarded"):
        more = {"tape_seq": number, "match": "exact"} if what == "served" else {}
        return [Event(EventKind.VERDICT, 3, {**asked, "verdict": what, **more})]
    origin = {"place": "body $.id", "replaced": False}
    cause: dict[str, Any] | None = None
    if "of" in words:
        came = {**origin, "seq": None, "tape_seq": int(words[-1])}
        cause = {"place": "body $.x", "recorded": came, "asked": None}
    elif "by" in words:
        came = {**origin, "seq": int(words[-1]), "tape_seq": None}
        cause = {"place": "body $.x", "recorded": None, "asked": came}
    divergence = {
        "kind": what,
        "seq": seq,
        "method": recorded.request.method,
        "url": recorded.request.url,
        "nearest_seq": number,
        "differences": differences,
        "cause": cause,
        "text": "",
    }
    return [
        Event(EventKind.VERDICT, 3, {**asked, "verdict": "refused"}),
        Event(EventKind.DIVERGED, 3, {"seq": seq, "divergence": divergence}),
    ]


async def receipt_of(store: Store, *told: str, tape: tuple[Exchange, ...] = TAPE) -> Receipt:
    return build(store, await play(store, await record(store, *tape), *told))


ROOTS = [
    # The first that touched inference, a tool or an effect.
    (("served 1", "served 2", "changed 3"), 3),
    (("served 1", "served 2", "served 3", "changed 4", "changed 6"), 4),
    (("served 1", "served 2", "served 3", "served 4", "changed 5", "changed 6"), 5),
    # A call of start-up comes before it, and nothing came from its answer.
    (("changed 1", "served 2", "changed 3"), 3),
    (("unexpected 1", "changed 2", "served 3", "served 4", "changed 5"), 5),
    # The differing value came from its answer: recorded, or as it was given now.
    (("changed 1", "served 2", "changed 3 of 1"), 1),
    (("served 1", "changed 2", "changed 3 of 2", "changed 6"), 2),
    (("changed 1", "served 2", "changed 3 by 1"), 1),
    # It came from the answer of another one, which was as recorded.
    (("changed 1", "served 2", "changed 3 of 2"), 3),
    # ... or from a call of a model or a tool.
    (("changed 1", "served 2", "served 3", "changed 4", "changed 6 of 4"), 4),
    (("changed 1", "served 2", "served 3", "served 4", "served 5", "changed 6 of 3"), 6),
    # One start-up call follows from another.
    (("changed 1", "changed 2 of 1", "changed 3 of 2"), 1),
    # Nothing but start-up calls: the first of them.
    (("unexpected 1", "changed 2"), 1),
    # Retries of it do not count; nor does telemetry, whatever became of it.
    (("changed 1", "again", "again", "served 2", "changed 3"), 5),
    (("discarded 7", "served 1", "served 2", "discarded 7", "changed 3"), 5),
    # A message of a WebSocket follows from what was asked after its handshake, and before it.
    (("served 1", "served 2", "served 3", "changed 4", "strayed 3 back 2"), 4),
    (("served 1", "served 2", "served 3", "served 4", "strayed 3 back 2", "changed 5"), 3),
    # Nothing was asked for any more once the agent had failed: that is no cause.
    (("served 1", "changed 2"), 2),
]


@pytest.mark.parametrize(("told", "seq"), ROOTS, ids=str)
async def test_the_root_is_the_first_that_touched_what_matters(
    store: Store, told: tuple[str, ...], seq: int
) -> None:
    """A model call, a tool or an effect, unless its value came from an answer of start-up."""
    receipt = await receipt_of(store, *told)
    assert receipt.root is not None
    assert receipt.root["seq"] == seq


async def test_the_root_of_a_run_without_models_is_the_first(store: Store) -> None:
    """Where no model is asked, a read is as much as a tool."""
    tape = (*TAPE[:2], TAPE[4])
    told = ("changed 1", "served 2", "changed 5")
    receipt = await receipt_of(store, *told, tape=tape)
    assert receipt.root is not None
    assert receipt.root["seq"] == 1


async def test_a_start_up_call_that_was_left_out_is_the_root_of_what_came_from_it(
    store: Store,
) -> None:
    """The value that is missing was in an answer that was not asked for."""
    receipt = await receipt_of(store, "served 2", "changed 3 of 1")
    assert receipt.root is not None
    assert (receipt.root["kind"], receipt.root["seq"]) == ("unused", 1)


async def test_what_is_left_out_is_a_root_by_what_it_was(store: Store) -> None:
    """Of several that nobody asked for, a call of a model, a tool or an effect goes first."""
    receipt = await receipt_of(store, "served 2", "served 3", "served 4", "served 6")
    assert receipt.root is not None
    assert (receipt.root["kind"], receipt.root["seq"]) == ("unused", 5)


async def test_start_up_calls_and_retries_are_folded_under_the_root(store: Store) -> None:
    """One line each in the text, one row each in the JSON; what else diverged is counted."""
    told = ("changed 1", "served 2", "changed 3", "again", "again", "changed 6", "again")
    receipt = await receipt_of(store, *told)
    document = receipt.to_json()
    assert document["root"]["seq"] == 3
    assert [(row["what"], row["seq"], row["count"]) for row in document["folded"]] == [
        ("start-up call", 1, 1),
        ("retries", 3, 2),
        ("retries", 6, 1),
    ]
    assert [row["seq"] for row in document["divergences"]] == [1, 3, 6]
    assert [(row["seq"], row["repeats"]) for row in document["refused"]] == [
        (1, 0),
        (3, 2),
        (6, 1),
    ]
    assert document["followed"]["by_kind"] == {"changed": 1, "unused": 5}
    assert document["counts"]["refused"] == 6
    text = render_receipt(receipt)
    assert f"2 retries of seq 3 {CHAT}" in text
    assert f"1 retry of seq 6 {CHAT}" in text
    assert "start-up call seq 1 GET https://api.example.com/settings (changed)" in text
    assert "followed by 6 more: 1 changed, 5 unused" in text
    assert render_divergences(receipt).count(CHAT) == 2
    assert exit_code(receipt) == 121


async def test_telemetry_is_one_line_with_a_count(store: Store) -> None:
    """However often it was sent, and whatever became of it: no effect, no divergence, no fault, no root."""
    told = [f"served {number}" for number in range(1, 8)] + ["discarded 7"] * 3
    receipt = await receipt_of(store, *told)
    assert receipt.faithful
    assert receipt.to_json()["telemetry"] == {
        "requests": 4,
        "recorded": 0,
        "served": 1,
        "live": 0,
        "discarded": 3,
        "refused": 0,
    }
    assert (receipt.effects == []) is False
    lines = render_receipt(receipt).splitlines()
    assert [line for line in lines if "elemetry" in line] == [
        "telemetry: 4 requests (1 from the tape, 3 discarded)"
    ]
    assert not any("t.example.com" in line for line in lines)


async def test_telemetry_that_fails_is_no_fault_of_a_recording(store: Store) -> None:
    """A collector that is down is counted, and not listed among what failed."""
    fault = Fault(FaultKind.REFUSED, Phase.CONNECT, RedactedText("connection refused"), 5)
    failed = make_exchange(
        8, "POST https://t.example.com/emit", kind=RequestClass.TELEMETRY, fault=fault
    )
    receipt = build(store, await record(store, *TAPE, failed))
    assert receipt.faults == []
    assert receipt.to_json()["telemetry"]["recorded"] == 2
    assert "telemetry: 2 requests" in render_receipt(receipt).splitlines()


async def test_what_is_telemetry_by_now_is_not_unused(store: Store) -> None:
    """A tape that an older version recorded as an effect: the table of now decides."""
    url = "POST https://api.anthropic.com/api/event_logging/v2/batch"
    old = make_exchange(8, url, kind=RequestClass.EFFECT)
    tape = await record(store, *TAPE, old, classes=b"")
    told = [f"served {number}" for number in range(1, 8)]
    receipt = build(store, await play(store, tape, *told))
    assert receipt.unused == []
    assert receipt.faithful
