"""Bytes that are no TLS in a connection that was one: it ends, is logged once, and nobody waits for it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Ending, FaultKind, Phase
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.logs import Logged
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import open_tunnel, post, read_to_end

_NOISE = b"no TLS" * 100
_PIECES = 20
"""So often it is said."""


async def _break_off(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
    for _ in range(_PIECES):
        os.write(conversation.socket.fileno(), _NOISE)
    await _wait(conversation)


async def _wait(conversation: Conversation) -> None:
    try:
        await conversation.left()
    finally:
        conversation.drop()  # nobody would answer its goodbye


@pytest.fixture
def deck(tmp_path: Path, certificates: Certificates) -> Iterator[Deck]:
    """Record and play."""
    with Deck(
        Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    ) as made:
        yield made


def _ask(deck: Deck, url: str) -> tuple[bytes, Ending]:
    with open_tunnel(deck.running.url_for("broken"), url, deck.running.ca) as tunnel:
        post(tunnel, url, b"{}")
        return read_to_end(tunnel)


def test_an_upstream_whose_tls_breaks_has_failed(deck: Deck, certificates: Certificates) -> None:
    """What had come is passed on, and the client's connection ends as the upstream's; on replay too."""
    with RawOrigin(_break_off, certificates) as origin, Logged() as logged:
        url = f"{origin.url}/x"
        received, how = _ask(deck, url)
    deck.end("broken")
    assert (received.partition(b"\r\n\r\n")[2], how) == (b"half", Ending.RST)
    (exchange,) = deck.tape("broken")
    assert exchange.fault is not None
    assert (exchange.fault.kind, exchange.fault.phase) == (FaultKind.CUT, Phase.BODY)
    assert exchange.fault.ending is Ending.RST
    (line,) = logged.lines
    assert line.startswith(f"upstream 127.0.0.1:{origin.port}: its TLS broke (")
    deck.play()
    assert _ask(deck, url) == (received, how)


def test_a_client_whose_tls_breaks_is_closed(deck: Deck, certificates: Certificates) -> None:
    """It has left; nothing waits for more of it."""
    with RawOrigin(_wait, certificates) as origin, Logged() as logged:
        url = f"{origin.url}/x"
        with open_tunnel(deck.running.url_for("broken"), url, deck.running.ca) as tunnel:
            post(tunnel, url, b"{}")
            with contextlib.suppress(OSError):  # it may have been closed before the last
                for _ in range(_PIECES):
                    os.write(tunnel.fileno(), _NOISE)
            with pytest.raises(OSError, match=r"reset|alert|EOF"):  # it may hear an alert first
                read_to_end(tunnel)
    (line,) = logged.lines
    assert line.startswith("client 127.0.0.1:")
    assert ": its TLS broke (" in line
