"""What is held at breakpoints is let go by the control API."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from playhead.addons.run.lifecycle.held_at_breakpoints import Breaks
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tape.policy.breakpoints import parse_breakpoint
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.recordings import record_run
from playhead.tests.support.refund_agent import send_by_urllib

ORDER = "http://shop.test/orders/7"
_LONG_S = 30.0


@asynccontextmanager
async def holding(tmp_path: Path) -> AsyncIterator[tuple[Controlled, "asyncio.Task[Any]"]]:
    """A playback that holds everything, and a client that asks for an order."""
    recorded = make_request(ORDER, b"", {"content-type": "application/json"}, "GET")
    with Store.open(tmp_path / "store") as store:
        asked = [(recorded, make_response({"amount": 4900}))]
        record_run(store, "tape", asked, kind=RequestClass.READ)
    async with controlled(Config(store=tmp_path / "store", mode=Mode.PLAYBACK)) as api:
        api.running.registry.breaks = Breaks([parse_breakpoint("http://shop.test")])
        proxy = api.running.url_for("tape")
        asking = asyncio.create_task(
            asyncio.to_thread(send_by_urllib, "GET", ORDER, None, {}, proxy)
        )
        yield api, asking
        await asking


async def _held(api: Controlled) -> dict[str, Any]:
    """Wait until a request is held, and give it as the API shows it."""
    async with asyncio.timeout(_LONG_S):
        while not (rows := (await api.ask("GET", "/v1/breaks")).json["breaks"]):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)
    row: dict[str, Any] = rows[0]
    return row


async def _say(api: Controlled, row: dict[str, Any], word: str, **body: str) -> Any:
    path = f"/v1/breaks/{quote(row['id'], safe='')}/{word}"
    return await api.ask("POST", path, json.dumps(body).encode() if body else b"")


async def test_it_is_shown_and_goes_on(tmp_path: Path) -> None:
    """As it would have; the second time there is nothing."""
    async with holding(tmp_path) as (api, asking):
        row = await _held(api)
        assert (row["method"], row["url"], row["why"]) == ("GET", ORDER, "http://shop.test")
        assert not asking.done()
        said = await _say(api, row, "continue")
        assert (said.status, said.json["command"]) == (200, "continue")
        await asking
        again = await _say(api, row, "continue")
        assert (again.status, "nothing is held" in again.json["error"]) == (409, True)


async def test_it_is_given_another_answer(tmp_path: Path) -> None:
    """One that cannot be read is refused with its place, and it is still held."""
    async with holding(tmp_path) as (api, asking):
        row = await _held(api)
        wrong = await _say(api, row, "answer", answer="{")
        assert (wrong.status, row["tape_seq"]) == (409, 1), wrong.json
        assert "$: the answer is no JSON" in wrong.json["error"]
        assert (await _say(api, row, "answer")).status == 422
        assert (await _say(api, row, "answer", answer='{"amount":\r\n 10}\n')).status == 200
        assert await asking == (200, {"amount": 10})


@pytest.mark.parametrize("word", ["step", "quit"])
async def test_it_is_let_go_by_other_words(tmp_path: Path, word: str) -> None:
    """A step holds the next one; without a launcher nobody stops the run."""
    async with holding(tmp_path) as (api, asking):
        assert (await _say(api, await _held(api), word)).status == 200
        await asking
        breaks = api.running.registry.breaks
        assert breaks is not None
        assert breaks.stepping is (word == "step")
