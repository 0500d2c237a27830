"""The effect ledger: folded from the log, the same rows as in the receipt, with what a person needs to judge them."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.store import RunInfo, Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.story import Call, recorded
from playhead.timeline import build
from playhead.timeline.receipts.effects import MAX_BODY, Effect, effect_lines, effects_of

REFUND = {"charge": "ch_1007", "amount": 4900}
PAY = Call("POST /v1/refunds", REFUND, {"id": "re_1Qx8", **REFUND}, {"idempotency-key": "k-1"})
MAIL = Call("POST /v1/mails", {"to": "a@b.example"}, {"id": "m_1"})


def listed(store: Store, info: RunInfo) -> list[dict[str, Any]]:
    return [effect.to_json() for effect in effects_of(store, info)[0]]


async def test_each_effect_says_what_answered_it(tmp_path: Path) -> None:
    """While recording, from the tape, made up, and refused."""
    look = Call("GET /v1/refunds", None, "none")
    other = Call("POST /v1/refunds", {**REFUND, "amount": 7})
    async with recorded(tmp_path / "store", [look, PAY, MAIL]) as story:
        strange = Call("POST /v1/wires", {"iban": "DE00"})
        await story.play([look, PAY, other, strange])
        receipt = await story.end()
        store = story.running.store
        run = store.runs.get("tape@1")
        was, now = listed(store, store.runs.get("tape")), listed(store, run)
    assert [(row["seq"], row["by"], row["status"]) for row in was] == [
        (2, "upstream", 200),
        (3, "upstream", 200),
    ]
    assert [(row["seq"], row["by"], row["tape_seq"], row["status"]) for row in now] == [
        (2, "tape", 2, 200),
        (3, "synthetic", None, 200),
        (4, "refused", None, 424),
    ]
    # The whole body, and whether there is a key, never which.
    assert json.loads(now[0]["body"]) == REFUND
    assert json.loads(now[1]["body"])["amount"] == 7
    assert now[0]["idempotency_key"] == was[0]["idempotency_key"]
    assert len(now[0]["idempotency_key"]) == 16
    assert now[1]["idempotency_key"] is None
    # How it differs from the nearest on the tape.
    assert (now[1]["divergence"], now[1]["nearest_seq"], now[1]["after"]) == ("changed", 2, [2])
    assert now[1]["differences"] == [{"place": "body $.amount", "recorded": "4900", "asked": "7"}]
    assert (now[2]["divergence"], now[2]["nearest_seq"]) == ("changed", 3)
    # The receipt tells the same, in short.
    short = [effect.short() for effect in receipt.effects]
    assert short == [{name: row[name] for name in short[0]} for row in now]


async def test_the_command_prints_the_rows(tmp_path: Path) -> None:
    """As JSON and for people."""
    async with recorded(tmp_path / "store", [PAY, MAIL]) as story:
        await story.play([PAY, PAY])
        await story.end()
        run = story.running.store.runs.get("tape@1")
        rows = listed(story.running.store, run)
    flags = ["effects", "tape@1", "--store", str(tmp_path / "store")]
    printed = CliRunner().invoke(cli, [*flags, "--json"], standalone_mode=False)
    assert json.loads(printed.output) == rows
    shown = CliRunner().invoke(cli, flags, standalone_mode=False).output
    assert "seq 2  POST http://127.0.0.1:" in shown
    assert "SAFE RETRY OF SEQ 1" in shown
    assert "synthetic, after tape seq 1: 200" in shown
    assert "exhausted, nearest on the tape is seq 1" in shown


def test_effects_that_left_are_listed_by_what_let_them() -> None:
    """A crash point, a live rule or a sandbox; and those that did not leave."""
    behind = {"by": "live", "answered_by": "upstream, behind the crash point", "left": True}
    rows: list[dict[str, Any]] = [
        {"by": "sandboxed", "answered_by": "sandbox 127.0.0.1:9", "left": True},
        {"by": "live", "answered_by": "live rule", "left": True},
        {"by": "tape", "answered_by": "tape seq 4"},
        behind,
        {"by": "refused", "answered_by": "refused", "gate": {"ruling": "left"}},
        {"by": "refused", "answered_by": "refused", "gate": {"ruling": "denied"}},
    ]
    effects = [
        Effect(seq=seq, method="POST", url="http://a.test/", summary="", outcome="200", **row)
        for seq, row in enumerate(rows, 1)
    ]
    found = [line for line in effect_lines(effects, recording=False) if "127" not in line]
    shown = [line.split("  POST")[0] for line in found if "200" not in line]
    assert shown == [
        *("effects, executed behind the crash point:", "  seq 4"),
        *("effects, executed by a live rule:", "  seq 2"),
        *("effects, executed in a sandbox:", "  seq 1"),
        *("effects, answered instead of executed:", "  seq 3", "  seq 6"),
        *("effects, neither executed nor answered: the client had left:", "  seq 5"),
    ]


def test_a_run_without_effects_says_so(tmp_path: Path) -> None:
    """And prints a list in JSON all the same."""
    with Store.open(tmp_path) as store:
        record_run(store, "calm", [ask()])
    flags = ["effects", "calm", "--store", str(tmp_path)]
    assert "no effects" in CliRunner().invoke(cli, flags, standalone_mode=False).output
    printed = CliRunner().invoke(cli, [*flags, "--json"], standalone_mode=False)
    assert json.loads(printed.output) == []


def test_a_ledger_is_bounded(tmp_path: Path) -> None:
    """Rows and bodies; what is left out is counted."""
    with Store.open(tmp_path) as store:
        asked = [ask({"n": number, "text": "ü" * MAX_BODY}) for number in range(3)]
        info = record_run(store, "many", asked, kind=RequestClass.EFFECT)
        effects, omitted = effects_of(store, info, limit=2)
        rows = [effect.to_json() for effect in effects]
        receipt = build(store, info)
    assert (len(rows), omitted, len(receipt.effects)) == (2, 1, 3)
    assert all(row["body_cut"] and len(row["body"].encode()) <= MAX_BODY for row in rows)
    assert all(row["body_bytes"] > MAX_BODY for row in rows)


def test_a_row_is_made_of_json(tmp_path: Path) -> None:
    """Whatever the body is."""
    with Store.open(tmp_path) as store:
        info = record_run(store, "raw", [ask(b"\xff\x00")], kind=RequestClass.EFFECT)
        (row,) = listed(store, info)
    assert row["body_base64"] == "/wA="
    assert json.loads(json.dumps(row)) == row
    assert isinstance(Effect(1, "", "", "", "", "").to_json()["differences"], list)
