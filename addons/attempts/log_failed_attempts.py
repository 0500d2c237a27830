"""Note the attempts of clients that came to nothing, in the log of their run.

A connection to a host, through CONNECT or captured in a sandbox, is watched until something is asked on it. One that ends
before is an empty tunnel, a failed handshake or a cut request; what is no request, or cannot be read in one way, is
noted whenever it comes. While recording and in playback alike: the receipt compares the two (`tape/diff/compare_failed_attempts.py`).

Failures of the upstream are none of these, but exchanges: `addons/failed_tunnels.py`. Nor is a request whose head has come:
`addons/answer/incomplete_requests.py`.
"""

import asyncio
import contextlib
import ipaddress
import time
import weakref
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mitmproxy import connection, http, tls
from mitmproxy.proxy import layer

from ...config import Mode
from ...store import StoreError
from ...tape.diff.divergence_types import one_line
from ...tape.policy.decide import CONTROL_HOST
from ...tape.records.events import EventKind
from ...tape.records.failed_attempt import CUT_HEAD, GREETED, NOTHING_SAID, Attempt, AttemptKind
from ..run.registry import Rejected, RunRegistry
from ..run.run_state import OpenRun
from .pass_own_loopback_ports import passes

_PREFACE = b"PRI * HTTP/2.0\r\n"
_TLS = b"\x16"
"""First byte of a handshake (RFC 8446 section 5.1)."""
_MOST_LOOKS = 32
"""Clients whose processes are looked for at a time; those of further ones stay unknown."""
_TURNS = 50
"""Turns of the loop that reading what clients of a run did last may take."""
_REFUSED = "TLS refused by the client"
_SILENT = "connected to, and no request of HTTP came"
_ALERTS = ("alert", "unknown ca", "bad certificate", "certificate unknown")


class Stray(NamedTuple):
    """What a client said that is no request, or no whole one."""

    client: connection.Client
    server: connection.Server
    said: str
    kind: AttemptKind
    foreign: bool
    """Whether it is no HTTP at all."""


@dataclass(slots=True)
class _Watched:
    """A connection on which nothing was asked yet."""

    open_run: OpenRun
    host: str
    port: int
    opened: float
    """When it was accepted, by the monotonic clock."""
    captured: bool
    process: "asyncio.Task[str] | None" = None
    handshaking: bool = False
    greeted: bool = False
    established: bool = False
    said: bool = False
    """Whether anything came, since its TLS greeting if there was one."""
    hailed: bool = False
    """Whether the preface of HTTP/2 came, which is a greeting alone."""

    @property
    def over_loopback(self) -> bool:
        """Whether it leads to this machine by its address."""
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False


class Attempts:
    """Watch connections until something is asked on them."""

    def __init__(self, registry: RunRegistry) -> None:
        """Note the attempts of clients of the open runs of `registry`."""
        self._registry = registry
        registry.hooks.on_ending.append(self.end)
        self._watched: dict[str, _Watched] = {}
        self._ended: weakref.WeakSet[OpenRun] = weakref.WeakSet()
        """Runs of which nothing is noted any more."""
        self._looks: set[asyncio.Task[str]] = set()
        self._writing: set[asyncio.Task[None]] = set()

    # ---- hooks ---------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        """Note when it came: before it asks for a tunnel it has waited for the proxy."""
        client.accepted_at = time.monotonic()  # type: ignore[attr-defined]  # read when it is watched

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """Begin to watch a tunnel."""
        if flow.response is None and not passes(flow):
            self.begin(flow.client_conn, flow.request.host, flow.request.port, captured=False)

    def begin(self, client: connection.Client, host: str, port: int, *, captured: bool) -> None:
        """Begin to watch a connection that leads to a host."""
        open_run = self._registry.of(client)
        if open_run is None or open_run.info is None or host == CONTROL_HOST:
            return
        if client.id not in self._watched and client.timestamp_end is None:
            self._watched[client.id] = self._watch(open_run, client, host, port, captured=captured)

    def next_layer(self, data: layer.NextLayer) -> None:
        """Note that a client has said something, whatever it is."""
        if watched := self._watched.get(data.context.client.id):
            begun = data.data_client()
            if begun.startswith(_TLS) and not watched.greeted:
                watched.handshaking = True
            elif begun.startswith(_PREFACE):
                watched.hailed = True
            elif begun:
                watched.said = True

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Note a greeting."""
        if watched := self._watched.get(data.context.client.id):
            watched.greeted = True

    def tls_established_client(self, data: tls.TlsData) -> None:
        """Note that TLS is there."""
        if watched := self._watched.get(data.context.client.id):
            watched.established = True

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Note a client that broke TLS off, as one that does not trust the certificate."""
        client = data.context.client
        watched = self._watched.pop(client.id, None)
        if watched is None or _is_upstreams(client):
            return
        error = data.conn.error or ""
        named = f" (it greeted {client.sni})" if client.sni not in (None, watched.host) else ""
        if any(word in error for word in _ALERTS):
            detail = f"the client does not trust the certificate{named}"
            self._emit(watched, AttemptKind.FAILED_HANDSHAKE, detail, f"{_REFUSED}{named}", True)
        else:
            self._left_handshake(watched, named, spared="not trust" not in error)

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Watch no longer: something is asked."""
        self._watched.pop(flow.client_conn.id, None)

    def playhead_tunnel(self, attempt: Any) -> None:
        """Watch no longer: it is the upstream that failed, which is kept as an exchange."""
        self._watched.pop(attempt.client.id, None)

    def playhead_stray(self, stray: Stray) -> Awaitable[None] | None:
        """Note what is no request."""
        open_run = self._registry.of(stray.client)
        if open_run is None:
            return self._assign(stray) if self._registry.is_sole else None
        self._note_stray(open_run, stray)
        return None

    def client_disconnected(self, client: connection.Client) -> None:
        """Note a client that left without a request."""
        watched = self._watched.pop(client.id, None)
        if watched is not None and not _is_upstreams(client):
            self._over(watched)

    async def end(self, open_run: OpenRun) -> None:
        """Note what was left of a run's connections, before it is sealed."""
        for _ in range(_TURNS):  # what its clients did last is read first
            await asyncio.sleep(0)
        for id_, watched in list(self._watched.items()):
            client = open_run.clients.get(id_)
            if watched.open_run is open_run:
                del self._watched[id_]
                if client is None or not _is_upstreams(client):
                    self._over(watched)
        self._ended.add(open_run)
        if self._writing:
            await asyncio.wait(list(self._writing))

    # ---- inside --------------------------------------------------------------------------------

    def _watch(
        self,
        open_run: OpenRun,
        client: connection.Client,
        host: str,
        port: int,
        *,
        captured: bool,
    ) -> _Watched:
        opened = getattr(client, "accepted_at", None) or time.monotonic()
        made = _Watched(open_run, host.lower(), port, opened, captured)
        if len(self._looks) < _MOST_LOOKS:
            # At once: who has left cannot be found any more.
            look = self._registry.find_process(client)
            made.process = _kept(self._looks, look)
        return made

    def _over(self, watched: _Watched) -> None:
        """Note a connection that ended, or whose run did."""
        if watched.said:
            egress = "" if watched.over_loopback else _SILENT
            self._emit(watched, AttemptKind.CUT_REQUEST, CUT_HEAD, egress)
        elif (watched.greeted or watched.handshaking) and not watched.established:
            self._left_handshake(watched)
        elif watched.established:
            detail = GREETED if watched.hailed else "nothing was asked in its TLS"
            self._emit(watched, AttemptKind.EMPTY_TUNNEL, detail)
        else:
            silent = watched.captured and not watched.over_loopback
            egress = _SILENT if silent else ""
            self._emit(watched, AttemptKind.EMPTY_TUNNEL, NOTHING_SAID, egress, spared=True)

    def _left_handshake(self, watched: _Watched, named: str = "", *, spared: bool = True) -> None:
        detail = f"the client left before TLS was there{named}"
        egress = f"{_REFUSED}{named}"
        self._emit(watched, AttemptKind.FAILED_HANDSHAKE, detail, egress, spared=spared)

    async def _assign(self, stray: Stray) -> None:
        """Note what is no request on a connection that belongs to nobody yet, where there is one run alone."""
        open_run = await self._registry.assign(stray.client, None)
        if not isinstance(open_run, Rejected) and open_run.info is not None:
            self._note_stray(open_run, stray)

    def _note_stray(self, open_run: OpenRun, stray: Stray) -> None:
        watched, egress = self._watched.pop(stray.client.id, None), ""
        if watched is not None and stray.kind is AttemptKind.CUT_REQUEST:
            self._over(watched)
            return
        if watched is None:
            host, port = stray.server.address[:2] if stray.server.address else ("", 0)
            watched = self._watch(open_run, stray.client, host, port, captured=False)
        if stray.foreign and watched.host:
            egress = f"no request of HTTP, but {stray.said}"
        self._emit(watched, stray.kind, stray.said, egress)

    def _emit(
        self,
        watched: _Watched,
        kind: AttemptKind,
        detail: str,
        egress: str = "",
        distrusted: bool = False,
        *,
        spared: bool = False,
    ) -> None:
        """Note an attempt, once the process that made it is known."""
        open_run = watched.open_run
        if open_run in self._ended:
            return
        if watched.over_loopback and kind is AttemptKind.FAILED_HANDSHAKE:
            egress = ""
        if open_run.mode is not Mode.PLAYBACK:
            egress = ""
        attempt = Attempt(
            kind,
            watched.host,
            watched.port,
            detail=one_line(open_run.redactor.redact_text(detail)),
            after=open_run.on_the_way.last_seq,
            beside=_is_beside(watched),
            distrusted=distrusted,
            egress=one_line(open_run.redactor.redact_text(egress)),
            spared=spared,
        )
        if watched.process is None or watched.process.done():
            _write(open_run, attempt, watched.process)
        else:
            _kept(self._writing, _write_later(open_run, attempt, watched.process))


def _is_upstreams(client: connection.Client) -> bool:
    """Say whether a connection ends over its upstream, which is kept as an exchange."""
    handshaking = getattr(client, "handshaking", False)
    return bool(handshaking or getattr(client, "fails_as_recorded", False))


def _is_beside(watched: _Watched) -> bool:
    """Say whether something was asked of the same host on another connection while this one was open."""
    return watched.open_run.was_asked((watched.host, watched.port), since=watched.opened)


async def _write_later(open_run: OpenRun, attempt: Attempt, process: "asyncio.Task[str]") -> None:
    await asyncio.wait([process])
    _write(open_run, attempt, process)


def _write(open_run: OpenRun, attempt: Attempt, process: "asyncio.Task[str] | None") -> None:
    name = process.result() if process is not None else ""
    if name:
        attempt = replace(attempt, process=one_line(open_run.redactor.redact_text(name)))
    with contextlib.suppress(StoreError):  # a gap
        open_run.note(EventKind.NOTED, attempt=attempt.to_event())


def _kept[T](tasks: "set[asyncio.Task[T]]", work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task, and keep it until it has ended."""
    task = asyncio.get_running_loop().create_task(work)
    if not task.done():
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    return task
