"""Byte for byte: what an origin says is what a client gets, while it is recorded and when it is played.

The origin says raw bytes or frames, the clients look at raw bytes or frames. Everything is recorded, the
origins are stopped, everything is played: to clients that speak as the recorded ones did, and to others.
After every answer that leaves its connection open another request is made on it: one byte too many or too
few, and its answer is not there.
"""

import gzip
import re
import socket
import threading
import zlib
from base64 import b64encode
from dataclasses import dataclass, field
from http import HTTPStatus

import brotli
import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Exchange
from playhead.tape.records import zstd
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import Answer, Frame, H2Wire, Wire, body_of, tunnel
from playhead.timeline import Receipt

TEXT = b"the same bytes, again and again and again"
_HEAD = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True)
class Case:
    """One answer over HTTP/1."""

    sent: bytes
    """Everything that the origin says."""
    came: bytes | None = None
    """What a client gets, where that is not the same."""
    method: str = "GET"
    asked: bytes = b""
    """More lines of the request's head."""
    warnings: tuple[str, ...] = ()
    interim: tuple[bytes, ...] = ()
    """Heads of 1xx that the origin says before, and a client gets."""
    ends: bool = False
    """Whether the connection ends with it."""


def _whole(body: bytes, *lines: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"".join(line + b"\r\n" for line in lines)
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, head, len(body), body)


def _chunked(*chunks: bytes, lines: bytes = b"", end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return _HEAD + lines + b"Transfer-Encoding: chunked\r\n\r\n" + body + end


def _coded(coding: bytes, body: bytes) -> Case:
    return Case(_whole(body, b"Content-Encoding: " + coding, b"Content-Type: text/plain"))


def _deflate_raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


_PARTS = (
    b"--sep\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-2/41\r\n\r\nthe\r\n"
    b"--sep\r\nContent-Type: text/plain\r\nContent-Range: bytes 9-13/41\r\n\r\nbytes\r\n--sep--\r\n"
)
_EXTENSIONS = "chunk extensions of the answer were left out"
_REST = "bytes after the end of the answer were left out"


CASES: dict[str, Case] = {
    # Content codings: nothing is decoded, nothing has to be decodable.
    "gzip": _coded(b"gzip", gzip.compress(TEXT, mtime=0)),
    "br": _coded(b"br", brotli.compress(TEXT)),
    "zstd": _coded(b"zstd", zstd.compress(TEXT)),
    "deflate": _coded(b"deflate", zlib.compress(TEXT)),
    "deflate-raw": _coded(b"deflate", _deflate_raw(TEXT)),
    "two-codings": _coded(b"gzip, br", brotli.compress(gzip.compress(TEXT, mtime=0))),
    "no-gzip": _coded(b"gzip", b"this is no gzip"),
    "no-br": _coded(b"br", b"\xff\x00nor is this brotli"),
    "cut-gzip": _coded(b"gzip", gzip.compress(TEXT, mtime=0)[:-9]),
    "unknown-coding": _coded(b"x-rot13", b"gur fnzr olgrf"),
    "empty-coding": _coded(b"", b"plain"),
    "gzip-in-chunks": Case(
        _chunked(gzip.compress(TEXT, mtime=0), lines=b"Content-Encoding: gzip\r\n")
    ),
    "transfer-gzip": Case(_HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    # Parts of a body.
    "range": Case(
        _whole(b"same", b"Content-Range: bytes 4-7/41", status=b"206 Partial Content"),
        asked=b"Range: bytes=4-7\r\n",
    ),
    "ranges": Case(
        _whole(
            _PARTS,
            b"Content-Type: multipart/byteranges; boundary=sep",
            status=b"206 Partial Content",
        ),
        asked=b"Range: bytes=0-2,9-13\r\n",
    ),
    "no-range": Case(
        _whole(b"", b"Content-Range: bytes */41", status=b"416 Range Not Satisfiable"),
        asked=b"Range: bytes=99-\r\n",
    ),
    # Answers without a body, whatever their head says.
    "204": Case(b"HTTP/1.1 204 No Content\r\nX-Nothing: here\r\n\r\n"),
    "204-length": Case(b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"),
    "304": Case(
        b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n', asked=b'If-None-Match: "v1"\r\n'
    ),
    "304-length": Case(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
    "304-chunked": Case(b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "205": Case(b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    "head-length": Case(_HEAD + b"Content-Length: 1000\r\n\r\n", method="HEAD"),
    "head-chunked": Case(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", method="HEAD"),
    "head-bare": Case(_HEAD + b"X-A: b\r\n\r\n", method="HEAD"),
    "empty": Case(_whole(b"")),
    "empty-chunked": Case(_chunked()),
    "empty-until-the-end": Case(_HEAD + b"X-A: b\r\n\r\n", ends=True),
    # Interim answers come before the answer.
    "100": Case(_whole(b"final"), interim=(b"HTTP/1.1 100 Continue\r\n\r\n",)),
    "103": Case(
        _whole(b"final"),
        interim=(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",),
    ),
    "interim": Case(
        _chunked(b"final"),
        interim=(
            b"HTTP/1.1 102 Processing\r\n\r\n",
            b"HTTP/1.1 103 \r\nLink: a\r\nlink: b\r\nX-Long: c\r\n d\r\n\r\n",
            b"HTTP/1.1 103 Again\r\n\r\n",
            b"HTTP/1.1 199 Odd\r\n\r\n",
        ),
    ),
    "interim-head": Case(
        _HEAD + b"Content-Length: 9\r\n\r\n",
        interim=(b"HTTP/1.1 103 Early Hints\r\n\r\n",),
        method="HEAD",
    ),
    "expected-100": Case(
        _whole(b"final"),
        asked=b"Expect: 100-continue\r\n",
        interim=(b"HTTP/1.1 100 Continue\r\n\r\n",),
    ),
    # Heads: order, case, duplicates and bytes of fields.
    "fields": Case(
        _whole(
            b"ok",
            b"x-LOWER: 1",
            b"X-Twice: b",
            b"Date: never",
            b"x-twice: a",
            b"X-TWICE: b",
            b"X-Empty: ",
            b"X-Spaces: a  b\tc ,d",
            b"!#$%&'*+-.^_`|~0aZ: odd",
            b"Link: <a>",
            b"Link: <b>",
        )
    ),
    "latin-1": Case(_whole(b"ok", b"X-Bytes: \xe9\xff\x80", status=b"200 Voil\xe0")),
    "utf-8": Case(_whole(b"ok", "X-Text: grüß ✓".encode(), status="200 Schön ✓".encode())),
    "folded": Case(_whole(b"ok", b"X-Folded: one\r\n two\r\n three", b"X-After: b")),
    "many-fields": Case(_whole(b"ok", *(b"X-%d: %d" % (number, number) for number in range(2000)))),
    "long-field": Case(_whole(b"ok", b"X-Long: " + b"a" * 100_000)),
    "padding": Case(
        _whole(b"ok", b"X-A:  padded\t ", b"X-B:bare", b"X-C:"),
        _whole(b"ok", b"X-A: padded", b"X-B: bare", b"X-C: "),
    ),
    "bare-line-feeds": Case(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", _whole(b"ok")),
    # Status lines.
    "reason": Case(_whole(b"ok", status=b"200 Fine  By Me ")),
    "leading-space": Case(_whole(b"ok", status=b"200  two spaces")),
    "empty-reason": Case(_whole(b"ok", status=b"200 ")),
    "no-reason": Case(_whole(b"ok", status=b"200"), _whole(b"ok", status=b"200 ")),
    "299": Case(_whole(b"odd", status=b"299 Strange")),
    "599": Case(_whole(b"odd", status=b"599 Stranger")),
    "999": Case(_whole(b"odd", status=b"999 Denied")),
    "401": Case(
        _whole(b"", b"WWW-Authenticate: Basic", b"WWW-Authenticate: Negotiate", status=b"401 No")
    ),
    "407": Case(_whole(b"no", b"Proxy-Authenticate: Basic", status=b"407 Not Here")),
    "426": Case(_whole(b"", b"Upgrade: h2c", b"Connection: Upgrade", status=b"426 Upgrade")),
    # Where a body ends.
    "old": Case(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", ends=True),
    "old-kept": Case(
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\nold",
        asked=b"Connection: Keep-Alive\r\n",
    ),
    "old-until-the-end": Case(b"HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nold", ends=True),
    "until-the-end": Case(_HEAD + b"Connection: close\r\n\r\nuntil the end", ends=True),
    "identity": Case(_HEAD + b"Transfer-Encoding: identity\r\n\r\nuntil the end", ends=True),
    "close": Case(_whole(b"bye", b"Connection: close"), ends=True),
    "Close": Case(_whole(b"bye", b"Connection: Close"), ends=True),
    "rest": Case(_whole(b"ok") + b"and more", _whole(b"ok"), warnings=(_REST,)),
    "rest-204": Case(
        b"HTTP/1.1 204 No Content\r\n\r\nbody",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        warnings=(_REST,),
    ),
    # Chunks: their boundaries stay; how their length is written does not.
    "chunks": Case(_chunked(b"a", b"bc", b"\r\n", b"0\r\n\r\n", bytes(range(256)))),
    "chunk-sizes": Case(
        _HEAD
        + b"Transfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n00b\r\nhello world\r\n000\r\n\r\n",
        _HEAD
        + b"Transfer-Encoding: Chunked\r\n\r\na\r\n0123456789\r\nb\r\nhello world\r\n0\r\n\r\n",
    ),
    "extensions": Case(
        _HEAD
        + b'Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1 ; c="d;e"\r\n!\r\n0;z\r\n\r\n',
        _chunked(b"hello", b"!"),
        warnings=(_EXTENSIONS,),
    ),
    "last-extension": Case(
        _chunked(b"hello", end=b"0;last\r\n\r\n"), _chunked(b"hello"), warnings=(_EXTENSIONS,)
    ),
    "trailers": Case(
        _chunked(
            b"abc",
            lines=b"Trailer: X-Sum\r\n",
            end=b"0\r\nX-Sum: 7\r\nx-second: b\r\nX-Sum: 8\r\n\r\n",
        )
    ),
    "only-trailers": Case(_chunked(end=b"0\r\nX-Sum: 7\r\n\r\n")),
    "semicolons": Case(_chunked(b";a=b", b"x;y", end=b"0\r\nX-Sum: 7;8\r\n\r\n")),
}

_AFTER = _whole(b"and then")
_AND_THEN = Answer(_AFTER.removesuffix(b"and then"), b"and then")

WAYS = ("tls", "plain")
"""How HTTP/1 clients ask: TLS in a tunnel, and the way one asks a proxy."""


async def _say(conversation: Conversation) -> None:
    path = re.sub(r"^https?://[^/]*", "", conversation.path)
    _, _, kind, name = path.split("/")
    case = CASES[name] if kind == "case" else Case(_AFTER)
    await conversation.say(b"".join(case.interim) + case.sent)
    conversation.over = case.ends


class _Asker:
    """Asks an origin for every case, over HTTP/1 as `way` says."""

    def __init__(self, deck: Deck, urls: dict[str, str]) -> None:
        self._deck = deck
        self._urls = urls

    def ask(self, way: str, name: str, run: str) -> tuple[Answer, Answer]:
        """Ask for a case, and on the same connection for something else, unless it is to end."""
        case = CASES[name]
        with Wire(self._open(way, run)) as wire:
            answer = wire.ask(self._request(way, f"/{way}/case/{name}", run, case))
            if case.ends:
                return answer, Answer(b"", *wire.rest())
            return answer, wire.ask(self._request(way, f"/{way}/after/{name}", run))

    def _open(self, way: str, run: str) -> socket.socket:
        if way == "plain":
            return socket.create_connection(self._deck.proxy, timeout=10)
        target = self._urls[way].partition("//")[2]
        return tunnel(self._deck.proxy, target, run, ca=self._deck.running.ca)

    def _request(self, way: str, path: str, run: str, case: Case = Case(b"")) -> bytes:
        url, more = self._urls[way], case.asked
        authority = url.partition("//")[2]
        target = path
        if way == "plain":
            target = url + path
            more += b"Proxy-Authorization: Basic %s\r\n" % b64encode(f"{run}:x".encode())
        return f"{case.method} {target} HTTP/1.1\r\nHost: {authority}\r\n".encode() + more + b"\r\n"


@dataclass
class Story:
    """Everything that was recorded and played."""

    recorded: dict[tuple[str, str], tuple[Answer, Answer]] = field(default_factory=dict)
    """By way and case."""
    played: dict[tuple[str, str], tuple[Answer, Answer]] = field(default_factory=dict)
    tape: dict[str, Exchange] = field(default_factory=dict)
    """By target."""
    receipts: list[Receipt] = field(default_factory=list)
    over_h2: dict[str, list[Frame]] = field(default_factory=dict)
    """What an HTTP/2 client is played of the tape of HTTP/1."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Record every case every way, stop the origins, play everything, and once more over HTTP/2."""
    made = Story()
    folder = tmp_path_factory.mktemp("bytes")
    config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=certificates.root)
    with (
        Deck(config) as deck,
        RawOrigin(_say, certificates, lasting=True) as secure,
        RawOrigin(_say, lasting=True) as plain,
    ):
        asker = _Asker(deck, {"tls": secure.url, "plain": plain.url})
        cases = [(way, name) for way in WAYS for name in CASES]
        for way, name in cases:
            made.recorded[way, name] = asker.ask(way, name, "bytes")
        deck.end("bytes")
        authority = secure.url.partition("//")[2]
        secure.stop()
        plain.stop()
        deck.play()
        for way, name in cases:
            made.played[way, name] = asker.ask(way, name, "bytes")
        deck.end("bytes@1")
        opened = tunnel(deck.proxy, authority, "bytes", ca=deck.running.ca, alpn="h2")
        with H2Wire(opened, authority) as wire:
            for name, case in CASES.items():
                fields = [
                    (key.lower(), value)
                    for key, value in (line.split(b": ") for line in case.asked.splitlines())
                    if key != b"Connection"
                ]
                made.over_h2[name] = wire.ask(case.method, f"/tls/case/{name}", fields=fields)
        deck.end("bytes@2")
        made.tape = {exchange.request.target: exchange for exchange in deck.tape("bytes")}
        made.receipts = [deck.receipt("bytes@1"), deck.receipt("bytes@2")]
    return made


def test_there_are_as_many_ways_to_answer_as_there_have_to_be() -> None:
    """Sixty on which every byte of a socket is compared: over HTTP/1 in a tunnel and without one, and over HTTP/2."""
    assert len(CASES) * len(WAYS) + len(FRAMED) >= 60


@pytest.mark.parametrize("name", CASES)
def test_what_the_origin_says_is_what_the_client_gets(story: Story, name: str) -> None:
    """Every byte of head and body; framing and what is not carried as the table says."""
    case = CASES[name]
    for way in WAYS:
        answer, _ = story.recorded[way, name]
        assert answer.head + answer.body == (case.sent if case.came is None else case.came), way
        assert (answer.ending, answer.interim) == ("whole", case.interim), way


@pytest.mark.parametrize("name", CASES)
def test_a_replay_gives_the_same_bytes(story: Story, name: str) -> None:
    """The answer, the one after it on the same connection, or that the connection has ended."""
    for way in WAYS:
        assert story.played[way, name] == story.recorded[way, name], way


@pytest.mark.parametrize("name", CASES)
def test_a_connection_goes_on_unless_the_answer_ends_it(story: Story, name: str) -> None:
    """The next answer is found where this one ends: not a byte is too many or too few."""
    for way in WAYS:
        _, after = story.recorded[way, name]
        assert after == (Answer(b"", b"", "closed") if CASES[name].ends else _AND_THEN), way


@pytest.mark.parametrize("name", CASES)
def test_the_tape_holds_the_body_and_what_was_not_carried(story: Story, name: str) -> None:
    """The body without its framing, what is missing, and nothing more."""
    exchange = story.tape[f"/tls/case/{name}"]
    answer, _ = story.recorded["tls", name]
    assert exchange.response is not None
    assert exchange.response.complete
    assert exchange.response.body == answer.content
    assert exchange.warnings == CASES[name].warnings


def test_every_replay_is_faithful(story: Story) -> None:
    """Nothing diverged; the one over HTTP/2 leaves over what it did not ask for."""
    h1, h2 = story.receipts
    assert h1.faithful is True, h1.to_json()
    assert h2.counts["served"] == len(CASES)
    assert not h2.divergences


_OF_A_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
"""Fields that HTTP/2 has none of (RFC 9113 section 8.2.2)."""


@pytest.mark.parametrize("name", CASES)
def test_an_http2_client_gets_what_was_recorded_over_http1(story: Story, name: str) -> None:
    """Names in lower case, folded lines in one, chunks as pieces, trailers as trailers."""
    answer, _ = story.recorded["tls", name]
    interim = [
        (
            "interim",
            (
                (b":status", b"%d" % one.status),
                *((key.lower(), value) for key, value in one.fields),
            ),
        )
        for one in (Answer(head.replace(b"\r\n ", b" "), b"") for head in CASES[name].interim)
    ]
    count = len(interim)
    assert story.over_h2[name][:count] == interim
    (kind, fields), *rest = story.over_h2[name][count:]
    assert kind == "head"
    flat = answer.head.replace(b"\r\n ", b" ")
    expected = [
        (key.lower(), value)
        for key, value in Answer(flat, b"").fields
        if key.lower() not in _OF_A_CONNECTION
    ]
    assert fields == ((b":status", b"%d" % answer.status), *expected)
    assert body_of(rest) == answer.content
    exchange = story.tape[f"/tls/case/{name}"]
    assert exchange.response is not None
    trailers = tuple((key.lower(), value) for key, value in exchange.response.trailers)
    assert [frame for frame in rest if frame[0] != "data"] == [
        *([("trailers", trailers)] if trailers else []),
        ("end",),
    ]


# ---- recorded over HTTP/2 ----------------------------------------------------------------------------

Fields = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Framed:
    """One answer over HTTP/2."""

    fields: Fields = ()
    pieces: tuple[bytes, ...] = ()
    trailers: Fields = ()
    status: int = 200
    method: str = "GET"
    interim: tuple[int, ...] = ()

    @property
    def frames(self) -> list[Frame]:
        """What a client of HTTP/2 is to get."""
        hint = (b"link", b"</style.css>")
        return [
            *(("interim", ((b":status", b"%d" % status), hint)) for status in self.interim),
            ("head", ((b":status", b"%d" % self.status), *self.fields)),
            *(("data", piece) for piece in self.pieces),
            *([("trailers", self.trailers)] if self.trailers else []),
            ("end",),
        ]


def _of_length(length: int, *more: tuple[bytes, bytes]) -> Fields:
    return (*more, (b"content-length", b"%d" % length))


_LARGE = bytes(range(256)) * 800
_GZIPPED = gzip.compress(TEXT, mtime=0)
FRAMED: dict[str, Framed] = {
    "length": Framed(_of_length(4), (b"done",)),
    "open": Framed(((b"x-a", b"1"),), (b"do", b"ne")),
    "pieces": Framed(_of_length(7), (b"a", b"bc", b"\r\n", b"0\r")),
    "empty": Framed(((b"x-a", b"1"),)),
    "empty-length": Framed(_of_length(0)),
    "gzip": Framed(_of_length(len(_GZIPPED), (b"content-encoding", b"gzip")), (_GZIPPED,)),
    "no-br": Framed(((b"content-encoding", b"br"),), (b"\xff\x00no brotli",)),
    "range": Framed(_of_length(4, (b"content-range", b"bytes 4-7/41")), (b"same",), status=206),
    "204": Framed(((b"x-a", b"1"),), status=204),
    "304": Framed(((b"etag", b'"v1"'),), status=304),
    "304-length": Framed(_of_length(7), status=304),
    "head": Framed(_of_length(1000), method="HEAD"),
    "head-open": Framed(((b"x-a", b"1"),), method="HEAD"),
    "trailers": Framed((), (b"a", b"b"), ((b"x-sum", b"7"), (b"x-bin", b"\xff\x01"))),
    "length-trailers": Framed(_of_length(1), (b"a",), ((b"x-sum", b"7"),)),
    "only-trailers": Framed((), (), ((b"grpc-status", b"5"), (b"grpc-message", b"no"))),
    "grpc-error": Framed(((b"content-type", b"application/grpc"), (b"grpc-status", b"5"))),
    "fields": Framed(
        (
            (b"x-twice", b"b"),
            (b"date", b"never"),
            (b"x-twice", b"a"),
            (b"x-empty", b""),
            (b"x-bytes", b"\xe9\xff"),
            (b"link", b"<a>, <b>"),
            (b"!#$%&'*+-.^_`|~0az", b"odd"),
        ),
        (b"ok",),
    ),
    "500": Framed(_of_length(4), (b"oops",), status=500),
    "999": Framed(_of_length(3), (b"odd",), status=999),
    "interim": Framed(_of_length(5), (b"final",), interim=(100, 103, 102, 103)),
    "interim-only-head": Framed(((b"x-a", b"1"),), interim=(103,)),
    "large": Framed(_of_length(len(_LARGE)), (_LARGE,)),
}


def _say_frames(stream: Stream) -> bool:
    _, kind, name = stream.path.split("/")
    framed = FRAMED[name] if kind == "case" else Framed(_of_length(8), (b"and then",))
    for status in framed.interim:
        stream.head((b"link", b"</style.css>"), status=status)
    stream.head(*framed.fields, status=framed.status, end=framed.frames[-2][0] == "head")
    for index, piece in enumerate(framed.pieces, 1):
        last = index == len(framed.pieces) and not framed.trailers
        for start in range(0, len(piece), 16_000):
            stream.data(piece[start : start + 16_000], end=last and start + 16_000 >= len(piece))
    if framed.trailers:
        stream.trailers(*framed.trailers)
    return False


@dataclass
class FramedStory:
    """Everything that was recorded and played."""

    recorded: dict[str, list[Frame]] = field(default_factory=dict)
    played: dict[str, list[Frame]] = field(default_factory=dict)
    over_h1: dict[str, tuple[Answer, Answer]] = field(default_factory=dict)
    tape: dict[str, Exchange] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)


@pytest.fixture(scope="module")
def framed_story(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> FramedStory:
    """Record every case over HTTP/2, stop the origin, play everything, and once more over HTTP/1."""
    made = FramedStory()
    folder = tmp_path_factory.mktemp("frames")
    config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(_say_frames, certificates) as origin:
        authority = f"127.0.0.1:{origin.port}"

        def over_h2() -> dict[str, list[Frame]]:
            opened = tunnel(deck.proxy, authority, "frames", ca=deck.running.ca, alpn="h2")
            with H2Wire(opened, authority) as wire:
                return {
                    name: wire.ask(case.method, f"/case/{name}") for name, case in FRAMED.items()
                }

        def after(name: str) -> bytes:
            return f"GET /after/{name} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()

        made.recorded = over_h2()
        opened = tunnel(deck.proxy, authority, "frames", ca=deck.running.ca, alpn="h2")
        with H2Wire(opened, authority) as wire:
            for name in FRAMED:
                wire.ask("GET", f"/after/{name}")
        deck.end("frames")
        origin.stop()
        deck.play()
        made.played = over_h2()
        deck.end("frames@1")
        opened = tunnel(deck.proxy, authority, "frames", ca=deck.running.ca)
        with Wire(opened) as h1:
            for name, case in FRAMED.items():
                request = f"{case.method} /case/{name} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
                made.over_h1[name] = h1.ask(request.encode()), h1.ask(after(name))
        deck.end("frames@2")
        made.tape = {exchange.request.target: exchange for exchange in deck.tape("frames")}
        made.receipts = [deck.receipt("frames@1"), deck.receipt("frames@2")]
    return made


def _merged(frames: list[Frame]) -> list[Frame]:
    """Give frames with the pieces of large ones in one."""
    body = body_of(frames)
    if len(body) < 16_000:
        return frames
    kept = [frame for frame in frames if frame[0] != "data"]
    return [kept[0], ("data", body), *kept[1:]]


@pytest.mark.parametrize("name", FRAMED)
def test_frames_pass_and_are_played_as_they_were(framed_story: FramedStory, name: str) -> None:
    """Fields in order, pieces, trailers, end: those of the origin, while recording and on replay."""
    assert _merged(framed_story.recorded[name]) == FRAMED[name].frames
    assert framed_story.played[name] == framed_story.recorded[name]


@pytest.mark.parametrize("name", FRAMED)
def test_the_tape_of_frames_has_interim_answers(framed_story: FramedStory, name: str) -> None:
    """Each in its place, with its status; nothing is left out."""
    exchange = framed_story.tape[f"/case/{name}"]
    assert tuple(one.status for one in exchange.interim) == FRAMED[name].interim
    assert exchange.warnings == ()


def test_every_replay_of_frames_is_faithful(framed_story: FramedStory) -> None:
    """Everything was served, nothing diverged, whichever protocol the client speaks."""
    h2, h1 = framed_story.receipts
    assert h2.counts["served"] == len(FRAMED)
    assert not h2.divergences
    assert h1.faithful is True, h1.to_json()


@pytest.mark.parametrize("name", FRAMED)
def test_an_http1_client_gets_what_was_recorded_over_http2(
    framed_story: FramedStory, name: str
) -> None:
    """Framed by its length, or in chunks of the same pieces; the connection goes on behind it."""
    framed = FRAMED[name]
    answer, after = framed_story.over_h1[name]
    own = list(framed.fields)
    length = dict(own).get(b"content-length")
    bodiless = framed.method == "HEAD" or framed.status in (204, 304)
    if length is None and not bodiless:
        own.append((b"transfer-encoding", b"chunked"))
        pieces = [piece for kind, *piece in framed_story.recorded[name] if kind == "data"]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for (piece,) in pieces)
        trailers = b"".join(b"%s: %s\r\n" % pair for pair in framed.trailers)
        assert answer.body == chunks + b"0\r\n" + trailers + b"\r\n"
    else:
        assert answer.body == b"".join(framed.pieces)
    assert answer.head.startswith(b"HTTP/1.1 %d " % framed.status)
    assert answer.interim == tuple(
        b"HTTP/1.1 %d %s\r\nlink: </style.css>\r\n\r\n"
        % (status, HTTPStatus(status).phrase.encode())
        for status in framed.interim
    )
    assert answer.fields == own
    assert (after.status, after.body) == (200, b"and then")


# ---- an end of a connection that is none of its streams ----------------------------------------------


def _going_away(stream: Stream) -> bool:
    """Say that no more is taken, and answer what was taken; nothing after that."""
    stream.head((b"content-length", b"4"))
    stream.go_away()
    stream.data(b"fi")
    stream.data(b"ne", end=True)
    return False


def test_an_upstream_that_goes_away_finishes_what_it_began(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> None:
    """GOAWAY is for what was not asked yet: that gets another connection, and nobody is told."""
    store = tmp_path_factory.mktemp("goaway") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(_going_away, certificates) as origin:
        authority = f"127.0.0.1:{origin.port}"

        def ask() -> list[list[Frame]]:
            opened = tunnel(deck.proxy, authority, "goaway", ca=deck.running.ca, alpn="h2")
            with H2Wire(opened, authority) as wire:
                return [wire.ask("GET", f"/{number}") for number in range(3)]

        recorded = ask()
        deck.end("goaway")
        assert origin.connections == 3
        origin.stop()
        deck.play()
        played = ask()
        deck.end("goaway@1")
        tape = deck.tape("goaway")
        receipt = deck.receipt("goaway@1")
    fine = [("head", ((b":status", b"200"), (b"content-length", b"4"))), ("data", b"fi"), ("data", b"ne"), ("end",)]  # fmt: skip
    assert recorded == played == [fine] * 3
    assert [exchange.fault for exchange in tape] == [None] * 3
    assert receipt.faithful is True


def test_an_upstream_that_goes_away_refuses_what_came_later(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> None:
    """Streams above the one that GOAWAY names are reset at once; those below go on."""
    store = tmp_path_factory.mktemp("goaway") / "store"
    streams: dict[str, Stream] = {}

    def script(stream: Stream) -> bool:
        streams[stream.path] = stream
        if len(streams) == 2:
            first = streams["/first"]
            first.go_away(last=first.number)
            first.head((b"x-a", b"b"))
            first.data(b"fine", end=True)
        return False

    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(script, certificates) as origin:
        authority = f"127.0.0.1:{origin.port}"

        def ask() -> list[list[Frame]]:
            opened = tunnel(deck.proxy, authority, "goaway", ca=deck.running.ca, alpn="h2")
            with H2Wire(opened, authority) as wire:
                asked = [wire.send("GET", "/first"), wire.send("GET", "/second")]
                wire.read(*asked)
                return [wire.got[stream] for stream in asked]

        recorded = ask()
        deck.end("goaway")
        deck.play()
        assert ask() == recorded
        deck.end("goaway@1")
        tape = {exchange.request.target: exchange for exchange in deck.tape("goaway")}
    assert body_of(recorded[0]) == b"fine"
    assert recorded[0][-1] == ("end",)
    assert [frame[0] for frame in recorded[1]] == ["reset"]
    assert tape["/first"].fault is None
    fault = tape["/second"].fault
    assert fault is not None
    assert "GOAWAY" in fault.text


def test_a_client_that_goes_away_is_answered(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> None:
    """It asks no more, and waits for what it asked."""
    store = tmp_path_factory.mktemp("goaway") / "store"
    asked = threading.Event()

    def script(stream: Stream) -> bool:
        assert asked.wait(10)
        stream.head((b"x-a", b"b"), end=True)
        return False

    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(script, certificates) as origin:
        authority = f"127.0.0.1:{origin.port}"
        opened = tunnel(deck.proxy, authority, "goaway", ca=deck.running.ca, alpn="h2")
        with H2Wire(opened, authority) as wire:
            stream = wire.send("GET", "/")
            wire.go_away()
            asked.set()
            wire.read(stream)
            got = wire.got[stream]
        deck.end("goaway")
        (exchange,) = deck.tape("goaway")
    assert [frame[0] for frame in got] == ["head", "end"]
    assert exchange.gone is None
    assert exchange.response is not None


# ---- requests ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One request over HTTP/1."""

    sent: bytes
    """Everything that the client says; AUTHORITY stands for the origin's."""
    reached: bytes | None = None
    """What reaches the origin, where that is not the same."""
    warnings: tuple[str, ...] = ()
    interim: tuple[bytes, ...] = ()


def _request(line: bytes, *lines: bytes, body: bytes = b"") -> bytes:
    fields = b"".join(each + b"\r\n" for each in (b"Host: AUTHORITY", *lines))
    return b"%s HTTP/1.1\r\n%s\r\n%s" % (line, fields, body)


_CHUNKS = b"Transfer-Encoding: chunked"
_TWO = b"Content-Length: 2"
_LEFT_OUT = ("chunk extensions of the request were left out",)
REQUESTS: dict[str, Asked] = {
    # methods and targets as they are written
    "get": Asked(_request(b"GET /get")),
    "lower": Asked(_request(b"patch /lower", _TWO, body=b"hi")),
    "own": Asked(_request(b"M-SEARCH!~ /own")),
    "slashes": Asked(_request(b"GET //slashes//a/../b/./c;d=e")),
    "percent": Asked(_request(b"GET /percent%7Ea%2f%2F?b=%zz&&c&d=;e=%E9+%20")),
    "bytes": Asked(_request(b"GET /bytes\xfc\xff?\xe9=\x80")),
    "question": Asked(_request(b"GET /question?")),
    "fragment": Asked(_request(b"GET /fragment?a#b")),
    "long": Asked(_request(b"GET /long" + b"a" * 60_000)),
    "star": Asked(_request(b"OPTIONS *")),
    "absolute": Asked(_request(b"GET https://AUTHORITY/absolute")),
    # heads
    "order": Asked(_request(b"GET /order", b"x-low: 1", b"X-UP: 2", b"X-LOW: 3", b"x-empty: ")),
    "odd": Asked(_request(b"GET /odd", b"X-Bytes: \xe9\xff", b"!#$%&'*+-.^_`|~0aZ: a  b")),
    "folded": Asked(_request(b"GET /folded", b"X-Folded: one\r\n two")),
    "many": Asked(_request(b"GET /many", *(b"X-%d: y" % number for number in range(2000)))),
    "hop": Asked(_request(b"GET /hop", b"Connection: TE, x-a", b"TE: trailers", b"X-A: b")),
    "no-host": Asked(b"GET /no-host HTTP/1.1\r\nX-A: b\r\n\r\n"),
    "old": Asked(b"GET /old HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
    "padding": Asked(
        _request(b"GET /padding", b"X-A:  a\t ", b"X-B:b"),
        _request(b"GET /padding", b"X-A: a", b"X-B: b"),
    ),
    "bare": Asked(b"GET /bare HTTP/1.1\nHost: x\n\n", b"GET /bare HTTP/1.1\r\nHost: x\r\n\r\n"),
    "proxy": Asked(
        _request(b"GET /proxy", b"Proxy-Connection: keep-alive", b"Keep-Alive: timeout=5"),
        _request(b"GET /proxy", b"Keep-Alive: timeout=5"),
    ),
    "h2c": Asked(
        _request(
            b"GET /h2c",
            b"Connection: Upgrade, HTTP2-Settings",
            b"Upgrade: h2c",
            b"HTTP2-Settings: AAM",
        ),
        _request(b"GET /h2c"),
    ),
    # bodies
    "length": Asked(_request(b"PUT /length", _TWO, body=b"\x00\xff")),
    "none": Asked(_request(b"POST /none", b"Content-Length: 0")),
    "get-body": Asked(_request(b"GET /get-body", _TWO, body=b"hi")),
    "gzip": Asked(_request(b"POST /gzip", _TWO, b"Content-Encoding: gzip", body=b"no")),
    "chunk": Asked(_request(b"POST /chunk", _CHUNKS, body=b"3\r\nabc\r\n0\r\n\r\n")),
    "chunks": Asked(
        _request(b"POST /chunks", _CHUNKS, body=b"3\r\nabc\r\n02\r\nde\r\n0\r\n\r\n"),
        _request(b"POST /chunks", _CHUNKS, body=b"5\r\nabcde\r\n0\r\n\r\n"),
    ),
    "empty-chunks": Asked(_request(b"POST /empty-chunks", _CHUNKS, body=b"0\r\n\r\n")),
    "trailers": Asked(
        _request(b"POST /trailers", _CHUNKS, body=b"1\r\na\r\n0\r\nX-T: 1\r\nx-u: 2\r\n\r\n")
    ),
    "extensions": Asked(
        _request(b"POST /extensions", _CHUNKS, body=b"3;a=b\r\nabc\r\n0 ; c\r\n\r\n"),
        _request(b"POST /extensions", _CHUNKS, body=b"3\r\nabc\r\n0\r\n\r\n"),
        _LEFT_OUT,
    ),
    "expect": Asked(
        _request(b"POST /expect", b"Expect: 100-Continue", _TWO, body=b"hi"),
        _request(b"POST /expect", _TWO, body=b"hi"),
        interim=(b"HTTP/1.1 100 Continue\r\n\r\n",),
    ),
    "expect-else": Asked(_request(b"POST /expect-else", b"Expect: more", _TWO, body=b"hi")),
}


@dataclass
class AskedStory:
    """Everything that was asked, recorded and again."""

    recorded: dict[str, tuple[Answer, Answer]] = field(default_factory=dict)
    played: dict[str, tuple[Answer, Answer]] = field(default_factory=dict)
    reached: dict[str, list[bytes]] = field(default_factory=dict)
    tape: dict[str, Exchange] = field(default_factory=dict)
    authority: bytes = b""
    receipt: Receipt | None = None


@pytest.fixture(scope="module")
def asked_story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> AskedStory:
    """Record every request, stop the origin, ask again."""
    made = AskedStory()
    folder = tmp_path_factory.mktemp("requests")

    async def say(conversation: Conversation) -> None:
        await conversation.say(_AFTER)

    def ask(name: str) -> tuple[Answer, Answer]:
        target = made.authority.decode()
        with Wire(tunnel(deck.proxy, target, "asked", ca=deck.running.ca)) as wire:
            answer = wire.ask(REQUESTS[name].sent.replace(b"AUTHORITY", made.authority))
            return answer, wire.ask(b"GET /after/%s HTTP/1.1\r\n\r\n" % name.encode())

    config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=certificates.root)
    with Deck(config) as deck, RawOrigin(say, certificates, lasting=True) as origin:
        made.authority = f"127.0.0.1:{origin.port}".encode()
        for name in REQUESTS:
            before = len(origin.heads)
            made.recorded[name] = ask(name)
            got = zip(origin.heads[before:], origin.bodies[before:], strict=True)
            made.reached[name] = [head + body for head, body in got]
            made.tape[name] = deck.tape("asked")[-2]
        deck.end("asked")
        origin.stop()
        deck.play()
        for name in REQUESTS:
            made.played[name] = ask(name)
        deck.end("asked@1")
        made.receipt = deck.receipt("asked@1")
    return made


@pytest.mark.parametrize("name", REQUESTS)
def test_what_a_client_asks_is_what_the_origin_reads(asked_story: AskedStory, name: str) -> None:
    """Every byte of head and body; what a hop takes for itself as the table says."""
    asked = REQUESTS[name]
    expected = asked.sent if asked.reached is None else asked.reached
    first, _ = asked_story.reached[name]
    assert first == expected.replace(b"AUTHORITY", asked_story.authority)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_tape_holds_what_was_asked(asked_story: AskedStory, name: str) -> None:
    """Method, target, fields and trailers as they were written, and the body without its framing."""
    asked, request = REQUESTS[name], asked_story.tape[name].request
    sent = asked.sent.replace(b"AUTHORITY", asked_story.authority).replace(b"\r\n two", b" two")
    head, _, body = re.sub(rb"\r?\n", b"\r\n", sent).partition(b"\r\n\r\n")
    line, *lines = head.split(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    assert (request.method, request.http_version) == (method, version)
    assert request.target == re.sub("^https://[^/]*", "", target)
    fields = [(key, value.replace(b"\r\n ", b" ")) for key, value in request.headers]
    expected = [(key, value.strip()) for key, _, value in (each.partition(b":") for each in lines)]
    assert fields == [pair for pair in expected if pair[0] != b"Proxy-Connection"]
    chunked = (b"Transfer-Encoding", b"chunked") in fields
    assert request.body == (Answer(head + b"\r\n\r\n", body).content if chunked else body)
    trailers = body.partition(b"0\r\n")[2].splitlines()[:-1] if chunked else []
    assert request.trailers == tuple(tuple(each.split(b": ")) for each in trailers)
    assert asked_story.tape[name].warnings == asked.warnings


@pytest.mark.parametrize("name", REQUESTS)
def test_who_asks_the_same_gets_the_same(asked_story: AskedStory, name: str) -> None:
    """The answer is found by what was asked, and the connection goes on behind the request's body."""
    answer, after = asked_story.recorded[name]
    assert (answer.head + answer.body, answer.interim) == (_AFTER, REQUESTS[name].interim)
    assert after.body == b"and then"
    assert asked_story.played[name] == (answer, after)


def test_every_replay_of_requests_is_faithful(asked_story: AskedStory) -> None:
    """Each was found by its bytes alone."""
    receipt = asked_story.receipt
    assert receipt is not None
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.matched["exact"] == 2 * len(REQUESTS)
