"""An agent that asks a model step after step, each time with what it said last; it ends with 3 if that was `bad` at the end.

    python -m playhead.tests.support.walking_agent URL STEPS

It leaves a file in its folder, and ends with 4 where it finds one.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .refund_agent import CHAT, send_by_urllib

if TYPE_CHECKING:
    from aiohttp import web


def step(number: int, last: str) -> dict[str, Any]:
    """Give the body of a step."""
    messages = [{"role": "user", "content": f"step {number}: {last}"}]
    return {"model": "gpt-4o", "messages": messages}


def say(text: str) -> dict[str, Any]:
    """Give an answer of the model."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice], "usage": usage}


async def serve(request: "web.Request") -> "web.Response":
    """Answer as the model does: `bad` where it is asked to be creative."""
    from aiohttp import web  # which the agent does without: it would take most of its start

    asked = json.loads(await request.read())
    was_bad = "bad" in asked["messages"][0]["content"]
    return web.json_response(say("bad" if asked.get("temperature") or was_bad else "other"))


def main(base: str, steps: int) -> int:
    """Walk; give the exit code."""
    if Path("walked").exists():
        return 4
    Path("walked").write_text("")
    last = "0"
    for number in range(1, steps + 1):
        status, said = send_by_urllib("POST", f"{base}{CHAT}", step(number, last))
        if status != 200:
            return 1
        last = said["choices"][0]["message"]["content"]
    print(last)
    return 3 if last == "bad" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
