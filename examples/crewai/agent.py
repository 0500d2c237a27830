"""CrewAI with OpenAI's chat completions."""

import json
import sys
import urllib.request
from pathlib import Path

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

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


buyer = Agent(
    role="buyer",
    goal="buy what the notes say",
    backstory="You work for a shop.",
    tools=[tool(one) for one in (look_up, place_order, read_notes)],
    llm=LLM(model="openai/gpt-4o"),
)
task = Task(description=sys.argv[1], expected_output="what was ordered", agent=buyer)
print(Crew(agents=[buyer], tasks=[task]).kickoff())
