"""A shop as an MCP server over standard input and output: it prices things, and asks its client's model for advice.

python -m playhead.examples.mcp_stdio.server
"""

import asyncio

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent

shop = FastMCP("shop", log_level="WARNING")


@shop.tool()
def price(item: str) -> str:
    """Say what something costs."""
    return f"{item}: {len(item)}.00"


@shop.tool()
async def order(count: int, context: Context) -> str:  # type: ignore[type-arg]  # any session
    """Order so many mugs, which takes the longer the fewer they are."""
    await context.report_progress(1, 2)
    await asyncio.sleep(0.05 * (4 - count))
    return f"ordered {count}"


@shop.tool()
async def advise(question: str, context: Context) -> str:  # type: ignore[type-arg]  # any session
    """Have the client's own model answer a question."""
    content = TextContent(type="text", text=question)
    said = await context.session.create_message(
        [SamplingMessage(role="user", content=content)], max_tokens=50
    )
    return f"advice: {said.content.text}" if isinstance(said.content, TextContent) else "none"


if __name__ == "__main__":
    shop.run()
