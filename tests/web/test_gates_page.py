"""The page of gates, in real browsers beside a proxy that holds: what is seen before a ruling, and who was first."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from playhead.config import Config, EffectRule, Gate, Limits, parse_match
from playhead.store.paths import CONTROL, PRIVATE
from playhead.tape.records.events import EventKind
from playhead.tests.support.browser import Browser, Chromium
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.hung_process import hung_process
from playhead.tests.support.process import Serve
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.web.cases.checks import check_harmless, check_quiet
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.payloads import PAYLOADS

if TYPE_CHECKING:
    import httpx

_LONG_S = 30.0
_FORM = {"content-type": "application/x-www-form-urlencoded", "idempotency-key": "key-1007"}
_SAID = "document.querySelector('article[data-id] .said').textContent"


@dataclass
class Held:
    """A proxy that holds what is posted, and the page's process on its store."""

    api: Controlled
    ui: Ui
    url: str

    def post(self, **what: Any) -> "asyncio.Task[httpx.Response]":
        """Post through the proxy as run `shop`."""

        import httpx

        def send() -> httpx.Response:
            proxy = self.api.running.url_for("shop")
            with httpx.Client(proxy=proxy, timeout=_LONG_S * 2, trust_env=False) as client:
                return client.post(self.url, **what)

        return asyncio.create_task(asyncio.to_thread(send))

    async def row(self) -> dict[str, Any]:
        """Wait until a request is held, and give it."""
        async with asyncio.timeout(_LONG_S):
            while not (rows := (await self.api.ask("GET", "/v1/gates")).json["gates"]):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        row: dict[str, Any] = rows[0]
        return row

    def rulings(self) -> list[dict[str, Any]]:
        """What the log of the run has."""
        store = self.api.running.store
        events = store.events.read(store.runs.get("shop"))
        return [dict(one.data) for one in events if one.kind is EventKind.RULED]


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


@asynccontextmanager
async def holding(
    tmp_path: Path, *flags: str, deadline_s: float = 600.0, limits: Limits | None = None
) -> AsyncIterator[Held]:
    """Hold whatever is posted, and serve the page."""
    with RawOrigin(_say_ok) as origin:
        rule = EffectRule(parse_match(f"POST {origin.url}/*"), gate=Gate(deadline_s=deadline_s))
        store = tmp_path / "store"
        async with controlled(
            Config(store=store, effects=(rule,), limits=limits or Limits())
        ) as api:
            ui = Ui(store, *flags)
            await asyncio.to_thread(ui.__enter__)
            try:
                yield Held(api, ui, f"{origin.url}/v1/refunds")
            finally:
                await asyncio.to_thread(ui.stop)


@asynccontextmanager
async def tab(held: Held, chromium: Chromium) -> AsyncIterator[Browser]:
    """Open the page of gates in a tab of its own."""
    async with chromium.page() as browser:
        await held.ui.show(browser, "/gates")
        await browser.find("heading", "^Gates$")
        yield browser


async def test_a_request_is_approved_after_a_look(tmp_path: Path, chromium: Chromium) -> None:
    """Heads and a decoded form are there, how long is left, and a count in the title; Approve names what it approves."""
    async with holding(tmp_path, "--allow-run") as held:
        async with tab(held, chromium) as browser:
            assert await browser.run("document.title") == "Gates - Playhead"
            assert "gate" in await browser.text()
            assert await browser.nodes("button", "^Approve") == []
            asking = held.post(content=b"charge=ch_1007&amount=4900&note=a+b%3Cb%3E", headers=_FORM)
            row = await held.row()
            await browser.find("article", row["id"])  # without a reload: by an event
            await browser.until("document.title === '(1) Gates - Playhead'")
            shown = await browser.text()
            wanted = ("POST", held.url, "idempotency-key", "key-1007", "amount", "4900", "a b<b>")
            assert [one for one in wanted if one not in shown] == []
            timer = await browser.find("timer", "")
            assert "Refused in" in await browser.text(), timer
            approve, deny = [
                await browser.find("button", f"^{word} {row['id']}$")
                for word in ("Approve", "Deny")
            ]
            assert approve.properties.get("disabled") in (None, False)
            assert await _are_apart(browser, approve.number, deny.number)
            await browser.tab_to("textbox", "^Reason$")
            await browser.write("looked at it")
            await browser.click("button", f"^Approve {row['id']}$")
            assert (await asking).text == "done"
            await browser.until("document.title === 'Gates - Playhead'")
            table = await browser.find("table", "^Past rulings$")
            assert table
            assert "looked at it" in await browser.text()
            check_quiet(browser, held.ui.origin)
        (ruled,) = held.rulings()
        assert (ruled["ruling"], ruled["via"], ruled["reason"]) == (
            "approved",
            "page",
            "looked at it",
        )
        assert ruled["digest"] == row["digest"]


async def _are_apart(browser: Browser, first: int, second: int) -> bool:
    """Say whether two buttons look different and do not touch: one is not pressed for the other."""
    boxes, colours = [], []
    for number in (first, second):
        told = await browser.call("DOM.getContentQuads", backendNodeId=number)
        boxes.append(told["quads"][0])
        node = await browser.call("DOM.resolveNode", backendNodeId=number)
        style = await browser.call(
            "Runtime.callFunctionOn",
            objectId=node["object"]["objectId"],
            functionDeclaration="function () { const s = getComputedStyle(this); return s.backgroundColor + s.color + s.borderColor; }",
            returnByValue=True,
        )
        colours.append(style["result"]["value"])
    gap = max(boxes[1][0] - boxes[0][2], boxes[0][0] - boxes[1][2], boxes[1][1] - boxes[0][5])
    return bool(gap >= 16) and colours[0] != colours[1]


async def test_the_second_of_two_tabs_sees_who_was_first(
    tmp_path: Path, chromium: Chromium
) -> None:
    """It had shown a live button; the first ruling counts, and its author and time are named."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        async with (
            tab(held, chromium) as first,
            tab(held, chromium) as second,
        ):
            approve = f"^Approve {row['id']}$"
            await second.find("button", approve)
            await first.click("button", f"^Deny {row['id']}$")
            assert (await asking).status_code == 424
            await second.until("!document.body.innerText.includes('Refused in')")
            path = f"/data/gates/{quote(row['id'], safe='')}/approve"
            late = await asyncio.to_thread(
                held.ui.post, path, held.ui.cookie, {"digest": row["digest"]}
            )
            assert late.status == 409
            assert "denied" in late.json["error"]
            by = held.rulings()[0]["by"]
            assert by in late.text
            shown = await second.text()
            assert row["id"] in shown
            assert "denied" in shown.lower()
            assert await second.nodes("button", approve) == []


_RELEASED = """
window.sent = 0;
const ask = window.fetch;
window.fetch = async (path, given) => {
  if (given?.method === 'POST') { window.sent += 1; await new Promise((go) => { window.release = go; }); }
  return ask(path, given);
};
true
"""
"""Has what is ruled sent only once the test lets it."""


async def test_of_two_rulings_at_the_same_time_one_takes_effect(
    tmp_path: Path, chromium: Chromium
) -> None:
    """Opposite ones, of two tabs: the log has one of them, the agent gets that, and the other tab sees who was first."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        name = (await held.row())["id"]
        async with (
            tab(held, chromium) as first,
            tab(held, chromium) as second,
        ):
            for page, word in ((first, "Approve"), (second, "Deny")):
                await page.run(_RELEASED)
                await page.click("button", f"^{word} {name}$")
                await page.until("window.sent === 1")
            await asyncio.gather(*(page.run("release(); true") for page in (first, second)))
            answer = await asking
            (ruled,) = held.rulings()
            won = {200: "approved", 424: "denied"}[answer.status_code]
            assert (ruled["ruling"], ruled["via"]) == (won, "page")
            for page in (first, second):
                await page.until(
                    f"document.querySelector('article[data-id] .said').textContent.includes('{won} by {ruled['by']}')"
                )
                await page.until("document.querySelector('article[data-id] button') === null")


async def test_a_process_that_hangs_holds_up_no_other(tmp_path: Path, chromium: Chromium) -> None:
    """The page comes at once, names it, and rules on what the others hold; the page's own server is not blamed."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        with hung_process(held.api.running.store.path) as hung:
            async with tab(held, chromium) as browser:
                await browser.run(
                    "window.blamed = 0; new MutationObserver(() => { window.blamed += !document.getElementById('gone').hidden; })"
                    ".observe(document.getElementById('gone'), { attributes: true }); true"
                )
                await browser.shows(f"Process {hung.pid} does not answer", row["id"])
                assert await browser.run("document.title") == "(1) Gates - Playhead"
                path = f"/data/gates/{quote('other:1', safe='')}/deny"
                told = await asyncio.to_thread(held.ui.post, path, held.ui.cookie, {})
                assert (told.status, f"process {hung.pid}" in told.text) == (409, True)
                assert "nothing was done" in told.text
                await browser.click("button", f"^Approve {row['id']}$")
                assert (await asking).text == "done"
                assert await browser.run("window.blamed") == 0
                check_quiet(browser, held.ui.origin)
            assert {one.partition(b" ")[0] for one in hung.read_requests()} == {b"GET"}


async def test_a_process_that_hung_is_believed_again(tmp_path: Path, chromium: Chromium) -> None:
    """While it answers nothing the article says so, and never that it is held no more, also if it answers again between two questions."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        async with tab(held, chromium) as browser:
            await browser.find("button", f"^Approve {row['id']}$")
            await browser.run(
                "window.seen = ''; new MutationObserver(() => { window.seen += document.getElementById('held-gates').textContent; })"
                ".observe(document.getElementById('gates'), { subtree: true, childList: true, characterData: true }); true"
            )
            # The second question of a look is put off until the process answers again.
            await browser.run(
                "window.put = null; const ask = window.fetch; window.fetch = async (path, ...rest) => {"
                " if (path === '/data/gates' && window.put === null) await new Promise((go) => { window.put = go; });"
                " return ask(path, ...rest); }; true"
            )
            with hung_process(held.api.running.store.path, os.getpid()):
                await browser.until("window.put !== null")
            await browser.run("window.put(); true")
            await browser.until("window.seen.includes('Its proxy does not answer')")
            await browser.until(
                f"{_SAID} === '' && document.querySelector('[data-silent]') === null"
            )
            assert await browser.run("window.seen.includes('Held no more')") is False
            await browser.click("button", f"^Approve {row['id']}$")
            assert (await asking).text == "done"
            check_quiet(browser, held.ui.origin)


async def test_what_is_listed_again_can_be_ruled_on(tmp_path: Path, chromium: Chromium) -> None:
    """The page takes back that a request is held no more, as soon as a process lists it."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        file = held.api.running.store.path / PRIVATE / CONTROL / f"{os.getpid()}.json"
        async with tab(held, chromium) as browser:
            await browser.focus("button", f"^Approve {row['id']}$")
            away = file.rename(file.with_suffix(".away"))
            await browser.until(f"{_SAID}.includes('held no more')")
            assert await browser.nodes("button", "^Approve") == []
            away.rename(file)
            await browser.until("document.querySelector('article[data-id] button') !== null")
            assert await browser.run("document.querySelectorAll('article[data-id]').length") == 1
            assert await browser.run(f"{_SAID}") == ""
            assert await browser.run("document.activeElement.dataset.id") == row["id"]
            assert "Refused in" in await browser.text()
            await browser.click("button", f"^Approve {row['id']}$")
            assert (await asking).text == "done"
            await browser.shows("approved by")
            assert await browser.nodes("button", "^Approve") == []
            check_quiet(browser, held.ui.origin)


async def test_a_page_to_read_has_no_buttons(tmp_path: Path, chromium: Chromium) -> None:
    """Without --allow-run the request is shown, and how it can be ruled on."""
    async with holding(tmp_path) as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        async with tab(held, chromium) as browser:
            await browser.find("article", row["id"])
            live = [
                one
                for one in await browser.nodes("button", "^(Approve|Deny)")
                if not one.properties.get("disabled")
            ]
            assert live == []
            assert "playhead gates approve" in await browser.text()
        body = {"digest": row["digest"]}
        path = f"/data/gates/{quote(row['id'], safe='')}/approve"
        assert (await asyncio.to_thread(held.ui.post, path, held.ui.cookie, body)).status == 403
        assert held.rulings() == []
        assert (
            await held.api.ask("POST", f"/v1/gates/{quote(row['id'], safe='')}/deny", b"{}")
        ).status == 200
        await asking


async def test_a_deadline_is_seen_to_come_and_to_pass(tmp_path: Path, chromium: Chromium) -> None:
    """The timer goes down, and what has expired is among the past rulings."""
    async with (
        holding(tmp_path, "--allow-run", deadline_s=4.0) as held,
        tab(held, chromium) as browser,
    ):
        asking = held.post(json={"amount": 7})
        await browser.find("timer", "")
        assert (await asking).status_code == 424
        shown = await browser.shows("expired", "nobody ruled before its deadline")
        assert "by ," not in shown
        row = (await asyncio.to_thread(held.ui.ask, "/data/gates", held.ui.cookie)).json["rulings"][
            0
        ]
        assert (row["ruling"], row["by"], row["said"]) == ("expired", "", "expired")
        assert await browser.nodes("button", "^Approve") == []


async def test_another_digest_is_not_approved(tmp_path: Path) -> None:
    """Approved is what was looked at."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        row = await held.row()
        path = f"/data/gates/{quote(row['id'], safe='')}"
        for body, status in (({"digest": "0" * 32}, 409), ({}, 409), ({"digest": 7}, 422)):
            told = await asyncio.to_thread(held.ui.post, f"{path}/approve", held.ui.cookie, body)
            assert told.status == status, body
        assert (
            await asyncio.to_thread(held.ui.post, f"{path}/deny", held.ui.cookie, {})
        ).status == 200
        assert (await asking).status_code == 424


async def test_held_hostile_text_does_nothing(tmp_path: Path, chromium: Chromium) -> None:
    """In bodies, heads and targets of a request that waits: nothing is approved, whatever it looks like."""
    texts = [one for one in PAYLOADS if one.kind in ("html", "css", "terminal", "scheme")]
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(
            json={one.name: one.text.encode("utf-8", "replace").decode() for one in texts},
            params={"q": [one.text.encode("utf-8", "replace").decode() for one in texts[:20]]},
            headers={"x-hostile": texts[5].text},
        )
        row = await held.row()
        async with tab(held, chromium) as browser:
            await browser.find("article", row["id"])
            assert texts[0].marker in await check_harmless(browser)
            assert len(await browser.nodes("button", "^Approve")) == 1
            check_quiet(browser, held.ui.origin)
            await browser.click("button", f"^Deny {row['id']}$")
            assert (await asking).status_code == 424


async def test_a_proxy_that_ended_takes_its_gates_along(tmp_path: Path, chromium: Chromium) -> None:
    """The page, which has a process of its own, shows no live button for what nobody holds."""
    async with holding(tmp_path, "--allow-run") as held:
        asking = held.post(json={"amount": 7})
        await held.row()
        async with tab(held, chromium) as browser:
            await browser.find("button", "^Approve")
            await held.api.server.close()
            await held.api.running.end("shop")
            await browser.until(
                "![...document.querySelectorAll('button:enabled')].some((one) => one.innerText.startsWith('Approve'))"
            )
        await asyncio.gather(asking, return_exceptions=True)


async def test_what_a_killed_proxy_held_was_not_sent(tmp_path: Path, chromium: Chromium) -> None:
    """The page says so of each request, and keeps it among the past rulings: nobody is left who would refuse it."""
    import httpx

    with RawOrigin(_say_ok) as origin:
        config = tmp_path / "f.yaml"
        rule = f"effects: [{{match: 'POST {origin.url}/*', gate: true}}]\n"
        config.write_text(f"store: {tmp_path / 'store'}\nlisten: 127.0.0.1:0\n{rule}")
        proxy = Serve("-c", config)
        await asyncio.to_thread(proxy.__enter__)
        ui = Ui(tmp_path / "store", "-c", str(config), "--allow-run")
        try:

            def send() -> None:
                with httpx.Client(proxy=proxy.url_for("shop"), timeout=60, trust_env=False) as one:
                    one.post(f"{origin.url}/pay", json={"amount": 7})

            asking = asyncio.create_task(asyncio.to_thread(send))
            await asyncio.to_thread(ui.__enter__)
            async with chromium.page() as browser:
                await ui.show(browser, "/gates")
                await browser.find("button", "^Approve shop:1$")
                # Its parent does not look after it: to the machine it is there, as a zombie.
                proxy.process.send_signal(signal.SIGKILL)
                await browser.until(
                    "document.querySelector('article[data-id] .said').textContent.includes('its proxy ended; nothing was sent')"
                )
                assert await browser.nodes("button", "^Approve") == []
                await browser.until(
                    "document.querySelector('section[aria-label=Rulings]').innerText.includes('its proxy ended; nothing was sent')"
                )
                await ui.go(browser, "/gates")
                await browser.find("table", "^Past rulings$")
                shown = await browser.shows("shop:1", "its proxy ended; nothing was sent")
                assert "does not answer" not in shown
                check_quiet(browser, ui.origin)
            (failed,) = await asyncio.gather(asking, return_exceptions=True)
            assert isinstance(failed, httpx.TransportError)
            assert origin.heads == []
        finally:
            await asyncio.to_thread(ui.stop)
            await asyncio.to_thread(proxy.stop)


async def test_the_focus_goes_on_after_a_ruling(tmp_path: Path, chromium: Chromium) -> None:
    """To the next request that waits, else to the heading: whoever rules with keys does not begin at the top each time."""
    async with (
        holding(tmp_path, "--allow-run") as held,
        tab(held, chromium) as browser,
    ):
        sent = []
        for number in (1, 2):
            sent.append(held.post(json={"amount": number}))
            await browser.find("button", f"^Approve shop:{number}$")
        await browser.focus("button", "^Approve shop:1$")
        await browser.press("Enter")
        await browser.until("document.activeElement.dataset.id === 'shop:2'")
        await browser.tab_to("textbox", "^Reason$")
        await browser.write("no")
        # Whatever is put in place of what was shown meanwhile.
        await browser.shows("approved")
        assert (await browser.focused()).name == "Reason"
        await browser.press("Tab")
        assert (await browser.focused()).name == "Deny shop:2"
        await browser.press("Enter")
        await browser.until("document.activeElement.tagName === 'H1'")
        assert [one.status_code for one in await asyncio.gather(*sent)] == [200, 424]
        await browser.shows("denied")
        assert await browser.run("document.activeElement.tagName") == "H1"


async def test_held_requests_count_and_are_shown_as_people_write(
    tmp_path: Path, chromium: Chromium
) -> None:
    """Of an open run its requests, those that are held, and its limits; and a held one takes the call of another."""
    async with (
        holding(tmp_path, "--allow-run", limits=Limits(calls=2)) as held,
        tab(held, chromium) as browser,
    ):
        sent = []
        for number in (1, 2):
            sent.append(held.post(json={"amount": number}))
            await browser.find("button", f"^Approve shop:{number}$")
        assert (await held.post(json={"amount": 3})).status_code == 424
        shown = await browser.shows("2 held", "0 of 2 calls", "and 2 that are held")
        assert "3 requests" in shown
        assert [one for one in ("{'", "': ") if one in shown] == []
        for number in (1, 2):
            await browser.click("button", f"^Approve shop:{number}$")
        assert [one.text for one in await asyncio.gather(*sent)] == ["done", "done"]
        await browser.shows("2 of 2 calls")


async def test_a_reason_that_cannot_be_kept_is_said(tmp_path: Path, chromium: Chromium) -> None:
    """The request is still held then, and the page says why, and which character it was."""
    async with (
        holding(tmp_path, "--allow-run") as held,
        tab(held, chromium) as browser,
    ):
        asking = held.post(json={"amount": 1})
        await browser.find("button", "^Deny shop:1$")
        await browser.tab_to("textbox", "^Reason$")
        await browser.write("no \u202e way")
        await browser.click("button", "^Deny shop:1$")
        await browser.shows("reason cannot be kept", "\\u202e")
        await browser.find("button", "^Deny shop:1$")
        assert held.rulings() == []
        await browser.run("document.querySelector('article input').value = 'no way'; true")
        await browser.click("button", "^Deny shop:1$")
        assert (await asking).status_code == 424
