"""A client's connection through a proxy, byte by byte: it reads when it is asked to, and ends in every way there is."""

import asyncio
import base64
import contextlib
import socket
import ssl
import struct
from pathlib import Path

_BUFFER = 64 << 10
_RST = struct.pack("ii", 1, 0)


class Gone(Exception):
    """The other side ended the connection, or refused the tunnel."""


class Contexts:
    """TLS of clients that trust a CA, and of one that trusts nothing."""

    def __init__(self, ca: Path) -> None:
        """Read the CA."""
        self._trusting = {}
        for protocol in ("h2", "http/1.1"):
            context = ssl.create_default_context(cafile=str(ca))
            context.set_alpn_protocols([protocol])
            self._trusting[protocol] = context
        self.distrusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def offering(self, transport: str) -> ssl.SSLContext:
        """Give the context that offers h1 or h2."""
        return self._trusting["h2" if transport == "h2" else "http/1.1"]


class Wire:
    """One connection to the proxy."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._tls: ssl.SSLObject | None = None
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._early = b""
        self.closed = False

    @classmethod
    async def open(cls, proxy: tuple[str, int]) -> "Wire":
        """Connect to the proxy."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER // 2)  # the kernel doubles it
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, proxy)
        return cls(sock)

    async def tunnel(self, target: str, run: str) -> None:
        """Ask for a tunnel.

        run: name and password; none are given where it is empty.
        Raises: Gone, where it is refused.
        """
        given = f"Proxy-Authorization: {basic(run)}\r\n" if run else ""
        await self.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{given}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = await self.recv()
            if not piece:
                raise Gone(f"CONNECT: {answer!r}")
            answer += piece
        answer, _, self._early = answer.partition(b"\r\n\r\n")
        if b" 200 " not in answer[:20]:
            raise Gone(f"CONNECT: {answer[:80]!r}")

    async def handshake(self, context: ssl.SSLContext, name: str) -> None:
        """Do the TLS handshake to its end."""
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    raise Gone("TLS: the other side ended the connection") from None
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush()  # the alert
                self._tls = None
                raise
        await self._flush()

    async def hello(self, context: ssl.SSLContext, name: str) -> None:
        """Send the ClientHello and nothing more."""
        tls = context.wrap_bio(self._in, self._out, server_hostname=name)
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        await self._flush()

    @property
    def protocol(self) -> str | None:
        """What ALPN agreed on."""
        return self._tls.selected_alpn_protocol() if self._tls is not None else None

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        if self._tls is None:
            await self._loop.sock_sendall(self._sock, data)
            return
        self._tls.write(data)
        await self._flush()

    async def recv(self) -> bytes:
        """Read some bytes; none at the end."""
        if self._early:
            data, self._early = self._early, b""
            return data
        if self._tls is None:
            return await self._loop.sock_recv(self._sock, _BUFFER)
        while True:
            try:
                return self._tls.read(_BUFFER)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def half(self) -> None:
        """End the sending half."""
        if self._tls is not None:
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            await self._flush()
        else:
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the connection with FIN. Twice is once."""
        self.closed = True
        self._sock.close()

    def reset(self) -> None:
        """End the connection with RST."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
        self.close()

    async def _fill(self) -> bool:
        data = await self._loop.sock_recv(self._sock, _BUFFER)
        if data:
            self._in.write(data)
        return bool(data)

    async def _flush(self) -> None:
        data = self._out.read()
        if data:
            await self._loop.sock_sendall(self._sock, data)


def basic(run: str) -> str:
    """Give the proxy credentials NAME:PASSWORD."""
    return f"Basic {base64.b64encode(run.encode()).decode()}"
