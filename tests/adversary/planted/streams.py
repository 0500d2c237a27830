"""Answers of models as server-sent events, cut into pieces at random places, and put together again."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from .paths import decoded, is_same, written
from .wire import Plain, draw


def pieces(text: str, rng: Random) -> Iterator[str]:
    """Cut a text into pieces of one to twelve characters."""
    at = 0
    while at < len(text):
        size = rng.randint(1, 12)
        yield text[at : at + size]
        at += size


def stream(dialect: str, body: Plain, rng: Random) -> list[Plain]:
    """Give the events of an answer that `wire.answer` wrote in one piece."""
    return {
        "anthropic": _anthropic,
        "openai-chat": _chat,
        "openai-responses": _responses,
        "gemini": _gemini,
    }[dialect](body, rng)


def _named(data: Plain) -> Plain:
    return {"event": data["type"], "data": data}


def _anthropic(body: Plain, rng: Random) -> list[Plain]:
    stated = body.get("usage")
    start = body | {"content": [], "stop_reason": None}
    if stated:
        start["usage"] = stated | {"output_tokens": 1}
    events = [_named({"type": "message_start", "message": start})]
    for index, block in enumerate(body["content"]):
        is_text = block["type"] == "text"
        empty: Plain = {"text": ""} if is_text else {"input": {}}
        opened = block | empty
        kind = "content_block_start"
        events.append(_named({"type": kind, "index": index, "content_block": opened}))
        text = block["text"] if is_text else json.dumps(block["input"], ensure_ascii=False)
        for piece in pieces(text, rng):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            kind = "content_block_delta"
            events.append(_named({"type": kind, "index": index, "delta": delta}))
        events.append(_named({"type": "content_block_stop", "index": index}))
    stop: Plain = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    last: Plain = {"type": "message_delta", "delta": stop}
    if stated:
        last["usage"] = {"output_tokens": stated["output_tokens"]}
    return [*events, _named(last), _named({"type": "message_stop"})]


def _chat(body: Plain, rng: Random) -> list[Plain]:
    head = {key: body[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = body["choices"][0]

    def chunk(delta: Plain, finish: str | None = None) -> Plain:
        one = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"data": head | {"choices": [one]}}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": one}) for one in pieces(choice["message"]["content"] or "", rng)]
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        named = {"name": call["function"]["name"], "arguments": ""}
        opened: Plain = {"index": index, "id": call["id"], "type": "function", "function": named}
        events.append(chunk({"tool_calls": [opened]}))
        for piece in pieces(call["function"]["arguments"], rng):
            more: Plain = {"index": index, "function": {"arguments": piece}}
            events.append(chunk({"tool_calls": [more]}))
    events.append(chunk({}, choice["finish_reason"]))
    if "usage" in body:
        events.append({"data": head | {"choices": [], "usage": body["usage"]}})
    return [*events, {"data": "[DONE]"}]


def _responses(body: Plain, rng: Random) -> list[Plain]:
    begun = body | {"status": "in_progress", "output": []}
    begun.pop("usage", None)
    events: list[Plain] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(body["output"]):
        place: Plain = {"item_id": item["id"], "output_index": index}
        is_text = item["type"] == "message"
        empty: Plain = {"content": []} if is_text else {"arguments": ""}
        opened = item | empty | {"status": "in_progress"}
        kind, done = "response.function_call_arguments", "arguments"
        text, part = item.get("arguments", ""), None
        added = {"type": "response.output_item.added", "output_index": index}
        events.append(added | {"item": opened})
        if is_text:
            kind, done, part = "response.output_text", "text", item["content"][0]
            text = part["text"]
            place |= {"content_index": 0}
            events.append(
                {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
            )
        more: Plain = {"logprobs": []} if is_text else {"name": item["name"]}
        for piece in pieces(text, rng):
            delta: Plain = {"delta": piece} | ({"logprobs": []} if is_text else {})
            events.append({"type": f"{kind}.delta", **place} | delta)
        events.append({"type": f"{kind}.done", **place, done: text} | more)
        if is_text:
            events.append({"type": "response.content_part.done", **place, "part": part})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": body})
    return [_named(one | {"sequence_number": number}) for number, one in enumerate(events)]


def _gemini(body: Plain, rng: Random) -> list[Plain]:
    parts: list[Plain] = []
    for part in body["candidates"][0]["content"]["parts"]:
        if "text" in part:
            parts += [{"text": piece} for piece in pieces(part["text"], rng)]
        else:
            parts.append(part)
    tail = {key: body[key] for key in ("modelVersion", "responseId")}
    events = []
    for number, part in enumerate(parts):
        one: Plain = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if number == len(parts) - 1:
            one["finishReason"] = "STOP"
        data: Plain = {"candidates": [one]}
        if "usageMetadata" in body:
            data["usageMetadata"] = body["usageMetadata"]
        events.append({"data": data | tail})
    return events


def text_of(body: object) -> str:
    """Give all that an answer says, streams put together: what a reader of the wire would see in it."""
    if isinstance(body, str):
        return body
    if not isinstance(body, list):
        return json.dumps(body, ensure_ascii=False)
    folded: dict[str, str] = {}
    for event in body:
        for key, piece in _deltas(event["data"]):
            folded[key] = folded.get(key, "") + piece
    return "\n".join(folded.values())


def _deltas(data: Plain | str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        return
    if data.get("type") == "content_block_delta":
        delta = data["delta"]
        yield str(data["index"]), delta.get("text", delta.get("partial_json", ""))
    elif str(data.get("type", "")).endswith(("text.delta", "arguments.delta")):
        yield str(data["output_index"]), data["delta"]
    for choice in data.get("choices", ()):
        yield "text", choice["delta"].get("content") or ""
        for call in choice["delta"].get("tool_calls", ()):
            yield f"call {call['index']}", call["function"]["arguments"]
    for candidate in data.get("candidates", ()):
        for part in candidate["content"]["parts"]:
            called = json.dumps(part.get("functionCall", ""), ensure_ascii=False)
            yield "text", part.get("text", called)


def hex_id(rng: Random, prefix: str = "", count: int = 16) -> str:
    """Draw an id of hexadecimal digits."""
    return prefix + f"{rng.getrandbits(count * 4):0{count}x}"


def request_id(dialect: str, rng: Random) -> dict[str, str]:
    """Draw the header fields by which a provider names a request."""
    if dialect == "anthropic":
        return {"request-id": draw(rng, "req_011C")}
    return {"x-request-id": hex_id(rng, "req_", 32)} if dialect != "gemini" else {}


def appears(value: Any, exchange: Plain, side: str = "response") -> bool:
    """Say whether a value is somewhere in one side of an exchange; for tests of the cases themselves."""
    text = written(value)
    return any(is_same(leaf, value) or text in str(leaf) for leaf in scalars(exchange, side))


def scalars(exchange: Plain, side: str) -> list[Any]:
    """Give all scalars of one side of an exchange, those of JSON in texts, too, and of streams what they say."""
    body = exchange[side]
    place = [*exchange[f"{side}_headers"].values(), exchange["url"] if side == "request" else ""]
    return [*place, *decoded(text_of(body) if isinstance(body, list) else body)]
