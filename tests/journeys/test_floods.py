"""A client that sends without end before anybody can take it: it is read no further than a few megabytes."""

import contextlib
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.handshakes import Acceptor, silent
from playhead.tests.support.sockets import connect

_FLOOD_BYTES = 64 * 1024 * 1024
_MOST_BYTES = 24 * 1024 * 1024
"""What Playhead takes, and what the kernel holds on the way."""
_STUCK_S = 1.0


@pytest.fixture
def deck(tmp_path: Path, certificates: Certificates) -> Iterator[Deck]:
    """Record."""
    with Deck(
        Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    ) as made:
        yield made


def _hello() -> bytes:
    """The first words of a handshake."""
    said = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname="x.test")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return said.read()


def test_a_flood_waits_while_its_upstream_is_being_connected(deck: Deck) -> None:
    """The upstream never ends its handshake; other clients are answered meanwhile."""
    with Acceptor(silent) as origin, connect(deck.running.url) as client:
        target = f"127.0.0.1:{origin.port}"
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(_hello())
        client.settimeout(_STUCK_S)
        sent, piece = 0, bytes(256 * 1024)
        try:
            while sent < _FLOOD_BYTES:
                sent += client.send(piece)
        except TimeoutError:
            pass
        assert sent < _MOST_BYTES
        begun = time.monotonic()
        with connect(deck.running.url) as other:
            other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 400")
        assert time.monotonic() - begun < 5
