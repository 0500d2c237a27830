"""The task of an MCP client of today: `sdk_mcp NAME URL`; `sdk_mcp serve CHAIN` is the server it talks to.

The server prints its port and serves until its standard input ends.
"""

import asyncio
import socket
import sys
import threading
from typing import Any


async def use(mode: Any, url: str) -> None:
    """List and call tools, four of them at once.

    mode: `legacy` begins with a handshake, `auto` without where the server can.
    """
    import mcp

    newest: Any = mcp  # the one beside mitmproxy is older
    async with newest.Client(url, mode=mode) as client:
        await client.list_tools()
        assert (await client.call_tool("add", {"a": 2, "b": 40})).content[0].text == "42"
        await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(4)))
        await client.call_tool("count", {"to": 3})


def serve(chain: str) -> None:
    """Serve two tools over TLS, one of which says how far it is."""
    import uvicorn
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("test-tools", instructions="Add and count.", log_level="ERROR")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def count(to: int, ctx: Context) -> str:
        """Count, saying each number on the way."""
        for number in range(1, to + 1):
            await ctx.report_progress(number, to)
        return "counted"

    count.__annotations__["ctx"] = Context
    for tool in (add, count):
        server.add_tool(tool)
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        server.streamable_http_app(), ssl_certfile=chain, ssl_keyfile=chain, log_level="error"
    )
    running = uvicorn.Server(config)

    def stop() -> None:
        sys.stdin.read()
        running.should_exit = running.force_exit = True

    threading.Thread(target=stop, daemon=True).start()
    running.run([listening])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        asyncio.run(use("legacy" if sys.argv[1] == "mcp_legacy" else "auto", sys.argv[2]))
