"""nginx as a second implementation of HTTP: what it says beside the proxy is what passes it and is played.

Every row is asked of nginx itself, through a recording proxy, and of the tape with nginx gone, over plain
HTTP/1.1, with TLS, and over HTTP/2. Skipped where nginx is not installed.
"""

import itertools
import re
import socket
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import NamedTuple

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Exchange
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.nginx import Nginx
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import PATIENCE_S, Answer, Frame, H2Wire, Wire, body_of, tunnel
from playhead.timeline import Receipt

_NOISE = shake_128(b"noise").digest(100 * 1024)
_TEXT = b"the same words again and again\n" * 4000

_SERVER = """
client_max_body_size 150k;
if_modified_since before;
location /gzip/ { alias FOLDER/; gzip on; gzip_types *; gzip_vary on; gzip_http_version 1.0; }
location /slow/ { alias FOLDER/; limit_rate 2m; }
location /many/ { alias FOLDER/; keepalive_requests 2; }
location /trailers/ { alias FOLDER/; add_trailer X-Sum 7; add_trailer x-second b; }
location /fields/ {
    alias FOLDER/;
    add_header X-Twice a always; add_header x-twice b always; add_header X-Empty "" always;
    add_header Link "</a.css>; rel=preload" always;
}
location = /none { return 204; }
location = /moved { return 301 /noise.bin; }
location = /teapot { return 418 "short and stout"; }
location = /shut { return 444; }
location /list/ { alias FOLDER/; autoindex on; }
location /back/ { proxy_pass http://127.0.0.1:BACK; proxy_http_version 1.1; proxy_buffering off; }
location /buffered/ { proxy_pass http://127.0.0.1:BACK; }
"""


class Row(NamedTuple):
    """One request."""

    path: str
    method: str = "GET"
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


_GZIP = (("accept-encoding", "gzip"),)
ROWS: dict[str, Row] = {
    # files
    "noise": Row("/noise.bin"),
    "text": Row("/text.txt"),
    "empty": Row("/empty.txt"),
    "head": Row("/noise.bin", "HEAD"),
    "missing": Row("/missing"),
    "missing-head": Row("/missing", "HEAD"),
    "folder": Row("/folder"),
    "list": Row("/list/"),
    "denied": Row("/text.txt", "POST", body=b"no"),
    "deleted": Row("/text.txt", "DELETE"),
    "odd-method": Row("/text.txt", "BREW"),
    # parts
    "range": Row("/noise.bin", "GET", (("range", "bytes=100-199"),)),
    "last": Row("/noise.bin", "GET", (("range", "bytes=-7"),)),
    "ranges": Row("/text.txt", "GET", (("range", "bytes=0-9,100-109,200-"),)),
    "no-range": Row("/noise.bin", "GET", (("range", "bytes=999999-"),)),
    "head-range": Row("/noise.bin", "HEAD", (("range", "bytes=100-199"),)),
    # what has not changed
    "since": Row("/text.txt", "GET", (("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT"),)),
    "tag": Row("/text.txt?tag", "GET", (("if-none-match", "*"),)),
    "no-match": Row("/text.txt?match", "GET", (("if-match", '"other"'),)),
    # coded as it goes
    "gzip": Row("/gzip/text.txt", "GET", _GZIP),
    "gzip-noise": Row("/gzip/noise.bin", "GET", _GZIP),
    "gzip-head": Row("/gzip/text.txt", "HEAD", _GZIP),
    "not-gzip": Row("/gzip/text.txt?plain"),
    # heads and ends
    "fields": Row("/fields/empty.txt"),
    "fields-missing": Row("/fields/missing"),
    "trailers": Row("/trailers/text.txt"),
    "no-trailers": Row("/trailers/empty.txt", "HEAD"),
    "none": Row("/none"),
    "moved": Row("/moved"),
    "teapot": Row("/teapot"),
    "slow": Row("/slow/noise.bin"),
    # bodies, and what stands behind
    "echo": Row("/back/echo", "POST", body=_NOISE),
    "buffered-echo": Row("/buffered/echo", "PUT", body=_NOISE),
    "nothing": Row("/back/echo?nothing", "POST"),
    "pieces": Row("/back/pieces"),
    "pieces-gzip": Row("/back/pieces?gzip", "GET", _GZIP),
    "until-the-end": Row("/back/until-the-end"),
    "too-large": Row("/back/echo?large", "POST", body=_NOISE * 2),
    "cut": Row("/back/cut"),
    "bad-gateway": Row("/back/closed"),
    "shut": Row("/shut"),
    "long-target": Row("/" + "a" * 10_000),
}
WAYS = ("plain", "tls", "h2")


async def _stand_behind(conversation: Conversation) -> None:
    """Be what nginx forwards to."""
    match conversation.path.partition("?")[0].rpartition("/")[2]:
        case "echo":
            body = conversation.body
            await conversation.say(
                b"HTTP/1.1 200 OK\r\nX-Case: Kept\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
        case "pieces":
            await conversation.say(b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n")
            for size in (1, 20, 3000, 9):
                await conversation.say(b"%x\r\n%s\r\n" % (size, _TEXT[:size]))
            await conversation.say(b"0\r\n\r\n")
        case "until-the-end":
            await conversation.say(b"HTTP/1.0 200 OK\r\n\r\n" + _TEXT)
        case "cut":
            await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfine")


class _Asker:
    """Asks for rows, of nginx itself or through the proxy, as one run or none."""

    def __init__(self, nginx: Nginx, root: Certificates) -> None:
        self._nginx = nginx
        self._root = root.root

    def direct(self, way: str) -> socket.socket:
        """Connect to nginx."""
        opened = socket.create_connection(("127.0.0.1", self._port(way)), timeout=PATIENCE_S)
        if way == "plain":
            return opened
        context = ssl.create_default_context(cafile=str(self._root))
        context.set_alpn_protocols([_alpn(way)])
        return context.wrap_socket(opened, server_hostname="127.0.0.1")

    def through(self, deck: Deck, way: str) -> socket.socket:
        """Connect to the proxy."""
        if way == "plain":
            return socket.create_connection(deck.proxy, timeout=PATIENCE_S)
        return tunnel(deck.proxy, self.authority(way), "nginx", ca=deck.running.ca, alpn=_alpn(way))

    def authority(self, way: str) -> str:
        return f"127.0.0.1:{self._port(way)}"

    def ask(self, way: str, opened: socket.socket, row: Row, *, proxied: bool) -> Answer:
        """Ask on a connection of its own; frames of HTTP/2 are given as a head and a body."""
        if way == "h2":
            fields = [(name.encode(), value.encode()) for name, value in row.fields]
            pieces = [row.body[at : at + 16_000] for at in range(0, len(row.body), 16_000)]
            with H2Wire(opened, self.authority(way)) as h2:
                frames = h2.ask(row.method, row.path, pieces, fields=fields)
            return Answer(_head_of(frames), body_of(frames), frames[-1][0])
        target, more = row.path, b""
        if way == "plain" and proxied:
            target = f"http://{self.authority(way)}{row.path}"
            more = b"Proxy-Authorization: Basic %s\r\n" % b64encode(b"nginx:x")
        lines = "".join(f"{name}: {value}\r\n" for name, value in row.fields)
        head = f"{row.method} {target} HTTP/1.1\r\nHost: {self.authority(way)}\r\n{lines}"
        length = b"Content-Length: %d\r\n" % len(row.body) if row.method in ("POST", "PUT") else b""
        with Wire(opened) as wire:
            return wire.ask(head.encode() + length + more + b"\r\n" + row.body)

    def _port(self, way: str) -> int:
        return self._nginx.plain if way == "plain" else self._nginx.secure


def _alpn(way: str) -> str:
    return "h2" if way == "h2" else "http/1.1"


def _head_of(frames: list[Frame]) -> bytes:
    """Give heads and trailers as lines."""
    pairs = itertools.chain(*(frame[1] for frame in frames if frame[0] in ("head", "trailers")))
    return b"".join(b"%s: %s\r\n" % pair for pair in pairs)


@dataclass
class Story:
    """What came of every row; by way and row."""

    direct: dict[tuple[str, str], Answer] = field(default_factory=dict)
    recorded: dict[tuple[str, str], Answer] = field(default_factory=dict)
    played: dict[tuple[str, str], Answer] = field(default_factory=dict)
    kept: list[list[Frame]] = field(default_factory=list)
    """Of many requests on one connection of HTTP/2."""
    tape: dict[str, Exchange] = field(default_factory=dict)
    receipt: Receipt | None = None


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Ask nginx, record it, end it, play it."""
    made = Story()
    folder = tmp_path_factory.mktemp("nginx")
    with RawOrigin(_stand_behind) as back:
        server = _SERVER.replace("FOLDER", str(folder / "nginx" / "root"))
        nginx = Nginx(folder / "nginx", certificates, server.replace("BACK", str(back.port)))
        (nginx.root / "folder").mkdir()
        files = {"noise.bin": _NOISE, "text.txt": _TEXT, "empty.txt": b""}
        for name, content in files.items():
            (nginx.root / name).write_bytes(content)
        config = Config(mode=Mode.RECORD, store=folder / "store", upstream_ca=certificates.root)
        with nginx, Deck(config) as deck:
            asker = _Asker(nginx, certificates)

            def ask_all(answers: dict[tuple[str, str], Answer]) -> None:
                for way, name in itertools.product(WAYS, ROWS):
                    opened = asker.through(deck, way)
                    answers[way, name] = asker.ask(way, opened, ROWS[name], proxied=True)
                with H2Wire(asker.through(deck, "h2"), asker.authority("h2")) as wire:
                    asked = [f"/many/text.txt?{number}" for number in range(7)]
                    made.kept.extend(wire.ask("GET", target) for target in asked)

            for way, name in itertools.product(WAYS, ROWS):
                opened = asker.direct(way)
                made.direct[way, name] = asker.ask(way, opened, ROWS[name], proxied=False)
            ask_all(made.recorded)
            deck.end("nginx")
            nginx.stop()
            deck.play()
            ask_all(made.played)
            deck.end("nginx@1")
            made.tape = {
                f"{exchange.request.http_version} {exchange.request.method} {exchange.request.url}": exchange
                for exchange in deck.tape("nginx")
            }
            made.receipt = deck.receipt("nginx@1")
    return made


def _timeless(said: bytes) -> bytes:
    """Leave out what nginx says otherwise each time: the date, and the number of a boundary."""
    return re.sub(rb"\d{20}", b"0" * 20, re.sub(rb"(?i)(\r\ndate: )[^\r]+", rb"\1now", said))


CUT = ("cut", "shut")
"""Rows that nginx ends without an answer, or in the middle of one."""


@pytest.mark.parametrize("name", [name for name in ROWS if name not in CUT])
def test_what_nginx_says_passes(story: Story, name: str) -> None:
    """Fields, body and trailers are those that a client sees without the proxy."""
    for way in WAYS:
        direct, recorded = story.direct[way, name], story.recorded[way, name]
        assert _timeless(recorded.head) == _timeless(direct.head), way
        assert _timeless(recorded.content) == _timeless(direct.content), way
        assert recorded.ending == direct.ending in ("whole", "end"), way


@pytest.mark.parametrize("name", ROWS)
def test_what_nginx_said_is_played(story: Story, name: str) -> None:
    """Every byte, chunk and piece, and how it ended."""
    for way in WAYS:
        assert story.played[way, name] == story.recorded[way, name], way


@pytest.mark.parametrize("name", CUT)
def test_what_nginx_cuts_is_cut(story: Story, name: str) -> None:
    """As far as it had come, and no page."""
    for way in WAYS:
        direct, recorded = story.direct[way, name], story.recorded[way, name]
        assert recorded.body == direct.body, way
        assert recorded.ending not in ("whole", "end"), way
        assert _timeless(recorded.head) == _timeless(direct.head), way


def test_nginx_did_what_it_is_here_for(story: Story) -> None:
    """The rows show what they are meant to show."""
    h1 = {name: story.direct["plain", name] for name in ROWS}
    assert h1["noise"].body == _NOISE == h1["echo"].body == story.direct["h2", "echo"].body
    assert b"multipart/byteranges" in h1["ranges"].head
    statuses = {name: h1[name].status for name in ROWS if h1[name].head}
    assert statuses.items() >= {("range", 206), ("no-range", 416), ("since", 304), ("tag", 304)}
    assert statuses.items() >= {("too-large", 413), ("bad-gateway", 502), ("denied", 405)}
    assert statuses.items() >= {("long-target", 414), ("moved", 301), ("none", 204)}
    assert b"Transfer-Encoding: chunked" in h1["gzip"].head
    assert h1["gzip"].content.startswith(b"\x1f\x8b")
    assert h1["trailers"].body.endswith(b"0\r\nX-Sum: 7\r\nx-second: b\r\n\r\n")
    assert story.direct["h2", "trailers"].head.endswith(b"x-sum: 7\r\nx-second: b\r\n")


def test_a_connection_outlives_those_of_nginx(story: Story) -> None:
    """nginx goes away after every second request; the client's connection of HTTP/2 stays, both times."""
    assert len(story.kept) == 14
    for frames in story.kept:
        assert body_of(frames) == _TEXT
        assert frames[-1] == ("end",)


def test_a_replay_of_nginx_is_faithful(story: Story) -> None:
    """Everything was served, and nothing of it with a warning."""
    assert story.receipt is not None
    assert story.receipt.faithful is True, story.receipt.to_json()
    assert story.receipt.counts["served"] == len(WAYS) * len(ROWS) + 7
    assert {exchange.warnings for exchange in story.tape.values()} == {()}
