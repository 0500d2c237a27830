"""An agent that asks the servers of an `mcp.json`: one call, three at once, and one for which the server asks back.

python -m playhead.examples.mcp_stdio.agent [ITEM] [MCP.JSON]
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


async def answer_for_model(
    context: Any, params: types.CreateMessageRequestParams
) -> types.CreateMessageResult:
    """Stand in for a model that a server asks."""
    content = types.TextContent(type="text", text="buy two")
    return types.CreateMessageResult(role="assistant", content=content, model="any")


async def main(item: str, shop: dict[str, Any]) -> None:
    """Ask everything once and print the answers."""
    async with (
        stdio_client(StdioServerParameters(**shop)) as (reading, writing),
        ClientSession(reading, writing, sampling_callback=answer_for_model) as session,
    ):

        async def call(tool: str, **arguments: Any) -> None:
            result = await session.call_tool(tool, arguments)
            print(*(part.text for part in result.content if part.type == "text"), flush=True)

        await session.initialize()
        print(*(tool.name for tool in (await session.list_tools()).tools))
        await call("price", item=item)
        await asyncio.gather(*(call("order", count=count) for count in (1, 2, 3)))
        await call("advise", question="How many mugs?")


if __name__ == "__main__":
    words = sys.argv[1:]
    file = Path(words[1]) if len(words) > 1 else Path(__file__).with_name("mcp.json")
    shop = json.loads(file.read_text())["mcpServers"]["shop"]
    asyncio.run(main(words[0] if words else "mug", shop))
