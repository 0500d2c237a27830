"""LangGraph's agent, with OpenAI's chat completions."""

import json
import sys
import urllib.request
from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

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


agent = create_agent(ChatOpenAI(model="gpt-4o"), [look_up, place_order, read_notes])
result = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})
print(result["messages"][-1].content)
