"""smolagents with OpenAI's chat completions."""

import sys

import tools
from smolagents import OpenAIModel, ToolCallingAgent, tool

agent = ToolCallingAgent(
    tools=[tool(one) for one in (tools.look_up, tools.place_order, tools.read_notes)],
    model=OpenAIModel("gpt-4o"),
)
print(agent.run(sys.argv[1]))
