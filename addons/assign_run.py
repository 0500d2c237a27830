"""Bind every client connection to its run before any other hook sees it."""

import base64
import binascii
from collections.abc import Awaitable

from mitmproxy import connection, http

from .run.registry import Rejected, RunRegistry
from .wire.convert_http_messages import make_answer

_STRIPPED = ("proxy-authorization", "proxy-connection")
"""Meant for the proxy: mitmproxy would send them on with plain requests."""


class Identify:
    """Read the proxy credentials, find the run, answer 407 where they are wrong."""

    def __init__(self, registry: RunRegistry) -> None:
        """Bind clients to the open runs of `registry`."""
        self._registry = registry
        self._seen: dict[str, str | None] = {}

    async def http_connect(self, flow: http.HTTPFlow) -> None:
        """Bind the client of a tunnel."""
        await self._bind(flow)

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Bind the client of a plain request, and check that it did not change its name."""
        client = flow.client_conn
        given = flow.request.headers.get("proxy-authorization")
        if client.id in self._seen and (given is None or given == self._seen[client.id]):
            if given is not None or "proxy-connection" in flow.request.headers:
                self._strip(flow)
            return None
        return self._bind(flow)

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget its credentials; it stays in its run until late answers have come."""
        self._seen.pop(client.id, None)

    async def _bind(self, flow: http.HTTPFlow) -> None:
        given = flow.request.headers.get("proxy-authorization")
        self._strip(flow)
        outcome = await self._registry.assign(flow.client_conn, parse_credentials(given))
        if isinstance(outcome, Rejected):
            flow.response = _rejection(outcome)
            return
        if flow.client_conn.timestamp_end is None:  # else it has left, and leaves only once
            self._seen[flow.client_conn.id] = given

    def _strip(self, flow: http.HTTPFlow) -> None:
        for name in _STRIPPED:
            flow.request.headers.pop(name, None)


class Leave:
    """Take a client out of its run, after everybody else is done with it."""

    def __init__(self, registry: RunRegistry) -> None:
        """Take clients out of the open runs of `registry`."""
        self._registry = registry

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget the client."""
        self._registry.leave(client)


def _rejection(rejected: Rejected) -> http.Response:
    challenge = (b"proxy-authenticate", b'Basic realm="playhead: RUN:TOKEN"')
    kind = (b"content-type", b"text/plain; charset=utf-8")
    return make_answer(
        rejected.status,
        (challenge, kind) if rejected.status == 407 else (kind,),
        f"playhead: {rejected.reason}\n".encode(),
    )


def parse_credentials(header: str | None) -> tuple[str, str] | None:
    """Read `Basic` credentials as (run, token); None where there are none, or not readable.

    The token may hold colons; mitmproxy's own parser would refuse those.
    """
    scheme, _, coded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, _, token = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, token) if user else None
