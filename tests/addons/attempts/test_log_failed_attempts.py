"""Connections on which nothing was asked: what the log says of them, and what a replay makes of them."""

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.records.events import EventKind
from playhead.tape.records.failed_attempt import GREETED
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.handshakes import Acceptor, answering
from playhead.tests.support.tls import client_context
from playhead.tests.support.wire import Wire, tunnel
from playhead.timeline import Receipt

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LONG_S = 10.0


class Stage:
    """An engine and an origin with TLS, at which one client does things."""

    def __init__(self, deck: Deck, origin: Acceptor) -> None:
        self.deck, self.origin = deck, origin
        self.run = "tape"

    @property
    def ca(self) -> Path:
        return self.deck.running.ca

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.origin.port}"

    def ask(self, path: str = "/") -> None:
        """Ask for something on a connection of its own."""
        with self.asking() as wire:
            self.ask_on(wire, path)

    def asking(self) -> Wire:
        """Open a connection to ask on."""
        return Wire(self.tls())

    def ask_on(self, wire: Wire, path: str = "/") -> None:
        """Ask for something on a connection."""
        answer = wire.ask(f"GET {path} HTTP/1.1\r\nHost: {self.place}\r\n\r\n".encode())
        assert answer.status == 200, answer

    def tls(self) -> socket.socket:
        """Open a tunnel with TLS in it."""
        return tunnel(self.deck.proxy, self.place, self.run, ca=self.ca)

    def plain(self) -> socket.socket:
        """Open a tunnel."""
        return tunnel(self.deck.proxy, self.place, self.run)

    def tell(self, *does: Callable[["Stage"], None]) -> Receipt:
        """Do some things in a run, and give its receipt."""
        for do in does:
            do(self)
        self.deck.do(_alone, self.deck, self.run)
        self.deck.end(self.run)
        return self.deck.receipt(self.run)

    def replay(self, number: int, *does: Callable[["Stage"], None]) -> Receipt:
        """Do some things in a replay, and give its receipt."""
        self.deck.play()
        for do in does:
            do(self)
        name = f"tape@{number}"
        self.deck.do(_alone, self.deck, name)
        self.deck.end(name)
        return self.deck.receipt(name)


async def _alone(deck: Deck, run: str) -> None:
    """Wait until the clients of a run are gone."""
    open_run, until = deck.running.open_run(run), time.monotonic() + LONG_S
    while open_run.clients and time.monotonic() < until:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.001)


@pytest.fixture
def stage(store_dir: Path, certificates: Certificates) -> Iterator[Stage]:
    """Record from an origin with TLS."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Acceptor(answering(certificates, ANSWER)) as origin, Deck(config) as deck:
        yield Stage(deck, origin)


def ask(stage: Stage) -> None:
    """Ask for something."""
    stage.ask()


def silent(stage: Stage) -> None:
    """Open a tunnel, and leave."""
    stage.plain().close()


def empty(stage: Stage) -> None:
    """Leave once TLS is there."""
    stage.tls().close()


def hail(stage: Stage) -> None:
    """Leave once HTTP/2 was greeted."""
    context = client_context(stage.ca, "h2")
    with context.wrap_socket(stage.plain(), server_hostname="127.0.0.1") as opened:
        opened.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5))
        opened.recv(1)


def distrust(stage: Stage) -> None:
    """Do not trust the certificate."""
    context = ssl.create_default_context()
    with stage.plain() as opened, contextlib.suppress(ssl.SSLError):
        context.wrap_socket(opened, server_hostname="127.0.0.1")


def _greeting(stage: Stage) -> bytes:
    written = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client_context(stage.ca).wrap_bio(
            ssl.MemoryBIO(), written, server_hostname="127.0.0.1"
        ).do_handshake()
    return written.read()


def greet(stage: Stage) -> None:
    """Leave once the proxy has said its part of the handshake."""
    opened = stage.plain()
    opened.sendall(_greeting(stage))
    opened.recv(1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    opened.close()


def greet_in_part(stage: Stage) -> None:
    """Leave in the middle of a greeting."""
    opened = stage.plain()
    opened.sendall(_greeting(stage)[:20])
    opened.close()


def _say(opened: socket.socket, data: bytes) -> None:
    opened.sendall(data)
    with contextlib.suppress(OSError):
        while opened.recv(4096):
            pass
    opened.close()


def two_hosts(stage: Stage) -> None:
    """Name two hosts."""
    _say(stage.tls(), b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")


def two_hosts_later(stage: Stage) -> None:
    """Name two hosts in the second request of a connection."""
    opened = stage.tls()
    stage.ask_on(Wire(opened))
    _say(opened, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")


def noise(stage: Stage) -> None:
    """Say what is no HTTP."""
    _say(stage.plain(), b"\0\0\0\x08\4\xd2\x16\x2f")


def half_a_head(stage: Stage) -> None:
    """Leave in the middle of a head."""
    opened = stage.tls()
    opened.sendall(b"POST /refunds HTTP/1.1\r\nHost: 127")
    opened.close()


def half_a_second_head(stage: Stage) -> None:
    """Leave in the middle of the second head of a connection."""
    opened = stage.tls()
    stage.ask_on(Wire(opened))
    opened.sendall(b"POST /refunds HTTP/1.1\r\nHost: 127")
    opened.close()


KINDS: dict[Callable[[Stage], None], str] = {
    silent: "empty tunnel",
    empty: "empty tunnel",
    distrust: "failed handshake",
    greet: "failed handshake",
    greet_in_part: "failed handshake",
    two_hosts: "malformed request",
    two_hosts_later: "malformed request",
    noise: "malformed request",
    half_a_head: "cut request",
    half_a_second_head: "cut request",
}


@pytest.mark.parametrize("do", KINDS)
def test_an_attempt_is_compared_with_the_tape(stage: Stage, do: Callable[[Stage], None]) -> None:
    """The same is faithful; once more, once less or elsewhere is a divergence that names it."""
    later = do in (two_hosts_later, half_a_second_head)
    recorded = stage.tell(ask, do)
    (row,) = recorded.attempts
    assert (row["kind"], row["target"], row["count"]) == (KINDS[do], stage.place, 1)
    assert row["recorded"] is None
    same = stage.replay(1, ask, do)
    assert same.faithful, (same.divergences, same.egress)
    more = stage.replay(2, *([] if later else [ask]), do, do)
    less = stage.replay(3, *([ask, ask] if later else [ask]))
    (surplus,) = (one for one in more.divergences if KINDS[do] in one["text"])
    assert surplus["kind"] == "unexpected"
    assert "2 in this run, 1 on the tape" in surplus["text"]
    assert more.faithful is False
    (missing,) = less.divergences
    assert (missing["kind"], less.faithful) == ("unused", False)
    assert KINDS[do] in missing["text"]


def test_what_is_no_request_may_have_been_one_that_leaves(stage: Stage) -> None:
    """Noise that the tape does not have is listed as egress, too."""
    stage.tell(ask)
    (row,) = stage.replay(1, ask, noise).egress
    assert row["reason"].startswith("no request of HTTP, but")


def pool(unused: int, order: str = "before") -> Callable[[Stage], None]:
    """Ask on one connection of a pool, of which others are never used."""

    def do(stage: Stage) -> None:
        with contextlib.ExitStack() as open_:
            if order == "before":
                ready = [open_.enter_context(stage.tls()) for _ in range(unused)]
                wire = open_.enter_context(stage.asking())
            else:
                wire = open_.enter_context(stage.asking())
                stage.ask_on(wire)
                ready = [open_.enter_context(stage.tls()) for _ in range(unused)]
            stage.ask_on(wire)
            assert len(ready) == unused

    return do


@pytest.mark.parametrize(("then", "now"), [(0, 3), (3, 0), (1, 2), (2, 2)])
def test_connections_beside_requests_may_vary(stage: Stage, then: int, now: int) -> None:
    """Pools, browsers and clients that race connect ahead of what they ask, as often as they like: reported alone."""
    recorded = stage.tell(pool(then))
    assert recorded.warnings == []
    assert recorded.unrecorded == []
    receipt = stage.replay(1, pool(now))
    assert receipt.faithful, receipt.divergences
    assert [(row["count"], row["recorded"], row["differs"]) for row in receipt.attempts] == [
        (now, then, False)
    ]


def test_a_pool_that_grows_later_may_vary(stage: Stage) -> None:
    """Connections made while another is in use, too."""
    stage.tell(pool(0, "later"))
    assert stage.replay(1, pool(2, "later")).faithful


def test_a_recording_warns_with_the_remedy(stage: Stage) -> None:
    """Of a client that distrusts the CA, as one that may not have been recorded at all."""
    receipt = stage.tell(distrust)
    (warning,) = receipt.warnings[-1:]
    assert stage.place in warning
    assert "does not trust the certificate" in warning
    assert "NODE_EXTRA_CA_CERTS" in warning
    assert "--capture" in warning
    (text,) = (one for one in receipt.unrecorded if "failed handshake" in one)
    assert stage.place in text


def test_a_greeting_of_http2_is_told_from_silence(
    store_dir: Path, certificates: Certificates
) -> None:
    """Whoever says it has looked at the certificate."""

    def speak(sock: socket.socket) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificates.chain)
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(sock, server_side=True) as opened:
            while opened.recv(4096):
                pass

    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Acceptor(speak) as origin, Deck(config) as deck:
        (row,) = Stage(deck, origin).tell(hail).attempts
    assert (row["kind"], row["detail"]) == ("empty tunnel", GREETED)


def test_an_attempt_is_noted_before_the_run_ends(stage: Stage) -> None:
    """Of a connection that is still open then."""
    stage.ask()
    with stage.plain():
        stage.deck.end("tape")
        store = stage.deck.running.store
        noted = [
            event.data["attempt"]["kind"]
            for event in store.events.read(store.runs.get("tape"))
            if event.kind is EventKind.NOTED and "attempt" in event.data
        ]
    assert noted == ["empty tunnel"]


def test_an_origin_that_fails_is_no_attempt_of_the_client(stage: Stage) -> None:
    """It is kept as an exchange."""
    stage.ask()
    stage.origin.stop()
    with contextlib.suppress(OSError):
        stage.tls()
    receipt = stage.tell()
    assert receipt.attempts == []
    assert receipt.requests == 2
