"""An agent that is held at breakpoints, on the page: what it is answered is what was typed, byte for byte, and the page says that it is held."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from playhead.addons.run.lifecycle.held_at_breakpoints import Breaks
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.edits.editable_text import as_typed, indent_json
from playhead.tape.exchange import RequestClass
from playhead.tape.policy.breakpoints import parse_breakpoint
from playhead.tests.support.browser import Chromium
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.hung_process import hung_process
from playhead.tests.support.recordings import record_run
from playhead.tests.web.cases.checks import check_quiet
from playhead.tests.web.cases.page_process import Ui

if TYPE_CHECKING:
    import httpx

_SHOP = "http://shop.test"
_ORDER = b'{\r\n  "id": "re_1",\r\n    "amount" : 4900.00,\r\n  "status": "ok"\r\n}\r\n'
_NOTE = b"line one\nline two\r\nline three\n"
_ODD = '{"total": 12345678901234567.89, "price": 12.50, "limit": 1E400, "a": 1, "a": 2, "\u00e9": "\\u00e9"}  '
_LONG = json.dumps({"a": "\u00e9\n" * 100_000, "b": 1}, indent=1).replace("\n", "\r\n").encode()
_LONG_S = 30.0


@dataclass
class Held:
    """A playback that holds everything, and the page's process on its store."""

    api: Controlled
    ui: Ui

    def get(self, path: str) -> "asyncio.Task[httpx.Response]":
        """Ask for something, as the agent does."""
        import httpx

        def send() -> httpx.Response:
            proxy = self.api.running.url_for("tape")
            with httpx.Client(proxy=proxy, timeout=_LONG_S * 2, trust_env=False) as client:
                return client.get(f"{_SHOP}{path}", headers={"content-type": "application/json"})

        return asyncio.create_task(asyncio.to_thread(send))

    async def name(self) -> str:
        """Wait until a request is held, and give its name."""
        async with asyncio.timeout(_LONG_S):
            while not (rows := (await self.api.ask("GET", "/v1/breaks")).json["breaks"]):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        return str(rows[0]["id"])

    async def say(self, word: str, **body: object) -> int:
        """Post a command as the page does; give the status."""
        path = f"/data/breaks/{quote(await self.name(), safe='')}/{word}"
        return (await asyncio.to_thread(self.ui.post, path, self.ui.cookie, body)).status


@asynccontextmanager
async def holding(tmp_path: Path) -> AsyncIterator[Held]:
    """Hold whatever is asked in a playback."""
    store = tmp_path / "store"
    with Store.open(store) as opened:
        asked = [
            (
                make_request(f"{_SHOP}{path}", b"", {"accept": "*/*"}, "GET"),
                make_response(body, headers=kind),
            )
            for path, body, kind in (
                ("/order", _ORDER, {"content-type": "application/json"}),
                ("/order", _ORDER, {"content-type": "application/json"}),
                ("/note", _NOTE, {"content-type": "text/plain"}),
                ("/long", _LONG, {"content-type": "application/json"}),
            )
        ]
        record_run(opened, "tape", asked, kind=RequestClass.READ)
    async with controlled(Config(store=store, mode=Mode.PLAYBACK)) as api:
        api.running.registry.breaks = Breaks([parse_breakpoint(_SHOP)])
        ui = Ui(store, "--allow-run")
        await asyncio.to_thread(ui.__enter__)
        try:
            yield Held(api, ui)
        finally:
            await asyncio.to_thread(ui.stop)


async def test_what_is_typed_is_what_the_agent_gets(tmp_path: Path, chromium: Chromium) -> None:
    """The page counts and shows what is held, with its recorded answer; of one that is edited the rest stays as it was recorded."""
    async with holding(tmp_path) as held, chromium.page() as browser:
        asking = held.get("/order")
        name = await held.name()
        await held.ui.show(browser, "/gates")
        await browser.find("article", f"^{name}$")
        await browser.until("document.title === '(1) Gates - Playhead'")
        shown = await browser.shows("1 held, at a breakpoint", "recorded answer, tape seq 1: 200")
        assert "4900.00" in shown
        assert "playback, 1 request\n" in shown
        assert [one for one in ("othing is held", "0 requests") if one in shown] == []
        await browser.focus("textbox", "^Answer$")
        await browser.write(_ODD)
        await browser.click("button", f"^Answer with it {name}$")
        assert (await asking).content == _ODD.encode()

        asking = held.get("/order")
        name = await held.name()
        await browser.click("button", f"^Edit the recorded answer of {name}$")
        await browser.until("document.activeElement.value?.includes('4900.00')")
        await browser.run(
            "{ const box = document.activeElement; const at = box.value.indexOf('4900.00'); box.setSelectionRange(at, at + 7); true }"
        )
        await browser.write("1.50")
        other = held.get("/note")  # while somebody writes
        await browser.shows("2 held, at breakpoints")
        await browser.click("button", f"^Answer with it {name}$")
        assert (await asking).content == _ORDER.replace(b"4900.00", b"1.50")

        name = await held.name()
        await browser.focus("textbox", "^Answer$")
        await browser.write("two\nlines")
        await browser.click("button", f"^Answer with it {name}$")
        assert (await other).content == b"two\nlines"
        await browser.until("document.title === 'Gates - Playhead'")
        await browser.shows("nothing is held")
        check_quiet(browser, held.ui.origin)


async def test_what_a_proxy_holds_stays_held_while_it_hangs(
    tmp_path: Path, chromium: Chromium
) -> None:
    """With what somebody has written; no deadline is threatened, and nothing is sent that it would do later."""
    async with holding(tmp_path) as held, chromium.page() as browser:
        asking = held.get("/note")
        name = await held.name()
        await held.ui.show(browser, "/gates")
        await browser.focus("textbox", "^Answer$")
        await browser.write("a draft")
        with hung_process(held.api.running.store.path, os.getpid()) as hung:
            shown = await browser.shows(
                f"Process {hung.pid} does not answer", "it stays held", "by the processes that"
            )
            assert name in shown
            await browser.click("button", f"^Answer with it {name}$")
            await browser.shows(f"nothing was done: process {hung.pid}")
            assert {one.partition(b" ")[0] for one in hung.read_requests()} == {b"GET"}
        await browser.until("document.querySelector('[data-silent]') === null")
        await browser.until("!document.body.innerText.includes('it stays held')")
        await browser.click("button", f"^Answer with it {name}$")
        assert (await asking).content == b"a draft"


def read_shown(path: str) -> bytes:
    """Give the recorded answer as it is edited."""
    shown = indent_json(_LONG.decode()) + "\n" if path == "/long" else _NOTE.decode()
    return as_typed(shown).encode()


@pytest.mark.parametrize(
    ("path", "answer", "edited", "got"),
    [
        ("/order", _ODD, False, _ODD.encode()),
        ("/order", '{\r"a":\n1}', False, b'{\r"a":\n1}'),
        ("/note", "", False, b""),
        ("/note", "\0a\x1b\r\n\u2028", False, "\0a\x1b\r\n\u2028".encode()),
        ("/note", "line 1\nline two\nline three\n", True, b"line 1\nline two\r\nline three\n"),
        ("/note", _NOTE.decode().replace("\r", ""), True, _NOTE),
        ("/long", indent_json(_LONG.decode()) + "\n", True, _LONG),
        ("/long", as_typed(_LONG.decode().replace("1", "2")), True, _LONG.replace(b"1", b"2")),
    ],
)
async def test_an_answer_is_given_as_it_is_said(
    tmp_path: Path, path: str, answer: str, edited: bool, got: bytes
) -> None:
    """Text and nothing at all, too; what cannot be the answer leaves the agent held, and says why."""
    async with holding(tmp_path) as held:
        asking = held.get(path)
        if edited:
            recorded = f"/data/breaks/{quote(await held.name(), safe='')}/recorded"
            told = await asyncio.to_thread(held.ui.ask, recorded, held.ui.cookie)
            assert as_typed(told.json["answer"]).encode() == read_shown(path)
        for wrong in ({"answer": 7}, {}, {"answer": "\ud800"}, {"answer": answer, "edited": 1}):
            assert await held.say("answer", **wrong) in (409, 422), wrong
        if path == "/order":
            assert await held.say("answer", answer="") == 409
        assert (
            await held.say("answer", answer=answer, **({"edited": True} if edited else {})) == 200
        )
        assert (await asking).content == got
