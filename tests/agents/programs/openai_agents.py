"""The OpenAI Agents SDK: Responses, and the export of its traces."""

import sys

from agents import Agent, Runner, function_tool
from tools import look_up, place_order, read_notes

agent = Agent(
    name="buyer",
    model="gpt-5.1",
    tools=[function_tool(one) for one in (look_up, place_order, read_notes)],
)
print(Runner.run_sync(agent, sys.argv[1]).final_output)
