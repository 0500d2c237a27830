"""A changed request says which answers its values came from."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Answer, EffectRule, Playback, parse_match
from playhead.tests.support.process import playhead
from playhead.tests.support.story import Call, Said, recorded
from playhead.timeline import render_divergences, render_receipt

REFUSE = Playback(effects="refuse")
"""So that an effect shows how it diverged in its answer."""

FIRST, SECOND = "ord-8841029375", "ord-7730018264"
LIST = Call("GET /orders", answer={"orders": [{"id": FIRST, "of": "cust-1"}, {"id": SECOND}]})
OTHER = Call("GET /other", answer={"nothing": "of interest"})
SECRET = "sk-live-0123456789abcdef0123456789abcdef"


def order(order_id: str) -> Call:
    """An effect on an order."""
    return Call("POST /v1/cancel", {"order": order_id, "why": "asked to"})


async def test_a_value_is_traced_to_the_answers_it_stood_in(store_dir: Path) -> None:
    """The recorded one to the tape, the asked one to what this playback was given, at another seq."""
    async with recorded(store_dir, [LIST, OTHER, order(FIRST)], playback=REFUSE) as story:
        *_, said = await story.play([OTHER, LIST, order(SECOND)])
        receipt = await story.end()
    told = said.divergence
    assert told["kind"] == "changed"
    assert told["differences"][0]["place"] == "body $.order"
    assert told["cause"] == {
        "place": "body $.order",
        "recorded": {"seq": 2, "tape_seq": 1, "place": "body $.orders[0].id"},
        "asked": {"seq": 2, "tape_seq": 1, "place": "body $.orders[1].id"},
    }
    assert told["rule"] is None  # a value that an answer has brought is no noise
    assert told["note"] is None
    text = render_receipt(receipt)
    assert "the asked value came from body $.orders[1].id of the answer to seq 1" in text
    assert "body $.order" in render_divergences(receipt)
    listed = playhead("receipt", "tape@1", "--all", "--store", store_dir)
    assert listed.stdout.rstrip().endswith(render_divergences(receipt))


async def test_a_part_of_a_longer_text_is_traced(store_dir: Path) -> None:
    """A sentence that holds an id is no answer's; the id in it is."""
    chat = "POST /v1/chat/completions"
    calls = [
        Call(chat, {"messages": [{"role": "tool", "content": f"The order is {one}, new."}]})
        for one in (FIRST, SECOND)
    ]
    async with recorded(store_dir, [LIST, calls[0]], playback=REFUSE) as story:
        _, said = await story.play([LIST, calls[1]])
    cause = said.divergence["cause"]
    assert cause["asked"] == {"seq": 1, "tape_seq": 1, "place": "body $.orders[1].id"}
    assert cause["recorded"]["place"] == "body $.orders[0].id"
    assert said.divergence["note"] is None


SHORT: list[tuple[Any, bool]] = [
    ({"a": "cust-2", "b": "cust-3"}, True),
    ({"a": "the cust-2 of it"}, False),
    ([{"a": "cust-2"}], True),
]


@pytest.mark.parametrize(("answer", "found"), SHORT)
async def test_a_short_value_is_traced_only_as_a_whole(
    answer: Any, found: bool, store_dir: Path
) -> None:
    """Six characters are enough where a document says just that."""
    first = Call("GET /customers", answer=answer)
    calls = [Call("POST /v1/mail", {"to": one}) for one in ("cust-1", "cust-2")]
    async with recorded(store_dir, [first, calls[0]], playback=REFUSE) as story:
        _, said = await story.play([first, calls[1]])
    cause = said.divergence["cause"]
    assert (cause is not None and cause["asked"] is not None) is found


async def test_a_short_value_of_two_answers_is_of_neither(store_dir: Path) -> None:
    """Either may be meant."""
    firsts = [Call(f"GET /customers/{n}", answer={"a": "cust-2"}) for n in "12"]
    calls = [Call("POST /v1/mail", {"to": one}) for one in ("cust-1", "cust-2")]
    async with recorded(store_dir, [*firsts, calls[0]], playback=REFUSE) as story:
        *_, said = await story.play([*firsts, calls[1]])
    assert said.divergence["cause"] is None


async def test_a_value_from_a_stub_is_traced_to_it(store_dir: Path) -> None:
    """It is not on the tape, so it has no seq there."""
    stub = Answer(201, (), json.dumps({"id": SECOND}).encode())
    rule = EffectRule(parse_match("POST http://127.0.0.1:*/v1/orders"), stub, on_miss="stub")
    new = Call("POST /v1/orders", {"item": 2})
    async with recorded(store_dir, [LIST, order(FIRST)], playback=REFUSE, effects=(rule,)) as story:
        _, made, said = await story.play([OTHER, new, order(SECOND)])
    assert made.status == 201
    assert said.divergence["cause"]["asked"] == {"seq": 2, "tape_seq": None, "place": "body $.id"}


async def test_a_value_from_nowhere_has_no_cause(store_dir: Path) -> None:
    """Nothing is made up."""
    async with recorded(store_dir, [OTHER, order(FIRST)], playback=REFUSE) as story:
        _, said = await story.play([OTHER, order("ord-0000000001")])
    assert said.divergence["cause"] is None


async def test_no_secret_is_told(store_dir: Path) -> None:
    """Neither in a field nor in a query, nor through where it came from."""
    key = Call("GET /keys", answer={"other": "nothing"})
    call = Call(
        f"GET /things?api_key={SECRET}&page=1",
        headers={"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET, "Cookie": f"a={SECRET}"},
    )
    changed = replace(call, what=call.what.replace("page=1", "page=2"))
    gone = replace(call, what="GET /things?page=3")
    async with recorded(store_dir, [key, call]) as story:
        said: list[Said] = await story.play([key, changed, gone])
        receipt = await story.end()
    assert [one.divergence["differences"][0]["place"] for one in said[1:]] == [
        "query page",
        "query api_key",
    ]
    everything = json.dumps(receipt.to_json()) + render_receipt(receipt) + str(said)
    assert SECRET not in everything
    assert len(said[1].divergence["url"]) <= 200
