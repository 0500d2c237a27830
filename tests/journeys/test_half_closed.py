"""Half-closed connections: a client that ends its sending half before its answer has begun counts as one that left.

Request and end come in one segment here, so that no answer can be on its way between the two.
"""

import socket
import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.diff.divergence_types import DivergenceKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.tls import client_context
from playhead.tests.support.wire import tunnel
from playhead.timeline import Receipt

_FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
WAYS = ("plain", "tls")


async def _say(conversation: Conversation) -> None:
    if not conversation.path.endswith("/never"):
        await conversation.say(_FINE)


class _Client:
    """Asks through a proxy, and perhaps ends its sending half with its request."""

    def __init__(self, deck: Deck, url: str) -> None:
        self._deck = deck
        self._authority = url.partition("//")[2]
        self._secure = url.startswith("https")

    def ask(self, path: str, *, half: bool = False) -> bytes:
        """Ask twice on one connection, so that it belongs to its run; give what came of the second."""
        ask = self._ask_secure if self._secure else self._ask_plain
        with self._open() as opened:
            return ask(opened, path, half=half)

    def _open(self) -> socket.socket:
        if self._secure:
            return tunnel(self._deck.proxy, self._authority, "half")
        return socket.create_connection(self._deck.proxy, timeout=10)

    def _head(self, path: str) -> bytes:
        given = b64encode(b"half:x").decode()
        target = path if self._secure else f"http://{self._authority}{path}"
        credentials = "" if self._secure else f"Proxy-Authorization: Basic {given}\r\n"
        return f"GET {target} HTTP/1.1\r\nHost: {self._authority}\r\n{credentials}\r\n".encode()

    def _ask_plain(self, opened: socket.socket, path: str, *, half: bool) -> bytes:
        opened.sendall(self._head("/first"))
        _read_plain(opened)
        if half:
            opened.send(self._head(path), socket.MSG_MORE)  # leaves together with what follows
            opened.shutdown(socket.SHUT_WR)
        else:
            opened.sendall(self._head(path))
        return _read_plain(opened)

    def _ask_secure(self, opened: socket.socket, path: str, *, half: bool) -> bytes:
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(self._deck.running.ca)
        tls = context.wrap_bio(came, goes, server_hostname="127.0.0.1")

        def take() -> bytes:
            opened.sendall(goes.read())
            data = opened.recv(1 << 16)
            came.write(data)
            return data

        def read() -> bytes:
            got = b""
            while not got.endswith(b"fine"):
                try:
                    got += tls.read(1 << 16)
                except ssl.SSLWantReadError:
                    if not take():
                        break
                except ssl.SSLZeroReturnError:
                    break
            return got

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                take()
        tls.write(self._head("/first"))
        read()
        tls.write(self._head(path))
        if half:
            with pytest.raises(ssl.SSLWantReadError):
                tls.unwrap()  # leaves together with the request
        return read()


def _read_plain(opened: socket.socket) -> bytes:
    got = b""
    while not got.endswith(b"fine") and (data := opened.recv(1 << 16)):
        got += data
    return got


def _play(
    folder: Path, certificates: Certificates, way: str, recorded: list[bool], played: list[bool]
) -> tuple[Receipt, list[bytes]]:
    """Record requests, each with or without such an end, and play others; give the receipt and what was heard."""
    config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=certificates.root)
    trust = certificates if way == "tls" else None
    with Deck(config) as deck, RawOrigin(_say, trust, lasting=True) as origin:
        client = _Client(deck, origin.url)
        for half in recorded:
            client.ask("/never" if half else "/fine", half=half)
        deck.end("half")
        origin.stop()
        deck.play()
        heard = [
            client.ask("/never" if then else "/fine", half=half)
            for then, half in zip(recorded, played, strict=True)
        ]
        deck.end("half@1")
        return deck.receipt("half@1"), heard


@pytest.mark.parametrize("way", WAYS)
def test_a_half_closed_connection_of_a_playback_diverges(
    tmp_path: Path, certificates: Certificates, way: str
) -> None:
    """The recorded client waited for its answer; this one said that it sends no more before it had begun."""
    receipt, heard = _play(tmp_path, certificates, way, [False, False], [False, True])
    assert heard[0] == _FINE
    assert [one["kind"] for one in receipt.divergences] == [DivergenceKind.LEFT]
    assert receipt.divergences[0]["seq"] == 4


@pytest.mark.parametrize("way", WAYS)
def test_a_half_closed_connection_of_the_tape_is_the_same_in_playback(
    tmp_path: Path, certificates: Certificates, way: str
) -> None:
    """Both ended their half before they were answered."""
    receipt, _ = _play(tmp_path, certificates, way, [True], [True])
    assert receipt.divergences == []


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_closes_after_its_answer_has_not_left(
    tmp_path: Path, certificates: Certificates, way: str
) -> None:
    """However soon after: nothing of it can come before the answer has begun."""
    receipt, heard = _play(tmp_path, certificates, way, [False] * 20, [False] * 20)
    assert heard == [_FINE] * 20
    assert receipt.faithful is True, receipt.to_json()


@pytest.mark.parametrize("first", ["GET", "POST"])
def test_a_request_behind_one_that_was_left_is_not_read(
    tmp_path: Path, certificates: Certificates, first: str
) -> None:
    """An effect goes on without its client; a request behind it is noted as cut, and keeps no run open."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    with Deck(config) as deck, RawOrigin(_say, lasting=True) as origin:
        authority = origin.url.partition("//")[2]

        def leave() -> None:
            with tunnel(deck.proxy, authority, "half") as opened:
                for method, path in ((first, "/never"), ("GET", "/behind")):
                    head = f"{method} {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
                    opened.send(head.encode(), socket.MSG_MORE)  # all of it leaves together
                opened.shutdown(socket.SHUT_WR)
                _read_plain(opened)

        leave()
        origin.stop()
        deck.end("half")
        assert [one.request.target for one in deck.tape("half")] == ["/never"]
        deck.play()
        leave()
        deck.end("half@1")
        receipt = deck.receipt("half@1")
    assert receipt.divergences == []
