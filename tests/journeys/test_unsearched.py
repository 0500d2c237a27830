"""An answer with more places than are judged: the agent gets it, its rest is not stored, and a replay cannot tell."""

from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exit_codes import ExitCode
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.origins import Origin
from playhead.timeline import build
from playhead.timeline.receipts.receipt import exit_code
from playhead.timeline.receipts.render_text import render_receipt

LAST = "v7Qm2pZ9xAb3LrfW0yC1kT5d"
LINES = "".join(f"password=k{number:05d}Qz7Lm{number:05d}\n" for number in range(20_000))
SAID = LINES + f"nothing {LAST}\n"


async def say(request: web.Request) -> web.Response:
    """Give the long answer, or a short one."""
    return web.Response(text=SAID if request.path == "/long" else "short")


async def ask(running: Running, url: str) -> tuple[int, str]:
    """Be the agent."""
    proxy: Any = {"proxy": running.url, "proxy_auth": aiohttp.BasicAuth("tape", "x")}
    async with aiohttp.ClientSession() as client, client.get(url, **proxy) as answer:
        return answer.status, await answer.text()


async def test_what_was_not_searched_is_not_stored_and_a_replay_is_not_judged(
    tmp_path: Path,
) -> None:
    """Length and keyed hash are kept; exit code 125 names the exchange."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    with Origin({"/{tail:.*}": say}) as origin:
        async with running_engine(config) as running:
            assert await ask(running, f"{origin.url}/short") == (200, "short")
            assert await ask(running, f"{origin.url}/long") == (200, SAID)
            assert await running.open_run("tape").settled(10)
            await running.end("tape")
        async with running_engine(config) as running:
            running.play()
            assert await ask(running, f"{origin.url}/short") == (200, "short")
            status, text = await ask(running, f"{origin.url}/long")
            await running.end("tape@1")
            receipt = build(running.store, running.store.runs.get("tape@1"))
    assert status == 424
    assert "seq 2, whose answer was not kept whole" in text
    assert exit_code(receipt) == ExitCode.UNTESTABLE
    assert "exit code 125: the tape has not all of an answer" in render_receipt(receipt)
    assert all(LAST.encode() not in data for _, data in kept_bytes(tmp_path / "store"))
    with Store.open(tmp_path / "store", readonly=True) as store:
        exchange = store.exchanges.find(store.runs.get("tape"), 2)
    assert exchange is not None
    assert exchange.response is not None
    assert len(exchange.response.body) == len(SAID)
    assert "response.body.unsearched" in {one.place for one in exchange.redactions}
    last = exchange.response.secrets[-1]
    assert last.kind.partition(":")[0] == "unsearched"
    assert exchange.response.body[last.at :] == bytes(last.size)
