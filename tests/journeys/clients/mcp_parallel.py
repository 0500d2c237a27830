"""An MCP client that calls tools at the same time, in the order of its arguments; the SDK numbers them as they come.

Arguments: a URL, that of the older transport where it ends with /sse, and numbers."""

import asyncio
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from playhead.tests.journeys.clients.transcript import say


async def main(url: str, order: list[int]) -> None:
    async def call(number: int) -> None:
        told: list[float] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)

        added = await session.call_tool("add", {"a": number, "b": 1000})
        counted = await session.call_tool("count", {"to": number}, progress_callback=tell)
        results[number] = [added.model_dump_json(), counted.model_dump_json(), told]

    results: dict[int, list[object]] = {}
    connected: Any = sse_client(url) if url.endswith("/sse") else streamable_http_client(url)
    async with connected as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        await asyncio.gather(*map(call, order))
    for number in sorted(results):
        say(str(number), results=results[number])


asyncio.run(main(sys.argv[1], [int(word) for word in sys.argv[2:]]))
