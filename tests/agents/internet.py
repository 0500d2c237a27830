"""A whole Internet of one address: names, TLS by the name asked for, the model provider, an API, a git host, and 200 for the rest.

Run as a program inside a namespace of its own: `python -m playhead.tests.agents.internet FOLDER WORK`. It writes
`root.pem` and `ready` to FOLDER, and a line to `seen.jsonl` for each request that reached it, before it answers.
"""

import asyncio
import ipaddress
import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from playhead.tests.agents.provider import Provider
from playhead.tests.agents.script import API, GIT, MCP, SITE
from playhead.tests.agents.shop import call_tool, page
from playhead.tests.support.certificates import Certificates, make_certificates, make_leaf

ADDRESS = "198.18.0.1"
"""Of RFC 2544's block for tests, so that nothing takes it for loopback."""

_CATALOG = {
    "anthropic": {
        "id": "anthropic",
        "name": "Anthropic",
        "env": ["ANTHROPIC_API_KEY"],
        "npm": "@ai-sdk/anthropic",
        "models": {
            "claude-sonnet-4-5": {
                "id": "claude-sonnet-4-5",
                "name": "Claude Sonnet 4.5",
                "attachment": True,
                "reasoning": True,
                "temperature": True,
                "tool_call": True,
                "release_date": "2025-09-29",
                "last_updated": "2025-09-29",
                "modalities": {"input": ["text"], "output": ["text"]},
                "open_weights": False,
                "cost": {"input": 3, "output": 15},
                "limit": {"context": 200000, "output": 64000},
            }
        },
    }
}
"""Of models, as opencode asks for it."""


class Internet:
    """Serves every name. Files are kept in `folder`."""

    def __init__(self, folder: Path, work: Path) -> None:
        self._folder = folder
        self._root = make_certificates(folder)
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._provider = Provider(work)
        self._orders = 0

    async def serve(self) -> None:
        """Serve until the process is ended."""
        _make_repository(self._folder / "tool.git")
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(_Names, local_addr=("127.0.0.1", 53))
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        outer = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        outer.load_cert_chain(self._root.chain)
        outer.sni_callback = self._present
        await web.TCPSite(runner, ADDRESS, 443, ssl_context=outer).start()
        await web.TCPSite(runner, ADDRESS, 4319, ssl_context=outer).start()  # CrewAI's telemetry
        await web.TCPSite(runner, ADDRESS, 80).start()
        (self._folder / "ready").touch()
        await asyncio.Event().wait()

    def _present(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name is None:
            return
        if name not in self._contexts:
            leaf: Certificates = make_leaf(
                self._root, self._folder / f"leaf-{len(self._contexts)}.pem", (name,), (ADDRESS,)
            )
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(leaf.chain)
            self._contexts[name] = context
        connection.context = self._contexts[name]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        match request.host.partition(":")[0]:
            case name if name == API:
                return await self._api(request)
            case name if name == GIT:
                return await self._git(request)
            case name if name == MCP:
                return await call_tool(request)
            case name if name == SITE:
                return page(request)
        return await self._provider.find_answer(request) or _plain(request)

    def _note(self, request: web.Request) -> None:
        line: dict[str, Any] = {"method": request.method, "url": str(request.url)}
        with (self._folder / "seen.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def _api(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            self._orders += 1
            order = {"order": self._orders, **await request.json()}
            return web.json_response(order, status=201)
        return web.json_response({"item": 1, "name": "a chair", "price": 40})

    async def _git(self, request: web.Request) -> web.StreamResponse:
        words = ["git", "upload-pack", "--stateless-rpc"]
        head, kind = b"", "result"
        if request.method == "GET":
            words.append("--advertise-refs")
            head, kind = b"001e# service=git-upload-pack\n0000", "advertisement"
        version = request.headers.get("git-protocol", "version=0")
        process = await asyncio.create_subprocess_exec(
            *words,
            str(self._folder / "tool.git"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "GIT_PROTOCOL": version},
        )
        told, _ = await process.communicate(await request.read())
        if version == "version=2":
            head = b""
        content = f"application/x-git-upload-pack-{kind}"
        return web.Response(body=head + told, content_type=content)


def _plain(request: web.Request) -> web.StreamResponse:
    """Answer what is neither a model nor a tool: an empty object, and where a client tries again for want of more, more."""
    if request.path == "/api/claude_code/settings":
        return web.json_response({"error": {"type": "not_found_error"}}, status=404)
    if request.path == "/api/claude_code/policy_limits":
        tag = {"etag": '"a3f0"'}
        if request.headers.get("if-none-match") == tag["etag"]:
            return web.Response(status=304, headers=tag)
        return web.json_response({"restrictions": {}}, headers=tag)
    if request.path == "/api.json":
        return web.json_response(_CATALOG)
    if "opencode" in request.path:  # a package of its own, which it does without
        return web.json_response({"error": "not found"}, status=404)
    return web.json_response({})


class _Names(asyncio.DatagramProtocol):
    """Answers every name with the one address, and no other kind of question."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.DatagramTransport)
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        end = data.index(b"\0", 12) + 1
        question = data[12 : end + 4]
        answer = b""
        if question[-4:-2] == b"\0\x01":
            packed = ipaddress.ip_address(ADDRESS).packed
            answer = b"\xc0\x0c" + question[-4:] + b"\0\0\0\x3c\0\x04" + packed
        counts = b"\0\x01" + (b"\0\x01" if answer else b"\0\0") + b"\0\0\0\0"
        self._transport.sendto(data[:2] + b"\x81\x80" + counts + question + answer, addr)


def _make_repository(path: Path) -> None:
    """Make a repository with one commit, the same each time."""
    stream = (
        "commit refs/heads/main\ncommitter A <a@shop.example> 1700000000 +0000\n"
        "data 5\nfirst\nM 100644 inline README\ndata 12\na small tool\n\n"
    )
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    subprocess.run(
        ["git", "-C", str(path), "fast-import", "--quiet"], input=stream.encode(), check=True
    )


if __name__ == "__main__":
    asyncio.run(Internet(Path(sys.argv[1]), Path(sys.argv[2])).serve())
