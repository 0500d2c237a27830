"""AutoGen AgentChat with OpenAI's chat completions."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from tools import look_up, place_order, read_notes


async def main() -> None:
    """Run the agent until it has no more tools to call."""
    client = OpenAIChatCompletionClient(model="gpt-4o")
    agent = AssistantAgent(
        "buyer", client, tools=[look_up, place_order, read_notes], max_tool_iterations=10
    )
    print((await agent.run(task=sys.argv[1])).messages[-1])


asyncio.run(main())
