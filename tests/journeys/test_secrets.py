"""Secrets planted wherever an agent and its upstreams may put them: none reaches the store, and the tape plays.

One agent is recorded with real credentials, and played under another store's key with dummy ones of another
length. What the store and its exports hold is searched byte by byte for every secret, in every coding.
"""

import asyncio
import base64
import gzip
import io
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web

from playhead.config import Config, Mode, RedactRule
from playhead.store import Store
from playhead.tape.exchange import Exchange, Message
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.origins import Handler, Origin
from playhead.tests.support.process import playhead
from playhead.tests.support.secrets import dotnet, slashed, written
from playhead.timeline import Receipt, build
from playhead.timeline.reading.exchange_json import exchange_json


@dataclass(frozen=True)
class Credentials:
    """What an agent was given."""

    key: str
    password: str
    cookie: str
    client: str
    prompted: str
    """A key of a known format that stands nowhere but in a prompt."""
    configured: str


REAL = Credentials(
    key="tk7Qm2+/Zp9x=Ab3_Lr-58fW0yC1vv",
    password="c0rrect-horse/battery",
    cookie="s3ss10nA1b2C3d4E5f6G7h8",
    client="cs_9f8e7d6c5b4a39281706",
    prompted="sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2",
    configured="acme_0123456789abcdef",
)
DUMMY = Credentials(
    key="dummy-key-000000001",
    password="dummy-pass-1",
    cookie="dummy-cookie-0000000001",
    client="dummy-client-1",
    prompted="sk-ant-api03-Kx3Jw5Hu1Gs7Fq9Do2Cm8Bk4",
    configured="acme_ffffffffffffffffffff",
)
ISSUED = "at-4f3e2d1c0b9a8f7e6d5c", "rt-99887766554433221100", "id-0a1b2c3d4e5f60718293"
"""What the token endpoint gives: to be used, to be refreshed with, and to be echoed."""
EVENTED = "ghp_kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
"""A key that a model says piece by piece."""
RULES = (RedactRule(pattern="acme_[0-9a-f]{16,}"), RedactRule(json="pin"))
PIN = "zq"


def coded(text: str, offset: int) -> str:
    """In base64, after so many other bytes."""
    return base64.b64encode(b"." * offset + text.encode() + b" and more").decode()


def mentions(key: str) -> str:
    """One JSON body that holds a key in every way, each of its own length."""
    said = ",".join(
        [
            f'"plain":"{slashed(key)}"',
            f'"escaped":"{dotnet(key)}"',
            f'"all":"{"".join(f"\\u{ord(c):04x}" for c in key)}"',
            f'"url":"https://x.test/?q={quote(key, safe="")}&n=1"',
            f'"nested":{json.dumps(json.dumps({"log": f"key {key}."}))}',
            f'"hex":"{key.encode().hex()}"',
            '"number":12345678,"yes":true,"none":null',
        ]
    )
    return f"{{{said}}}"


async def token(request: web.Request) -> web.Response:
    """Give tokens for credentials."""
    await request.read()
    access, refresh, identity = ISSUED
    return web.json_response(
        {"access_token": access, "refresh_token": refresh, "id_token": identity, "expires_in": 3600}
    )


async def echo(request: web.Request) -> web.StreamResponse:
    """Say back what came, in pieces that cut it anywhere, and in fields that nobody named."""
    body = await request.read()
    headers = {
        "X-Debug": request.headers.get("Authorization", ""),
        "Content-Type": request.headers.get("Content-Type", "text/plain"),
    }
    if "Cookie" in request.headers:  # whoever has the session keeps it
        headers["Set-Cookie"] = f"sid={REAL.cookie}; Path=/"
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    for at in range(0, len(body), 7):
        await response.write(body[at : at + 7])
    return response


async def zipped(request: web.Request) -> web.Response:
    """Say back the key in a coded body."""
    said = {"said": f"your key is {request.headers['Authorization'].split()[1]}", "fill": "x" * 500}
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=gzip.compress(json.dumps(said).encode()), headers=headers)


async def model(request: web.Request) -> web.StreamResponse:
    """Stream a key piece by piece, one event each."""
    await request.read()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for at in range(0, len(EVENTED), 5):
        delta = {"choices": [{"delta": {"content": EVENTED[at : at + 5]}}]}
        await response.write(f"data: {json.dumps(delta)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


LARGE = 9 * 1024 * 1024


async def large(request: web.Request) -> web.StreamResponse:
    """Take a large body; give one with a key in it, across two pieces."""
    body = await request.read()
    response = web.StreamResponse(headers={"X-Length": str(len(body))})
    await response.prepare(request)
    key = request.headers["Authorization"].split()[1].encode()
    said = b"." * (LARGE - 7) + key + b"." * 1000
    for at in range(0, len(said), LARGE):
        await response.write(said[at : at + LARGE])
    return response


async def talk(request: web.Request) -> web.WebSocketResponse:
    """Answer every message with what it says."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            await socket.send_str(f'{{"heard": {message.data}}}')
    return socket


@dataclass
class Seen:
    """What an agent got: status and body of each answer, by what it asked for."""

    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def statuses(self) -> dict[str, int]:
        return {what: status for what, (status, _) in self.answers.items()}


async def act(running: Running, url: str, own: Credentials) -> Seen:
    """Be the agent."""
    seen = Seen()
    auth = {"Authorization": f"Bearer {own.key}"}
    proxy: Any = {"proxy": running.url, "proxy_auth": aiohttp.BasicAuth("tape", "x")}

    async def ask(what: str, path: str, **how: Any) -> bytes:
        method = how.pop("method", "POST")
        async with client.request(method, f"{url}{path}", **how, **proxy) as answer:
            seen.answers[what] = answer.status, await answer.read()
        return seen.answers[what][1]

    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar, auto_decompress=False) as client:
        said = await ask(
            "form",
            "/token",
            data={
                "grant_type": "authorization_code",
                "code": f"{own.client}-code",
                "client_secret": own.client,
            },
        )
        given = json.loads(said)
        access, refresh = given["access_token"], given["refresh_token"]
        text = {"Content-Type": "application/json", **auth}
        await ask("mentions", "/echo", data=mentions(own.key), headers=text)
        # Base64 of a key of another length moves what follows: such a body is played under a key as long.
        for offset in range(3) if own is REAL else ():
            await ask(
                f"base64 {offset}", f"/echo?n={offset}", data=coded(own.key, offset), headers=auth
            )
        await ask(
            "fields",
            "/echo",
            json={"user": "me", "password": own.password, "pin": PIN if own is REAL else "123"},
            headers={"Cookie": f"sid={own.cookie}; theme=dark"},
        )
        await ask(
            "prompt",
            "/echo",
            json={
                "messages": [
                    {"role": "user", "content": f"use\n{own.prompted}\nfor {own.configured}"}
                ]
            },
        )
        parts = aiohttp.FormData()
        parts.add_field("password", own.password)
        parts.add_field("file", b"\x00\xff" + own.key.encode() + b"\xfe", filename="a.bin")
        await ask("parts", "/echo", data=parts, headers=auth)
        await ask(
            "path", f"/hooks/{quote(own.key, safe='')}/go?a=1;token={own.password}", headers=auth
        )
        await ask(
            "query",
            f"/echo?access_token={quote(access)}&user={quote(own.key, safe='')}",
            method="GET",
            headers=auth,
        )
        await ask(
            "used",
            "/echo",
            json={"session": access, "n": 1},
            headers={"Authorization": f"Bearer {access}"},
        )
        await ask(
            "refreshed", "/token", data={"grant_type": "refresh_token", "refresh_token": refresh}
        )
        await ask("zipped", "/zipped", method="GET", headers=auth)
        zipped_body = zlib.compress(json.dumps({"api_key": own.key}).encode())
        await ask(
            "sent zipped",
            "/echo",
            data=zipped_body,
            headers={"Content-Encoding": "deflate", **text},
        )
        await ask(
            "stream", "/v1/chat/completions", json={"model": "m", "messages": []}, headers=auth
        )
        fill = b"-" * LARGE
        await ask("large", "/large", data=io.BytesIO(fill + own.key.encode() + b"-"), headers=auth)
        async with client.ws_connect(f"{url}/talk", headers=auth, **proxy) as socket:
            for what in (own.key, f"again {access}"):
                await socket.send_str(json.dumps({"said": what, "token": own.client}))
                seen.messages.append((await socket.receive(10)).data)
    return seen


SECRETS = (
    REAL.key,
    REAL.password,
    REAL.cookie,
    REAL.client,
    REAL.prompted,
    REAL.configured,
    *ISSUED,
    EVENTED,
)


@dataclass
class Story:
    """One agent, recorded and played."""

    recorded: Seen
    played: Seen
    receipt: Receipt
    exchanges: list[Exchange]
    messages: list[Message]
    kept: list[tuple[str, bytes]]
    """All that the store holds."""
    folder: Path


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Record with real credentials; play with dummy ones, in a store with another key."""
    return asyncio.run(_tell(tmp_path_factory.mktemp("secrets") / "store"))


async def _tell(folder: Path) -> Story:
    routes: dict[str, Handler] = {
        "/token": token,
        "/zipped": zipped,
        "/v1/chat/completions": model,
        "/talk": talk,
        "/large": large,
        "/{tail:.*}": echo,
    }
    config = Config(mode=Mode.RECORD, store=folder, redact=RULES)
    with Origin(routes) as origin:
        async with running_engine(config) as running:
            recorded = await act(running, origin.url, REAL)
            assert await running.open_run("tape").settled(10)
            await running.end("tape")
    async with running_engine(config, b"another store's key") as running:
        running.play()
        played = await act(running, origin.url, DUMMY)
        await running.end("tape@1")
        receipt = build(running.store, running.store.runs.get("tape@1"))
    with Store.open(folder, readonly=True) as store:
        tape = store.runs.get("tape")
        exchanges = list(store.exchanges.all(tape))
        messages = [m for e in exchanges if e.websocket for m in store.messages.all(tape, e.seq)]
    return Story(recorded, played, receipt, exchanges, messages, list(kept_bytes(folder)), folder)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_in_a_file_of_the_store(story: Story, secret: str) -> None:
    """Searched byte by byte, packed records unpacked: in plain, base64, hex, percent-encoded and with JSON's escapes."""
    ways = written(secret)
    assert [(place, way) for place, data in story.kept for way in ways if way in data] == []


def test_the_search_finds_what_is_no_secret(story: Story) -> None:
    """What is not found in what the store holds is not there."""
    data = b"".join(data for _, data in story.kept)
    assert b'"number":12345678' in data
    assert b"theme=" in data


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_in_what_is_read_from_the_store(story: Story, secret: str) -> None:
    """The same of every exchange and message, and of what is exported of them."""
    told = [repr(one) for one in (*story.exchanges, *story.messages)]
    told += [json.dumps(exchange_json(one, story.messages)) for one in story.exchanges]
    ways = {way.decode() for way in written(secret)}
    assert [way for way in ways if any(way in text for text in told)] == []


def test_the_agent_got_its_own_secrets(story: Story) -> None:
    """What passes through is untouched."""
    answers = story.recorded.answers
    assert json.loads(answers["form"][1])["access_token"] == ISSUED[0]
    assert answers["mentions"][1] == mentions(REAL.key).encode()
    assert REAL.key.encode() in gzip.decompress(answers["zipped"][1])
    assert json.loads(story.recorded.messages[0])["heard"]["said"] == REAL.key


def test_a_tape_plays_with_dummy_credentials_under_another_key(story: Story) -> None:
    """A redacted place counts by its kind alone, wherever it stands."""
    assert set(story.played.statuses().values()) == {200}
    assert len(story.played.messages) == 2
    assert story.receipt.divergences == []
    assert len(story.receipt.unused) == 3  # in base64


def test_what_is_played_has_the_shape_of_what_was_said(story: Story) -> None:
    """Lengths stand, also of pieces and messages; only secrets are others."""
    for what, (_, body) in story.played.answers.items():
        if what != "zipped":
            assert len(body) == len(story.recorded.answers[what][1]), what
    played = json.loads(story.played.answers["mentions"][1])
    assert played["number"] == 12345678
    assert played["plain"] == played["escaped"] == played["all"]
    assert json.loads(played["nested"])["log"] == f"key {played['plain']}."


def test_a_coded_body_with_a_secret_is_kept_decoded_and_says_so(story: Story) -> None:
    """Its length and its head say what is there; when its pieces came stays."""
    found = next(one for one in story.exchanges if one.request.path == "/zipped")
    assert found.response is not None
    assert found.response.header(b"content-encoding") is None
    assert found.response.header(b"content-length") == str(len(found.response.body)).encode()
    assert sum(chunk.size for chunk in found.response.chunks) == len(found.response.body)
    assert any("kept decoded" in text for text in found.warnings)


def test_a_token_that_was_given_is_the_same_wherever_it_is_used(story: Story) -> None:
    """Its placeholder can be followed through the tape."""
    given = next(one for one in story.exchanges if one.request.path == "/token")
    used = next(one for one in story.exchanges if b'"session"' in one.request.body)
    assert given.response is not None
    access = json.loads(given.response.body)["access_token"]
    assert json.loads(used.request.body)["session"] == access
    assert used.request.header(b"authorization") == f"Bearer {access}".encode()


def test_verify_finds_nothing_where_all_was_redacted(story: Story) -> None:
    """Placeholders are passed over, whatever they read like."""
    done = playhead("verify", "--secrets", "--store", story.folder)
    assert done.returncode == 0, done.stdout
    assert done.stdout == "no secrets in 2 runs\n"


def test_a_body_in_a_file_has_lost_its_secrets_too(story: Story) -> None:
    """An upload and a download of more than is held in memory; the agent and the upstream got what was sent."""
    found = next(one for one in story.exchanges if one.request.path == "/large")
    assert found.response is not None
    assert found.request.spilled is not None
    assert found.response.spilled is not None
    assert found.response.header(b"x-length") == str(LARGE + len(REAL.key) + 1).encode()
    assert REAL.key.encode() in story.recorded.answers["large"][1]
    played = story.played.answers["large"][1]
    assert played[: LARGE - 7] == b"." * (LARGE - 7)
    assert {"request.body", "response.body"} <= {one.place for one in found.redactions}
