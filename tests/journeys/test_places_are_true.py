"""Every place that a comparison names is in the body of each run, with the value that is shown; and every planted difference is named.

The conversations are made anew for each run: its own ids of tool calls, answers and refunds. Then one run is changed at known places,
in its earlier messages, its settings or its last answer.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.diff.divergence_types import ABSENT
from playhead.tape.exchange import (
    Exchange,
    Message,
    MessageKind,
    Request,
    RequestClass,
    Response,
    WebSocketSummary,
)
from playhead.tests.support.agent_tapes import Tape, anthropic_stream
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request, make_response, make_stream
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.diff.compare_trees import Place
from playhead.timeline.diff.differing_json_paths import find_places
from playhead.timeline.diff.row import Change

LONG = "Please look at it once more and say what you find, one thing after the other. " * 4
WORDS = ("mug", "cup", "bowl", "plate", "spoon", "fork", "knife", "glass")


@dataclass
class Talk:
    """A conversation, whatever the API."""

    turns: list[dict[str, Any]]
    system: str = "You serve the shop."
    tools: list[str] = field(default_factory=lambda: ["look up an order", "refund a charge"])
    limit: int = 1000
    said: str = ""
    thought: str = "I know what to say."
    call: str | None = None
    finish: str = "end"


def draw_id(rng: random.Random, prefix: str) -> str:
    return f"{prefix}_{rng.randrange(10)}{rng.randbytes(8).hex()}"


def talk(rng: random.Random, turns: int) -> Talk:
    """Make a conversation whose words are the same each time and whose ids are not."""
    found: list[dict[str, Any]] = []
    refund = ""
    for turn in range(turns):
        id, refund = draw_id(rng, "call"), draw_id(rng, "re")
        found += [
            {"role": "user", "text": f"Question {turn}: what about the {WORDS[turn]}? {LONG}"},
            {"role": "call", "id": id, "text": f"I look at {turn}.", "order": f"ord {turn}"},
            {"role": "result", "id": id, "refund": refund, "note": f"{LONG} The {WORDS[turn]}."},
        ]
    return Talk(found, said=f"The refund {refund} of the {WORDS[turns]} is done. {LONG} It is 40.")


# The APIs


def anthropic_messages(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for turn in turns:
        match turn["role"]:
            case "user" | "assistant":
                found.append({"role": turn["role"], "content": turn["text"]})
            case "call":
                use = {"type": "tool_use", "id": turn["id"], "name": "look"}
                content = [
                    {"type": "text", "text": turn["text"]},
                    {**use, "input": {"order": turn["order"]}},
                ]
                found.append({"role": "assistant", "content": content})
            case _:
                given = json.dumps({"id": turn["refund"], "note": turn["note"]})
                result = {"type": "tool_result", "tool_use_id": turn["id"], "content": given}
                found.append({"role": "user", "content": [result]})
    return found


def ask_anthropic(one: Talk, turns: list[dict[str, Any]]) -> Request:
    tools = [
        {"name": f"t{at}", "description": said, "input_schema": {"type": "object"}}
        for at, said in enumerate(one.tools)
    ]
    body = {
        "model": "claude-opus-4-5",
        "system": one.system,
        "tools": tools,
        "max_tokens": one.limit,
    }
    return make_request(
        "https://api.anthropic.com/v1/messages",
        {**body, "messages": anthropic_messages(turns)},
        {"anthropic-version": "2023-06-01"},
    )


def answer_anthropic(one: Talk, rng: random.Random, *, is_stream: bool) -> Response:
    message: dict[str, Any] = {
        "id": draw_id(rng, "msg"),
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
    }
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": one.thought, "signature": rng.randbytes(30).hex()},
        {"type": "text", "text": one.said},
    ]
    if one.call is not None:
        blocks.append(
            {
                "type": "tool_use",
                "id": draw_id(rng, "call"),
                "name": "look",
                "input": {"order": one.call, "note": LONG},
            }
        )
    stop = {"end": "end_turn", "length": "max_tokens"}[one.finish]
    usage = {"input_tokens": rng.randrange(99), "output_tokens": rng.randrange(99)}
    if not is_stream:
        return make_response({**message, "content": blocks, "stop_reason": stop, "usage": usage})
    return anthropic_stream(*blocks, stop=stop, id=message["id"], usage=usage)


def ask_chat(one: Talk, turns: list[dict[str, Any]]) -> Request:
    messages: list[dict[str, Any]] = [{"role": "system", "content": one.system}]
    for turn in turns:
        match turn["role"]:
            case "user" | "assistant":
                messages.append({"role": turn["role"], "content": turn["text"]})
            case "call":
                function = {"name": "look", "arguments": json.dumps({"order": turn["order"]})}
                calls = [{"id": turn["id"], "type": "function", "function": function}]
                messages.append({"role": "assistant", "content": turn["text"], "tool_calls": calls})
            case _:
                given = json.dumps({"id": turn["refund"], "note": turn["note"]})
                messages.append({"role": "tool", "tool_call_id": turn["id"], "content": given})
    tools = [
        {"type": "function", "function": {"name": f"t{at}", "description": said}}
        for at, said in enumerate(one.tools)
    ]
    body = {"model": "gpt-5.1", "messages": messages, "tools": tools, "max_tokens": one.limit}
    return make_request("https://api.openai.com/v1/chat/completions", body)


def answer_chat(one: Talk, rng: random.Random, *, is_stream: bool) -> Response:
    message: dict[str, Any] = {"role": "assistant", "content": one.said}
    if one.call is not None:
        arguments = json.dumps({"order": one.call, "note": LONG})
        function = {"name": "look", "arguments": arguments}
        message["tool_calls"] = [
            {"id": draw_id(rng, "call"), "type": "function", "function": function}
        ]
    finish = {"end": "stop", "length": "length"}[one.finish]
    head = {"id": draw_id(rng, "chatcmpl"), "model": "gpt-5.1"}
    if not is_stream:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return make_response(
            {**head, "choices": [choice], "usage": {"total_tokens": rng.randrange(99)}}
        )
    calls = [{**call, "index": at} for at, call in enumerate(message.get("tool_calls", ()))]
    delta = {**message, "tool_calls": calls} if calls else message
    chunks: list[dict[str, Any]] = [
        {"delta": delta, "finish_reason": None},
        {"delta": {}, "finish_reason": finish},
    ]
    return make_stream(*({**head, "choices": [{"index": 0, **one}]} for one in chunks), done=True)


def responses_body(one: Talk, turns: list[dict[str, Any]]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        match turn["role"]:
            case "user" | "assistant":
                items.append({"role": turn["role"], "content": turn["text"]})
            case "call":
                items.append(
                    {
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": turn["text"]}],
                    }
                )
                arguments = json.dumps({"order": turn["order"]})
                items.append(
                    {
                        "type": "function_call",
                        "call_id": turn["id"],
                        "name": "look",
                        "arguments": arguments,
                    }
                )
            case _:
                given = json.dumps({"id": turn["refund"], "note": turn["note"]})
                items.append(
                    {"type": "function_call_output", "call_id": turn["id"], "output": given}
                )
    tools = [
        {"type": "function", "name": f"t{at}", "description": said}
        for at, said in enumerate(one.tools)
    ]
    return {
        "model": "gpt-5.1",
        "instructions": one.system,
        "input": items,
        "tools": tools,
        "max_output_tokens": one.limit,
    }


def ask_responses(one: Talk, turns: list[dict[str, Any]]) -> Request:
    return make_request("https://api.openai.com/v1/responses", responses_body(one, turns))


def response_object(one: Talk, rng: random.Random) -> dict[str, Any]:
    part = {"type": "output_text", "text": one.said, "annotations": []}
    output: list[dict[str, Any]] = [
        {
            "type": "reasoning",
            "id": draw_id(rng, "rs"),
            "summary": [{"type": "summary_text", "text": one.thought}],
            "encrypted_content": rng.randbytes(20).hex(),
        },
        {
            "type": "message",
            "id": draw_id(rng, "msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        },
    ]
    if one.call is not None:
        arguments = json.dumps({"order": one.call, "note": LONG})
        output.append(
            {
                "type": "function_call",
                "id": draw_id(rng, "fc"),
                "call_id": draw_id(rng, "call"),
                "name": "look",
                "arguments": arguments,
                "status": "completed",
            }
        )
    ends = {"end": ("completed", None), "length": ("incomplete", {"reason": "max_output_tokens"})}
    status, details = ends[one.finish]
    return {
        "id": draw_id(rng, "resp"),
        "object": "response",
        "status": status,
        "incomplete_details": details,
        "model": "gpt-5.1",
        "output": output,
    }


def response_events(one: Talk, rng: random.Random) -> list[dict[str, Any]]:
    whole = response_object(one, rng)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for at, item in enumerate(whole["output"]):
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    return [*events, {"type": f"response.{whole['status']}", "response": whole}]


def answer_responses(one: Talk, rng: random.Random, *, is_stream: bool) -> Response:
    if is_stream:
        return make_stream(*response_events(one, rng), named=True)
    return make_response(response_object(one, rng))


def ask_gemini(one: Talk, turns: list[dict[str, Any]]) -> Request:
    contents: list[dict[str, Any]] = []
    for turn in turns:
        match turn["role"]:
            case "user" | "assistant":
                role = "user" if turn["role"] == "user" else "model"
                contents.append({"role": role, "parts": [{"text": turn["text"]}]})
            case "call":
                call = {"functionCall": {"name": "look", "args": {"order": turn["order"]}}}
                contents.append({"role": "model", "parts": [{"text": turn["text"]}, call]})
            case _:
                given = {"id": turn["refund"], "note": turn["note"]}
                contents.append(
                    {
                        "role": "user",
                        "parts": [{"functionResponse": {"name": "look", "response": given}}],
                    }
                )
    tools = [
        {
            "functionDeclarations": [
                {"name": f"t{at}", "description": said} for at, said in enumerate(one.tools)
            ]
        }
    ]
    body = {
        "contents": contents,
        "tools": tools,
        "systemInstruction": {"parts": [{"text": one.system}]},
        "generationConfig": {"maxOutputTokens": one.limit},
    }
    return make_request(
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
        body,
    )


def answer_gemini(one: Talk, rng: random.Random, *, is_stream: bool) -> Response:
    parts: list[dict[str, Any]] = [
        {"text": one.thought, "thought": True},
        {"text": one.said, "thoughtSignature": rng.randbytes(20).hex()},
    ]
    if one.call is not None:
        parts.append({"functionCall": {"name": "look", "args": {"order": one.call, "note": LONG}}})
    finish = {"end": "STOP", "length": "MAX_TOKENS"}[one.finish]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    whole = {
        "candidates": [candidate],
        "responseId": draw_id(rng, "gr"),
        "usageMetadata": {"totalTokenCount": rng.randrange(99)},
    }
    return make_stream(whole) if is_stream else make_response(whole)


@dataclass(frozen=True)
class Api:
    """How a conversation is asked and answered."""

    ask: Callable[[Talk, list[dict[str, Any]]], Request]
    answer: Callable[..., Response]
    paths: dict[str, str]
    """Where settings are."""
    thinks: bool = True
    is_websocket: bool = False


APIS = {
    "anthropic": Api(
        ask_anthropic,
        answer_anthropic,
        {"system": "$.system", "tools": "$.tools", "limit": "$.max_tokens"},
    ),
    "chat": Api(
        ask_chat,
        answer_chat,
        {"system": "$.messages[0].content", "tools": "$.tools", "limit": "$.max_tokens"},
        thinks=False,
    ),
    "responses": Api(
        ask_responses,
        answer_responses,
        {"system": "$.instructions", "tools": "$.tools", "limit": "$.max_output_tokens"},
    ),
    "websocket": Api(
        ask_responses,
        answer_responses,
        {
            "system": "$.response.instructions",
            "tools": "$.response.tools",
            "limit": "$.response.max_output_tokens",
        },
        is_websocket=True,
    ),
    "gemini": Api(
        ask_gemini,
        answer_gemini,
        {
            "system": "$.systemInstruction",
            "tools": "$.tools",
            "limit": "$.generationConfig.maxOutputTokens",
        },
    ),
}


class Recorded(InMemory):
    """A run, and the bodies of its last request and answer."""

    def __init__(
        self, exchanges: list[Exchange], messages: Sequence[Message] = (), asked: Any = None
    ) -> None:
        super().__init__(exchanges)
        self._said = messages
        last = exchanges[-1]
        assert last.response is not None
        self.last_asked = asked if asked is not None else json.loads(last.request.body)
        self.last_answered = last.response.body

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Give the messages of the one WebSocket."""
        return iter(self._said)


def record(
    api: Api, one: Talk, earlier: list[dict[str, Any]], rng: random.Random, *, is_stream: bool
) -> Recorded:
    """Write a run: a call with the first turn, one with all of `earlier`, and one with the whole conversation."""
    tape = Tape("true")
    plain = Talk([])
    calls = [(plain, turns, Talk([], said="I look.")) for turns in (earlier[:1], earlier)]
    calls.append((one, one.turns, one))
    if api.is_websocket:
        return record_websocket(tape, calls, rng)
    for asks, turns, says in calls:
        tape.model(api.ask(asks, turns), api.answer(says, rng, is_stream=is_stream))
    return Recorded(tape.exchanges)


def record_websocket(
    tape: Tape, calls: list[tuple[Talk, list[dict[str, Any]], Talk]], rng: random.Random
) -> Recorded:
    """Write a run whose calls are messages of one WebSocket, the last of them with its body in a member."""
    messages: list[Message] = []
    asked: dict[str, Any] = {}

    def add(tree: object, *, from_client: bool = False) -> None:
        at_us = 1000 * (len(messages) + 1)
        messages.append(Message(at_us, from_client, MessageKind.TEXT, json.dumps(tree).encode()))

    for number, (asks, turns, says) in enumerate(calls):
        body = responses_body(asks, turns)
        asked = {"response": body} if number == len(calls) - 1 else body
        asked = {"type": "response.create", **asked}
        add(asked, from_client=True)
        for event in response_events(says, rng):
            add(event)
    size = sum(len(one.data) for one in messages)
    tape.add(
        make_request("https://api.openai.com/v1/responses", b"", {"upgrade": "websocket"}, "GET"),
        make_response(b"", 101),
        RequestClass.READ,
        websocket=WebSocketSummary(len(messages), size, None),
    )
    return Recorded(tape.exchanges, messages, asked)


# What is planted

Edit = Callable[[Talk, random.Random], None]


def edit_word(one: Talk, rng: random.Random) -> None:
    at = rng.choice([at for at, turn in enumerate(one.turns) if turn["role"] == "user"])
    one.turns[at]["text"] = one.turns[at]["text"].replace("what about", "how is it with")


def edit_result(one: Talk, rng: random.Random) -> None:
    at = rng.choice([at for at, turn in enumerate(one.turns) if turn["role"] == "result"])
    one.turns[at]["note"] += " It is broken."


def drop_turn(one: Talk, rng: random.Random) -> None:
    del one.turns[rng.randrange(len(one.turns) - 1)]


def insert_turn(one: Talk, rng: random.Random) -> None:
    one.turns.insert(rng.randrange(len(one.turns)), {"role": "user", "text": "And be kind."})


def change_setting(name: str, value: Any) -> Edit:
    return lambda one, _: setattr(one, name, value)


def end_otherwise(one: Talk, _: random.Random) -> None:
    one.said = one.said.replace("It is 40.", "It is 41.")


REQUEST_EDITS: dict[str, Edit] = {
    "a word": edit_word,
    "a result": edit_result,
    "a turn dropped": drop_turn,
    "a turn put in": insert_turn,
    "system": change_setting("system", "You serve the other shop."),
    "tools": change_setting("tools", ["look up an order", "refund a charge in full"]),
    "limit": change_setting("limit", 999),
}
ANSWER_EDITS: dict[str, Edit] = {
    "the text behind an id": end_otherwise,
    "the finish": change_setting("finish", "length"),
    "the arguments": change_setting("call", "ord 8"),
    "the thought": change_setting("thought", "I do not know what to say."),
}

FINISH = re.compile(
    r"answer ends|finish_?reason|stop_reason|status|incomplete_details", re.IGNORECASE
)
SHOWN = {
    "the text behind an id": ("It is 40.", "It is 41."),
    "the arguments": ("ord 7", "ord 8"),
    "the thought": ("I know", "I do not know"),
    "the finish": ("", ""),
}
"""What is at the places of each."""

# What is checked

STEP = re.compile(r"\.([\w-]+)|\['([^']*)'\]|\[([0-9]+)\]")
NOWHERE = object()
ID = re.compile(r"\b(call|re)_[0-9a-f]{17}")


def resolve(body: Any, path: str) -> Any:
    """Give what is at a JSON path."""
    at = 1
    while at < len(path):
        step = STEP.match(path, at)
        assert step is not None, path
        at = step.end()
        name = step[1] if step[1] is not None else step[2]
        if name is not None:
            body = body.get(name, NOWHERE) if isinstance(body, dict) else NOWHERE
        else:
            body = (
                body[int(step[3])]
                if isinstance(body, list) and int(step[3]) < len(body)
                else NOWHERE
            )
        if body is NOWHERE:
            return NOWHERE
    return body


def check_true(places: list[Place], bodies: tuple[Any, Any], where: str) -> None:
    """Every place is in the body, with the value that is shown."""
    for one in places:
        if not one.place.startswith(f"{where} $"):
            continue
        sides = (one.place, one.recorded), (one.second_place or one.place, one.asked)
        for body, (place, shown) in zip(bodies, sides, strict=True):
            if shown == ABSENT:
                continue
            value = resolve(body, place.removeprefix(f"{where} "))
            assert value is not NOWHERE, (place, shown)
            text = json.dumps(value, ensure_ascii=False)
            assert shown.removeprefix("...").removesuffix("...") in text, (place, shown, text)
            assert len(shown) <= 200
            assert shown == text or len(text) > 200, (place, shown, text)


def leaves(old: Any, new: Any, path: str = "$") -> set[str]:
    """Give the paths at which two bodies of one form differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            found
            for name in {**old, **new}
            for found in leaves(old.get(name), new.get(name), f"{path}.{name}")
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return {
            found
            for at, pair in enumerate(zip(old, new, strict=True))
            for found in leaves(*pair, f"{path}[{at}]")
        }
    return set() if old == new else {path}


def check_complete(places: list[Place], bodies: tuple[Any, Any]) -> None:
    """All that differs but ids is at a place: without what one body alone has, they differ so often as there are other places."""
    left = [deepcopy(body) for body in bodies]
    shared = 0
    for one in reversed(places):
        sides = [side for side, shown in enumerate((one.recorded, one.asked)) if shown != ABSENT]
        if len(sides) == 2:
            shared += 1
            continue
        path = one.place.removeprefix("body ")
        step = list(STEP.finditer(path))[-1]
        above = resolve(left[sides[0]], path[: step.start()])
        above.pop(int(step[3]) if step[3] is not None else step[1])
    bare = [json.loads(ID.sub(r"\1", json.dumps(body))) for body in left]
    assert len(leaves(bare[0], bare[1])) == shared, places


def compare(first: InMemory, second: InMemory) -> tuple[Change, list[Place], int]:
    """Compare two runs; give what the last act is, its places, and how many are not listed."""
    compared = compare_acts(*map(read_acts, (first, second)))
    differing = [row for row in compared.rows if row.change is not Change.SAME]
    assert len(differing) == 1, [row.change for row in compared.rows]
    found = find_places(differing[0], first, second, compile_rules(), 50)
    return differing[0].change, found.listed, found.more


def make_pair(
    seed: int, edits: dict[str, Edit], names: list[str]
) -> tuple[Talk, Talk, Talk, random.Random]:
    """Give the first run's conversation, the second's before it is changed, and changed."""
    rng = random.Random(seed)
    turns = rng.randrange(2, 4)
    one, other = talk(rng, turns), talk(rng, turns)
    if "the arguments" in edits:
        one.call = other.call = "ord 7"
    changed = deepcopy(other)
    for name in names:
        edits[name](changed, rng)
    return one, other, changed, rng


SEEDS = range(60 if FULL else 6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("api", APIS)
def test_places_in_a_request_are_true(api: str, seed: int) -> None:
    """Whatever the earlier messages were edited to, dropped or given."""
    chosen = random.Random(f"{api} {seed}")
    for count in (1, 1, 2):
        names = chosen.sample(list(REQUEST_EDITS), count)
        one, other, changed, rng = make_pair(seed, REQUEST_EDITS, names)
        is_stream = chosen.random() < 0.5
        earlier = rng.randrange(1, len(one.turns))
        sides = [
            record(APIS[api], talk, before.turns[:earlier], rng, is_stream=is_stream)
            for talk, before in ((one, one), (changed, other))
        ]
        true = APIS[api].ask(other, other.turns)
        if true == APIS[api].ask(changed, changed.turns):
            continue  # one change undid the other
        change, places, more = compare(*sides)
        assert change is Change.ASKED
        bodies = sides[0].last_asked, sides[1].last_asked
        check_true(places, bodies, "body")
        asked = [place for place in places if place.place.startswith("body")]
        assert asked == places, names
        check_complete(places, bodies)
        for name in {"system", "tools", "limit"} & {*names}:
            assert any(APIS[api].paths[name] in place.place for place in places), names
        assert more == 0


def of_what(place: Place) -> str:
    """Say which planted change a place shows; fail where it shows none."""
    for name, (old, new) in SHOWN.items():
        if old in place.recorded and new in place.asked:
            assert old or FINISH.search(place.place), place
            return name
    raise AssertionError(place)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_stream", [False, True], ids=["one piece", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_places_in_an_answer_are_true(api: str, is_stream: bool, seed: int) -> None:
    """What differs is named, and no text whose ids stand for each other."""
    chosen = random.Random(f"{api} {seed} {is_stream}")
    for name in list(ANSWER_EDITS):
        if name == "the thought" and not APIS[api].thinks:
            continue
        names = sorted({name, chosen.choice(list(ANSWER_EDITS))})
        names = [one for one in names if one != "the thought" or APIS[api].thinks]
        one, other, changed, rng = make_pair(seed, ANSWER_EDITS, names)
        earlier = rng.randrange(1, len(one.turns))
        sides = [
            record(APIS[api], talk, before.turns[:earlier], rng, is_stream=is_stream)
            for talk, before in ((one, one), (changed, other))
        ]
        change, places, _ = compare(*sides)
        assert change is Change.ANSWERED
        assert {of_what(place) for place in places} == {*names}, places
        if not (is_stream or APIS[api].is_websocket):
            bodies = json.loads(sides[0].last_answered), json.loads(sides[1].last_answered)
            check_true(places, bodies, "answer body")
