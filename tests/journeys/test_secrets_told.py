"""Secrets in everything that Playhead tells of a run: no listing, export, sink, log or page holds one.

What tests/journeys/test_secrets.py does for the tape of an agent whose requests succeed is done here for one whose
requests are held, refused, stubbed, limited, hit by faults and broken on the wire, with a sink that is told of it and
somebody who looks at all of it over the control API and the commands.
"""

import asyncio
import base64
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from playhead.config import loads
from playhead.proxy.cli import cli
from playhead.proxy.control import gate_commands
from playhead.tape.records.tape_file import read_records
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.secrets import find_written
from playhead.tests.support.sockets import open_tunnel
from playhead.tests.support.websocket import CLOSE, TEXT, Peer, RawServer, closing, frame

KEY = "tk7Qm2+/Zp9x=Ab3_Lr-58fW0yC1vv"
PASSWORD = "c0rrect-horse/battery"
COOKIE = "s3ss10nA1b2C3d4E5f6G7h8"
SIGNED = "sig0f1e2d3c4b5a69788796a5b4"
ISSUED = "at-4f3e2d1c0b9a8f7e6d5c"
PROMPTED = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"
CONFIGURED = "acme_0123456789abcdef"
SECRETS = (KEY, PASSWORD, COOKIE, SIGNED, ISSUED, PROMPTED, CONFIGURED)
WAIT_S = 20.0

RULES = """
effects:
  - {{match: "POST {0}/pay*", gate: {{when: always, deadline: 60s}}}}
  - {{match: "POST {0}/answered*", answer: {{json: {{made: true}}}}}}
faults:
  - {{match: "{0}/busy*", inject: status, status: 503, modes: [record]}}
  - {{match: "{0}/reset*", inject: reset, modes: [record]}}
limits: {{repeats: 3}}
sink: {{file: told.jsonl, url: "{1}/sink"}}
redact:
  - {{pattern: "acme_[0-9a-f]{{16,}}"}}
"""
"""With the origin, and who is told."""


# ---- the outside -------------------------------------------------------------------------------------


def _answer(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join([*lines, b"", body])


async def serve(conversation: Conversation) -> None:
    """Be an upstream that says a secret in every way, and breaks at some paths."""
    path, key = conversation.path.partition("?")[0], KEY.encode()
    said = json.dumps({"id": "pay_000000000001", "access_token": ISSUED, "for": KEY}).encode()
    if path == "/talk":
        return await _talk(conversation)
    broken = {
        "/broken/start": key + b" is no answer",
        "/broken/long": b"HTTP/1.1 " + b"x" * 55 + key + b"\r\n\r\n",
        "/broken/status": b"HTTP/1.1 " + key + b" x\r\n\r\n",
        "/broken/name": b"HTTP/1.1 200 OK\r\n" + key + b" : x\r\n\r\n",
        "/broken/line": b"HTTP/1.1 200 OK\r\n" + key + b"\r\n\r\n",
        "/broken/length": b"HTTP/1.1 200 OK\r\nContent-Length: " + key + b"\r\n\r\n",
        "/broken/coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + key + b"\r\n\r\n",
        "/broken/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + key + b"\r\n",
        "/broken/gzip": _answer(key, b"Content-Encoding: gzip"),
        "/broken/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nyour key is " + key,
        "/broken/reason": _answer(b"", status=b"401 no such key " + key),
        "/trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Token\r\n\r\n"
        b"2\r\nok\r\n0\r\nX-Token: " + key + b"\r\nX-Said: it was " + key + b"\r\n\r\n",
        "/moved": _answer(
            b"",
            b"Location: /else?access_token=" + ISSUED.encode() + b"&next=" + quote(KEY).encode(),
            b"Set-Cookie: sid=" + COOKIE.encode() + b"; Path=/; HttpOnly",
            b"WWW-Authenticate: Bearer error_description=" + key,
            status=b"302 Found",
        ),
    }
    await conversation.say(broken.get(path, _answer(said, b"Content-Type: application/json")))


async def _talk(conversation: Conversation) -> None:
    """Hear one message, say one, and close for a reason that says too much."""
    server = RawServer(conversation)
    await server.accept()
    await server.hear()
    said = f"no such key: {KEY}"
    await server.say(frame(TEXT, said.encode(), masked=False), closing(4401, said, masked=False))
    await server.left()


def serve_frames(stream: Stream) -> bool:
    """Say a secret in a message of gRPC, and in what comes after it."""
    stream.head(("content-type", "application/grpc"), ("x-said", KEY))
    stream.data(_message(f"said {KEY} and {ISSUED}"))
    trailers = [("grpc-status", "7"), ("grpc-message", quote(f"no such key: {KEY}"))]
    stream.trailers(*trailers, ("x-details-bin", base64.b64encode(KEY.encode()).decode()))
    return False


def _message(text: str) -> bytes:
    """Give one message of gRPC with one field of text."""
    data = b"\x0a" + bytes([len(text)]) + text.encode()
    return b"\0" + len(data).to_bytes(4, "big") + data


# ---- the agent ---------------------------------------------------------------------------------------


def send(address: str, method: str, url: str, body: bytes = b"", *fields: str) -> bytes:
    """Ask through the proxy, on a connection of its own; give what came until it closed."""
    host, _, port = address.rpartition(":")
    lines = [
        f"{method} {url} HTTP/1.1",
        "Host: x",
        "Connection: close",
        "Proxy-Authorization: Basic dGFwZTp4",
        f"Authorization: Bearer {KEY}",
        f"Cookie: sid={COOKIE}; theme=dark",
        *([] if "Transfer-Encoding: chunked" in fields else [f"Content-Length: {len(body)}"]),
        *fields,
    ]
    with socket.create_connection((host, int(port)), WAIT_S) as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        data = b""
        try:
            while more := sock.recv(65536):
                data += more
        except ConnectionResetError:
            pass
        return data


def said(amount: int, **more: str) -> bytes:
    """Give a body that holds secrets in declared places, in texts, and in JSON inside JSON."""
    inner = json.dumps({"log": f"asked with {KEY}", "password": PASSWORD})
    told = {"amount": amount, "password": PASSWORD, "note": f"for {KEY}", "inner": inner}
    told |= {"coded": base64.b64encode(f"key={KEY}".encode()).decode(), "prompt": f"use {PROMPTED}"}
    return json.dumps({**told, "configured": CONFIGURED, **more}).encode()


JSON = "Content-Type: application/json"
QUERY = f"access_token={ISSUED}&signature={SIGNED}&q={quote(KEY, safe='')}"


def asks(url: str, amount: int) -> list[tuple[Any, ...]]:
    """Give what the agent asks, one after the other, but for what is held."""
    owned = url.replace("//", f"//me:{quote(PASSWORD, safe='')}@")
    broken = ["start", "status", "long", "name", "line", "length", "coding", "chunk", "gzip", "cut"]
    trailers = ["Transfer-Encoding: chunked", "Trailer: X-Key", f"X-Api-Key: {KEY}"]
    return [
        ("POST", f"{url}/answer?{QUERY}", said(amount), JSON, "Idempotency-Key: " + KEY),
        ("POST", f"{url}/hooks/{quote(KEY, safe='')}/go;token={SIGNED}", said(amount), JSON),
        ("GET", f"{url}/referred", b"", f"Referer: {owned}/x?{QUERY}", f"X-Mine: my {KEY}"),
        ("GET", f"{url}/moved"),
        ("GET", f"{url}/trailers"),
        ("POST", f"{url}/busy?{QUERY}", said(amount), JSON),
        ("POST", f"{url}/reset?{QUERY}", said(amount), JSON),
        *[
            ("POST", f"{url}/broken/{how}?{QUERY}", said(amount), JSON)
            for how in (*broken, "reason")
        ],
        ("POST", f"{url}/trailing", b"0\r\nX-Said: my %b\r\n\r\n" % KEY.encode(), *trailers),
        *[("GET", f"{url}/again?{QUERY}")] * 4,
        ("POST", f"http://127.0.0.1:1/closed?{QUERY}", said(amount), JSON),
        ("POST", f"http://no-such-name.invalid/{quote(KEY, safe='')}?{QUERY}", said(amount), JSON),
    ]


@dataclass
class Told:
    """Everything that was told, by where."""

    told: dict[str, bytes] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)

    def add(self, where: str, what: str | bytes) -> None:
        data = what.encode() if isinstance(what, str) else what
        self.told[where] = self.told.get(where, b"") + data

    def command(self, *arguments: object) -> None:
        """Keep what a command prints."""
        done = CliRunner().invoke(cli, [str(one) for one in arguments])
        name = " ".join(str(one) for one in arguments if not str(one).startswith(("/", "--store")))
        self.add(f"playhead {name}", done.output)
        self.exits[f"playhead {name}"] = done.exit_code


@contextmanager
def _logged(told: Told) -> Iterator[None]:
    """Keep what is logged, as `playhead -v` shows it."""

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.add("log", logging.Formatter("%(message)s").format(record) + "\n")

    handler, root = Keep(logging.INFO), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


async def _look(api: Controlled, told: Told) -> None:
    """Keep all that the control API says."""
    for path in ("/v1/runs", "/v1/runs/tape", "/v1/gates", "/metrics", "/gates", "/openapi.json"):
        answer = await api.ask("GET", path)
        assert answer.status in (200, 404), path
        told.add(f"GET {path}", answer.text)


async def _held(api: Controlled, told: Told, url: str, amount: int) -> None:
    """Have one request denied and one approved; keep what the person saw."""
    for action in ("deny", "approve"):
        asking = asyncio.create_task(
            asyncio.to_thread(
                send, str(api.running.address), "POST", f"{url}/pay?{QUERY}", said(amount), JSON
            )
        )
        async with asyncio.timeout(WAIT_S):
            while not api.running.registry.approvals.listed():  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        await _look(api, told)
        (row,) = (await api.ask("GET", "/v1/gates")).json["gates"]
        told.add("playhead gates", gate_commands.render([row]))
        why = {"digest": row["digest"], "reason": f"there was {KEY} in it"}
        path = f"/v1/gates/{quote(row['id'], safe='')}/{action}"
        ruled = await api.ask("POST", path, json.dumps(why).encode())
        told.add(f"POST {action}", ruled.text)
        told.add(f"playhead gates {action}", gate_commands.render_decided(ruled.json))
        answer = await asking
        assert answer.startswith(b"HTTP/1.1 424" if action == "deny" else b"HTTP/1.1 200")


def _grpc(running: Any, url: str) -> None:
    with open_tunnel(running.url_for("tape"), url, running.ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask(
            "POST",
            f"{url}/shop.Pay/{quote(KEY, safe='')}",
            _message(f"pay with {KEY}"),
            kind="application/grpc",
        )
        client.read_until(lambda: client.got[stream][-1:] == ["end"])


async def _talk_to(api: Controlled, target: str, message: str) -> None:
    """Say one message over a WebSocket, and close for the reason that the other side gave."""
    fields = f"Authorization: Bearer {KEY}\r\n"
    peer = await Peer.open(str(api.running.address), target, f"/talk?{QUERY}", headers=fields)
    assert peer.status == 101
    peer.send(frame(TEXT, message.encode()))
    async with asyncio.timeout(WAIT_S):
        while (came := await peer.read()) is not None:
            if came.opcode == CLOSE:
                peer.send(closing(4401, f"sent {KEY}"))
    await peer.close()


@asynccontextmanager
async def _story(tmp_path: Path, certificates: Certificates) -> AsyncIterator[tuple[Told, Path]]:
    """Record and play the agent; give what was told, and the store."""
    told = Told()
    store = tmp_path / "store"

    async def be_told(conversation: Conversation) -> None:
        told.add("webhook", conversation.head + conversation.body)
        await conversation.say(_answer(b""))

    with (
        RawOrigin(serve) as origin,
        RawOrigin(be_told, lasting=True) as sink,
        FramesOrigin(serve_frames, certificates) as frames,
        _logged(told),
    ):
        rules = RULES.format(origin.url, sink.url)
        (tmp_path / "playhead.yaml").write_text(rules)
        text = f"{rules}\nstore: {store}\nupstream_ca: {certificates.root}\n"
        config = loads(text, "playhead.yaml", tmp_path)
        async with controlled(config) as api:
            for amount, run in ((1, "tape"), (2, "tape@1")):
                for method, url, *more in asks(origin.url, amount):
                    await asyncio.to_thread(send, str(api.running.address), method, url, *more)
                await asyncio.to_thread(_grpc, api.running, frames.url)
                await _talk_to(api, origin.url.partition("//")[2], f"{amount} for {KEY}")
                if run == "tape":
                    await _held(api, told, origin.url, amount)
                await _look(api, told)
                why = json.dumps({"reason": f"it said {KEY}"}).encode()
                for action in ("stop", "seal"):
                    done = await api.ask("POST", f"/v1/runs/{quote(run)}/{action}", why)
                    assert done.status == 200
                    told.add(f"POST {action}", done.text)
                    if action == "stop":
                        late = f"{origin.url}/late"
                        refused = await asyncio.to_thread(
                            send, str(api.running.address), "GET", late
                        )
                        told.add("refusal", refused)
                api.running.play()
        told.add("sink file", (tmp_path / "told.jsonl").read_bytes())
    yield told, store


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> tuple[Told, Path]:
    """Tell everything there is to be told of one agent."""
    folder = tmp_path_factory.mktemp("told")

    async def tell() -> tuple[Told, Path]:
        async with _story(folder, certificates) as (told, store):
            return told, store

    told, store = asyncio.run(tell())
    where = ("--store", store)
    for run in ("tape", "tape@1"):
        for command in ("show", "receipt", "effects"):
            told.command(command, run, *where)
            told.command(command, run, *where, "--json")
        told.command("show", run, "--raw", *where)
        told.command("show", run, "--raw", "--json", *where)
        for row in json.loads(told.told[f"playhead show {run} --raw --json"]):
            told.command("show", run, row["seq"], *where)
            told.command("show", run, row["seq"], "--raw", *where)
            told.command("show", run, row["seq"], *where, "--json")
    told.command("receipt", "tape@1", "--all", *where)
    told.command("runs", *where, "--json")
    told.command("reindex", "tape", "--dry-run", *where)
    told.command("policy", *where, "--with", folder / "playhead.yaml", "--json")
    told.command("verify", "--secrets", *where, "--json")
    # What is packed is searched unpacked, in the store that takes it in.
    other = folder / "other"
    told.command("export", "tape@1", *where, "--tape", folder / "exported.tape")
    told.command("import", folder / "exported.tape", "--store", other)
    records = read_records([(folder / "exported.tape").read_bytes()])
    told.add("exported", b"".join(record.data for record in records))
    for kept in (store, other):
        told.add(f"all of {kept.name}", b"".join(data for _, data in kept_bytes(kept)))
    return told, store


def test_no_secret_is_told(story: tuple[Told, Path]) -> None:
    """Neither by a command nor by the control API, to a sink, in the log, or in a file of the store."""
    assert find_written(SECRETS, story[0].told) == []


def test_no_half_of_a_secret_is_told(story: tuple[Told, Path]) -> None:
    """Also where what an upstream said is cut, or a listing is."""
    halves = [KEY[:16], KEY[-16:]]
    assert [(h, w) for w, data in story[0].told.items() for h in halves if h.encode() in data] == []


@pytest.mark.parametrize(
    ("where", "words"),
    [
        # what went wrong, and was told
        ("playhead show tape --raw", ["malformed in head", "malformed in body", "cut in body"]),
        ("playhead show tape --raw", ["refused in connect", "dns in connect", "reset in head"]),
        (
            "playhead show tape --raw",
            ["times in a row", "held by the gate", "401, 0 bytes", "302, "],
        ),
        ("playhead show tape@1 --raw", ["stubbed", "refused", "served"]),
        ("playhead receipt tape", ["denied by", "there was", "injected: reset", "STOPPED by"]),
        ("playhead receipt tape@1", ["changed: POST", "synthetic, after tape seq"]),
        ("playhead effects tape --json", ['"idempotency_key"', '"ruling": "denied"']),
        ("playhead policy --with --json", ['"run"', "tape"]),
        # to whom
        ("webhook", ["POST /sink", '"answered_by": "upstream"', '"by": "synthetic"', "no status"]),
        ("sink file", ['"ruling": "denied"', "no status line"]),
        ("log", ["no answer of HTTP/1", "is held by the gate", "invalid header name"]),
        ("GET /v1/gates", ['"body"', "amount"]),
        ("playhead gates", ["amount"]),
        ("POST deny", ["denied"]),
        ("POST stop", ["it said"]),
        ("refusal", ["it said"]),
        ("GET /metrics", ["playhead_requests_total"]),
        # where it is kept
        (
            "all of store",
            ["there was", "it said", "no such key", "received no status line"],
        ),
        ("all of other", ["it said", "no such key", "no status line"]),
    ],
)
def test_what_is_searched_was_told(story: tuple[Told, Path], where: str, words: list[str]) -> None:
    """Each held, refused, stubbed and broken request is in it: that nothing is found means something."""
    told = story[0]
    assert [word for word in words if word.encode() not in told.told[where]] == []
    assert {command for command, code in told.exits.items() if code} == set()
