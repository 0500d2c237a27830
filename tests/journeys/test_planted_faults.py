"""Ten faults planted into an agent: each is told as what it is, at its place."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.story import Call, recorded
from playhead.timeline import Receipt, exit_code, render_receipt

ORDER, CHARGE, REFUND = "ord-8841029375", "ch_99300217453", "re_44100298331"
CHAT = "POST /v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "refund", "parameters": {"amount": "integer"}}}]


def _calls() -> list[Call]:
    """The agent: asks the model, looks up two things, asks again, refunds, asks a last time."""
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful agent."},
        {"role": "user", "content": "Refund my last order."},
    ]
    calls: list[Call] = []

    def ask(said: dict[str, Any]) -> None:
        body = {"model": "m-1", "temperature": 0.5, "tools": TOOLS, "messages": list(talk)}
        calls.append(Call(CHAT, body, {"choices": [{"message": said}]}))
        talk.append(said)

    def tool(number: int, content: str) -> None:
        talk.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})

    ask({"role": "assistant", "content": f"I look up {ORDER} and the rules."})
    calls.append(Call(f"GET /orders/{ORDER}", answer={"charge": CHARGE, "amount": 4900}))
    calls.append(Call("GET /rules/refunds", answer={"within": "30 days"}))
    tool(1, f"charge {CHARGE}")
    tool(2, "within 30 days")
    ask({"role": "assistant", "content": "It may be refunded."})
    calls.append(Call("POST /v1/refunds", {"charge": CHARGE, "amount": 4900}, {"id": REFUND}))
    tool(3, f"refund {REFUND}")
    ask({"role": "assistant", "content": "Done."})
    return calls


CALLS = _calls()


def _change(at: int, change: Callable[[Any], object]) -> list[Call]:
    """Change the body of one call."""
    calls = list(CALLS)
    body = copy.deepcopy(calls[at - 1].body)
    change(body)
    calls[at - 1] = replace(calls[at - 1], body=body)
    return calls


def _swap_results(body: dict[str, Any]) -> None:
    messages = body["messages"]
    messages[3], messages[4] = messages[4], messages[3]


@dataclass(frozen=True)
class Fault:
    """What was planted, and what the receipt has to say."""

    calls: list[Call]
    kind: str
    seq: int
    place: str | None = None
    """First differing place; of a reordered request, where its value stands."""
    near: int | None = None
    code: int = 121


FAULTS = {
    "changed prompt": Fault(
        _change(1, lambda body: body["messages"][1].update(content="Refund all my orders.")),
        "changed",
        1,
        "body $.messages[1].content",
        1,
    ),
    "changed tool schema": Fault(
        _change(1, lambda body: body["tools"][0]["function"]["parameters"].update(amount="number")),
        "drifted",
        1,
        "body $.tools[0].function.parameters.amount",
        1,
    ),
    "other model": Fault(
        _change(1, lambda body: body.update(model="m-2")), "drifted", 1, "body $.model", 1
    ),
    "other temperature": Fault(
        _change(1, lambda body: body.update(temperature=0.9)),
        "drifted",
        1,
        "body $.temperature",
        1,
    ),
    "reordered dependent calls": Fault(
        [*CALLS[:1], CALLS[4], *CALLS[1:4], CALLS[5]], "reordered", 2, "body $.charge", 5
    ),
    "dropped call": Fault([*CALLS[:2], *CALLS[3:]], "unused", 3, None, 3, 122),
    "extra call, never recorded": Fault(
        [*CALLS[:2], Call("DELETE /orders"), *CALLS[2:]], "unexpected", 3
    ),
    "extra call, once too often": Fault(
        [*CALLS[:2], CALLS[1], *CALLS[2:]], "exhausted", 3, None, 2
    ),
    "changed order of tool results": Fault(
        _change(4, _swap_results), "changed", 4, "body $.messages[3].tool_call_id", 4
    ),
    "changed host": Fault(
        [*CALLS[:1], replace(CALLS[1], host="localhost"), *CALLS[2:]], "changed", 2, "host", 2
    ),
    "truncated history": Fault(
        _change(6, lambda body: body["messages"].__delitem__(slice(1, 4))),
        "changed",
        6,
        "body $.messages[1]",
        6,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_planted_fault_is_told_as_what_it_is(name: str, store_dir: Path) -> None:
    """Its kind, the seq at which it happened, and its place, in the refusal and in the receipt."""
    fault = FAULTS[name]
    async with recorded(store_dir, CALLS) as story:
        said = await story.play(fault.calls)
        receipt = await story.end()
    root = json.loads(json.dumps(receipt.to_json()["root"]))
    assert (root["kind"], root["seq"], root["nearest_seq"]) == (fault.kind, fault.seq, fault.near)
    assert _place(root) == fault.place
    assert exit_code(receipt) == fault.code
    if fault.kind != "unused":
        assert said[fault.seq - 1].divergence == root
        assert [one.status for one in said[: fault.seq - 1]] == [200] * (fault.seq - 1)
    _check_text(receipt, fault)


async def test_what_an_sdk_sends_on_its_own_is_never_what_was_meant(store_dir: Path) -> None:
    """It is on the tape, at the same host, and the only thing there; the agent's request is new all the same."""
    spans = Call("POST /opentelemetry.proto.collector.trace.v1.TraceService/Export", {"a": 1})
    async with recorded(store_dir, [spans]) as story:
        (said,) = await story.play([Call("POST /orders", {"a": 2})])
        receipt = await story.end()
    assert (said.divergence["kind"], said.divergence["nearest_seq"]) == ("unexpected", None)
    assert receipt.counts["unused"] == 0


async def test_what_follows_from_a_fault_is_counted(store_dir: Path) -> None:
    """A prompt that changed changes every later request; one is told, the rest is a number."""
    calls = [
        replace(call, body=call.body | {"system": "other"}) if call.what == CHAT else call
        for call in CALLS
    ]
    async with recorded(store_dir, CALLS) as story:
        await story.play(calls)
        receipt = await story.end()
    told = receipt.to_json()
    assert told["root"]["seq"] == 1
    # What the model and the order said was never given, so what stood in it cannot be known.
    assert told["followed"] == {"count": 9, "by_kind": {"changed": 2, "reordered": 2, "unused": 5}}
    assert [one["seq"] for one in told["divergences"]] == [1, 2, 4, 5, 6]


def _place(root: Any) -> str | None:
    if root["needs"]:
        return str(root["needs"]["place"])
    return str(root["differences"][0]["place"]) if root["differences"] else None


def _check_text(receipt: Receipt, fault: Fault) -> None:
    text = render_receipt(receipt)
    assert f"seq {fault.seq}" in text
    if fault.place is not None:
        assert fault.place in text
