"""Playing in another order than recorded: free, except before what a request depends on."""

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Classes, Config, LiveRule, Mode, ModelDrift, Playback, parse_match
from playhead.store import Store
from playhead.tape.exchange import Chunk, RequestClass
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import running_engine
from playhead.tests.support.exchanges import make_request, make_response
from playhead.tests.support.recordings import record_run
from playhead.tests.support.story import Call, recorded
from playhead.timeline import build

ORDER, CHARGE = "ord-8841029375", "ch_99300217453"
LOOK_UP = Call("GET /orders?limit=1", answer={"orders": [{"id": ORDER}]})
CHAT = "POST /v1/chat/completions"


def chat(content: str, answer: str) -> Call:
    """A call of a model."""
    said = {"object": "chat.completion", "choices": [{"message": {"content": answer}}]}
    return Call(CHAT, {"model": "m", "messages": [{"content": content}]}, said)


PLACES = [
    (Call(f"GET /orders/{ORDER}"), "path"),
    (Call(f"GET /items?order={ORDER}"), "query order"),
    (Call("GET /items", headers={"X-Order": ORDER}), "header x-order"),
    (Call("POST /items", {"a": [{"order": ORDER}]}), "body $.a[0].order"),
    (chat(f"I found order {ORDER} for you", "good"), "body $.messages[0].content"),
    (
        Call(
            "POST /items",
            f"a=1&order={ORDER}".encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        ),
        "form order",
    ),
]


@pytest.mark.parametrize(("call", "place"), PLACES)
async def test_a_request_before_the_answer_it_depends_on_is_refused(
    call: Call, place: str, store_dir: Path
) -> None:
    """It is on the tape, but a value in it was first seen in an answer that has not been given."""
    async with recorded(store_dir, [LOOK_UP, call]) as story:
        (said,) = await story.play([call])
        assert said.status == 424
        assert said.divergence["kind"] == "reordered"
        assert said.divergence["seq"] == 1
        assert said.divergence["nearest_seq"] == 2
        assert said.divergence["needs"] == {
            "tape_seq": 1,
            "place": place,
            "source": "body $.orders[0].id",
            "value": ORDER,
        }
        # Once the answer has been given it is served.
        assert [one.status for one in await story.play([LOOK_UP, call])] == [200, 200]
        receipt = await story.end()
    assert [one["kind"] for one in receipt.divergences] == ["reordered"]
    assert receipt.counts["unused"] == 0


@pytest.mark.parametrize("asks_a_model", [False, True])
async def test_messages_to_people_have_their_order_and_model_calls_have_none(
    asks_a_model: bool, store_dir: Path
) -> None:
    """WhatsApp takes messages at a path at which models are asked, too: the bodies tell them apart."""
    model = {"model": "m", "messages": []} if asks_a_model else {}
    one, other = (Call("POST /v1/messages", {"to": to, **model}) for to in ("49151", "49152"))
    async with recorded(store_dir, [one, other]) as story:
        assert [said.status for said in await story.play([other, one])] == [200, 200]
        receipt = await story.end()
    kinds = [] if asks_a_model else ["reordered"]
    assert [row["kind"] for row in receipt.divergences] == kinds
    assert len(receipt.effects) == (0 if asks_a_model else 2)


async def test_a_tape_that_took_messages_for_model_calls_is_played(store_dir: Path) -> None:
    """What they are goes by the table of now: their order counts, and each gets its answer."""
    one, other = (Call("POST /v1/messages", {"to": to}, f"to {to}") for to in ("49151", "49152"))
    then = Classes(inference=(parse_match("POST *://*/v1/messages"),))
    async with recorded(store_dir, [one, other], {"classes": then}, classes=Classes()) as story:
        said = await story.play([other, one])
        receipt = await story.end()
    assert [one.body for one in said] == [b"to 49152", b"to 49151"]
    assert [row["kind"] for row in receipt.divergences] == ["reordered"]


FREE: list[tuple[str, Call, Call]] = [
    ("nothing in common", Call("GET /a", answer="yes"), Call("GET /b", answer="no")),
    ("short", Call("GET /a", answer={"id": "ord-8841"}), Call("GET /b?id=ord-8841")),
    (
        "asked before it was answered",
        Call(f"GET /a?id={ORDER}", answer={"id": ORDER}),
        Call(f"GET /b?id={ORDER}"),
    ),
    ("words", chat("one", "concerning authentication"), chat("two, authentication", "fine")),
    (
        "the time of day",
        Call("GET /a", answer={"at": "2026-11-22T06:15:00Z"}),
        Call("GET /b?at=2026-11-22T06:15:00Z"),
    ),
    ("what all requests carry", chat("one", "yes"), chat("two", "yes")),
]


@pytest.mark.parametrize(("first", "second"), [row[1:] for row in FREE], ids=[r[0] for r in FREE])
async def test_order_is_free_where_no_value_was_first_seen_in_an_answer(
    first: Call, second: Call, store_dir: Path
) -> None:
    """Then the second is served before the first, and the run is faithful."""
    async with recorded(store_dir, [first, second]) as story:
        said = await story.play([second, first])
        receipt = await story.end()
    assert [one.status for one in said] == [200, 200]
    assert receipt.faithful is True, receipt.to_json()


async def test_a_value_that_came_from_another_answer_needs_no_first_one(store_dir: Path) -> None:
    """Two answers hold it: with one of them the agent has it."""
    other = Call("GET /search", answer={"hits": [ORDER]})
    call = Call(f"GET /orders/{ORDER}")
    async with recorded(store_dir, [LOOK_UP, other, call]) as story:
        said = await story.play([other, call, LOOK_UP])
        receipt = await story.end()
    assert [one.status for one in said] == [200, 200, 200]
    assert receipt.faithful is True, receipt.to_json()


async def test_a_value_that_the_agent_made_itself_needs_no_answer(store_dir: Path) -> None:
    """A stream that was opened first said it after it had been sent: whoever sends it again has it."""
    said = make_response(ORDER.encode(), chunks=(Chunk(2000, len(ORDER), after=2),))
    events, made, used = (
        replace(make_request(what, body), headers=())
        for what, body in (
            ("GET http://api.test/events", b""),
            ("POST http://api.test/items", ORDER.encode()),
            (f"GET http://api.test/items/{ORDER}", b""),
        )
    )
    tape = [(events, said), (made, make_response()), (used, make_response())]
    with Store.open(store_dir) as store:
        record_run(store, "tape", tape, kind=RequestClass.READ)
    async with running_engine(Config(mode=Mode.PLAYBACK, store=store_dir)) as running:
        connection = await Connection.open(str(running.address))
        for request in (made, used, events):
            answer = await connection.ask(request.url, body=request.body, credentials="tape:x")
            assert answer.status == 200, answer.body
        connection.writer.close()
        await running.end("tape@1")
        receipt = build(running.store, running.store.runs.get("tape@1"))
    assert receipt.faithful is True, receipt.to_json()


async def test_what_a_live_rule_sends_out_is_waited_for_by_nobody(store_dir: Path) -> None:
    """Its answer is not the recorded one, whatever it holds."""
    call = Call(f"GET /orders/{ORDER}")
    live = LiveRule(parse_match("GET http://127.0.0.1:*/orders?*"), "a test")
    async with recorded(store_dir, [LOOK_UP, call], live=(live,)) as story:
        (said,) = await story.play([call])
    assert said.status == 200


async def test_a_stream_is_read_as_what_it_spells(store_dir: Path) -> None:
    """A value that a model says in pieces is one value, in arguments of a tool call too."""
    pieces = ['{"order": "ord-', "8841", '029375"}']
    events = [
        {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": piece}}]}}]}
        for piece in pieces
    ]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    model = Call(CHAT, {"stream": True}, text, answer_headers={"Content-Type": "text/event-stream"})
    call = Call(f"GET /orders/{ORDER}")
    async with recorded(store_dir, [model, call]) as story:
        (said,) = await story.play([call])
    assert said.divergence["kind"] == "reordered"
    assert said.divergence["needs"]["source"] == (
        "body $.choices[0].delta.tool_calls[0].function.arguments"
    )


async def test_a_drifted_call_is_served_in_its_turn_alone(store_dir: Path) -> None:
    """Its model may differ because somebody said so; what it depends on has to have been answered even so."""
    call = chat(f"I found order {ORDER} for you", "good")
    drifted = replace(call, body={**call.body, "model": "m-2"})
    allowed = Playback(allow_model_drift=(ModelDrift("m", "m-2"),))
    async with recorded(store_dir, [LOOK_UP, call], playback=allowed) as story:
        (said,) = await story.play([drifted])
        assert said.status == 424
        assert said.divergence["kind"] == "reordered"
        assert said.divergence["nearest_seq"] == 2
        assert said.divergence["needs"]["tape_seq"] == 1
        assert said.divergence["needs"]["place"] == "body $.messages[0].content"
        assert [one.status for one in await story.play([LOOK_UP, drifted])] == [200, 200]
        receipt = await story.end()
    assert [one["kind"] for one in receipt.divergences] == ["reordered"]
    assert receipt.matched == {"exact": 1, "drifted": 1}
    assert receipt.counts["unused"] == 0


async def test_a_drifted_call_that_depends_on_nothing_may_come_first(store_dir: Path) -> None:
    """Order between different requests is free for it, too."""
    call = chat("tell me more", "good")
    drifted = replace(call, body={**call.body, "model": "m-2"})
    allowed = Playback(allow_model_drift=(ModelDrift("m", "m-2"),))
    async with recorded(store_dir, [LOOK_UP, call], playback=allowed) as story:
        assert [one.status for one in await story.play([drifted, LOOK_UP])] == [200, 200]


async def test_a_redacted_value_makes_nothing_depend(store_dir: Path) -> None:
    """It counts by its kind alone, so its place is not looked at."""
    login = Call("GET /login", answer={"token": CHARGE})
    call = Call("GET /me", headers={"Authorization": f"Bearer {CHARGE}"})
    async with recorded(store_dir, [login, call]) as story:
        (said,) = await story.play([call])
    assert said.status == 200


async def test_parallel_calls_are_faithful_in_any_order(store_dir: Path) -> None:
    """Eight at a time, shuffled, each with values of its own that return in its answer."""
    rng = random.Random(7)
    calls = []
    for number in range(32):
        own = f"item-{number:012d}"
        answer: dict[str, Any] = {
            "object": "chat.completion",
            "id": f"chatcmpl-{number:09d}",
            "of": own,
        }
        calls.append(Call(CHAT, {"model": "m", "system": "be kind to people", "user": own}, answer))
    async with recorded(store_dir, calls) as story:
        for _ in range(2):
            for at in range(0, len(calls), 8):
                batch = rng.sample(calls[at : at + 8], 8)
                said = await asyncio.gather(*(story.ask(call) for call in batch))
                assert {one.status for one in said} == {200}
            receipt = await story.end()
            assert receipt.faithful is True, receipt.to_json()
