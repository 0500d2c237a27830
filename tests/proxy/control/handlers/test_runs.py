"""What the control API says of runs, and what it does to them."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from aiohttp import web

from playhead.config import Config
from playhead.proxy.control.handlers.metrics import METRICS
from playhead.proxy.control.handlers.openapi import SCHEMAS
from playhead.store import RunStatus, StoreUnwritable
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tests.support.client import Connection
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.origins import Origin
from playhead.timeline import build


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    """A plain origin."""
    with Origin({"/": _ok}) as running:
        yield running


@pytest.fixture
async def api(store_dir: Path) -> AsyncIterator[Controlled]:
    """A proxy that records, and its control API."""
    async with controlled(Config(store=store_dir)) as made:
        yield made


async def _ask(api: Controlled, url: str, run: str = "mine") -> int:
    connection = await Connection.open(str(api.running.address))
    try:
        return (await connection.ask(url, credentials=f"{run}:x")).status
    finally:
        await connection.close()


async def test_open_runs_are_listed_and_told_one_by_one(api: Controlled, origin: Origin) -> None:
    """Nothing of them but what the document says."""
    assert (await api.ask("GET", "/v1/runs")).json == {"runs": []}
    await _ask(api, origin.url)
    await _ask(api, origin.url)
    (listed,) = (await api.ask("GET", "/v1/runs")).json["runs"]
    assert set(listed) == set(SCHEMAS["Run"]["properties"])
    assert (listed["id"], listed["mode"], listed["status"]) == ("mine", "record", "open")
    assert (listed["requests"], listed["in_flight"], listed["stopped"]) == (2, 0, None)
    assert (await api.ask("GET", "/v1/runs/mine")).json == listed


@pytest.mark.parametrize("name", ["a/b", "ünï", "a b", "%2e%2e", "..", "a?b#c", "x" * 200, "'\"<"])
async def test_any_name_of_a_run_can_be_asked_for(
    api: Controlled, origin: Origin, name: str
) -> None:
    """Percent-encoded in the path."""
    await _ask(api, origin.url, name)
    said = await api.ask("GET", f"/v1/runs/{quote(name, safe='').replace('.', '%2E')}")
    assert said.json["id"] == name


@pytest.mark.parametrize("name", ["none", "%00", "%ff", "a%0ab", "x" * 5000, "a%3Ab", "%ED%A0%80"])
async def test_a_run_that_there_is_none_of_is_404(api: Controlled, name: str) -> None:
    """Whatever its name looks like, for every route that takes one."""
    for method, what in (("GET", ""), ("POST", "/stop"), ("POST", "/seal")):
        said = await api.ask(method, f"/v1/runs/{name}{what}")
        assert said.status == 404
        assert set(said.json) == {"error", "expected", "found", "hint"}


async def test_a_stopped_run_is_refused_and_says_who_did_it(
    api: Controlled, origin: Origin
) -> None:
    """Who is seen from the connection: here this very process. The second who asks is told of the first."""
    await _ask(api, origin.url)
    said = await api.ask("POST", "/v1/runs/mine/stop", b'{"reason": "it loops"}')
    assert said.status == 200
    stopped = said.json["stopped"]
    me = psutil.Process().username()
    assert (stopped["by"], stopped["pid"], stopped["reason"]) == (me, os.getpid(), "it loops")
    again = await api.ask("POST", "/v1/runs/mine/stop", b'{"reason": "me too"}')
    assert again.json["stopped"] == stopped
    assert await _ask(api, origin.url) == REFUSAL_STATUS
    await api.running.end("mine")
    receipt = build(api.running.store, api.running.store.runs.get("mine"))
    assert receipt.stopped == stopped


async def test_a_sealed_run_is_409(api: Controlled, origin: Origin) -> None:
    """Nothing can be done to it; it can be looked at."""
    await _ask(api, origin.url)
    sealed = await api.ask("POST", "/v1/runs/mine/seal", b'{"reason": "done"}')
    assert (sealed.status, sealed.json["status"]) == (200, "sealed")
    info = api.running.store.runs.get("mine")
    assert info.status is RunStatus.SEALED
    assert info.end.startswith("asked for by ")
    assert info.end.endswith(": done")
    for what in ("stop", "seal"):
        said = await api.ask("POST", f"/v1/runs/mine/{what}")
        assert (said.status, said.json["found"]) == (409, "sealed")
    assert (await api.ask("GET", "/v1/runs/mine")).json["status"] == "sealed"


async def test_a_run_of_another_process_is_409(api: Controlled) -> None:
    """Each process answers for what it writes."""
    await api.running.store.runs.create("theirs", mode="record", at_ns=1)
    said = await api.ask("POST", "/v1/runs/theirs/stop")
    assert said.status == 409
    assert str(os.getpid()) in said.json["found"]


async def test_a_run_is_stopped_even_if_nothing_can_be_written(
    api: Controlled, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: who asked is told, with 503, and nothing is let out all the same."""
    await _ask(api, origin.url)

    def full(*_: object, **__: object) -> None:
        raise StoreUnwritable("the disk is full", "free space")

    with monkeypatch.context() as patch:
        patch.setattr(api.running.store.events, "append_durably", full)
        said = await api.ask("POST", "/v1/runs/mine/stop")
    assert (said.status, said.json["error"], said.json["hint"]) == (
        503,
        "the disk is full",
        "free space",
    )
    assert await _ask(api, origin.url) == REFUSAL_STATUS


async def test_an_error_of_ours_is_told_without_its_text(
    api: Controlled, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """500 as JSON; what it was stands in the log."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(api.running.store.runs, "get", broken)
    said = await api.ask("GET", "/v1/runs/mine")
    assert said.status == 500
    assert "secret" not in said.text
    assert "secret" in caplog.text


async def test_measures_are_counted_without_names(api: Controlled, origin: Origin) -> None:
    """By mode, class and what was done; in the text format, each measure once."""
    await _ask(api, origin.url, "a-very-private-name")
    with pytest.raises(OSError, match="reset"):
        await _ask(api, "http://127.0.0.1:1/", "a-very-private-name")
    await api.ask("POST", "/v1/runs/a-very-private-name/stop")
    await _ask(api, origin.url, "a-very-private-name")
    said = await api.ask("GET", "/metrics")
    assert said.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = said.text.splitlines()
    assert 'playhead_requests_total{mode="record",class="read",verdict="forwarded"} 2' in lines
    assert 'playhead_requests_total{mode="record",class="read",verdict="refused"} 1' in lines
    assert 'playhead_faults_total{kind="refused"} 1' in lines
    assert "playhead_runs_stopped_total 1" in lines
    assert 'playhead_runs_open{mode="record"} 1' in lines
    assert "private" not in said.text
    form = r'# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? \d+'
    assert [line for line in lines if not re.fullmatch(form, line)] == []
    assert [line.split()[2] for line in lines if line.startswith("# TYPE")] == [
        metric.name for metric in METRICS
    ]


async def test_it_is_ready_until_the_store_takes_no_writes(
    api: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alive and ready are two things."""
    assert (await api.ask("GET", "/readyz", token="")).json == {
        "status": "ready",
        "checks": {"listening": True, "store": True},
    }
    monkeypatch.setattr(api.running.store.writer, "failed", StoreUnwritable("full"))
    said = await api.ask("GET", "/readyz", token="")
    assert (said.status, said.json["checks"]["store"]) == (503, False)
    assert (await api.ask("GET", "/healthz", token="")).json == {"status": "ok"}


async def test_a_connection_may_be_used_again(api: Controlled) -> None:
    """One request after another, and several at once."""
    reader, writer = await api.connect()
    for _ in range(3):
        writer.write(f"GET /healthz HTTP/1.1\r\nhost: {api.address}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        assert head.startswith(b"HTTP/1.1 200")
        await reader.readline()
    writer.close()
    many: list[Any] = await asyncio.gather(*(api.ask("GET", "/v1/runs") for _ in range(20)))
    assert [json.loads(said.text) for said in many] == [{"runs": []}] * 20
