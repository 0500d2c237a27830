"""LlamaIndex's FunctionAgent with OpenAI's chat completions."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from tools import look_up, place_order, read_notes


async def main() -> None:
    """Run the agent; its tools run side by side in threads of their own."""
    tools = [look_up, place_order, read_notes]
    agent = FunctionAgent(tools=tools, llm=OpenAI(model="gpt-4o"), streaming=False)
    print(await agent.run(sys.argv[1]))


asyncio.run(main())
