"""An effect that is not on the tape, answered after the pattern of the tape: marked, listed, and never faithful."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Answer, Config, EffectRule, Playback, parse_match
from playhead.tape.exchange import RunId, VerdictKind
from playhead.tests.support.story import Call, Said, recorded
from playhead.timeline.rules.policy_dry_run import dry_run_policy


def pay(charge: str, amount: int, number: str = "re_1Qx8") -> Call:
    answer = {"id": number, "charge": charge, "amount": amount, "status": "succeeded"}
    return Call("POST /v1/refunds", {"charge": charge, "amount": amount}, answer)


PAID = pay("ch_1007", 4900)
OTHER = pay("ch_2222", 100, "re_7Zk2")


def mark(said: Said) -> str:
    return said.headers.get("x-playhead", "")


@pytest.mark.parametrize("tape", [[PAID], [PAID, OTHER]], ids=["one answer", "two answers"])
async def test_an_effect_that_is_not_on_the_tape_is_answered_after_it(
    tmp_path: Path, tape: list[Call]
) -> None:
    """The agent can go on; the replay is not called faithful, and says what the answer was made after."""
    async with recorded(tmp_path / "store", tape) as story:
        await story.play(tape)
        asked = pay("ch_9", 7)
        one, again = await story.play([asked, asked])
        receipt = await story.end()
        run = story.running.store.runs.get("tape@1")
        (kept, _) = story.running.store.exchanges.all(run)
    assert (one.status, one.body) == (200, again.body)
    found = json.loads(one.body)
    assert (found["charge"], found["amount"], found["status"]) == ("ch_9", 7, "succeeded")
    assert found["id"].startswith("re_")
    assert found["id"] not in ("re_1Qx8", "re_7Zk2")
    seqs = "exchange 1 of" if len(tape) == 1 else "exchanges "
    assert mark(one).startswith(f"stubbed; synthetic, after {seqs}")
    assert kept.verdict is VerdictKind.STUBBED
    assert kept.response is not None
    assert kept.response.body == one.body
    # Counted as what it is.
    assert (receipt.counts["stubbed"], receipt.counts["served"]) == (2, len(tape))
    assert receipt.faithful is False
    assert receipt.to_json()["exit_code"] == 121
    assert receipt.root is not None
    assert receipt.root["kind"] == "changed"
    assert receipt.effects[-1].answered_by.startswith("synthetic, after tape seq ")


async def test_two_replays_make_up_the_same(tmp_path: Path) -> None:
    """Byte by byte."""
    bodies = []
    async with recorded(tmp_path / "store", [PAID]) as story:
        for _ in range(2):
            (said,) = await story.play([pay("ch_9", 7)])
            bodies.append(said)
            await story.end()
    assert bodies[0] == bodies[1]


async def test_an_effect_once_too_often_is_made_up_too(tmp_path: Path) -> None:
    """It is the same request, and another refund."""
    async with recorded(tmp_path / "store", [PAID]) as story:
        one, two = await story.play([PAID, PAID])
        receipt = await story.end()
    assert mark(one) == ""
    assert json.loads(one.body) == PAID.answer
    assert "synthetic" in mark(two)
    assert json.loads(two.body)["id"] != PAID.answer["id"]
    assert receipt.root is not None
    assert receipt.root["kind"] == "exhausted"


async def test_what_is_exhausted_is_answered_as_it_was_last(tmp_path: Path) -> None:
    """How things stood in the end, not in the beginning."""
    calls = [Call("POST /v1/jobs/7/poke", {}, {"state": state}) for state in ("new", "done")]
    async with recorded(tmp_path / "store", calls) as story:
        said = await story.play([*calls, calls[0]])
        await story.end()
    assert [json.loads(one.body)["state"] for one in said] == ["new", "done", "done"]


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        # Only where the configuration says stub.
        ({"playback": Playback(effects="refuse")}, pay("ch_9", 7)),
        ({"effects": (EffectRule(parse_match("POST *://*/v1/refunds"), on_miss="refuse"),)}, pay("ch_9", 7)),
        # Nothing of that shape was recorded.
        ({}, Call("POST /v1/mails", {"to": "x"})),
        ({}, Call("DELETE /v1/refunds", {"charge": "ch_9", "amount": 7})),
        ({}, Call("POST /v1/refunds", {"charge": "ch_9", "amount": 7}, host="localhost")),
        # What is no effect is never made up.
        ({}, Call("GET /v1/refunds")),
    ],
)  # fmt: skip
async def test_what_the_tape_has_no_pattern_for_is_refused(
    tmp_path: Path, config: dict[str, Any], asked: Call
) -> None:
    """As before."""
    async with recorded(tmp_path / "store", [PAID], **config) as story:
        (said,) = await story.play([asked])
        receipt = await story.end()
    assert said.status == 424
    assert mark(said).startswith("refused; ")
    assert receipt.counts["stubbed"] == 0


async def test_a_configured_answer_goes_first(tmp_path: Path) -> None:
    """A person has said what the answer is."""
    rule = EffectRule(parse_match("POST *://*/v1/refunds"), Answer(201, (), b"configured"))
    async with recorded(tmp_path / "store", [PAID], effects=(rule,)) as story:
        (said,) = await story.play([pay("ch_9", 7)])
        receipt = await story.end()
    assert (said.status, said.body) == (201, b"configured")
    assert mark(said).startswith("stubbed; not on tape; answered by effect rule")
    assert receipt.effects[-1].answered_by == "effect rule"


async def test_an_answer_that_was_made_up_is_no_pattern(tmp_path: Path) -> None:
    """Failures are none either: what did not work is not made to work."""
    failed = Call("POST /v1/refunds", {"charge": "ch_1", "amount": 1}, {"error": "no"}, status=402)
    async with recorded(tmp_path / "store", [failed]) as story:
        (said,) = await story.play([pay("ch_9", 7)])
        await story.end()
    assert said.status == 424


async def test_a_stub_is_judged_again_as_it_was(tmp_path: Path) -> None:
    """Under the same rules nothing changes; where it had been refused, the tape is asked again."""
    async with recorded(tmp_path / "store", [PAID]) as story:
        store, other = story.running.store, pay("ch_9", 7)
        await story.play([PAID, PAID, other])
        await story.end()
        story.running.change(playback=Playback(effects="refuse"))
        await story.play([PAID, PAID, other])
        await story.end()
        stub, refuse = Config(), Config(playback=Playback(effects="refuse"))
        found = {
            (name, config is stub): dry_run_policy(store, store.runs.get(RunId(name)), config)
            for name in ("tape@1", "tape@2")
            for config in (stub, refuse)
        }
    assert found["tape@1", True].changed == []
    assert found["tape@2", False].changed == []
    for name, by in (("tape@1", False), ("tape@2", True)):
        verdicts = [row.after.verdict for row in found[name, by].changed]
        assert verdicts == ["stubbed" if by else "refused"] * 2


async def test_the_nearest_of_a_changed_effect_is_one_that_was_not_served(tmp_path: Path) -> None:
    """The first was asked for as it was recorded, so it is the second that is another one now."""
    async with recorded(tmp_path / "store", [PAID, OTHER]) as story:
        await story.play([PAID, pay("ch_9", 7)])
        receipt = await story.end()
    assert receipt.root is not None
    assert receipt.root["nearest_seq"] == 2
    assert [one["seq"] for one in receipt.to_json()["unused"]] == [2]
