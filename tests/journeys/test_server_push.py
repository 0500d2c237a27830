"""What a server pushes on one stream because of a request on another comes after that request on replay too.

MCP servers do so: progress and elicitation travel on the client's long GET while a call is on its way.
"""

import asyncio
import socket
from base64 import b64encode
from pathlib import Path

from playhead.tests.support.process import Serve
from playhead.tests.support.raw import Conversation, RawOrigin

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
PUSHED = b"9\r\ndata: go\n\r\n"
END = b"0\r\n\r\n"
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone"


class _Server:
    """Pushes on the open stream when it is asked to act."""

    def __init__(self) -> None:
        self._acted = asyncio.Event()

    async def __call__(self, conversation: Conversation) -> None:
        if conversation.path == "/act":
            self._acted.set()
            await conversation.say(DONE)
            return
        await conversation.say(HEAD)
        await self._acted.wait()
        if conversation.path == "/ended":
            await conversation.say(END)
            return
        await conversation.say(PUSHED)
        await conversation.left()


def _ask(proxy: Serve, method: str, url: str) -> socket.socket:
    host, port = proxy.address.rsplit(":", 1)
    opened = socket.create_connection((host, int(port)), timeout=10)
    given = b64encode(b"push:x").decode()
    lines = (
        f"{method} {url} HTTP/1.1",
        f"Host: {url.split('/')[2]}",
        f"Proxy-Authorization: Basic {given}",
        "Content-Length: 0",
    )
    opened.sendall("\r\n".join([*lines, "", ""]).encode())
    return opened


def _read(opened: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size and (data := opened.recv(size - len(received))):
        received += data
    return received


def _listen_then_act(
    proxy: Serve, base: str, path: str = "stream", rest: bytes = PUSHED
) -> tuple[bytes, bytes, bytes]:
    """Open the stream, wait a while, act: give what came before and after, and the answer."""
    with _ask(proxy, "GET", f"{base}/{path}") as stream:
        assert _read(stream, len(HEAD)) == HEAD
        stream.settimeout(0.3)
        try:
            early = stream.recv(100)
        except TimeoutError:
            early = b""
        stream.settimeout(10)
        with _ask(proxy, "POST", f"{base}/act") as call:
            answer = _read(call, len(DONE))
        return early, _read(stream, len(rest) - len(early)), answer


def test_a_push_does_not_come_before_the_request_that_caused_it(tmp_path: Path) -> None:
    """At whatever pace: on the recording the server pushed when it was asked to act, and so on replay."""
    flags = ("--listen", "127.0.0.1:0", "--store", tmp_path / "store")
    with RawOrigin(_Server()) as origin, Serve("--mode", "record", *flags) as proxy:
        recorded = _listen_then_act(proxy, origin.url)
    with Serve("--mode", "playback", *flags) as proxy:
        replayed = _listen_then_act(proxy, origin.url)
    assert recorded == (b"", PUSHED, DONE)
    assert replayed == recorded


def test_a_stream_does_not_end_before_the_request_that_ended_it(tmp_path: Path) -> None:
    """A client that sees the end of its stream asks for another one, which the tape does not have."""
    flags = ("--listen", "127.0.0.1:0", "--store", tmp_path / "store")
    with RawOrigin(_Server()) as origin, Serve("--mode", "record", *flags) as proxy:
        recorded = _listen_then_act(proxy, origin.url, "ended", END)
    with Serve("--mode", "playback", *flags) as proxy:
        replayed = _listen_then_act(proxy, origin.url, "ended", END)
    assert recorded == (b"", END, DONE)
    assert replayed == recorded
