"""Anthropic's messages, whole and as a stream of events."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from playhead.tests.agents.script import Asked, Said, Tool
from playhead.tests.agents.wires.pieces import cut

_USAGE = {"input_tokens": 100, "output_tokens": 20}


def read(body: dict[str, Any]) -> Asked:
    """Read a request to /v1/messages."""
    messages = body.get("messages", [])
    stage = sum(
        message["role"] == "assistant"
        and any(part.get("type") == "tool_use" for part in _parts(message["content"]))
        for message in messages
    )
    tools = tuple(
        Tool(tool["name"], tool.get("input_schema", {}))
        for tool in body.get("tools", [])
        if "name" in tool
    )
    form = (body.get("output_config") or body).get("format") or body.get("output_format") or {}
    return Asked(
        tools,
        stage,
        body.get("model", ""),
        bool(body.get("stream")),
        json.dumps(body),
        form.get("schema"),
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else []


def whole(asked: Asked, said: Said) -> dict[str, Any]:
    """Give the message as one body."""
    content: list[dict[str, Any]] = []
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{secrets.token_hex(12)}",
            "name": call.name,
            "input": call.arguments,
        }
        for call in said.calls
    ]
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": "tool_use" if said.calls else "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def events(asked: Asked, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the message as its events, each with its name."""
    message = whole(asked, said)
    start = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"message": start}
    for index, part in enumerate(message["content"]):
        if part["type"] == "text":
            yield "content_block_start", {"index": index, "content_block": {**part, "text": ""}}
            for piece in cut(part["text"]):
                delta = {"type": "text_delta", "text": piece}
                yield "content_block_delta", {"index": index, "delta": delta}
        else:
            yield "content_block_start", {"index": index, "content_block": {**part, "input": {}}}
            for piece in cut(json.dumps(part["input"], separators=(",", ":"))):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": 20}}
    yield "message_stop", {}


def stream(asked: Asked, said: Said) -> Iterator[str]:
    """Give the lines of the stream, an event at a time."""
    for name, event in events(asked, said):
        yield f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n"
