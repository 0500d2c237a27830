"""Deciding on what gates hold: over the API, by the command, and on the page in a real browser."""

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from playhead.config import Config, EffectRule, Gate, parse_match
from playhead.proxy.control.handlers import gates
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.records.events import EventKind
from playhead.tests.support import prepared
from playhead.tests.support.browser import Browser
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.needs import need
from playhead.tests.support.raw import Conversation, RawOrigin

if TYPE_CHECKING:
    import httpx

_LONG_S = 30.0
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


@asynccontextmanager
async def holding(tmp_path: Path) -> AsyncIterator[tuple[Controlled, str]]:
    """A proxy that holds whatever is posted, its control API, and where to post."""
    with RawOrigin(_say_ok) as origin:
        rule = EffectRule(parse_match(f"POST {origin.url}/*"), gate=Gate())
        async with controlled(Config(store=tmp_path / "store", effects=(rule,))) as api:
            yield api, f"{origin.url}/wires"


def _post(api: Controlled, url: str, what: Any) -> "asyncio.Task[httpx.Response]":
    import httpx

    def post() -> httpx.Response:
        proxy = api.running.url_for("tape")
        with httpx.Client(proxy=proxy, timeout=_LONG_S, trust_env=False) as client:
            return client.post(url, json=what)

    return asyncio.create_task(asyncio.to_thread(post))


async def _held(api: Controlled) -> dict[str, Any]:
    """Wait until a request is held, and give it as the API shows it."""
    async with asyncio.timeout(_LONG_S):
        while not (rows := (await api.ask("GET", "/v1/gates")).json["gates"]):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)
    row: dict[str, Any] = rows[0]
    return row


def _path(row: dict[str, Any], action: str) -> str:
    return f"/v1/gates/{quote(row['id'], safe='')}/{action}"


async def test_a_ruling_over_the_api(tmp_path: Path) -> None:
    """Changed and unknown requests are 409 and say why; who asked is seen, not said."""
    async with holding(tmp_path) as (api, url):
        asking = _post(api, url, {"amount": 7})
        row = await _held(api)
        assert json.loads(row["body"]) == {"amount": 7}
        assert row["whole"]
        assert (row["method"], row["url"], row["repeats"]) == ("POST", url, None)

        async def rule(action: str, **body: str) -> Any:
            said = await api.ask("POST", _path(row, action), json.dumps(body).encode())
            return said.status, said.json

        status, told = await rule("approve", digest="0" * 32)
        assert status == 409
        assert f"{row['id']} is another request than the one approved" in told["error"]
        status, told = await rule("approve")
        assert status == 409
        assert "an approval names the request" in told["error"]
        unknown = await api.ask("POST", "/v1/gates/tape%3A99/approve", b"{}")
        assert (unknown.status, unknown.json["error"]) == (409, "nothing is held as tape:99")
        assert (await api.ask("GET", _path(row, "approve"))).status == 405
        status, told = await rule("approve", digest=row["digest"], reason="fine")
        assert (status, told["ruling"]) == (200, "approved")
        assert (await asking).text == "done"
        status, told = await rule("deny")
        assert status == 409
        assert "held no more: approved by" in told["error"]
        await api.running.end("tape")
        store = api.running.store
        (ruled,) = [
            event.data
            for event in store.events.read(store.runs.get("tape"))
            if event.kind is EventKind.RULED
        ]
        assert (ruled["via"], ruled["reason"]) == ("api", "fine")
        assert "(pid " in ruled["by"]


async def test_placeholders_are_marked(tmp_path: Path) -> None:
    """Whoever decides sees which value is not the one that will be sent."""
    key = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    async with holding(tmp_path) as (api, url):
        asking = _post(api, url, {"to": "\u00e9", "note": f"with {key}"})
        row = await _held(api)
        (one,) = row["replaced"]
        shown = row["body"][one["at"] : one["at"] + one["size"]]
        assert shown.startswith("ghp_")
        assert len(shown) == len(key)
        assert key not in row["body"]
        assert row["body"][one["at"] - 5 : one["at"]] == "with "
        body = json.dumps({"digest": row["digest"]}).encode()
        assert (await api.ask("POST", _path(row, "deny"), body)).status == 200
        await asking


async def test_many_held_requests_are_looked_at_at_once(tmp_path: Path) -> None:
    """Three hundred with large bodies are one short list, from which any is seen whole and decided on."""
    body = json.dumps({"note": "\\ é" * 5000}).encode()
    async with holding(tmp_path) as (api, url):
        address = api.running.address

        def post(number: int) -> socket.socket:
            sock = socket.create_connection((address.host, address.port))
            head = (
                f"POST {url}/{number} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic dGFwZTp4\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            sock.sendall(head.encode() + body)
            return sock

        asking = [await asyncio.to_thread(post, number) for number in range(300)]
        async with asyncio.timeout(_LONG_S):
            while len(api.running.registry.approvals) < 300:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        said = await api.ask("GET", "/v1/gates")
        rows = said.json["gates"]
        assert (len(rows), said.json["held"]) == (300, 300)
        assert len(said.text) < 1_500_000
        assert not any(row["whole"] for row in rows)
        one = (await api.ask("GET", f"/v1/gates/{quote(rows[-1]['id'], safe='')}")).json
        assert (one["body"].encode(), one["whole"]) == (body, True)
        listed = await asyncio.to_thread(_command, api)
        assert (listed.returncode, listed.stdout.count("playhead gates approve ")) == (0, 300)
        ruled = await asyncio.to_thread(_command, api, "deny", rows[-1]["id"])
        assert ruled.returncode == 0, ruled.stderr
        gone = await api.ask("GET", f"/v1/gates/{quote(rows[-1]['id'], safe='')}")
        assert gone.status == 404
        for sock in asking:
            sock.close()
        await api.running.end("tape")


async def test_more_than_are_listed_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are listed."""
    monkeypatch.setattr(gates, "LISTED", 1)
    async with holding(tmp_path) as (api, url):
        asking = [_post(api, url, {"amount": number}) for number in range(3)]
        async with asyncio.timeout(_LONG_S):
            while len(api.running.registry.approvals) < 3:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        told = (await api.ask("GET", "/v1/gates")).json
        assert (len(told["gates"]), told["held"]) == (1, 3)
        listed = await asyncio.to_thread(_command, api)
        assert listed.stdout.endswith("… and 2 more\n")
        for held in api.running.registry.approvals.listed():
            api.running.registry.approvals.decide(held.name, None, ApprovalDecision(Ruling.DENIED))
        assert {(await one).status_code for one in asking} == {424}


def _command(api: Controlled, *arguments: str) -> subprocess.CompletedProcess[str]:
    store = api.running.store.path
    return prepared.run(
        [*prepared.OURS, "gates", *arguments, "--store", str(store)],
        text=True,
        timeout=60,
    )


async def test_a_ruling_by_the_command(tmp_path: Path) -> None:
    """It lists, with hostile text made harmless, rules, and says where there is nothing to rule on."""
    async with holding(tmp_path) as (api, url):
        empty = await asyncio.to_thread(_command, api)
        assert (empty.returncode, empty.stdout) == (0, "nothing is held at a gate\n")
        asking = _post(api, url, {"note": HOSTILE})
        row = await _held(api)
        listed = await asyncio.to_thread(_command, api)
        assert f"{row['id']}  POST {url}" in listed.stdout
        assert f"playhead gates approve {row['id']} --digest {row['digest']}" in listed.stdout
        assert "\x1b" not in listed.stdout
        wrong = await asyncio.to_thread(_command, api, "approve", row["id"], "--digest", "00")
        assert (wrong.returncode, "is another request" in wrong.stderr) == (2, True)
        ruled = await asyncio.to_thread(_command, api, "deny", row["id"], "--reason", "not today")
        assert ruled.returncode == 0, ruled.stderr
        assert f"{row['id']}: denied by " in ruled.stdout
        refused = await asking
        assert refused.status_code == 424
        assert "not today" in refused.json()["error"]["message"]
        again = await asyncio.to_thread(_command, api, "approve", row["id"])
        assert (again.returncode, "held no more: denied by" in again.stderr) == (2, True)
        missing = await asyncio.to_thread(_command, api, "approve")
        assert (missing.returncode, "needs the ID" in missing.stderr) == (2, True)


async def test_a_ruling_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process serves it: hostile text is text; the token leaves the address; what a list cuts is whole; a click lets it go."""
    need("Chromium")
    monkeypatch.setattr(gates, "_BODIES_BYTES", 1)
    async with holding(tmp_path) as (api, url):
        asking = _post(api, url, {"note": HOSTILE, "more": "x" * 300, "end": "the end"})
        row = await _held(api)
        address = (await asyncio.to_thread(_command, api, "--page")).stdout.strip()
        port = urlsplit(api.server.url).port
        assert re.match(rf"http://127\.0\.0\.1:{port}/gates\?token=", address)
        assert api.token not in address
        async with Browser.open(tmp_path / "profile") as browser:
            await browser.go(address)
            await browser.until("document.querySelectorAll('article[data-id]').length === 1")
            assert await browser.run("location.search") == ""
            name = await browser.run("location.hostname")
            assert re.fullmatch(r"playhead-[0-9a-f]{32}\.localhost", name)
            assert await browser.run("document.querySelectorAll('main img').length") == 0
            shown = await browser.run("document.querySelector('article .values').textContent")
            assert "<img src=x onerror=alert(1)>" in shown
            assert "the end" in shown
            assert (await browser.run("document.querySelector('h2').textContent")) == f"POST {url}"
            await browser.run("document.querySelector('input').value = 'looked at it'")
            await browser.until("document.readyState === 'complete'")
            await browser.run("document.querySelector('button.go').click()")
            assert (await asking).text == "done"
            await browser.until("document.title === 'Gates - Playhead'")
            await browser.until("document.querySelectorAll('button.go').length === 0")
            assert browser.complaints == []
        store = api.running.store
        await api.running.end("tape")
        (ruled,) = [
            event.data
            for event in store.events.read(store.runs.get("tape"))
            if event.kind is EventKind.RULED
        ]
        assert (ruled["via"], ruled["reason"], ruled["digest"]) == (
            "page",
            "looked at it",
            row["digest"],
        )
