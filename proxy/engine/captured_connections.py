"""Accept the connections that the capture has led here, and look at what is said on them first.

1. HTTP, and TLS, go on as in transparent mode (`transparent.py`), towards the address that the client had asked for.
2. What is no HTTP, and what the server begins, passes as it is: a protocol of its own at a port of HTTP.
3. A client that does not trust the proxy's certificate passes as it is from its next try on, to the same host. It is known by its TLS
   greeting: which ciphers and extensions it offers. Another client of that host is recorded.

A connection that nobody has led here is reset. Replaces nothing. Test: tests/proxy/engine/test_captured_connections.py.
"""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, NamedTuple

from mitmproxy import connection, http, tls
from mitmproxy.proxy.layers.tls import parse_client_hello

from ..capture.connection_origins import Origin

_HANDSHAKE = b"\x16\x03"
_GREETING = "playhead_greeting"
"""Attribute of a client connection: its `Greeting`."""
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BEGUN = re.compile(rb"%s( [^\r\n]*)?\Z" % _TOKEN)
_LINE = re.compile(rb"%s [^\r\n]+ HTTP/\d[^\r\n]*\r?\n" % _TOKEN)
_ENDED = "ended"
"""Why a connection passes that its server has ended, without a word: its client is to see that."""
_PEEKED = 65536
_PIECE_BYTES = 65536
_HELLO_S, _LOOK_S = 1.0, 0.002
_AT_ONCE_S = 1.0
"""Who leaves so soon after a handshake, and has asked nothing, may have done so over the certificate, as Node does."""
_MOST_KNOWN = 10_000

Serve = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter, Origin, "Greeting | None"], Awaitable[None]
]


class Greeting(NamedTuple):
    """A client, as far as its TLS greeting tells it from others, and whom it greets."""

    host: str
    port: int
    offers: Hashable


class Passed(NamedTuple):
    """Connections that passed as they were."""

    host: str
    port: int
    process: str
    pid: int
    why: str
    """`no HTTP` or `distrusts`."""


class CapturedConnections:
    """Takes what was led here. An addon, too: it watches whose handshakes fail."""

    def __init__(self, serve: Serve) -> None:
        """Have HTTP handled by `serve`."""
        self._serve = serve
        self._find: Callable[[tuple[str, int]], Origin | None] = lambda _: None
        self._distrusting: set[Greeting] = set()
        self._trusting: set[Greeting] = set()
        self._established: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.passed: Counter[Passed] = Counter()

    def begin(
        self, listening: Sequence[socket.socket], find: Callable[[tuple[str, int]], Origin | None]
    ) -> None:
        """Accept on these.

        find: gives where a connection was to lead that comes from an address.
        """
        self._find = find
        for sock in listening:
            sock.setblocking(False)
            self._keep(self._accept(sock))

    def stop(self) -> None:
        """Accept no longer, and cut what passes."""
        for task in self._tasks:
            task.cancel()

    # ---- hooks ---------------------------------------------------------------------------------

    def tls_established_client(self, data: tls.TlsData) -> None:
        """Note when TLS was there."""
        if _greeting(data.context.client) is not None:
            self._established[data.context.client.id] = time.monotonic()

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Note a client that broke TLS off."""
        client = data.context.client
        # Over its upstream, which the client has nothing to do with.
        if not getattr(client, "handshaking", False):
            self._distrust(_greeting(client))

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Note a client that asks: it trusts us."""
        greeting = _greeting(flow.client_conn)
        if greeting is None or self._established.pop(flow.client_conn.id, None) is None:
            return
        if len(self._trusting) < _MOST_KNOWN:
            self._trusting.add(greeting)

    def client_disconnected(self, client: connection.Client) -> None:
        """Note a client that left after its handshake, as one that does not trust us without a word."""
        since = self._established.pop(client.id, None)
        if since is not None and time.monotonic() - since < _AT_ONCE_S:
            self._distrust(_greeting(client))

    def _distrust(self, greeting: Greeting | None) -> None:
        if greeting is None or greeting in self._trusting:
            return
        if len(self._distrusting) < _MOST_KNOWN:
            self._distrusting.add(greeting)

    # ---- connections ---------------------------------------------------------------------------

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, peer = await loop.sock_accept(listening)
            except OSError:  # it is closed, or descriptors are short: then there is room again soon
                if listening.fileno() < 0:
                    return
                await asyncio.sleep(_LOOK_S)
                continue
            self._keep(self._handle(sock, (peer[0], peer[1])))

    async def _handle(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        origin = self._find(peer)
        if origin is None:
            _reset(sock)
            return
        sock.setblocking(False)
        try:
            why, greeting = await self._look(sock, origin)
            if why:
                await self._pass(sock, origin, why)
                return
            reader, writer = await asyncio.open_connection(sock=sock)
        except OSError:
            _reset(sock)
            if origin.upstream is not None:
                origin.upstream.close()
            return
        await self._serve(reader, writer, origin, greeting)

    async def _look(self, sock: socket.socket, origin: Origin) -> tuple[str, Greeting | None]:
        """Wait until somebody speaks; say why it passes as it is, if it does, and who greets."""
        if await _wait_for_any(sock, origin.upstream) is not sock:
            return ("no HTTP" if _has_said(origin.upstream) else _ENDED), None
        said = sock.recv(_PEEKED, socket.MSG_PEEK)
        if not said.startswith(_HANDSHAKE[: len(said)]):
            return ("", None) if not said or _is_http(said) else ("no HTTP", None)
        greeting = await _find_greeting(sock, origin)
        return ("distrusts" if greeting in self._distrusting else ""), greeting

    async def _pass(self, sock: socket.socket, origin: Origin, why: str) -> None:
        """Have a connection be as it would be without us."""
        row = Passed(origin.host, origin.port, origin.process, origin.pid, why)
        greeting = None
        with contextlib.suppress(OSError):
            greeting = await _find_greeting(sock, origin) if why == "distrusts" else None
        if greeting is not None:
            row = row._replace(host=greeting.host)
        self.passed[row] += why != _ENDED
        upstream = origin.upstream or await connect(origin)
        near = await asyncio.open_connection(sock=sock)
        far = await asyncio.open_connection(sock=upstream)
        try:
            await asyncio.gather(_pump(near[0], far[1]), _pump(far[0], near[1]))
        finally:
            for _, writer in (near, far):
                writer.transport.abort()


async def connect(origin: Origin) -> socket.socket:
    """Connect to where a connection was to lead. Raises: OSError."""
    family = socket.AF_INET6 if ":" in origin.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (origin.host, origin.port))
    except BaseException:
        made.close()
        raise
    return made


def note_greeting(client: connection.Client, greeting: Greeting | None) -> None:
    """Keep a client's greeting with it."""
    setattr(client, _GREETING, greeting)


def _greeting(client: connection.Client) -> Greeting | None:
    found: Greeting | None = getattr(client, _GREETING, None)
    return found


async def _find_greeting(sock: socket.socket, origin: Origin) -> Greeting | None:
    """Read the greeting that a client has sent, or is about to send whole; None where it is none. Raises: OSError."""
    deadline = time.monotonic() + _HELLO_S
    while True:
        said = sock.recv(_PEEKED, socket.MSG_PEEK)
        try:
            hello = parse_client_hello(said)
        except ValueError:
            return None
        if hello is not None:
            break
        if not said or time.monotonic() > deadline:
            return None
        await asyncio.sleep(
            _LOOK_S
        )  # the kernel tells nobody that there is more of what was not taken
    kinds = frozenset(kind for kind, _ in hello.extensions if not _is_grease(kind))
    ciphers = tuple(cipher for cipher in hello.cipher_suites if not _is_grease(cipher))
    return Greeting((hello.sni or origin.host).lower(), origin.port, (ciphers, kinds))


def _is_grease(number: int) -> bool:
    """Say whether a client has drawn this number (RFC 8701)."""
    return number & 0x0F0F == 0x0A0A


def _is_http(said: bytes) -> bool:
    """Say whether it is, or may become, the first line of a request."""
    return bool(_LINE.match(said) if b"\n" in said else _BEGUN.match(said))


def _has_said(sock: socket.socket | None) -> bool:
    """Say whether there is something to be read; an end is nothing."""
    with contextlib.suppress(OSError):
        return sock is not None and bool(sock.recv(1, socket.MSG_PEEK))
    return False


async def _wait_for_any(sock: socket.socket, other: socket.socket | None) -> socket.socket:
    """Wait until there is something to be read, on one or the other; give the first one."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[socket.socket] = loop.create_future()

    def tell(which: socket.socket) -> None:
        if not ready.done():
            ready.set_result(which)

    waited = [one for one in (sock, other) if one is not None]
    for one in waited:
        loop.add_reader(one.fileno(), tell, one)
    try:
        return await ready
    finally:
        for one in waited:
            loop.remove_reader(one.fileno())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


def _reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
