"""The kinds of runs there are: the origins they are recorded from, and a real client for each that says what it saw.

A client blocks, and asks the same again when its run is replayed, with the origins gone.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from playhead.addons.run.pending_exchange import HELD_BYTES

from .certificates import Certificates
from .frames import FramesOrigin, Stream
from .grpc_server import GrpcOrigin
from .raw import Conversation, RawOrigin
from .websocket import WebsocketOrigin
from .wire import H2Wire, Wire, tunnel

Seen = list[Any]
"""What a client saw, to be compared."""
SECRET = "sk-proj-" + "a1B2c3D4" * 6
_LONG_S = 20.0
_LARGE = hashlib.shake_128(b"large").digest(1 << 20) * (HELD_BYTES // (1 << 20)) + b"and more"
_EVENTS = tuple(b'data: {"choices": [{"delta": {"content": "%d"}}]}\n\n' % at for at in range(4))
_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nX-Twice: 1\r\nx-twice: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# ---- what the origins answer -------------------------------------------------------------------------


class Origins:
    """All origins. Use as a context manager; `stop` ends them, and their ports stay known."""

    def __init__(self, certificates: Certificates) -> None:
        self.left = threading.Event()
        """To be set once the client of a stream that goes on has left."""
        self.raw = RawOrigin(self._answer)
        self.frames = FramesOrigin(_answer_frames, certificates)
        self.websocket = WebsocketOrigin()
        self.grpc = GrpcOrigin(certificates)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for origin in (self.raw, self.frames, self.websocket, self.grpc):
                stack.enter_context(origin)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close every port and connection. Twice is once."""
        self._open.close()

    async def _answer(self, conversation: Conversation) -> None:
        path, say = conversation.path.partition("?")[0].rpartition("/")[2], conversation.say
        match path:
            case "stream":
                await say(_CHUNKED % b"text/plain")
                for piece in (b"one, ", b"two\n", b"\x00\xff"):
                    await say(_chunk(piece))
                await say(b"0\r\nX-Sum: 3\r\n\r\n")
            case "completions":
                await say(_CHUNKED % b"text/event-stream")
                for event in (*_EVENTS, b"data: [DONE]\n\n"):
                    await say(_chunk(event))
                await say(b"0\r\n\r\n")
            case "large" if conversation.body:
                told = hashlib.sha256(conversation.body).hexdigest().encode()
                await say(_OK % len(told) + told)
            case "large":
                await say(_OK % len(_LARGE) + _LARGE)
            case "secret":
                body = json.dumps({"key": SECRET, "said": conversation.body.decode()}).encode()
                await say(_CHUNKED % b"application/json")
                middle = body.index(b"a1B2") + 6  # inside of the secret
                await say(_chunk(body[:middle]))
                await say(_chunk(body[middle:]) + b"0\r\n\r\n")
            case "broken":
                await say(_CHUNKED % b"text/plain" + _chunk(b"whole") + b"9\r\nha")
            case "short":
                await say(_OK % 100 + b"less than announced")
            case "nothing":
                conversation.reset()
            case "leave" | "messages":
                self.left.clear()
                await say(_CHUNKED % b"text/event-stream" + _chunk(_EVENTS[0]))
                if path == "messages":
                    await conversation.left()  # of a model the proxy leaves, too
                else:
                    await asyncio.to_thread(self.left.wait, _LONG_S)
                    await say(_chunk(_EVENTS[1]) + b"0\r\n\r\n")
            case _:
                said = b"%s %s" % (path.encode(), conversation.body)
                await say(_OK % len(said) + said)


def _answer_frames(stream: Stream) -> bool:
    stream.head(("content-type", "text/plain"), ("x-twice", "1"), ("x-twice", "2"))
    for piece in (b"one", b"", b"two" * 100):
        stream.data(piece)
    if stream.path == "/reset":
        stream.reset(8)
    else:
        stream.trailers(("x-sum", "303"))
    return False


# ---- the clients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asking:
    """Where a client asks, and for which run."""

    origins: Origins
    proxy: tuple[str, int]
    ca: Path
    run: str
    left: Callable[[], object] = lambda: None
    """Called when a client has left a stream that goes on."""

    @property
    def proxy_url(self) -> str:
        return f"http://{self.run}:x@{self.proxy[0]}:{self.proxy[1]}"

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.origins.raw.port}"

    def raw(self, request: bytes, *, host: str = "") -> Seen:
        """Ask the raw origin, or another host that need not be there; give the answer as it stood on the wire."""
        target = host or self.target
        with Wire(tunnel(self.proxy, target, self.run)) as wire:
            return list(wire.ask(request.replace(b"\r\n", f"\r\nHost: {target}\r\n".encode(), 1)))


def ask_stream(asking: Asking) -> Seen:
    """Pieces, trailers and fields that come twice, over HTTP/1."""
    return [asking.raw(b"GET /stream?n=%d HTTP/1.1\r\n\r\n" % number) for number in range(2)]


def ask_sse(asking: Asking) -> Seen:
    """A model's stream of events, read by httpx."""
    import httpx

    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    with (
        httpx.Client(proxy=asking.proxy_url, timeout=_LONG_S, trust_env=False) as client,
        client.stream("POST", f"http://{asking.target}/v1/chat/completions", json=body) as answer,
    ):
        return [answer.status_code, list(answer.headers.raw), *answer.iter_lines()]


def ask_websocket(asking: Asking) -> Seen:
    """Text, binary and fragments, by the `websockets` library."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    seen: Seen = []
    with connect(asking.origins.websocket.url, proxy=asking.proxy_url, compression=None) as talk:
        for said in ("hello", b"\x00\xff" * 40, ["in ", "three ", "frames"]):
            talk.send(said)
            seen.append(talk.recv(_LONG_S))
        talk.close(1000, "enough")
        try:
            talk.recv(_LONG_S)
        except ConnectionClosed as closed:
            seen.append(str(closed))
    return seen


def ask_grpc(asking: Asking) -> Seen:
    """One answer, a stream, a dialogue and a failure, by the `grpcio` package."""
    import grpc

    port = asking.origins.grpc.ports["plain"]
    with grpc.insecure_channel(
        f"localhost:{port}", options=(("grpc.http_proxy", asking.proxy_url),)
    ) as channel:
        unary = channel.unary_unary("/test.Test/Unary").with_call
        answer, call = unary(b"abc", metadata=(("x-asked", "this"),), timeout=_LONG_S)
        seen = [answer, call.initial_metadata(), call.trailing_metadata()]
        dialogue = channel.stream_stream("/test.Test/Bidi")
        seen.append(list(dialogue(iter([b"one", b"two"]), timeout=_LONG_S)))
        failing = channel.unary_stream("/test.Test/StreamThenFail")(b"", timeout=_LONG_S)
        with contextlib.suppress(grpc.RpcError):  # the call tells
            seen.extend(iter(failing))
        return [*seen, failing.code().name, failing.details(), failing.trailing_metadata()]


def ask_h2(asking: Asking) -> Seen:
    """Frames, trailers and a stream that is reset, over HTTP/2 in TLS."""
    target = f"127.0.0.1:{asking.origins.frames.port}"
    opened = tunnel(asking.proxy, target, asking.run, ca=asking.ca, alpn="h2")
    with H2Wire(opened, target) as wire:
        return [wire.ask("GET", "/whole"), wire.ask("POST", "/reset", [b"asked ", b"twice"])]


def ask_large(asking: Asking) -> Seen:
    """Bodies that are files in the store, both ways, by httpx."""
    import httpx

    url = f"http://{asking.target}/large"
    with httpx.Client(proxy=asking.proxy_url, timeout=_LONG_S, trust_env=False) as client:
        fetched = client.get(url)
        return [
            fetched.status_code,
            hashlib.sha256(fetched.content).hexdigest(),
            client.post(url, content=_LARGE).text,
        ]


def ask_redacted(asking: Asking) -> Seen:
    """A credential in a header, one in a body, and one that spans two pieces of an answer."""
    body = json.dumps({"password": "c0rrect-horse", "note": SECRET}).encode()
    head = f"POST /secret HTTP/1.1\r\nAuthorization: Bearer {SECRET}\r\nContent-Type: application/json\r\n"
    return [asking.raw(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)]


def ask_cut(asking: Asking) -> Seen:
    """Answers that break off: in a chunk, shorter than announced, before their head."""
    paths = (b"broken", b"short", b"nothing")
    return [asking.raw(b"GET /%s HTTP/1.1\r\n\r\n" % path) for path in paths]


def ask_and_leave(asking: Asking) -> Seen:
    """Streams that their client leaves after the first event: of a model, and of an effect, which is read on."""
    seen: Seen = []
    asked = {b"/v1/messages": b'{"model": "m", "messages": []}', b"/leave": b"{}"}
    for path, body in asked.items():
        with Wire(tunnel(asking.proxy, asking.target, asking.run)) as wire:
            wire.send(
                b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (path, asking.target.encode(), len(body), body)
            )
            came = b""
            while _EVENTS[0] not in came:
                came += wire.sock.recv(1 << 16)
            seen.append(came[: came.index(_EVENTS[0]) + len(_EVENTS[0])])
        asking.left()
    return seen


def ask_thrice(asking: Asking) -> Seen:
    """Three requests, of which the second is not recorded where the disk is full meanwhile."""
    return [ask_nth(asking, number) for number in (1, 2, 3)]


def ask_nth(asking: Asking, number: int) -> Seen:
    """One of `ask_thrice`."""
    return asking.raw(b"POST /%d HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi" % number)


IMPORTED = "imported.test:80"


def lines() -> bytes:
    """The exchanges of an imported run, as JSON lines."""
    url = f"http://{IMPORTED}"
    told: list[dict[str, Any]] = [
        {
            "request": {"method": "GET", "url": f"{url}/stream"},
            "response": {
                "status": 200,
                "headers": [["Content-Length", "8"]],
                "body_base64": base64.b64encode(b"one\x00\xfftwo").decode(),
                "chunks": [[10, 3], [20, 5]],
            },
        },
        {
            "request": {"method": "POST", "url": f"{url}/fault", "body": "hi"},
            "fault": {"kind": "reset", "phase": "head", "text": "reset by peer"},
        },
    ]
    return b"\n".join(json.dumps(line).encode() for line in told)


def ask_imported(asking: Asking) -> Seen:
    """What the lines hold; the host was never there."""
    return [
        asking.raw(b"GET /stream HTTP/1.1\r\n\r\n", host=IMPORTED),
        asking.raw(b"POST /fault HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", host=IMPORTED),
    ]


def ask_several(asking: Asking) -> Seen:
    """Some of the others in one run."""
    return [ask(asking) for ask in (ask_stream, ask_websocket, ask_redacted, ask_large)]


CLIENTS: dict[str, Callable[[Asking], Seen]] = {
    "stream": ask_stream,
    "sse": ask_sse,
    "websocket": ask_websocket,
    "grpc": ask_grpc,
    "h2": ask_h2,
    "large": ask_large,
    "redacted": ask_redacted,
    "encrypted": ask_several,
    "cut": ask_cut,
    "gone": ask_and_leave,
    "gaps": ask_thrice,
    "imported": ask_imported,
}
"""By the kind of run; `encrypted` is recorded into a store under a key, `gaps` with a disk that is full for a while."""
