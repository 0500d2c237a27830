"""OpenAI's Responses: whole, as a stream of events, and the same events as messages of a WebSocket.

A request may name the response before it instead of repeating the conversation, so the stage is a part of a response's id,
and the tools of a conversation are kept by it.
"""

import json
import re
import secrets
import time
from collections.abc import Iterator
from typing import Any

from playhead.tests.agents.script import Asked, Call, Said, Tool
from playhead.tests.agents.wires.pieces import cut

_USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 120,
}


_tools_of: dict[str, tuple[Tool, ...]] = {}
"""By response."""


def read(body: dict[str, Any]) -> Asked:
    """Read a request to /v1/responses, or a `response.create` of a WebSocket."""
    items = body.get("input", [])
    items = items if isinstance(items, list) else []
    name = body.get("previous_response_id") or ""
    before = re.match(r"resp_(\d+)_", name)
    more = [tool for item in items for tool in item.get("tools") or ()]
    form = (body.get("text") or {}).get("format") or {}
    return Asked(
        tuple(_tools([*(body.get("tools") or []), *more])) or _tools_of.get(name, ()),
        int(before[1]) if before else _turns(items),
        body.get("model", ""),
        bool(body.get("stream")),
        json.dumps(body),
        form.get("schema"),
    )


def _turns(items: list[dict[str, Any]]) -> int:
    """Count the turns with calls: calls that stand together are of one."""
    kinds = [str(item.get("type", "")) for item in items]
    kinds = [kind for kind in kinds if kind.endswith(("_call", "_output"))]
    return sum(
        kind.endswith("_call") and (at == 0 or kinds[at - 1].endswith("_output"))
        for at, kind in enumerate(kinds)
    )


def _tools(tools: list[dict[str, Any]]) -> Iterator[Tool]:
    for tool in tools:
        if tool.get("type") == "function":
            yield Tool(tool["name"], tool.get("parameters") or {})
        if tool.get("type") == "custom":
            yield Tool(tool["name"], {}, is_code=True)
        yield from _tools(tool.get("tools") or [])


def whole(asked: Asked, said: Said) -> dict[str, Any]:
    """Give the response as one body."""
    output: list[dict[str, Any]] = []
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        output.append(
            {
                "id": f"msg_{secrets.token_hex(12)}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    programs = {tool.name for tool in asked.tools if tool.is_code}
    output += [_call(call, is_code=call.name in programs) for call in said.calls]
    name = f"resp_{asked.stage + bool(said.calls)}_{secrets.token_hex(12)}"
    _tools_of[name] = asked.tools
    return {
        "id": name,
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": asked.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "output": output,
        "usage": _USAGE,
    }


def _call(call: Call, *, is_code: bool) -> dict[str, Any]:
    name = {"call_id": f"call_{secrets.token_hex(12)}", "name": call.name, "status": "completed"}
    if is_code:
        kind, text = "custom_tool_call", call.arguments["input"]
        return {"id": f"ctc_{secrets.token_hex(12)}", "type": kind, **name, "input": text}
    text = json.dumps(call.arguments, separators=(",", ":"))
    kind = "function_call"
    return {"id": f"fc_{secrets.token_hex(12)}", "type": kind, **name, "arguments": text}


def events(asked: Asked, said: Said) -> Iterator[dict[str, Any]]:
    """Give the response as its events."""
    for number, event in enumerate(_events(whole(asked, said))):
        yield {**event, "sequence_number": number}


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            yield from _message(item, index, place)
        else:
            field = "input" if "input" in item else "arguments"
            text = item[field]
            yield _item("added", index, {**item, field: "", "status": "in_progress"})
            kind = f"response.{item['type']}_{field}"
            for piece in cut(text):
                yield {"type": f"{kind}.delta", **place, "delta": piece}
            yield {"type": f"{kind}.done", **place, field: text}
        yield _item("done", index, item)
    yield {"type": "response.completed", "response": response}


def _message(item: dict[str, Any], index: int, place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    text, place = part["text"], {**place, "content_index": 0}
    yield _item("added", index, {**item, "content": [], "status": "in_progress"})
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for delta in cut(text):
        yield {"type": "response.output_text.delta", **place, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _item(what: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def stream(asked: Asked, said: Said) -> Iterator[str]:
    """Give the lines of the stream, an event at a time."""
    for event in events(asked, said):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
