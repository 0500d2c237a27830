"""An agent of the standard library alone, with one tool: what an image of your own has in its place."""

import json
import os
import sys
import urllib.request
from typing import Any

MODEL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
SHOP = os.environ.get("SHOP_URL", "https://api.shop.example")
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up an item of the shop.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
    },
}


def look_up(number: int) -> str:
    """Look up an item of the shop."""
    with urllib.request.urlopen(f"{SHOP}/items/{number}") as answer:
        return str(answer.read().decode())


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask the model for its next turn."""
    body = {"model": "gpt-4o", "messages": messages, "tools": [TOOL]}
    key = os.environ.get("OPENAI_API_KEY", "")
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(
        f"{MODEL}/chat/completions", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request) as answer:
        said: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return said


def main() -> None:
    """Let the model call its tool until it has an answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": sys.argv[1]}]
    while True:
        said = ask(messages)
        messages.append(said)
        calls = said.get("tool_calls") or []
        if not calls:
            print(said["content"])
            return
        for call in calls:
            result = look_up(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if __name__ == "__main__":
    main()
