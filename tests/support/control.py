"""A control API beside an engine in the test's own loop, and a client that sends just what it is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playhead.config import Config
from playhead.proxy.control.address import open_token
from playhead.proxy.control.http.route import ProxyState
from playhead.proxy.control.server import ControlServer

from .engine import Running, running_engine


@dataclass
class Said:
    """An answer of the control API."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.text)


@dataclass
class Controlled:
    """A running engine and its control API."""

    running: Running
    server: ControlServer
    token: str
    more: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return self.server.url.partition("//")[2]

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        host: str | None = None,
        token: str | None = None,
        **fields: str,
    ) -> Said:
        """Send one request with the right host and token, unless others are given; an empty text is none.

        fields: further header fields, with `_` for `-`.
        """
        given = {"host": self.address if host is None else host}
        token = self.token if token is None else token
        if token:
            given["authorization"] = f"Bearer {token}"
        if body is not None:
            given |= {"content-type": "application/json", "content-length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in fields.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
        return await self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))

    async def send(self, data: bytes) -> Said:
        """Send bytes and read one answer."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            return await read_answer(reader)
        finally:
            writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        host, _, port = self.address.rpartition(":")
        return await asyncio.open_connection(host.strip("[]"), int(port))


async def read_answer(reader: asyncio.StreamReader) -> Said:
    """Read one answer."""
    async with asyncio.timeout(20):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Said(int(head[0].split(" ")[1]), headers, body.decode())


@asynccontextmanager
async def controlled(config: Config) -> AsyncIterator[Controlled]:
    """Run an engine with its control API."""
    async with running_engine(config) as running:
        server = ControlServer(config, ProxyState(running.store, running.registry, running.engine))
        server.open()
        try:
            yield Controlled(running, server, open_token(config))
        finally:
            await server.close()
