"""An agent of the OpenAI Agents SDK whose tools are those of an MCP server, over HTTP."""

import asyncio
import sys
from pathlib import Path

from agents import Agent, Runner, function_tool
from agents.mcp import MCPServerStreamableHttp


def read_notes() -> str:
    """Read the notes of the user."""
    return Path("notes.txt").read_text()


async def main() -> None:
    """Connect to the server, and run the agent."""
    async with MCPServerStreamableHttp(params={"url": "https://mcp.shop.example/mcp"}) as shop:
        agent = Agent(
            "buyer", model="gpt-5.1", tools=[function_tool(read_notes)], mcp_servers=[shop]
        )
        print((await Runner.run(agent, sys.argv[1])).final_output)


asyncio.run(main())
