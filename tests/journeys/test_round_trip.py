"""Whatever an origin says is played as it was said: a property of record and playback together.

Hypothesis makes up answers and requests: heads, bodies, chunks, trailers, and where the bytes are cut on
their way. Each example is a run of its own: recorded through a raw client, then played without its origin.
"""

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.config import Config, Mode
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import Answer, Frame, H2Wire, Wire, tunnel

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
COUNTED = settings(
    max_examples=1000 if FULL else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

pytestmark = pytest.mark.timeout(600 if FULL else 60)

Fields = tuple[tuple[bytes, bytes], ...]

# ---- what can be said --------------------------------------------------------------------------------

_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LOWER = bytes(byte for byte in _TOKEN if not 65 <= byte <= 90)
_REDACTOR = Redactor(b"a test's key", ())


def _of(alphabet: bytes, most: int, least: int = 0) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(alphabet), min_size=least, max_size=most).map(bytes)


_VISIBLE = bytes(byte for byte in range(256) if byte > 32 and byte != 127)
_ANY_VALUE = st.binary(max_size=30).map(lambda value: re.sub(rb"[\r\n\0]", b"?", value).strip())
_VALUE = _of(_VISIBLE + b" \t", 30).map(bytes.strip)
"""Without control characters, which neither HTTP/2 nor trailers may hold."""


def _fields(
    names: bytes, values: st.SearchStrategy[bytes], most: int = 6
) -> st.SearchStrategy[Fields]:
    """Fields that mean nothing to a hop, some of them more than once."""
    name = st.sampled_from([b"x-twice", b"X-Twice"]) | _of(names, 8, 1).map(
        lambda token: b"x-" + token
    )
    pair = st.tuples(name.map(lambda each: each if 65 in names else each.lower()), values)
    return st.lists(pair, max_size=most).map(tuple).filter(_is_open)


def _is_open(fields: Fields) -> bool:
    """Say whether nothing in it is a secret: what is redacted is played redacted."""
    return _REDACTOR.response_headers(fields)[0] == fields


_PIECES = st.lists(st.binary(min_size=1, max_size=400), max_size=6).map(tuple)


@dataclass(frozen=True)
class Said:
    """One answer over HTTP/1."""

    status: int
    reason: bytes
    fields: Fields
    pieces: tuple[bytes, ...]
    framing: str
    """`length`, `chunked`, or `close`."""
    trailers: Fields
    cuts: tuple[int, ...]
    """Where the bytes are cut on their way, as far as the kernel cares."""

    @property
    def head(self) -> bytes:
        lines = [b"%s: %s\r\n" % pair for pair in self.fields]
        if self.framing == "length":
            lines.insert(len(lines) // 2, b"Content-Length: %d\r\n" % len(self.body))
        elif self.framing == "chunked":
            lines.insert(len(lines) // 2, b"Transfer-Encoding: chunked\r\n")
        return b"HTTP/1.1 %d %s\r\n%s\r\n" % (self.status, self.reason, b"".join(lines))

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def tail(self) -> bytes:
        """What ends its chunks."""
        return b"0\r\n" + b"".join(b"%s: %s\r\n" % pair for pair in self.trailers) + b"\r\n"

    @property
    def wire(self) -> bytes:
        if self.framing != "chunked":
            return self.head + self.body
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self.pieces)
        return self.head + chunks + self.tail

    @property
    def segments(self) -> list[bytes]:
        """Its bytes in the parts in which they are sent."""
        marks = [0, *sorted(cut % len(self.wire) for cut in self.cuts), len(self.wire)]
        return [self.wire[start:end] for start, end in itertools.pairwise(marks)]


_ANSWERS = st.builds(
    Said,
    status=st.integers(200, 999).filter(lambda status: status not in (204, 304)),
    reason=st.binary(max_size=20).map(lambda reason: re.sub(rb"[\r\n\0]", b" ", reason)),
    fields=_fields(_TOKEN, _ANY_VALUE),
    pieces=_PIECES,
    framing=st.sampled_from(["length", "chunked", "chunked", "close"]),
    trailers=st.just(()) | _fields(_TOKEN, _VALUE, 3),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=5).map(tuple),
)


@dataclass(frozen=True)
class Sent:
    """One request over HTTP/1."""

    method: str
    fields: Fields
    pieces: tuple[bytes, ...]
    chunked: bool

    def wire(self, path: str) -> bytes:
        body = b"".join(self.pieces)
        if not self.chunked:
            framing = b"Content-Length: %d\r\n" % len(body)
        else:
            framing = b"Transfer-Encoding: chunked\r\n"
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self.pieces)
            body += b"0\r\n\r\n"
        lines = b"".join(b"%s: %s\r\n" % pair for pair in self.fields)
        line = f"{self.method} {path} HTTP/1.1\r\nHost: x\r\n".encode()
        return line + lines + framing + b"\r\n" + body


_REQUESTS = st.builds(
    Sent,
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "patch", "REPORT"]),
    fields=_fields(_TOKEN, _ANY_VALUE).filter(
        lambda fields: (
            not any(re.search(rb"key|token|secret|pass|cred", name, re.I) for name, _ in fields)
        )
    ),
    pieces=_PIECES,
    chunked=st.booleans(),
)

_FRAMED = st.tuples(
    st.integers(200, 999).filter(lambda status: status not in (204, 304)),
    _fields(_LOWER, _VALUE),
    _PIECES,
    st.just(()) | _fields(_LOWER, _VALUE, 3),
    st.booleans(),
)
"""Status, fields, pieces, trailers, and whether the end is a frame of its own."""


# ---- the deck ----------------------------------------------------------------------------------------


class Stage:
    """A deck, two origins, and what these say next."""

    def __init__(self, deck: Deck, certificates: Certificates) -> None:
        self.deck = deck
        self.said: dict[str, Said] = {}
        self.framed: dict[str, tuple[int, Fields, tuple[bytes, ...], Fields, bool]] = {}
        self.raw = RawOrigin(self._say, lasting=True)
        self.frames = FramesOrigin(self._say_frames, certificates)
        self._numbers = itertools.count(1)

    def new_run(self) -> str:
        return f"example-{next(self._numbers)}"

    async def _say(self, conversation: Conversation) -> None:
        said = self.said[conversation.path]
        if conversation.head.startswith(b"HEAD "):
            await conversation.say(said.head)
            return
        for segment in said.segments:
            await conversation.say(segment)
        conversation.over = said.framing == "close"

    def _say_frames(self, stream: Stream) -> bool:
        status, fields, pieces, trailers, apart = self.framed[stream.path]
        whole = not pieces and not trailers and not apart
        stream.head(*fields, status=status, end=whole)
        for index, piece in enumerate(pieces, 1):
            stream.data(piece, end=index == len(pieces) and not trailers and not apart)
        if trailers:
            stream.trailers(*trailers)
        elif apart:
            stream.data(b"", end=True)
        return False


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stage]:
    """Start an engine and the origins."""
    store = tmp_path_factory.mktemp("round_trip") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with Deck(config) as deck:
        made = Stage(deck, certificates)
        with made.raw, made.frames:
            yield made


def _ask_all(stage: Stage, run: str, exchanges: list[tuple[Sent, Said]]) -> list[Answer]:
    """Ask one after the other, on one connection as far as it lasts."""
    target = f"127.0.0.1:{stage.raw.port}"
    answers: list[Answer] = []
    wire: Wire | None = None
    for index, (sent, said) in enumerate(exchanges):
        if wire is None:
            wire = Wire(tunnel(stage.deck.proxy, target, run))
        answers.append(wire.ask(sent.wire(f"/{index}")))
        if said.framing == "close" and sent.method != "HEAD":
            wire.sock.close()
            wire = None
    if wire is not None:
        wire.sock.close()
    return answers


# ---- the properties ----------------------------------------------------------------------------------


def _boundaries(body: bytes) -> list[int]:
    """Give where chunks end."""
    found, rest = [0], body
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16)
        if not size:
            break
        found.append(found[-1] + size)
        rest = rest[size + 2 :]
    return found


@COUNTED
@given(exchanges=st.lists(st.tuples(_REQUESTS, _ANSWERS), min_size=1, max_size=4))
def test_what_was_said_over_http1_is_played(
    stage: Stage, exchanges: list[tuple[Sent, Said]]
) -> None:
    """The raw client gets the origin's bytes, and the same again, chunk by chunk, without the origin."""
    run = stage.new_run()
    stage.said = {f"/{index}": said for index, (_, said) in enumerate(exchanges)}
    stage.deck.record()
    recorded = _ask_all(stage, run, exchanges)
    stage.deck.end(run)
    stage.said = {}
    stage.deck.play()
    assert _ask_all(stage, run, exchanges) == recorded
    stage.deck.end(f"{run}@1")
    assert stage.deck.receipt(f"{run}@1").faithful is True
    tape = stage.deck.tape(run)
    for (sent, said), answer, exchange in zip(exchanges, recorded, tape, strict=True):
        assert exchange.response is not None
        assert (exchange.request.method, exchange.request.body) == (
            sent.method,
            b"".join(sent.pieces),
        )
        assert exchange.request.headers[1:-1] == sent.fields
        assert answer.head == said.head
        assert answer.ending == "whole"
        if sent.method == "HEAD":
            assert answer.body == exchange.response.body == b""
            continue
        assert answer.content == exchange.response.body == said.body
        if said.framing == "chunked":
            ends = list(itertools.accumulate(map(len, said.pieces)))
            assert set(_boundaries(answer.body)) >= set(ends)  # a chunk may come in two reads
            assert answer.body.endswith(said.tail)
            assert exchange.response.trailers == said.trailers


@COUNTED
@given(framed=st.lists(_FRAMED, min_size=1, max_size=4))
def test_what_was_said_over_http2_is_played(
    stage: Stage, framed: list[tuple[int, Fields, tuple[bytes, ...], Fields, bool]]
) -> None:
    """Each frame of each stream: status, fields, pieces, trailers, end."""
    run = stage.new_run()
    paths = {f"/{index}": each for index, each in enumerate(framed)}
    authority = f"127.0.0.1:{stage.frames.port}"

    def ask() -> list[list[Frame]]:
        ca = stage.deck.running.ca
        opened = tunnel(stage.deck.proxy, authority, run, ca=ca, alpn="h2")
        with H2Wire(opened, authority) as wire:
            streams = [wire.send("GET", path) for path in paths]
            wire.read(*streams)
            return [wire.got[stream] for stream in streams]

    stage.framed = paths
    stage.deck.record()
    recorded = ask()
    stage.deck.end(run)
    stage.framed = {}
    stage.deck.play()
    assert ask() == recorded
    stage.deck.end(f"{run}@1")
    assert stage.deck.receipt(f"{run}@1").faithful is True
    for got, (status, fields, pieces, trailers, _) in zip(recorded, framed, strict=True):
        assert got == [
            ("head", ((b":status", b"%d" % status), *fields)),
            *(("data", piece) for piece in pieces),
            *([("trailers", trailers)] if trailers else []),
            ("end",),
        ]
