"""An MCP client over streamable HTTP: initialize, list tools, call tools, one of which reports as it goes."""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import LoggingMessageNotificationParams

from playhead.tests.journeys.clients.transcript import say


async def main() -> None:
    async def log(params: LoggingMessageNotificationParams) -> None:
        say("log", level=params.level, data=params.data)

    async with (
        streamable_http_client(sys.argv[1]) as (read, write, session_id),
        ClientSession(read, write, logging_callback=log) as session,
    ):
        found = await session.initialize()
        say("initialize", result=found.model_dump_json(), session=session_id())
        tools = await session.list_tools()
        say("tools", result=tools.model_dump_json())
        added = await session.call_tool("add", {"a": 2, "b": 40})
        say("add", result=added.model_dump_json())
        counted = await session.call_tool("count", {"to": 3})
        say("count", result=counted.model_dump_json())
        failed = await session.call_tool("fail", {})
        say("fail", result=failed.model_dump_json())


asyncio.run(main())
