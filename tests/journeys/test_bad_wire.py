"""What is no HTTP, or two things at once, or without end: refused or a fault, logged once, and bounded.

Origins that break their answers, clients that break their requests, over HTTP/1 and HTTP/2. Meanwhile a
stream of another client goes on, and another connection is answered after every case. On a replay the same
clients see the same.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from struct import pack

import pytest
from hpack import Encoder

from playhead.config import Config, Mode
from playhead.proxy.engine.http.request_heads import MAX_AHEAD_BYTES
from playhead.tape.exchange import Exchange, Phase
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.logs import Logged
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import PATIENCE_S, Answer, H2Wire, Wire, body_of, tunnel
from playhead.timeline import Receipt

_HEAD = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_FINE = _HEAD + b"Content-Length: 4\r\n\r\nfine"
_STORY_S = 300.0
"""Longest time that all cases take, one after another, on a busy machine."""
pytestmark = pytest.mark.timeout(2 * _STORY_S)


# ---- what origins do wrong ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """An answer that is none, or not all of one."""

    said: bytes
    logged: int = 1
    phase: Phase = Phase.HEAD
    passed: bytes = b""
    """What the client gets of a body before it ends."""


ANSWERS: dict[str, Bad] = {
    # no HTTP/1
    "noise": Bad(bytes(range(255, 155, -1))),
    "zeros": Bad(bytes(100)),
    "greeting": Bad(b"220 mail.example.com ESMTP\r\n"),
    "TLS": Bad(b"\x15\x03\x03\x00\x02\x02\x28"),
    "request": Bad(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "HTTP/0.9": Bad(b"<html>hello</html>"),
    "HTTP/2": Bad(b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "HTTP/3": Bad(b"HTTP/3 200\r\n\r\n"),
    "empty-line": Bad(b"\r\n" + _FINE),
    "space": Bad(b" " + _FINE),
    # status lines
    "no-status": Bad(b"HTTP/1.1 OK\r\n\r\n"),
    "short-status": Bad(b"HTTP/1.1 20 OK\r\n\r\n"),
    "long-status": Bad(b"HTTP/1.1 2000 OK\r\n\r\n"),
    "minus": Bad(b"HTTP/1.1 -20 OK\r\n\r\n"),
    "underscore": Bad(b"HTTP/1.1 2_0 OK\r\n\r\n"),
    "two-spaces": Bad(b"HTTP/1.1  200 OK\r\n\r\n"),
    "NUL-reason": Bad(b"HTTP/1.1 200 a\0b\r\n\r\n"),
    # fields
    "no-colon": Bad(_HEAD + b"Content-Length 4\r\n\r\nfine"),
    "no-name": Bad(_HEAD + b": 4\r\n\r\nfine"),
    "space-in-name": Bad(_HEAD + b"Content-Length : 4\r\n\r\nfine"),
    "first-folded": Bad(_HEAD + b" Content-Length: 4\r\n\r\nfine"),
    "NUL": Bad(_HEAD + b"X-A: a\0b\r\nContent-Length: 4\r\n\r\nfine"),
    "bare-CR": Bad(_HEAD + b"X-A: a\rContent-Length: 9\r\nContent-Length: 4\r\n\r\nfine"),
    # framing that can be read in two ways
    "length-and-chunks": Bad(
        _HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n"
    ),
    "two-lengths": Bad(_HEAD + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nfine"),
    "the-same-twice": Bad(_HEAD + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nfine"),
    "list-of-lengths": Bad(_HEAD + b"Content-Length: 4, 4\r\n\r\nfine"),
    "plus": Bad(_HEAD + b"Content-Length: +4\r\n\r\nfine"),
    "negative": Bad(_HEAD + b"Content-Length: -4\r\n\r\nfine"),
    "leading-zero": Bad(_HEAD + b"Content-Length: 04\r\n\r\nfine"),
    "hex": Bad(_HEAD + b"Content-Length: 0x4\r\n\r\nfine"),
    "other-coding": Bad(_HEAD + b"Transfer-Encoding: cow\r\n\r\nfine"),
    "chunked-twice": Bad(_HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    "two-codings": Bad(
        _HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"
    ),
    "old-chunks": Bad(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    # broken chunks
    "no-chunk": Bad(_CHUNKED + b"no chunk\r\n", 1, Phase.BODY),
    "negative-chunk": Bad(_CHUNKED + b"3\r\nabc\r\n-1\r\n", 1, Phase.BODY, b"3\r\nabc\r\n"),
    "long-chunk": Bad(_CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", 1, Phase.BODY, b"2\r\nab\r\n"),
    "huge-size": Bad(_CHUNKED + b"f" * 40 + b"\r\n", 1, Phase.BODY),
    "bad-trailer": Bad(
        _CHUNKED + b"3\r\nabc\r\n0\r\nno colon\r\n\r\n", 1, Phase.BODY, b"3\r\nabc\r\n"
    ),
    # too little
    "nothing": Bad(b"", 0),
    "half-a-line": Bad(b"HTTP/1.1 20", 0),
    "half-a-head": Bad(_HEAD + b"Content-Le", 0),
    "only-interim": Bad(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0),
    "short": Bad(_HEAD + b"Content-Length: 9\r\n\r\nfine", 0, Phase.BODY, b"fine"),
    "no-body": Bad(_HEAD + b"Content-Length: 9\r\n\r\n", 0, Phase.BODY),
    "no-chunks": Bad(_CHUNKED, 0, Phase.BODY),
    "half-a-chunk": Bad(_CHUNKED + b"9\r\nfine", 0, Phase.BODY, b"4\r\nfine\r\n"),
    "no-last-chunk": Bad(_CHUNKED + b"4\r\nfine\r\n", 0, Phase.BODY, b"4\r\nfine\r\n"),
    "half-the-end": Bad(_CHUNKED + b"4\r\nfine\r\n0\r\n", 0, Phase.BODY, b"4\r\nfine\r\n"),
}

_FIELD = b"X-Field: a value of some length that is repeated\r\n"
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    # what is said first, and then until the proxy has had enough
    "line": (b"HTTP/1.1 200 ", b"a" * 65536),
    "fields": (_HEAD, _FIELD * 1300),
    "field": (_HEAD + b"X-Field: ", b"a" * 65536),
    "folded": (_HEAD + b"X-Field: a\r\n", b" folded\r\n" * 7000),
    "interim": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 1300),
    "interim-head": (b"HTTP/1.1 103 Early Hints\r\n", _FIELD * 1300),
    "chunk-line": (_CHUNKED, b"1" * 65536),
    "extension": (_CHUNKED + b"4;", b"a" * 65536),
    "trailers": (_CHUNKED + b"0\r\n", _FIELD * 1300),
    "trailer": (_CHUNKED + b"0\r\nX-Field: ", b"a" * 65536),
}
MOST_BYTES = 16 << 20
"""What an endless origin gets rid of: what we keep, and what the kernel holds on the way."""


# ---- what clients do wrong ---------------------------------------------------------------------------

_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def _post(*lines: bytes, body: bytes = b"", version: bytes = b"HTTP/1.1") -> bytes:
    fields = b"".join(line + b"\r\n" for line in (b"Host: x", *lines))
    return b"POST /bad %s\r\n%s\r\n%s" % (version, fields, body)


_TE = b"Transfer-Encoding: chunked"
_LAST = b"0\r\n\r\n"
REQUESTS: dict[str, tuple[bytes, int | None]] = {
    # (what is sent, status of the refusal or None where the connection is closed)
    "length-and-chunks": (_post(b"Content-Length: 4", _TE, body=_LAST + _SMUGGLED), 400),
    "chunks-and-length": (_post(_TE, b"Content-Length: 40", body=_LAST + _SMUGGLED), 400),
    "two-lengths": (_post(b"Content-Length: 0", b"Content-Length: 37", body=_SMUGGLED), 400),
    "the-same-twice": (_post(b"Content-Length: 0", b"Content-Length: 0", body=_SMUGGLED), 400),
    "list-of-lengths": (_post(b"Content-Length: 0, 0", body=_SMUGGLED), 400),
    "plus": (_post(b"Content-Length: +0", body=_SMUGGLED), 400),
    "negative": (_post(b"Content-Length: -1", body=_SMUGGLED), 400),
    "hidden": (_post(b"Transfer-Encoding : chunked", body=_LAST + _SMUGGLED), 400),
    "other-coding": (_post(b"Transfer-Encoding: xchunked", body=_LAST + _SMUGGLED), 400),
    "not-last": (_post(b"Transfer-Encoding: chunked, gzip", body=_LAST + _SMUGGLED), 400),
    "gzip": (_post(b"Transfer-Encoding: gzip", body=_SMUGGLED), 400),
    "identity": (_post(b"Transfer-Encoding: identity", body=_SMUGGLED), 400),
    "two-codings": (_post(_TE, b"Transfer-Encoding: identity", body=_LAST + _SMUGGLED), 400),
    "old-chunks": (_post(_TE, body=_LAST + _SMUGGLED, version=b"HTTP/1.0"), 400),
    "HTTP/2": (_post(body=_SMUGGLED, version=b"HTTP/2.0"), 505),
    "HTTP/9": (_post(body=_SMUGGLED, version=b"HTTP/9.9"), 505),
    "bare-CR": (_post(b"X-A: a\rContent-Length: 37", body=_SMUGGLED), 400),
    "NUL": (_post(b"X-A: a\0b", body=_SMUGGLED), 400),
    "no-colon": (_post(b"X-A", body=_SMUGGLED), 400),
    "no-name": (_post(b": x", body=_SMUGGLED), 400),
    "first-folded": (b"GET /bad HTTP/1.1\r\n X-A: b\r\n\r\n" + _SMUGGLED, 400),
    "no-version": (b"GET /bad\r\n\r\n" + _SMUGGLED, 400),
    "no-target": (b"GET  HTTP/1.1\r\n\r\n" + _SMUGGLED, 400),
    "tunnel": (b"CONNECT elsewhere:443 HTTP/1.1\r\n\r\n", 400),
    "zone": (b"GET /bad HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n" + _SMUGGLED, 400),
    "fields": (_post(*[_FIELD[:-2]] * 6000), 431),
    "line": (b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n", 431),
    "noise": (b"\x80\xff\0" * 30, None),
    "no-chunk": (_post(_TE, body=b"no chunk\r\n" + _SMUGGLED), None),
    "negative-chunk": (_post(_TE, body=b"-1\r\n" + _SMUGGLED), None),
    "long-chunk": (_post(_TE, body=b"1\r\nabc\r\n" + _SMUGGLED), None),
    "bad-trailer": (_post(_TE, body=b"0\r\nno colon\r\n\r\n" + _SMUGGLED), None),
    "chunk-line": (_post(_TE, body=b"1;" + b"a" * 100_000), None),
    "trailers": (_post(_TE, body=b"0\r\n" + _FIELD * 6000), None),
}


# ---- frames ------------------------------------------------------------------------------------------


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return pack(">I", len(payload))[1:] + bytes([kind, flags]) + pack(">I", stream) + payload


def _block(*fields: tuple[bytes, bytes]) -> bytes:
    return bytes(Encoder().encode(list(fields), huffman=False))


_DATA, _HEADERS, _RST, _SETTINGS, _PUSH, _GOAWAY, _WINDOW, _MORE = 0, 1, 3, 4, 5, 7, 8, 9
_END, _ALL = 1, 4
_200 = (b":status", b"200")


def _answer(*fields: tuple[bytes, bytes], end: bool = True) -> Callable[[int], bytes]:
    return lambda stream: _frame(_HEADERS, _ALL | end, stream, _block(*fields))


def _then(*parts: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda stream: b"".join(part(stream) for part in parts)


def _data(data: bytes, *, end: bool = True) -> Callable[[int], bytes]:
    return lambda stream: _frame(_DATA, end, stream, data)


BAD_FRAMES: dict[str, Callable[[int], bytes]] = {
    "noise": lambda _: b"\xff" * 100,
    "text": lambda _: _FINE,
    "long-frame": lambda stream: b"\xff\xff\xff\0\0" + pack(">I", stream),
    "data-first": _data(b"fine"),
    "short": _then(_answer(_200, (b"content-length", b"9"), end=False), _data(b"fine")),
    "long": _then(_answer(_200, (b"content-length", b"2"), end=False), _data(b"fine")),
    "two-lengths": _answer(_200, (b"content-length", b"0"), (b"content-length", b"1")),
    "no-length": _answer(_200, (b"content-length", b"x")),
    "chunks": _answer(_200, (b"transfer-encoding", b"chunked")),
    "connection": _answer(_200, (b"connection", b"close")),
    "capitals": _answer(_200, (b"X-A", b"b")),
    "NUL": _answer(_200, (b"x-a", b"a\0b")),
    "LF": _answer(_200, (b"x-a", b"a\nb")),
    "no-status": _answer((b"x-a", b"b")),
    "word": _answer((b":status", b"fine")),
    "minus": _answer((b":status", b"-20")),
    "long-status": _answer((b":status", b"2000")),
    "two-statuses": _answer(_200, (b":status", b"201")),
    "path": _answer(_200, (b":path", b"/")),
    "open-trailers": _then(_answer(_200, end=False), _answer((b"x-a", b"b"), end=False)),
    "bad-trailers": _then(_answer(_200, end=False), _answer(_200)),
    "no-table": lambda stream: _frame(_HEADERS, _ALL | _END, stream, b"\xff" * 5),
    "bomb": _answer(_200, *[(b"x-%d" % number, b"a" * 100) for number in range(1000)]),
    "continued": lambda stream: (
        _frame(_HEADERS, 0, stream, _block(_200))
        + _frame(_MORE, 0, stream, _block((b"x-a", b"b"))) * 100
    ),
    "push": lambda stream: _frame(_PUSH, _ALL, stream, pack(">I", 2) + _block((b":path", b"/"))),
    "settings": lambda _: _frame(_SETTINGS, 0, 0, pack(">HI", 4, 0xFFFFFFFF)),
    "window": lambda _: _frame(_WINDOW, 0, 0, pack(">I", 0)),
}
"""What an origin of HTTP/2 says on a stream instead of an answer."""


def _ask(
    *fields: tuple[bytes, bytes], end: bool = True, without: bytes = b"", path: bytes = b"/bad"
) -> Callable[[bytes], bytes]:
    def make(authority: bytes) -> bytes:
        own = ((b":method", b"POST"), (b":scheme", b"https"), (b":authority", authority))
        pseudo = [pair for pair in (*own, (b":path", path)) if pair[0] != without]
        return _frame(_HEADERS, _ALL | end, 1, _block(*pseudo, *fields))

    return make


def _with(first: Callable[[bytes], bytes], rest: bytes) -> Callable[[bytes], bytes]:
    return lambda authority: first(authority) + rest


BAD_ASKS: dict[str, Callable[[bytes], bytes]] = {
    "noise": lambda _: b"\xff" * 100,
    "text": lambda _: _SMUGGLED,
    "long-frame": lambda _: b"\xff\xff\xff\0\0\0\0\0\1",
    "no-path": _ask(without=b":path"),
    "empty-path": _ask(path=b""),
    "path-of-lines": _ask(path=b"/bad HTTP/1.1\r\nHost: x\r\n\r\nGET /smuggled"),
    "no-authority": _ask(without=b":authority"),
    "capitals": _ask((b"X-A", b"b")),
    "connection": _ask((b"connection", b"close")),
    "chunks": _ask((b"transfer-encoding", b"chunked"), end=False),
    "te": _ask((b"te", b"gzip")),
    "LF": _ask((b"x-a", b"a\nb")),
    "status": _ask(_200, without=b":path"),
    "late": _ask((b"x-a", b"b"), (b":path", b"/"), without=b":path"),
    "twice": _ask((b":path", b"/"), path=b"/bad"),
    "own": _ask((b":own", b"b")),
    "short": _with(_ask((b"content-length", b"9"), end=False), _frame(_DATA, _END, 1, b"fine")),
    "long": _with(_ask((b"content-length", b"2"), end=False), _frame(_DATA, _END, 1, b"fine")),
    "no-length": _ask((b"content-length", b"x"), end=False),
    "no-stream": lambda _: _frame(_DATA, _END, 1, b"fine"),
    "even": lambda _: _frame(_HEADERS, _ALL | _END, 2, _block(_200)),
    "no-table": lambda _: _frame(_HEADERS, _ALL | _END, 1, b"\xff" * 5),
    "bomb": _ask(*[(b"x-%d" % number, b"a" * 100) for number in range(1000)]),
    "continued": lambda _: (
        _frame(_HEADERS, 0, 1, _block((b":path", b"/")))
        + _frame(_MORE, 0, 1, _block((b"x-a", b"b"))) * 100
    ),
    "push": lambda _: _frame(_PUSH, _ALL, 1, pack(">I", 2) + _block((b":path", b"/"))),
    "window": lambda _: _frame(_WINDOW, 0, 0, pack(">I", 0x7FFFFFFF)) * 2,
}
"""What a client of HTTP/2 sends instead of a request, and its connection is ended."""


REFUSED_ASKS: dict[str, tuple[tuple[bytes, bytes], ...]] = {
    "two-lengths": ((b"content-length", b"0"), (b"content-length", b"0")),
    "scheme": ((b":scheme", b"ftp"),),
}
"""Fields of requests over HTTP/2 that are answered with 400, beside others on their connection."""


# ---- the stage ---------------------------------------------------------------------------------------


class Stage:
    """An engine, origins that say what they are told, and neighbours that are not to notice."""

    def __init__(self, deck: Deck, certificates: Certificates, logged: Logged) -> None:
        self.deck = deck
        self.logged = logged
        self.said: bytes = _FINE
        """What the raw origin says next."""
        self.gone = threading.Event()
        """Set when the other side has left an endless answer."""
        self.got = 0
        """Bytes of an endless answer that the origin got rid of."""
        self.framed: Callable[[int], bytes] = _answer(_200)
        self.raw = RawOrigin(self._say, certificates)
        self.plain = RawOrigin(self._say, lasting=True)
        self.frames = FramesOrigin(self._say_frames, certificates)
        self.beside = RawOrigin(self._say_beside, lasting=True)
        self._rest = threading.Event()

    async def _say(self, conversation: Conversation) -> None:
        name = conversation.path.removeprefix("/endless/")
        if name in ENDLESS:
            first, more = ENDLESS[name]
            await conversation.say(first)
            self.got = 0
            try:
                while self.got < 4 * MOST_BYTES:
                    await conversation.say(more)
                    self.got += len(more)
            finally:
                self.gone.set()
        elif name == "/silent":
            await conversation.left()
            self.gone.set()
        else:
            await conversation.say(self.said)

    def _say_frames(self, stream: Stream) -> bool:
        stream.raw(self.framed(stream.number))
        return False

    async def _say_beside(self, conversation: Conversation) -> None:
        if conversation.path != "/stream":
            await conversation.say(_FINE)
            return
        await conversation.say(_CHUNKED + b"4\r\nfine\r\n")
        assert await asyncio.to_thread(self._rest.wait, _STORY_S)
        await conversation.say(b"3\r\nend\r\n0\r\n\r\n")

    def let_stream_end(self) -> None:
        self._rest.set()

    def open(self, run: str, *, alpn: str = "") -> socket.socket:
        """Open a tunnel to the origin that breaks its answers."""
        port = self.frames.port if alpn else self.raw.port
        return tunnel(self.deck.proxy, f"127.0.0.1:{port}", run, ca=self.deck.running.ca, alpn=alpn)

    def ask(self, run: str, request: bytes, method: str = "GET") -> Answer:
        """Send bytes and read what comes, as far as it does."""
        with Wire(self.open(run)) as wire:
            wire.send(request)
            return wire.read(method)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stage]:
    """Start an engine and the origins; at the end the neighbour's stream has to come to its own."""
    store = tmp_path_factory.mktemp("bad_wire") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with ExitStack() as stack:
        logged = stack.enter_context(Logged())
        deck = stack.enter_context(Deck(config))
        made = Stage(deck, certificates, logged)
        for origin in (made.raw, made.plain, made.frames, made.beside):
            stack.enter_context(origin)
        yield made


def _beside(stage: Stage, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{stage.beside.port}\r\n\r\n".encode()


class Neighbours:
    """Two connections of a run of their own: one in the middle of a stream, one that asks."""

    def __init__(self, stage: Stage, run: str) -> None:
        self._stage = stage
        target = f"127.0.0.1:{stage.beside.port}"
        self._streaming = Wire(tunnel(stage.deck.proxy, target, run))
        self._asking = Wire(tunnel(stage.deck.proxy, target, run))
        self._streaming.send(_beside(stage, "/stream"))

    def are_fine(self) -> bool:
        """Say whether one that asks is answered."""
        answer = self._asking.ask(_beside(self._stage, "/"))
        return answer.head + answer.body == _FINE

    def end(self) -> Answer:
        """Let the stream come to its end; give what it was."""
        self._stage.let_stream_end()
        answer = self._streaming.read()
        for wire in (self._streaming, self._asking):
            wire.sock.close()
        return answer


@dataclass
class Told:
    """What came of a case, recorded or played."""

    answer: Answer
    lines: list[str]
    """What was logged meanwhile."""


@dataclass
class Story:
    """What came of every case."""

    recorded: dict[str, Told] = field(default_factory=dict)
    """By `TABLE NAME`."""
    played: dict[str, Told] = field(default_factory=dict)
    got_rid: dict[str, int] = field(default_factory=dict)
    """Bytes that each endless origin got rid of."""
    reached: list[bytes] = field(default_factory=list)
    """Heads that the plain origin read while it was asked badly."""
    tape: dict[str, Exchange] = field(default_factory=dict)
    receipt: Receipt | None = None
    fine: bool = True
    stream: Answer = field(default_factory=lambda: Answer(b"", b""))


def _play_all(stage: Stage, made: Story, neighbours: Neighbours, *, record: bool) -> None:
    """Go through every case of every table."""
    told = made.recorded if record else made.played

    def note(case: str, act: Callable[[], Answer]) -> None:
        before = len(stage.logged.lines)
        answer = act()
        made.fine &= neighbours.are_fine()
        told[case] = Told(answer, stage.logged.lines[before:])

    for name, bad in ANSWERS.items():
        stage.said = bad.said
        note(f"answer {name}", lambda name=name: _get(stage, f"/answer/{name}"))  # type: ignore[misc]  # bound
    for name in ENDLESS:
        stage.gone.clear()
        request = b"GET /endless/%s HTTP/1.1\r\nHost: x\r\n\r\n" % name.encode()
        note(f"endless {name}", lambda request=request: _say_plain(stage, request))  # type: ignore[misc]  # bound
        if record:
            assert stage.gone.wait(PATIENCE_S)
            made.got_rid[name] = stage.got
    stage.said = _FINE
    for name, (request, _) in REQUESTS.items():
        note(f"request {name}", lambda request=request: _say_plain(stage, request))  # type: ignore[misc]  # bound
    for name, frames in BAD_FRAMES.items():
        stage.framed = frames
        note(f"frames {name}", lambda name=name: _get_framed(stage, f"/frames/{name}"))  # type: ignore[misc]  # bound
    stage.framed = _answer(_200)
    for name, ask in BAD_ASKS.items():
        note(f"ask {name}", lambda ask=ask: _say_frames(stage, ask))  # type: ignore[misc]  # bound


def _get(stage: Stage, path: str) -> Answer:
    authority = f"127.0.0.1:{stage.raw.port}"
    with Wire(tunnel(stage.deck.proxy, authority, "bad", ca=stage.deck.running.ca)) as wire:
        return wire.ask(f"GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())


def _say_plain(stage: Stage, request: bytes) -> Answer:
    with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.plain.port}", "bad")) as wire:
        return wire.ask(request)


def _get_framed(stage: Stage, path: str) -> Answer:
    """Ask over HTTP/2; give the frames that came as an answer's body."""
    authority = f"127.0.0.1:{stage.frames.port}"
    opened = tunnel(stage.deck.proxy, authority, "bad", ca=stage.deck.running.ca, alpn="h2")
    with H2Wire(opened, authority) as wire:
        return Answer(b"", repr(wire.ask("GET", path)).encode())


def _say_frames(stage: Stage, ask: Callable[[bytes], bytes]) -> Answer:
    """Send what is no request over HTTP/2; give how the connection ended."""
    authority = f"127.0.0.1:{stage.frames.port}"
    opened = tunnel(stage.deck.proxy, authority, "bad", ca=stage.deck.running.ca, alpn="h2")
    with Wire(opened) as wire:
        wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0))
        wire.send(ask(authority.encode()))
        wire.rest()
        return Answer(b"", b"")


@pytest.fixture(scope="module")
def story(stage: Stage) -> Story:
    """Record every case, stop nothing, and play every case; neighbours are recorded all the while."""
    made = Story()
    neighbours = Neighbours(stage, "beside")
    assert neighbours.are_fine()
    _play_all(stage, made, neighbours, record=True)
    stage.deck.end("bad")
    made.reached = [head for head in stage.plain.heads if not head.startswith(b"GET /endless/")]
    stage.deck.play()
    _play_all(stage, made, neighbours, record=False)
    stage.deck.end("bad@1")
    stage.deck.record()
    made.stream = neighbours.end()
    stage.deck.end("beside")
    made.tape = {exchange.request.target: exchange for exchange in stage.deck.tape("bad")}
    made.receipt = stage.deck.receipt("bad@1")
    return made


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_none_is_a_fault(story: Story, name: str) -> None:
    """The client gets what passed of it and no page; the tape says how far it came; logged once."""
    bad, told = ANSWERS[name], story.recorded[f"answer {name}"]
    assert told.answer.ending in ("closed", "reset")
    exchange = story.tape[f"/answer/{name}"]
    assert exchange.fault is not None
    assert exchange.fault.phase is bad.phase
    if bad.phase is Phase.HEAD:
        assert (told.answer.head, told.answer.body) == (b"", b"")
    else:
        assert told.answer.head == bad.said.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        assert told.answer.body == bad.passed
    assert len(told.lines) == bad.logged, told.lines
    assert all(line.startswith("upstream 127.0.0.1:") for line in told.lines)


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_answer_is_bounded(story: Story, name: str) -> None:
    """The upstream is cut off as soon as a limit is passed, and the exchange is a fault."""
    told = story.recorded[f"endless {name}"]
    assert story.got_rid[name] < MOST_BYTES
    assert told.answer.ending in ("closed", "reset")
    exchange = story.tape[f"/endless/{name}"]
    assert exchange.fault is not None
    assert len(exchange.fault.text) < 400
    assert len(told.lines) == 1
    assert len(told.lines[0]) < 400


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_none_is_refused(story: Story, name: str) -> None:
    """By a status and one sentence, or by the end of the connection; logged once."""
    _, status = REQUESTS[name]
    told = story.recorded[f"request {name}"]
    if status is None:
        assert told.answer.head == b""
    else:
        assert told.answer.head.startswith(b"HTTP/1.1 %d " % status)
        assert told.answer.body.startswith(b"playhead: ")
    assert len(told.lines) == 1, told.lines
    assert told.lines[0].startswith("client 127.0.0.1:")


def test_a_bad_request_reaches_nobody(story: Story) -> None:
    """Neither it nor what it hides is read by the origin, or is on the tape."""
    assert story.reached == []
    assert not [target for target in story.tape if target.startswith(("/bad", "/smuggled"))]


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_frames_that_are_none_are_a_fault(story: Story, name: str) -> None:
    """The stream is reset, nothing of the answer is made up; logged once."""
    told = story.recorded[f"frames {name}"]
    assert told.answer.body.startswith(b"[('reset',"), told.answer.body
    assert story.tape[f"/frames/{name}"].fault is not None
    assert len(told.lines) == 1, told.lines
    assert told.lines[0].startswith("upstream 127.0.0.1:")


@pytest.mark.parametrize("name", BAD_ASKS)
def test_a_client_of_frames_that_are_none_is_closed(story: Story, name: str) -> None:
    """Its connection ends; logged once."""
    (line,) = story.recorded[f"ask {name}"].lines
    assert line.startswith("client 127.0.0.1:")


def test_what_is_wrong_is_played_as_it_was(story: Story) -> None:
    """Faults are those of the tape, refusals are made again; nothing diverges, and what is no HTTP is on the tape as an attempt."""
    for case, was in story.recorded.items():
        now = story.played[case]
        kind = case.split()[0]
        if (
            kind == "request"
        ):  # we close, and what the client had still to say may turn that into a reset
            assert (now.answer.head, now.answer.body) == (was.answer.head, was.answer.body), case
        else:
            assert now.answer == was.answer, case
        expected = len(was.lines) if kind in ("request", "ask") else 0
        assert len(now.lines) == expected, now.lines
    assert story.receipt is not None
    assert story.receipt.divergences == []
    assert story.receipt.matched == {"exact": story.receipt.requests}
    assert story.receipt.egress == []
    assert story.receipt.to_json()["exit_code"] == 0
    malformed = [row for row in story.receipt.attempts if row["kind"] == "malformed request"]
    assert malformed
    assert all(row["count"] == row["recorded"] and not row["differs"] for row in malformed)


def test_nobody_else_is_disturbed(story: Story) -> None:
    """A neighbour is answered after every case, and a stream goes on through all of them."""
    assert story.fine
    assert story.stream.head + story.stream.body == (
        _CHUNKED + b"4\r\nfine\r\n3\r\nend\r\n0\r\n\r\n"
    )


def test_nothing_is_logged_with_a_traceback(story: Story, stage: Stage) -> None:
    """Whatever came: warnings of one line."""
    assert stage.logged.records
    for record in stage.logged.records:
        assert record.exc_info is None, record.getMessage()
        assert record.levelname == "WARNING"
        assert "\n" not in record.getMessage()


# ---- before the answer has come ----------------------------------------------------------------------


def _flood(stage: Stage, run: str) -> tuple[int, str, list[str]]:
    """Ask for what is never answered and go on asking; give how much was got rid of, the end, the log."""
    before = len(stage.logged.lines)
    request = b"GET /silent HTTP/1.1\r\nHost: x\r\n\r\n"
    got_rid = 0
    with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.plain.port}", run)) as wire:
        wire.send(request)
        try:
            while got_rid < 4 * MOST_BYTES:
                wire.sock.sendall(request * 1300)
                got_rid += 1300 * len(request)
        except OSError:
            pass
        _, ending = wire.rest()
    return got_rid, ending, stage.logged.lines[before:]


def test_a_flood_before_an_answer_is_bounded(stage: Stage) -> None:
    """Who sends more ahead than is kept is closed and logged; on the tape it has left; again on a replay."""
    neighbours = Neighbours(stage, "flood-beside")
    got_rid, ending, lines = _flood(stage, "flood")
    assert neighbours.are_fine()
    assert got_rid < MOST_BYTES
    assert ending in ("closed", "reset")
    (line,) = lines
    assert f"more than {MAX_AHEAD_BYTES} bytes" in line
    stage.deck.end("flood")
    (exchange,) = stage.deck.tape("flood")
    assert exchange.gone is not None
    stage.deck.play()
    _, again, lines = _flood(stage, "flood")
    stage.deck.end("flood@1")
    stage.deck.record()
    assert again in ("closed", "reset")
    assert len(lines) == 1
    neighbours.end()


def test_requests_in_a_pipeline_are_answered_in_order(stage: Stage) -> None:
    """Three at once, of which one has a body: one answer after the other, recorded and played."""
    host = b" HTTP/1.1\r\nHost: x\r\n"
    requests = (
        b"GET /1%s\r\n" % host
        + b"PUT /2%sContent-Length: 4\r\n\r\nbody" % host
        + b"GET /3%s\r\n" % host
    )

    def ask() -> list[Answer]:
        with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.beside.port}", "pipeline")) as wire:
            wire.send(requests)
            return [wire.read() for _ in range(3)]

    recorded = ask()
    stage.deck.end("pipeline")
    stage.deck.play()
    played = ask()
    stage.deck.end("pipeline@1")
    stage.deck.record()
    assert [answer.head + answer.body for answer in recorded] == [_FINE] * 3
    assert played == recorded
    tape = stage.deck.tape("pipeline")
    assert [exchange.request.target for exchange in tape] == ["/1", "/2", "/3"]
    assert stage.deck.receipt("pipeline@1").faithful is True


@pytest.mark.parametrize("name", REFUSED_ASKS)
def test_a_request_of_frames_that_is_none_is_refused(stage: Stage, name: str) -> None:
    """By 400 and a sentence on its own stream; the next one on the connection is answered."""
    before, run = len(stage.logged.lines), f"refused-{name}"
    stage.framed = _answer(_200)
    authority = f"127.0.0.1:{stage.frames.port}"
    with H2Wire(stage.open(run, alpn="h2"), authority) as wire:
        head, *rest = wire.ask("GET", "/bad", fields=REFUSED_ASKS[name])
        assert wire.ask("GET", "/good") == [("head", ((b":status", b"200"),)), ("end",)]
    assert head[1][0] == (b":status", b"400")
    assert body_of(rest).startswith(b"playhead: ")
    (line,) = stage.logged.lines[before:]
    assert line.startswith("client 127.0.0.1:")
    stage.deck.end(run)
    assert [exchange.request.target for exchange in stage.deck.tape(run)] == ["/good"]


HALVES: dict[str, bytes] = {
    # what a client says before it closes its half of the connection
    "nothing": b"",
    "half-a-line": b"GET /ha",
    "half-a-head": b"GET /half HTTP/1.1\r\nHost",
    "half-a-body": b"PUT /half HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody",
    "half-the-chunks": b"PUT /half HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
    "all": b"GET /silent HTTP/1.1\r\nHost: x\r\n\r\n",
}


def test_a_half_closed_connection_is_closed(stage: Stage) -> None:
    """A client that sends no more has left: at once, whatever it had said; nothing hangs, nobody notices."""
    neighbours = Neighbours(stage, "half-beside")
    before = len(stage.logged.lines)
    for mode, run in ((stage.deck.record, "half"), (stage.deck.play, "half@1")):
        mode()
        for half in HALVES.values():
            with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.plain.port}", "half")) as wire:
                wire.send(half)
                wire.sock.shutdown(socket.SHUT_WR)
                assert wire.rest() == (b"", "closed")
            assert neighbours.are_fine()
        stage.deck.end(run)
    stage.deck.record()
    neighbours.end()
    (exchange,) = stage.deck.tape("half")
    assert exchange.request.target == "/silent"
    assert exchange.gone is not None
    assert stage.deck.receipt("half@1").faithful is True
    assert stage.logged.lines[before:] == []
