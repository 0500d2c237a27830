"""The OpenAI Agents SDK: Responses, and the export of its traces."""

import json
import sys
import urllib.request
from pathlib import Path

from agents import Agent, Runner, function_tool

SHOP = "https://api.shop.example"


def look_up(number: int) -> str:
    """Look up an item of the shop.

    Args:
        number: The number of the item.
    """
    return _open(urllib.request.Request(f"{SHOP}/items/{number}"))


def place_order(number: int) -> str:
    """Order an item of the shop.

    Args:
        number: The number of the item.
    """
    order = json.dumps({"item": number}).encode()
    headers = {"content-type": "application/json"}
    return _open(urllib.request.Request(f"{SHOP}/orders", order, headers))


def read_notes() -> str:
    """Read the notes of the user."""
    return Path("notes.txt").read_text()


def _open(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


agent = Agent(
    name="buyer",
    model="gpt-5.1",
    tools=[function_tool(one) for one in (look_up, place_order, read_notes)],
)
print(Runner.run_sync(agent, sys.argv[1]).final_output)
