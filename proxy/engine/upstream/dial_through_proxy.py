"""Connect to an upstream by way of a proxy of the network.

mitmproxy could do this itself (`Server.via`), but it opens that connection, to another address, behind what the
guard was asked about; and knows no SOCKS. Here a connection comes out that stands for the one to the upstream, at the
place where the guard opens it. Rules:

1. The proxy is an address like any other: the guard looks at what its name leads to.
2. It looks up the upstream's name; this machine may not be able to.
3. A request over TLS, a WebSocket and HTTP/2 go through a tunnel (CONNECT, or SOCKS5); another request goes to an HTTP
   proxy in absolute form (RFC 9112 section 3.2.2), since many let tunnels lead to port 443 alone.
4. Whatever goes wrong is an OSError that names the proxy, and never its credentials.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any

import h11
from mitmproxy import connection, http

from ....config import ProxyAddress
from ....tape.policy.choose_upstream_proxy import Routes

_TIMEOUT_S = 30.0
"""Longest wait until a proxy has connected to an upstream, or has said that it cannot."""
_ATTRIBUTE = "playhead_forwards"
_TUNNELS = "playhead_tunnels"

Streams = tuple[Any, Any]
"""A reader and a writer, as those of asyncio."""
Open = Callable[[str, int], Awaitable[Streams]]
"""(address, port) -> a connection."""
Guarded = Callable[[str, int, Open], Awaitable[Streams]]
"""(host, port, open) -> the connection that `open` makes to an address which the host leads to and which is allowed."""


class UpstreamProxyError(OSError):
    """A proxy of the network did not connect to an upstream."""

    def __init__(self, proxy: ProxyAddress, why: object) -> None:
        super().__init__(f"upstream proxy {proxy}: {why}")


class Dialler:
    """Connects to upstreams by way of proxies."""

    def __init__(self, routes: Routes | None = None, roots: str | None = None) -> None:
        """Connect as `routes` say; without them, always directly.

        roots: PEM file of the roots by which a proxy is trusted that is reached over TLS; None is the system's.
        """
        self._routes = routes or Routes()
        self._roots = roots
        if any(proxy.scheme == "socks5" for proxy in self._routes.proxies):
            from . import socks  # noqa: F401  # later it might come from files that a command can write

    @property
    def is_direct(self) -> bool:
        """Whether no upstream is reached by way of a proxy."""
        return next(iter(self._routes.proxies), None) is None

    def choose(self, upstream: connection.Server, host: str, port: int) -> ProxyAddress | None:
        """Choose the proxy by which an upstream is reached; None is none."""
        found = self._routes.choose("https" if upstream.tls else "http", host, port)
        return None if found.is_direct else found

    async def connect(
        self,
        proxy: ProxyAddress,
        client: connection.Client,
        upstream: connection.Server,
        place: tuple[str, int],
        guarded: Guarded,
    ) -> Streams:
        """Connect to a place by way of a proxy.

        Raises: OSError.
        """
        try:
            host = to_ascii(place[0])
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._connect(proxy, client, upstream, (host, place[1]), guarded)
        except PermissionError:  # the guard's
            raise
        except TimeoutError as error:
            raise UpstreamProxyError(proxy, f"timed out after {_TIMEOUT_S:g} s") from error
        except UpstreamProxyError:
            raise
        except ssl.SSLCertVerificationError as error:
            text = f"its certificate is not trusted ({error.verify_message}); --upstream-ca FILE adds its root"
            raise UpstreamProxyError(proxy, text) from error
        except OSError as error:
            raise UpstreamProxyError(proxy, error) from error

    async def _connect(
        self,
        proxy: ProxyAddress,
        client: connection.Client,
        upstream: connection.Server,
        place: tuple[str, int],
        guarded: Guarded,
    ) -> Streams:
        if proxy.scheme == "socks5":
            from .socks import connect_through

            return await guarded(
                proxy.host,
                proxy.port,
                lambda address, port: connect_through(proxy, (address, port), place),
            )
        over_tls = proxy.scheme == "https"
        more: dict[str, Any] = (
            {"ssl": self._context, "server_hostname": proxy.host} if over_tls else {}
        )
        reader, writer = await guarded(
            proxy.host,
            proxy.port,
            lambda address, port: asyncio.open_connection(address, port, **more),
        )
        if needs_tunnel(client, upstream, place):
            try:
                await _open_tunnel(reader, writer, proxy, place)
            except BaseException:
                writer.close()
                raise
        else:
            setattr(upstream, _ATTRIBUTE, proxy)
        return reader, _OverTls(writer) if over_tls else writer

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._roots)
        # As for upstreams: company roots often lack the extensions that Python 3.13 asks for by itself.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def needs_tunnel(
    client: connection.Client, upstream: connection.Server, place: tuple[str, int]
) -> bool:
    """Say whether an HTTP proxy has to let bytes pass as they are."""
    if upstream.tls or place in getattr(client, _TUNNELS, ()):
        return True
    return client.alpn == b"h2" and not client.tls  # gRPC without TLS


def note_upgrade(client: connection.Client, request: http.Request) -> None:
    """Have a connection that will not be HTTP for long be made through a tunnel."""
    if "upgrade" in request.headers:
        place = (request.host, request.port)
        setattr(client, _TUNNELS, {*getattr(client, _TUNNELS, ()), place})


def forwarding(upstream: connection.Connection) -> ProxyAddress | None:
    """Give the proxy that a connection leads to and that wants requests in absolute form; None where there is none."""
    found: ProxyAddress | None = getattr(upstream, _ATTRIBUTE, None)
    return found


def in_absolute_form(
    request: http.Request, proxy: ProxyAddress, upstream: connection.Connection
) -> http.Request:
    """Give a request as a proxy wants it: to the very host and port that the guard was asked about."""
    assert isinstance(upstream, connection.Server)
    assert upstream.address is not None
    host, port = upstream.address[:2]
    sent = request.copy()
    sent.scheme = "http"
    shown = f"[{host}]" if ":" in host else to_ascii(host)
    sent.data.authority = (shown if port == 80 else f"{shown}:{port}").encode()
    for name, value in credentials(proxy):
        sent.headers.fields = (*sent.headers.fields, (name, value))
    return sent


def credentials(proxy: ProxyAddress) -> list[tuple[bytes, bytes]]:
    """Give the field by which an HTTP proxy knows who asks (RFC 7617)."""
    if not proxy.has_credentials:
        return []
    encoded = b64encode(f"{proxy.user}:{proxy.password}".encode())
    return [(b"Proxy-Authorization", b"Basic " + encoded)]


async def _open_tunnel(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    proxy: ProxyAddress,
    place: tuple[str, int],
) -> None:
    """Have an HTTP proxy connect to an upstream. Raises: OSError."""
    host, port = place
    authority = (f"[{host}]" if ":" in host else host) + f":{port}"
    talk = h11.Connection(h11.CLIENT)
    fields = [(b"Host", authority.encode()), *credentials(proxy)]
    writer.write(talk.send(h11.Request(method="CONNECT", target=authority, headers=fields)) or b"")
    writer.write(talk.send(h11.EndOfMessage()) or b"")
    try:
        # To its end and no further: what follows is the upstream's.
        talk.receive_data(await reader.readuntil(b"\r\n\r\n"))
        answer = talk.next_event()
    except asyncio.IncompleteReadError as error:
        raise UpstreamProxyError(proxy, "it hung up before it had answered") from error
    except asyncio.LimitOverrunError as error:
        raise UpstreamProxyError(proxy, "its answer has a head without end") from error
    except h11.RemoteProtocolError as error:
        raise UpstreamProxyError(proxy, "its answer is no HTTP") from error
    if not isinstance(answer, h11.Response):
        raise UpstreamProxyError(proxy, "its answer is none to CONNECT")
    if not 200 <= answer.status_code < 300:
        raise UpstreamProxyError(proxy, says_no(answer.status_code, proxy))


def says_no(status: int, proxy: ProxyAddress) -> str:
    """Say what a proxy means by a status that is no success."""
    if status in (401, 407):  # tinyproxy says the first where credentials are wrong
        given = "other credentials than these" if proxy.has_credentials else "credentials"
        return f"it wants {given} ({status}); give USER:PASSWORD@ in its address, or upstream_proxy.credentials_file"
    return f"it answered CONNECT with {status}"


def to_ascii(host: str) -> str:
    """Give a host as it is written on the wire. Raises: OSError."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError as error:
        raise OSError(f"no name or service: {error}") from error


class _OverTls:
    """A writer to a proxy over TLS, which cannot be closed by half."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def write_eof(self) -> None:
        """Refuse."""
        raise OSError("TLS cannot be closed by half")
