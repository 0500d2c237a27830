"""A real MCP server of the `mcp` package, over TLS, as a process of its own.

It prints its address, serves until its standard input ends, and then prints what it has sent.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates


class McpOrigin:
    """The server as a process. Use as a context manager.

    `sent` holds, once it was stopped, the bodies that it sent, in order, by "METHOD path".
    """

    def __init__(self, certificates: Certificates, imports: Sequence[str] = prepared.MCP) -> None:
        """Take what the process that is forked for it has imported."""
        self._certificates = certificates
        self._imports = imports
        self.sent: dict[str, list[bytes]] = {}
        self.port = 0

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        files = (str(self._certificates.root), str(self._certificates.chain))
        self._process = prepared.start(
            [sys.executable, "-m", __name__, *files],
            imports=self._imports,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process. Twice is once."""
        if self._process.returncode is None:
            out, _ = self._process.communicate(timeout=20)
            found = json.loads(out)
            self.sent = {
                key: [bytes.fromhex(body) for body in bodies] for key, bodies in found.items()
            }


def _serve(root: str, chain: str) -> None:
    from mcp.server.fastmcp import Context, FastMCP

    from playhead.tests.support.asgi import AsgiOrigin

    server = FastMCP("test-tools", instructions="Add and count.", log_level="ERROR")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def count(to: int, ctx: Context) -> str:  # type: ignore[type-arg]
        """Count, saying each number on the way."""
        for number in range(1, to + 1):
            await ctx.info(f"at {number}")
            meta = ctx.request_context.meta
            if meta is not None and meta.progressToken is not None:
                # `ctx.report_progress` would say it on the client's long GET, where it races with the result.
                await ctx.session.send_progress_notification(
                    meta.progressToken, number, to, related_request_id=ctx.request_id
                )
        return "counted"

    def fail() -> str:
        """Fail."""
        raise ValueError("as asked")

    # A name of this function's own, as in `ctx: Context`, is found by no decorator of the package.
    count.__annotations__["ctx"] = Context
    for tool in (add, count, fail):
        server.add_tool(tool)
    now, before = server.streamable_http_app(), server.sse_app()

    async def both(scope: Any, receive: Any, send: Any) -> None:
        """The transport of now, and the one before it at `/sse` and `/messages/`."""
        old = scope.get("path", "").startswith(("/sse", "/messages/"))
        await (before if old else now)(scope, receive, send)

    with AsgiOrigin(both, Certificates(Path(root), Path(chain))) as origin:
        print(origin.port, flush=True)
        sys.stdin.read()
    json.dump({key: [b.hex() for b in bodies] for key, bodies in origin.sent.items()}, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _serve(*sys.argv[1:])
