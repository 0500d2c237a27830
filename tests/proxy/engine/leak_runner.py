"""Everything that a client can do to make something leave, done to a playing engine without a network.

Run as a process. For each set of parts of the guard to be taken out it enters namespaces of their own,
starts probes (the outside) and an engine, records a tape, begins to play, and then lets every client
loose: each case in each profile (mitmproxy's options, some of them as nobody should set them), and again
with everything above the guard broken. It prints what reached the outside as JSON.

With every feature on (`leak_features.yaml`) there are further cases: what each feature does by itself, and
hosts of which a live rule lets out one path.
"""

import asyncio
import base64
import contextlib
import json
import logging
import os
import signal
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h2.connection
import h2.events
import mitmproxy_rs
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration
from mitmproxy import addonmanager, http
from mitmproxy.addons import clientplayback, dns_resolver
from mitmproxy.proxy import server
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.mode_servers import ServerInstance
from mitmproxy.test import tflow

from playhead.addons import client_sockets
from playhead.config import Config, Mode, ProxyAddress, loads
from playhead.proxy.engine import egress_guard as guard
from playhead.proxy.engine.event_loop import new_event_loop
from playhead.proxy.engine.upstream import Dialler
from playhead.tape.policy.choose_upstream_proxy import Routes
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support import namespaces
from playhead.tests.support.certificates import make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.probes import Probes, host_of

MOST_S = 200
"""How long all runs may take, on a machine that is busy with other things."""
PATIENCE_S = 40.0
"""How long a client waits for an answer that is to come."""
RECORDING_S = 60.0
"""The same while recording, when all ask at once and none may miss its answer."""
SILENCE_S = 0.4
"""How long a client waits where none may come."""
SETTLE_S = 0.15

LAYERS = ("sockets", "requests", "resolver")
FEATURES = Path(__file__).with_name("leak_features.yaml")
SINK, MODEL = 60_000, 60_001
"""Numbers of the hosts that the sink and the live model calls of `FEATURES` go to."""
_stock_resolver = mitmproxy_rs.dns.DnsResolver


# ---- a visit: one client that tries one thing ----------------------------------------------------


@dataclass
class Visit:
    """One case, in one profile, with the addons whole or broken."""

    number: int
    case: "Case"
    profile: str
    broken: bool
    seen: str = ""
    """What the client saw in the end: a status, `closed` or `silent`."""
    kept: socket.socket | None = None
    stage: "Stage" = field(init=False)

    @property
    def host(self) -> str:
        # Of a live host one path may leave, by the rules of `leak_features.yaml`.
        return f"c00{host_of(self.number)[1:]}" if self.case.live else host_of(self.number)

    def open(self, port: int = 0) -> socket.socket:
        """Connect to the proxy, or to another listener of it."""
        with self.stage.lock:
            self.stage.opened += 1
        target = ("127.0.0.1", port or self.stage.running.address.port)
        return socket.create_connection(target, timeout=self.stage.patience_s)

    def tunnel(self, port: int = 443, run: str = "tape") -> socket.socket:
        """Ask for a tunnel to the host of this visit."""
        sock = self.open()
        sock.sendall(
            f"CONNECT {self.host}:{port} HTTP/1.1\r\nhost: {self.host}:{port}\r\n"
            f"proxy-authorization: {_basic(run)}\r\n\r\n".encode()
        )
        self.seen = _status(sock)
        return sock

    def over_tls(self, sock: socket.socket, *alpn: str) -> ssl.SSLSocket:
        """Speak TLS with whoever is there. Raises: OSError, also where the tunnel was refused."""
        if self.seen not in ("", "200"):
            raise ConnectionRefusedError
        context = ssl.create_default_context(cafile=str(self.stage.running.ca))
        context.set_alpn_protocols(list(alpn or ("http/1.1",)))
        return context.wrap_socket(sock, server_hostname=self.host)

    def ask(
        self,
        sock: socket.socket,
        path: str = "/unknown",
        *lines: str,
        method: str = "GET",
        body: bytes = b"",
        base: str = "",
    ) -> None:
        """Send a request; see what comes."""
        host = base.partition("://")[2] or self.host
        head = [f"{method} {base}{path} HTTP/1.1", f"host: {host}", *lines]
        sock.sendall("\r\n".join([*head, "", ""]).encode() + body)
        self.seen = _status(sock)

    def ask_plain(
        self, path: str = "/unknown", *lines: str, run: str = "tape", **more: Any
    ) -> None:
        """Send a request the way it is sent to a proxy."""
        with self.open() as sock:
            credentials = f"proxy-authorization: {_basic(run)}"
            self.ask(sock, path, credentials, *lines, base=f"http://{self.host}", **more)

    def say(self, sock: socket.socket, data: bytes) -> None:
        """Send bytes that are no HTTP; no answer has to come."""
        sock.settimeout(SILENCE_S)
        sock.sendall(data)
        self.seen = _status(sock)


def _basic(run: str) -> str:
    return "Basic " + base64.b64encode(f"{run}:x".encode()).decode()


def _status(sock: socket.socket) -> str:
    """Read one response; give its status, `closed` or `silent`, or `bytes` if it is none."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                return "closed" if not data else "bytes"
            data += more
            if not data.startswith(b"HTTP/"[: len(data)]):
                return "bytes"
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name.lower() == b"content-length":
                while len(body) < int(value):
                    more = sock.recv(65536)
                    if not more:
                        break
                    body += more
    except TimeoutError:
        return "silent"
    except OSError:
        return "closed"
    return head.split(b" ", 2)[1].decode()


# ---- cases ---------------------------------------------------------------------------------------

Act = Callable[[Visit], None] | Callable[[Visit], Awaitable[None]]
ALL = ("shipped", "eager", "own-names", "loose", "loose-eager")
HIDDEN = ("ignored", "not-allowed")
QUIC = ("shipped", "loose", "loose-eager")


@dataclass(frozen=True)
class Case:
    """What a client does, and in which profiles that is worth trying."""

    name: str
    act: Act
    record: Act | None = None
    """Done while recording; what leaves then is not counted."""
    profiles: tuple[str, ...] = ALL
    leaks: tuple[str, ...] = ()
    """Parts of the guard each of which is all that holds this back, somewhere."""
    featured: bool = False
    """Whether it is done with every feature on alone."""
    live: bool = False
    """Whether its host is one that a live rule speaks of."""
    asks: tuple[str, ...] = ()
    """What has to reach that host, and nothing but that: methods and targets."""
    named: tuple[str, ...] = ()
    """What may reach it where the addons are broken, since a live rule names it."""

    def leaves(self, without: set[str]) -> bool:
        """Say whether it gets out somewhere with these parts of the guard taken out."""
        if without.issuperset(LAYERS):
            return not self.featured and self.name not in NEVER
        return bool(without.intersection(self.leaks))


NEVER = frozenset(["no_protocol_at_all"])
"""Names no destination, so that there is nowhere to leave to."""
CASES: list[Case] = []


def case(
    *,
    record: Act | None = None,
    profiles: tuple[str, ...] = ALL,
    leaks: tuple[str, ...] = (),
    name: str = "",
) -> Callable[[Act], Act]:
    """Add a case, named like its function."""

    def add(act: Act) -> Act:
        CASES.append(Case(name or act.__name__, act, record, profiles, leaks))
        return act

    return add


def featured(
    *,
    record: Act | None = None,
    live: bool = False,
    asks: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
) -> Callable[[Act], Act]:
    """Add a case of what is tried with every feature on."""

    def add(act: Act) -> Act:
        about = {"asks": asks, "named": named or asks}
        made = Case(act.__name__, act, record, featured=True, live=live, **about)
        CASES.append(made)
        return act

    return add


def _record_plain(v: Visit) -> None:
    v.ask_plain("/once")
    assert v.seen == "200", v.seen


def _record_tls(v: Visit) -> None:
    with v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/once")
    assert v.seen == "200", v.seen


@case()
def plain_get(v: Visit) -> None:
    v.ask_plain()


@case(record=_record_plain)
def plain_get_on_tape(v: Visit) -> None:
    v.ask_plain("/once")


@case(record=_record_plain)
def exhausted_tape(v: Visit) -> None:
    for _ in range(2):
        v.ask_plain("/once")


@case()
def unknown_tape(v: Visit) -> None:
    v.ask_plain(run="nobody-recorded-this")


@case()
def absolute_https(v: Visit) -> None:
    with v.open() as sock:
        v.ask(sock, base=f"https://{v.host}")


@case(leaks=("sockets",), profiles=(*ALL, *HIDDEN))
def connect_alone(v: Visit) -> None:
    v.tunnel().close()


@case(leaks=("sockets",), profiles=(*ALL, *HIDDEN))
def tls_not_on_tape(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock)


@case(record=_record_tls, leaks=("sockets",))
def tls_on_tape(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/once")


@case(leaks=("sockets",), profiles=(*ALL, *HIDDEN))
def tls_of_an_unknown_tape(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel(run="nobody-recorded-this")) as sock:
        v.ask(sock)


@case(leaks=("sockets",))
def h2_over_tls(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel(), "h2") as sock:
        talk = h2.connection.H2Connection()
        talk.initiate_connection()
        fields = {":method": "GET", ":scheme": "https", ":authority": v.host, ":path": "/x"}
        talk.send_headers(1, list(fields.items()), end_stream=True)
        sock.sendall(talk.data_to_send())
        v.seen = "closed"
        while data := sock.recv(65536):
            for event in talk.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    v.seen = dict(event.headers)[b":status"].decode()
                    return
                if isinstance(event, h2.events.StreamReset):
                    return
            sock.sendall(talk.data_to_send())


@case(leaks=("sockets",), profiles=(*ALL, *HIDDEN))
def raw_bytes_in_a_tunnel(v: Visit) -> None:
    with v.tunnel(9999) as sock:
        v.say(sock, b"\x00\x01\x02 no protocol that is known")


@case(leaks=("sockets",))
def dns_in_a_tunnel(v: Visit) -> None:
    with v.tunnel(53) as sock:
        query = _dns_query(v.host)
        v.say(sock, struct.pack("!H", len(query)) + query)


@case(leaks=("sockets",))
def no_http_inside_tls(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.say(sock, b"\x00\x01\x02 no protocol that is known")


@case()
def websocket(v: Visit) -> None:
    v.ask_plain("/ws", *_UPGRADE)


@case(leaks=("sockets",))
def websocket_over_tls(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/ws", *_UPGRADE)


_UPGRADE = (
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
)


@case(leaks=("sockets",))
def h2_prior_knowledge_in_a_tunnel(v: Visit) -> None:
    with v.tunnel(80) as sock:
        v.say(sock, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))


@case()
def h2c_upgrade(v: Visit) -> None:
    lines = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk")
    v.ask_plain("/x", *lines)


@case()
def big_body(v: Visit) -> None:
    # Where bodies are streamed, mitmproxy's core cannot send the answer that stands: the client waits.
    body = bytes(300_000)
    lines = (f"proxy-authorization: {_basic('tape')}", f"content-length: {len(body)}")
    with v.open() as sock:
        sock.settimeout(PATIENCE_S)
        v.ask(sock, "/big", *lines, method="POST", base=f"http://{v.host}", body=body)


@case()
def streamed_body(v: Visit) -> None:
    body = b"4\r\nabcd\r\n0\r\n\r\n"
    with v.open() as sock:
        sock.settimeout(PATIENCE_S)
        lines = (f"proxy-authorization: {_basic('tape')}", "transfer-encoding: chunked")
        v.ask(sock, "/streamed", *lines, method="POST", base=f"http://{v.host}", body=body)


@case()
def no_protocol_at_all(v: Visit) -> None:
    with v.open() as sock:
        v.say(sock, b"\x16\x03\x01\x00\x05hello\r\n\r\n")


def _raise_case(kind: str, hook: str, place: str) -> None:
    @case(name=f"{hook}_raises_{kind}_{place}")
    def _(v: Visit) -> None:
        v.ask_plain(f"/raise-{kind}-{hook}-{place}")


for _kind in ("sync", "async"):
    for _hook in ("requestheaders", "request"):
        for _place in ("first", "last"):
            _raise_case(_kind, _hook, _place)


def _pool_plain(v: Visit) -> None:
    run = f"pooled{v.number}"
    v.kept = v.open()
    v.ask(v.kept, "/once", f"proxy-authorization: {_basic(run)}", base=f"http://{v.host}")
    assert v.seen == "200", v.seen


def _pool_tls(v: Visit) -> None:
    v.kept = v.over_tls(v.tunnel(run=f"pooled{v.number}"))
    v.ask(v.kept, "/once")
    assert v.seen == "200", v.seen


def _switch(v: Visit) -> None:
    """What can never be: a run becomes a playback, and keeps its upstream connection."""
    v.stage.running.open_run(f"pooled{v.number}").mode = Mode.PLAYBACK


@case(record=_pool_plain, leaks=("requests",))
def pooled_connection(v: Visit) -> None:
    assert v.kept is not None
    _switch(v)
    with v.kept:
        v.ask(v.kept, base=f"http://{v.host}")


@case(record=_pool_tls, leaks=("requests",))
def pooled_tls_connection(v: Visit) -> None:
    assert v.kept is not None
    _switch(v)
    with v.kept:
        v.ask(v.kept)


# ---- other modes of mitmproxy, on listeners beside the engine's ----------------------------------


async def _tcp_mode(v: Visit, spec: str, act: Callable[[int], None]) -> None:
    instance: ServerInstance[Any] = ServerInstance.make(spec, v.stage.running.engine._proxyserver)
    beside = await asyncio.start_server(instance.handle_stream, "127.0.0.1", 0)
    try:
        await v.stage.on_thread(act, beside.sockets[0].getsockname()[1])
    finally:
        beside.close()


async def _udp_mode(v: Visit, spec: str, act: Callable[[int], Any]) -> None:
    instance: ServerInstance[Any] = ServerInstance.make(
        spec + f"@127.0.0.1:{v.stage.free_port()}", v.stage.proxyserver
    )
    await instance.start()
    try:
        await v.stage.on_thread(act, instance.listen_addrs[0][1])
    finally:
        await instance.stop()


def _socks(v: Visit, port: int, target: int) -> socket.socket:
    sock = v.open(port)
    sock.sendall(b"\x05\x01\x00")
    sock.recv(2)
    name = v.host.encode()
    sock.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + struct.pack("!H", target))
    sock.settimeout(SILENCE_S)
    with contextlib.suppress(OSError):
        sock.recv(64)
    sock.settimeout(PATIENCE_S)
    return sock


@case(leaks=("sockets",))
async def socks5(v: Visit) -> None:
    def act(port: int) -> None:
        with contextlib.suppress(OSError), _socks(v, port, 80) as sock:
            v.ask(sock)

    await _tcp_mode(v, "socks5@0", act)


@case(leaks=("sockets",))
async def socks5_with_tls(v: Visit) -> None:
    def act(port: int) -> None:
        with contextlib.suppress(OSError), v.over_tls(_socks(v, port, 443)) as sock:
            v.ask(sock)

    await _tcp_mode(v, "socks5@0", act)


@case(leaks=("sockets",))
async def socks5_with_raw_bytes(v: Visit) -> None:
    def act(port: int) -> None:
        with contextlib.suppress(OSError), _socks(v, port, 9999) as sock:
            v.say(sock, b"\x00\x01 raw")

    await _tcp_mode(v, "socks5@0", act)


def _reverse_case(scheme: str, port: int, leaks: tuple[str, ...]) -> None:
    @case(name=f"reverse_{scheme}", leaks=leaks)
    async def _(v: Visit) -> None:
        def act(listening: int) -> None:
            with contextlib.suppress(OSError), v.open(listening) as sock:
                sock.settimeout(2 * SILENCE_S)
                v.ask(sock)

        await _tcp_mode(v, f"reverse:{scheme}://{v.host}:{port}@0", act)


_reverse_case("http", 80, ("sockets",))
_reverse_case("https", 443, ("sockets",))
_reverse_case("tcp", 9999, ("sockets",))
_reverse_case("tls", 9999, ("sockets",))


@case()
async def upstream_proxy(v: Visit) -> None:
    def act(port: int) -> None:
        with v.open(port) as sock:
            v.ask(sock, base=f"http://{v.host}")

    await _tcp_mode(v, f"upstream:http://{v.host}:8080@0", act)


def _datagram(v: Visit, port: int, data: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SILENCE_S)
        sock.sendto(data, ("127.0.0.1", port))
        try:
            v.seen = "bytes" if sock.recv(65536) else "closed"
        except TimeoutError:
            v.seen = "silent"


def _dns_query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 4711, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)


@case(leaks=("sockets",))
async def reverse_udp(v: Visit) -> None:
    await _udp_mode(
        v, f"reverse:udp://{v.host}:9999", lambda port: _datagram(v, port, b"\x00 no protocol")
    )


@case(leaks=("sockets",))
async def reverse_dns(v: Visit) -> None:
    query = _dns_query(v.host)
    await _udp_mode(v, f"reverse:dns://{v.host}:853", lambda port: _datagram(v, port, query))


@case(leaks=("resolver",))
async def dns_mode(v: Visit) -> None:
    await _udp_mode(v, "dns", lambda port: _datagram(v, port, _dns_query(v.host)))


@case(leaks=("sockets",))
async def dns_mode_for_another_record(v: Visit) -> None:
    await _udp_mode(v, "dns", lambda port: _datagram(v, port, _dns_query(v.host, 15)))


@case(leaks=("sockets",), profiles=QUIC)
async def reverse_quic(v: Visit) -> None:
    await _udp_mode(
        v, f"reverse:quic://{v.host}:443", lambda port: asyncio.run(_quic(v, port, "other"))
    )


@case(profiles=QUIC)
async def reverse_http3(v: Visit) -> None:
    await _udp_mode(
        v, f"reverse:http3://{v.host}:443", lambda port: asyncio.run(_quic(v, port, "h3"))
    )


async def _quic(v: Visit, port: int, alpn: str) -> None:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=[alpn], server_name=v.host)
    configuration.verify_mode = ssl.CERT_NONE
    v.seen = "silent"
    with contextlib.suppress(OSError, TimeoutError):
        async with (
            # Greetings take long on a busy machine, and what gets out is to be seen.
            asyncio.timeout(PATIENCE_S if v.case in v.stage.leaving else 2 * SILENCE_S),
            connect(
                "127.0.0.1", port, configuration=configuration, create_protocol=_Quic
            ) as protocol,
        ):
            assert isinstance(protocol, _Quic)
            v.seen = "bytes"
            if alpn == "h3":
                talk = H3Connection(protocol._quic)
                fields = {":method": "GET", ":scheme": "https", ":authority": v.host, ":path": "/"}
                coded = [(name.encode(), value.encode()) for name, value in fields.items()]
                talk.send_headers(protocol._quic.get_next_available_stream_id(), coded, True)
            else:
                stream = protocol._quic.get_next_available_stream_id()
                protocol._quic.send_stream_data(stream, b"no protocol that is known", True)
            protocol.transmit()
            await asyncio.sleep(SILENCE_S)
            if v.case in v.stage.leaving:
                await v.stage.until_left({v.case})


class _Quic(QuicConnectionProtocol):
    """A client that only sends."""


@case()
async def client_replay(v: Visit) -> None:
    flow = tflow.tflow(resp=False)
    flow.request.host, flow.request.port, flow.live = v.host, 80, False
    flow.client_conn.peername = flow.client_conn.sockname = ("127.0.0.1", 1)
    replay = clientplayback.ReplayHandler(flow, v.stage.running.engine._master.options)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(replay.replay(), PATIENCE_S)
    v.seen = str(flow.response.status_code) if flow.response else "closed"


# ---- with every feature on -----------------------------------------------------------------------


def _post(v: Visit, path: str, body: str, *lines: str) -> None:
    length = f"content-length: {len(body)}"
    kind = "content-type: application/json"
    v.ask_plain(path, kind, length, *lines, method="POST", body=body.encode())


def _recorded(path: str, method: str = "GET", body: str = "") -> Act:
    """Give what records one request."""

    def record(v: Visit) -> None:
        if method == "GET":
            v.ask_plain(path)
        else:
            _post(v, path, body)
        assert v.seen == "200", v.seen

    return record


@featured(record=_recorded("/effect", "POST", "{}"))
def effect_on_tape(v: Visit) -> None:
    _post(v, "/effect", "{}")


@featured()
def effect_with_an_answer(v: Visit) -> None:
    _post(v, "/answered", "{}")


@featured(record=_recorded("/notes", "POST", '{"note": 1}'))
def effect_made_after_the_tape(v: Visit) -> None:
    _post(v, "/notes", '{"note": 2}')


@featured()
def effect_that_is_refused(v: Visit) -> None:
    _post(v, "/refused", "{}")


@featured(record=_recorded("/job"))
def read_that_is_polled(v: Visit) -> None:
    for _ in range(3):
        v.ask_plain("/job")


@featured(record=_recorded("/v1/chat/completions", "POST", '{"model":"a","messages":[]}'))
def model_that_drifted(v: Visit) -> None:
    _post(v, "/v1/chat/completions", '{"model":"b","messages":[]}')


@featured(record=_recorded("/once?pin=acme_0000000000000001&nonce=1"))
def secret_and_volatile(v: Visit) -> None:
    v.ask_plain("/once?pin=acme_0000000000000001&nonce=2")


def _fault_case(kind: str, *, ends: bool, asked: bool) -> None:
    """Add what a fault does over the tape, and at a live host.

    ends: whether the client is told anything, so that it need not give up.
    asked: whether the fault leaves the live host to be asked.
    """
    path = f"/fault-{kind}"

    def ask(v: Visit) -> None:
        with v.open() as sock:
            sock.settimeout(PATIENCE_S if ends else SILENCE_S)
            credentials = f"proxy-authorization: {_basic('tape')}"
            v.ask(sock, path, credentials, base=f"http://{v.host}")
            if asked and v.case.live:
                v.stage.until_asked(v.number, f"GET {path}")

    def add(name: str, **how: Any) -> None:
        act: Act = lambda v: ask(v)  # noqa: E731  # one a name
        act.__name__ = f"fault_{kind}_{name}"
        featured(**how)(act)

    asks = (f"GET {path}",)
    add("over_the_tape", record=_recorded(path))
    add("at_a_live_host", live=True, asks=asks if asked else (), named=asks)


_fault_case("delay", ends=True, asked=True)
_fault_case("status", ends=True, asked=False)
_fault_case("cut", ends=True, asked=True)
_fault_case("reset", ends=True, asked=False)
_fault_case("timeout", ends=False, asked=False)
_fault_case("late", ends=False, asked=True)


@featured(live=True, asks=("GET /live",))
def live(v: Visit) -> None:
    v.ask_plain("/live")


@featured(live=True, asks=("GET /live",))
def live_over_tls(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/live")


@featured()
def live_model(v: Visit) -> None:
    body = f'{{"model":"c","messages":[],"n":{v.number}}}'
    credentials = f"proxy-authorization: {_basic('tape')}"
    lines = ("content-type: application/json", f"content-length: {len(body)}", credentials)
    for path in ("/v1/chat/completions", "/v1/files"):
        with v.open() as sock:
            base = f"http://{host_of(MODEL)}"
            v.ask(sock, path, *lines, method="POST", base=base, body=body.encode())


@featured(live=True)
def live_of_an_unknown_tape(v: Visit) -> None:
    v.ask_plain("/live", run="nobody-recorded-this")


@featured(live=True)
def live_held_and_not_approved(v: Visit) -> None:
    _post(v, "/gated", "{}")


@featured(live=True, asks=("GET /live/again",) * 2)
def live_until_a_limit_is_reached(v: Visit) -> None:
    for _ in range(4):
        v.ask_plain("/live/again")


@featured(live=True)
def live_against_its_contract(v: Visit) -> None:
    _post(v, "/live/agreed", '{"sum": 1}')


@featured(live=True, asks=("POST /live/agreed",))
def live_within_its_contract(v: Visit) -> None:
    _post(v, "/live/agreed", '{"amount": 1}')


@featured(live=True)
def another_path_of_a_live_host(v: Visit) -> None:
    v.ask_plain("/else")


@featured(live=True)
def another_path_of_a_live_host_over_tls(v: Visit) -> None:
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/else")


@featured(live=True, asks=("GET /live",))
def another_path_after_a_live_one(v: Visit) -> None:
    # The connection is there already.
    with contextlib.suppress(OSError), v.over_tls(v.tunnel()) as sock:
        v.ask(sock, "/live")
        v.ask(sock, "/else")


@featured(live=True)
def another_method_at_a_live_host(v: Visit) -> None:
    _post(v, "/live", "{}")


@featured(live=True)
def websocket_at_a_live_host(v: Visit) -> None:
    v.ask_plain("/else", *_UPGRADE)


@featured(live=True)
def raw_bytes_to_a_live_host(v: Visit) -> None:
    with v.tunnel(9999) as sock:
        v.say(sock, b"\x00\x01\x02 no protocol that is known")


@featured(live=True)
def tunnel_to_a_live_host(v: Visit) -> None:
    v.tunnel().close()


@featured()
def live_path_of_another_host(v: Visit) -> None:
    v.ask_plain("/live")


@featured()
def live_host_in_the_host_field(v: Visit) -> None:
    with v.open() as sock:
        credentials = f"proxy-authorization: {_basic('tape')}"
        sock.sendall(
            f"GET http://{v.host}/live HTTP/1.1\r\nhost: c00{v.host[1:]}\r\n{credentials}\r\n\r\n".encode()
        )
        v.seen = _status(sock)


# ---- the stage -----------------------------------------------------------------------------------

_OURS: dict[str, Any] = {
    "connection_strategy": "lazy",
    "upstream_cert": True,
    "rawtcp": False,
    "http3": False,
    "stream_large_bodies": None,
    "ignore_hosts": [],
    "allow_hosts": [],
}
_LOOSE = {"rawtcp": True, "http3": True, "stream_large_bodies": "1k"}
_CHANGES: dict[str, dict[str, Any]] = {
    "shipped": {},
    "eager": {"connection_strategy": "eager"},
    "own-names": {"connection_strategy": "eager", "upstream_cert": False},
    "loose": _LOOSE,
    "loose-eager": {**_LOOSE, "connection_strategy": "eager"},
    "ignored": {"ignore_hosts": [".*"]},
    "not-allowed": {"allow_hosts": ["^nothing$"]},
}
PROXIED = "by a proxy"
"""The run in which upstreams are reached by a proxy of the network."""
PROFILES = {name: {**_OURS, **changes} for name, changes in _CHANGES.items()}
"""mitmproxy's options. With the last two it may look into nothing."""
_STOCK_DISPATCH = frozenset({"loose", "loose-eager"})
"""In these mitmproxy's own dispatch is back: a hook that raises changes nothing."""


class Broken:
    """Everything above the guard has failed: whatever was decided, the request goes on."""

    name = "everything is broken"  # as no addon of ours is called

    def __init__(self, hosts: frozenset[str]) -> None:
        self.hosts = hosts

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.host in self.hosts:
            flow.response = None
        if flow.request.path == "/streamed":
            flow.request.stream = True

    def request(self, flow: http.HTTPFlow) -> None:
        if flow.request.host in self.hosts:
            flow.response = None


class Raising:
    """Raises where the path says so."""

    def __init__(self, place: str) -> None:
        self.place = place

    def requestheaders(self, flow: http.HTTPFlow) -> Any:
        return self._raise("requestheaders", flow)

    def request(self, flow: http.HTTPFlow) -> Any:
        return self._raise("request", flow)

    def _raise(self, hook: str, flow: http.HTTPFlow) -> Any:
        if flow.request.path == f"/raise-sync-{hook}-{self.place}":
            raise RuntimeError("a hook raised")
        if flow.request.path == f"/raise-async-{hook}-{self.place}":
            return self._later()
        return None

    async def _later(self) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("a hook raised")


class Stage:
    """The engine, the clients' threads, and what was opened to the engine."""

    def __init__(self, running: Running, probes: Probes, visits: list[Visit]) -> None:
        self.running = running
        self.visits = visits
        self._probes = probes
        self.lock = threading.Lock()
        self.opened = 0
        self.patience_s = RECORDING_S
        self.leaving: set[Case] = set()
        """What gets out somewhere in this run, since parts of the guard are taken out."""
        self._pool = ThreadPoolExecutor(64)
        self._port = 20000

    @property
    def proxyserver(self) -> Any:
        return self.running.engine._proxyserver

    def free_port(self) -> int:
        """Give a UDP port that nobody else here takes."""
        self._port += 1
        return self._port

    def until_asked(self, number: int, what: str) -> None:
        """Wait until a request has reached the outside, for as long as a client may."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._probes.read()[number, f"asked {what}"] and time.monotonic() < deadline:
            time.sleep(0.01)

    async def until_left(self, cases: set[Case]) -> None:
        """Wait until each of these cases has reached the outside in one of its visits, for as long as a client may."""
        numbers = {one: [each.number for each in self.visits if each.case is one] for one in cases}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            out = {who for (who, _), count in self._probes.read().items() if count}
            if all(out.intersection(each) for each in numbers.values()):
                return
            await asyncio.sleep(0.02)

    async def on_thread(self, act: Callable[[Any], Any], argument: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, act, argument)

    async def go(self, act: Act, visit: Visit) -> None:
        """Let a client act."""
        if asyncio.iscoroutinefunction(act):
            await act(visit)
        else:
            await self.on_thread(act, visit)


def visits(profiles: tuple[str, ...], *, featured: bool, in_turns: bool) -> list[Visit]:
    """Give every case in every profile, with the addons whole and broken.

    featured: whether those are among them that need every feature on.
    in_turns: whether a case finds the addons whole and broken in its first profile alone, and in each of the others
        either so or so: of two profiles that follow each other, and of two cases, never the same.
    """
    found: list[Visit] = []
    for turn, profile in enumerate(profiles):
        for number, one in enumerate(CASES):
            if profile not in one.profiles or (one.featured and not featured):
                continue
            is_first = profile == next(each for each in profiles if each in one.profiles)
            for broken in (False, True):
                if is_first or not in_turns or broken == bool((turn + number) % 2):
                    found.append(Visit(len(found), one, profile, broken))
    return found


def remove(layers: set[str]) -> None:
    """Take parts of the guard out again."""
    if "sockets" in layers:
        server.ConnectionHandler.open_connection = guard._open_connection  # type: ignore[method-assign]
        server.asyncio = asyncio  # where what a name leads to is guarded
    if "requests" in layers:
        stock = guard._make_server_connection
        http_layer.HttpStream.__mro__[1].make_server_connection = stock  # type: ignore[attr-defined]
    if "resolver" in layers:
        mitmproxy_rs.dns.DnsResolver = _stock_resolver  # type: ignore[misc]


def dispatch_as(addons: Any, *, stock: bool) -> None:
    """Have hooks dispatched as mitmproxy does, or as we do."""
    for name in ("start", "trigger_event"):
        if stock:
            setattr(addons, name, addonmanager.AddonManager.trigger_event.__get__(addons))
        else:
            vars(addons).pop(name, None)


def configure(folder: Path, *, featured: bool) -> Config:
    """Give the configuration: as it is by default, or with every feature on."""
    found = Config()
    if featured:
        found = loads(FEATURES.read_text(), FEATURES.name, folder)
    return replace(found, mode=Mode.RECORD, store=folder / "store")


async def run(
    without: set[str], profiles: tuple[str, ...], folder: Path, *, featured: bool, proxied: bool
) -> dict[str, Any]:
    """Play everything; give what was seen.

    proxied: whether upstreams are reached by a proxy, were they reached at all.
    """
    global SILENCE_S
    certificates = make_certificates(folder / "certificates", ("*.upstream.test",))
    probes = Probes(certificates.chain)
    listening = socket.create_server(("127.0.0.1", 0))
    # With a part of the guard taken out each visit is looked for by itself.
    in_turns = not (FULL or without)
    planned = visits(profiles, featured=featured, in_turns=in_turns)
    config = replace(configure(folder, featured=featured), upstream_ca=certificates.root)
    async with running_engine(config) as running:
        master: Any = running.engine._master
        stage = Stage(running, probes, planned)
        stage.leaving = {visit.case for visit in planned if visit.case.leaves(without)}
        for visit in planned:
            visit.stage = stage
        records = [visit for visit in planned if visit.case.record is not None]
        began = time.monotonic()
        await asyncio.gather(*(stage.go(visit.case.record, visit) for visit in records))  # type: ignore[arg-type]
        if without:
            # What gets out is to be seen, however busy the machine is.
            SILENCE_S = max(3 * SILENCE_S, time.monotonic() - began)
        await running.end("tape")
        running.play()
        broken = frozenset(visit.host for visit in planned if visit.broken)
        master.addons.add(Raising("last"), Broken(broken), dns_resolver.DnsResolver())
        master.addons.chain.insert(0, Raising("first"))
        master.addons._table.clear()
        remove(without)
        if proxied:
            # Whoever connects to it is counted by the kernel.
            beside = ProxyAddress("http", *listening.getsockname())
            guard.GUARD.dialler = Dialler(Routes(hosts={"*": beside}))
        probes.reset()
        told_before = _told(config)
        stage.patience_s = PATIENCE_S
        stage.opened, kernel = 0, _tcp_opens()
        for profile in profiles:
            master.options.update(**PROFILES[profile])
            dispatch_as(master.addons, stock=profile in _STOCK_DISPATCH)
            here = [visit for visit in planned if visit.profile == profile]
            await asyncio.gather(*(stage.go(visit.case.act, visit) for visit in here))
        await asyncio.sleep(SETTLE_S)
        await stage.until_left(stage.leaving)
        if featured:
            playing = running.open_run("tape@1")
            assert playing.sink_queue is not None
            await playing.settled(PATIENCE_S)
            await playing.sink_queue.settle(playing.reporter)
        counts = probes.read()
        kernel = _tcp_opens() - kernel
    report = []
    for visit in planned:
        left = {kind: number for (who, kind), number in counts.items() if who == visit.number}
        report.append(
            {
                "case": visit.case.name,
                "profile": visit.profile,
                "broken": visit.broken,
                "seen": visit.seen,
                "left": left,
            }
        )

    def seen_of(wanted: int | str) -> dict[str, int]:
        return {kind: number for (who, kind), number in counts.items() if who == wanted}

    return {
        "visits": report,
        "stray": seen_of("stray"),
        "sink": seen_of(SINK),
        "told": _told(config) - told_before,
        "model": seen_of(MODEL),
        "opened": stage.opened,
        "connections": sum(counts[who, kind] for who, kind in counts if kind == "connections"),
        "kernel": kernel,
    }


def _told(config: Config) -> int:
    """Give how many effects a sink's file has been told of."""
    file = config.sink.file
    return len(file.read_bytes().splitlines()) if file is not None else 0


def _tcp_opens() -> int:
    """Give how many TCP connections anybody in this namespace has begun, as the kernel counts them."""
    lines = Path("/proc/self/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))["ActiveOpens"])


def report(
    without: list[str], profiles: list[str], folder: Path, *, featured: bool, proxied: bool
) -> dict[str, Any]:
    """Give what was seen in namespaces that this process enters, or why there are none."""
    try:
        namespaces.enter()
    except OSError as error:
        return {"impossible": str(error)}
    # Playhead is the proxy: nothing of its own goes by another one that somebody's shell names.
    os.environ |= {"http_proxy": "http://127.9.9.9:8080", "all_proxy": "http://127.9.9.9:8080"}
    logging.disable(logging.CRITICAL)
    client_sockets.HEAD_S = MOST_S  # whoever has a turn late is no silent client
    sys.unraisablehook = lambda _: None  # aioquic's streams cannot be collected in peace
    work = run(set(without), tuple(profiles), folder, featured=featured, proxied=proxied)
    return new_event_loop().run_until_complete(work)


def main() -> None:
    """Read runs as {name: [parts taken out, profiles, whether every feature is on]}; print {name: report}.

    Each is a child, forked off before there is a second thread, beside the others: what is imported is imported once.
    """
    wanted: dict[str, tuple[list[str], list[str], bool]] = json.loads(sys.argv[1])
    children = {}
    Redactor.prepare()  # a second of CPU that each child would need in its first request
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (without, profiles, featured)) in enumerate(wanted.items()):
            own = Path(folder, str(number))
            own.mkdir()
            children[name] = (os.fork(), own / "report.json")
            if children[name][0] == 0:
                signal.alarm(MOST_S)  # nobody is left to end it, should its parent be gone
                status = 1
                try:
                    seen = report(
                        without, profiles, own, featured=featured, proxied=name == PROXIED
                    )
                    children[name][1].write_text(json.dumps(seen))
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
        ended = [os.waitpid(child, 0)[1] for child, _ in children.values()]
        if any(ended):
            sys.exit("a run failed")
        print(
            json.dumps({name: json.loads(file.read_text()) for name, (_, file) in children.items()})
        )


if __name__ == "__main__":
    main()
