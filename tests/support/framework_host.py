"""A model that wants four tools at a time, twice, and the host that its tools ask; `answer` is the one handler."""

import asyncio
import json
import random
from typing import Any

from aiohttp import web

TOGETHER, ROUNDS = 4, 2
REQUESTS = ROUNDS * (1 + 2 * TOGETHER) + 1
"""Of one agent: model calls, and a read and an effect of each tool."""
_COMPLETION = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


async def answer(request: web.Request) -> web.StreamResponse:
    """Say what a model says, or what a tool wants to know."""
    sent = await request.read()
    if request.path.endswith("/chat/completions"):
        return _complete(json.loads(sent))
    await asyncio.sleep(random.random() / 100)
    if request.path == "/refunds":
        return web.Response(text=f"refunded {sent.decode()}")
    return web.Response(text=f"ch_{request.path.rpartition('/')[2]}")


def _complete(asked: dict[str, Any]) -> web.Response:
    # By what the tools have said: frameworks tell it in several ways.
    done = json.dumps(asked["messages"]).count("refunded charge=")
    finish = any(one["function"]["name"] == "final_answer" for one in asked.get("tools", ()))
    calls = []
    if done < ROUNDS * TOGETHER:
        calls = [
            _call(done + number, "refund", {"number": done + number}) for number in range(TOGETHER)
        ]
    elif finish:  # smolagents ends with a tool
        calls = [_call(done, "final_answer", {"answer": "done"})]
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = calls
    why = "tool_calls" if calls else "stop"
    if not asked.get("stream"):
        choice = {"index": 0, "finish_reason": why, "message": message}
        whole = {**_COMPLETION, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
        return web.json_response(whole)
    for number, call in enumerate(calls):
        call["index"] = number
    events = [
        {"index": 0, "delta": message, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": why},
    ]
    chunk = {**_COMPLETION, "object": "chat.completion.chunk"}
    told = [json.dumps({**chunk, "choices": [event]}) for event in events]
    told += [json.dumps({**chunk, "choices": [], "usage": _USAGE}), "[DONE]"]
    text = "".join(f"data: {one}\n\n" for one in told)
    return web.Response(text=text, content_type="text/event-stream")


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}
