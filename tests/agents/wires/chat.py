"""OpenAI's chat completions, whole and as a stream of events."""

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from playhead.tests.agents.script import Asked, Said, Tool
from playhead.tests.agents.wires.pieces import cut

_TOLD = "Calling tools:"
"""How smolagents tells in words what the model called."""
_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def read(body: dict[str, Any]) -> Asked:
    """Read a request to /v1/chat/completions."""
    messages = body.get("messages", [])
    stage = sum(
        bool(message.get("tool_calls")) or _TOLD in json.dumps(message.get("content"))
        for message in messages
    )
    tools = tuple(
        Tool(tool["function"]["name"], tool["function"].get("parameters", {}))
        for tool in body.get("tools") or []
        if "function" in tool
    )
    form = body.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema")
    return Asked(
        tools,
        stage,
        body.get("model", ""),
        bool(body.get("stream")),
        json.dumps(body),
        schema,
    )


def _message(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{secrets.token_hex(12)}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments, separators=(",", ":")),
                },
            }
            for call in said.calls
        ]
    return message


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": asked.model,
    }


def whole(asked: Asked, said: Said) -> dict[str, Any]:
    """Give the completion as one body."""
    choice = {"index": 0, "message": _message(said), "finish_reason": _why(said), "logprobs": None}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _USAGE}


def _why(said: Said) -> str:
    return "tool_calls" if said.calls else "stop"


def stream(asked: Asked, said: Said) -> Iterator[str]:
    """Give the events of the stream."""
    head = _head(asked, "chat.completion.chunk")
    message = _message(said)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    text = said.text
    deltas += [{"content": piece} for piece in cut(text)]
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        first = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [first]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in cut(arguments)
        ]
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    ended = {"index": 0, "delta": {}, "finish_reason": _why(said)}
    yield _event({**head, "choices": [ended]})
    yield _event({**head, "choices": [], "usage": _USAGE})
    yield "data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
