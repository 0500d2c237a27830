"""A client so plain that a test sees every byte: CONNECT, TLS, one request after another."""

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class Answer:
    """A response as it came."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        self.body = body


class Connection:
    """One connection to a proxy; through it, to an origin where `tunnel` was called."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.host = "x"
        """Of the tunnel, once there is one."""

    @classmethod
    async def open(cls, address: str) -> Self:
        """Connect to HOST:PORT."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def tunnel(self, target: str, credentials: str = "", ca: Path | None = None) -> Answer:
        """Ask for a tunnel to HOST:PORT and speak TLS in it, trusting `ca`; plain where that is None."""
        self.writer.write(f"CONNECT {target} HTTP/1.1\r\n{_authorize(credentials)}\r\n".encode())
        self.host = target
        answer = await self._read(bodiless=True)
        if answer.status == 200 and ca is not None:
            context = ssl.create_default_context(cafile=str(ca))
            await self.writer.start_tls(context, server_hostname=target.partition(":")[0])
        return answer

    async def ask(
        self, target: str, *, body: bytes = b"", host: str = "", credentials: str = ""
    ) -> Answer:
        """Send one request, POST where there is a body, and read the answer.

        target: a path in a tunnel, a whole URL otherwise.
        """
        method = "POST" if body else "GET"
        host = host or urlsplit(target).netloc or self.host
        head = f"{method} {target} HTTP/1.1\r\nhost: {host}\r\n{_authorize(credentials)}"
        self.writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        return await self._read()

    async def _read(self, *, bodiless: bool = False) -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        answer = Answer(head, b"")
        if not (bodiless and answer.status == 200):
            length = int(answer.headers.get("content-length", "0"))
            answer.body = await self.reader.readexactly(length)
        return answer

    async def close(self) -> None:
        """Close it."""
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


def _authorize(credentials: str) -> str:
    if not credentials:
        return ""
    return f"proxy-authorization: Basic {base64.b64encode(credentials.encode()).decode()}\r\n"
