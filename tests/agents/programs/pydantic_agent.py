"""Pydantic AI with Anthropic's messages."""

import sys

from pydantic_ai import Agent
from tools import look_up, place_order, read_notes

agent = Agent("anthropic:claude-sonnet-4-5", tools=[look_up, place_order, read_notes])
print(agent.run_sync(sys.argv[1]).output)
