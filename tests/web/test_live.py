"""What goes on is seen as it goes on: steps of an open run, an agent at a breakpoint, and a run that is stopped."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from playhead.config import Config
from playhead.store import Store
from playhead.tests.support import prepared
from playhead.tests.support.browser import Browser, Chromium
from playhead.tests.support.control import controlled
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, playhead, wait_until
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.refund_service import AGENT, serve
from playhead.tests.web.cases.checks import check_quiet
from playhead.tests.web.cases.page_process import Ui, path_of


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


async def test_steps_of_an_open_run_arrive(tmp_path: Path, chromium: Chromium) -> None:
    """Without a reload: where a step is asked for it stays, and where none is the page goes on with the run."""
    with RawOrigin(_say_ok) as origin:
        async with controlled(Config(store=tmp_path / "store")) as api:

            def ask() -> int:
                import httpx

                with httpx.Client(
                    proxy=api.running.url_for("shop"), trust_env=False, timeout=60
                ) as client:
                    return client.get(f"{origin.url}/orders/7").status_code

            assert await asyncio.to_thread(ask) == 200
            ui = Ui(tmp_path / "store", "--allow-run")
            await asyncio.to_thread(ui.__enter__)
            try:
                async with chromium.page() as looking, chromium.page() as following:
                    await ui.show(looking, path_of("shop", 1))
                    await ui.show(following, path_of("shop"))
                    for page in (looking, following):
                        await page.find("heading", r"^1\b")
                    for count in (2, 3):
                        assert await asyncio.to_thread(ask) == 200
                        await looking.until(_is_at(1, count))
                        await following.until(_is_at(count, count))
                        await following.find("heading", rf"^{count}\b")
                    assert await looking.run("document.getElementById('step').dataset.seq") == "1"
                    await following.tab_to("slider", "^Time$")
                    await following.press("Home")
                    await following.find("heading", r"^1\b")
                    assert await asyncio.to_thread(ask) == 200
                    await following.until(_is_at(1, 4))
                    await following.press("End")
                    await following.find("heading", r"^4\b")
                    assert await asyncio.to_thread(ask) == 200
                    await following.find("heading", r"^5\b")
                    for page in (looking, following):
                        check_quiet(page, ui.origin)
            finally:
                await asyncio.to_thread(ui.stop)


async def test_an_outcome_that_comes_late_is_shown(tmp_path: Path, chromium: Chromium) -> None:
    """Without a reload, wherever the page speaks of the effect: its step, the effects, the summary and the receipt."""
    arrived, over = threading.Semaphore(0), threading.Event()

    async def say_late(conversation: Conversation) -> None:
        arrived.release()
        await asyncio.to_thread(over.wait, 60)
        await _say_ok(conversation)

    with RawOrigin(say_late) as origin:
        async with controlled(Config(store=tmp_path / "store")) as api:

            def pay() -> int:
                import httpx

                with httpx.Client(
                    proxy=api.running.url_for("shop"), trust_env=False, timeout=60
                ) as client:
                    return client.post(f"{origin.url}/pay", json={"amount": 5}).status_code

            ui = Ui(tmp_path / "store")
            paid = [asyncio.create_task(asyncio.to_thread(pay)) for _ in range(2)]
            for _ in paid:
                assert await asyncio.to_thread(arrived.acquire, timeout=60)
            await asyncio.to_thread(ui.__enter__)
            try:
                async with chromium.page() as page:
                    await ui.show(page, path_of("shop"))
                    await page.shows("It is under way")
                    over.set()
                    assert await asyncio.gather(*paid) == [200, 200]
                    await page.find("heading", r"^2\b")
                    await page.until(
                        "!document.body.innerText.includes('under way,') && "
                        "/effect · 200/.test(document.getElementById('step').innerText) && "
                        "document.getElementById('effects').innerText.includes('possible duplicate of 1') && "
                        "document.getElementById('summary').innerText.includes('1 possibly twice') && "
                        "document.querySelector('[data-part=receipt]').innerText.includes('POSSIBLE DUPLICATE')"
                    )
                    check_quiet(page, ui.origin)
            finally:
                over.set()
                await asyncio.to_thread(ui.stop)


_HOLD = """
window.held = [];
const ask = window.fetch;
window.fetch = async (path, given) => {
  const answer = await ask(path, given), signal = given?.signal;
  if (String(path).startsWith('/parts/') && window.held)
    await new Promise((done, no) => { window.held.push(done); signal?.addEventListener('abort', () => no(signal.reason)); });
  return answer;
};
true
"""
"""Has what the server says of a run's parts arrive only once the test lets it."""
_LATE = "window.held.forEach((one) => one()); window.held = null; true"


@pytest.mark.parametrize("how", ["late", "lost"])
async def test_what_changes_while_a_part_is_asked_for_is_shown(
    tmp_path: Path, chromium: Chromium, how: str
) -> None:
    """Whatever becomes of that answer: it comes late, or was lost when nobody answered for a while."""
    with RawOrigin(_say_ok) as origin:
        async with controlled(Config(store=tmp_path / "store")) as api:

            def ask() -> int:
                import httpx

                with httpx.Client(
                    proxy=api.running.url_for("shop"), trust_env=False, timeout=60
                ) as client:
                    return client.post(f"{origin.url}/pay", json={"amount": 5}).status_code

            assert await asyncio.to_thread(ask) == 200
            ui = Ui(tmp_path / "store")
            await asyncio.to_thread(ui.__enter__)
            try:
                async with chromium.page() as page, chromium.page() as listing:
                    await ui.show(page, path_of("shop"))
                    await ui.show(listing, "/runs")
                    for one, words in ((page, "recording"), (listing, "recording")):
                        await one.shows(words)
                        await one.run(_HOLD)
                    assert await asyncio.to_thread(ask) == 200
                    for one in (page, listing):
                        await one.until("window.held.length > 0")
                    await api.running.end("shop")
                    await page.until("document.getElementById('run').dataset.status === 'sealed'")
                    if how == "lost":
                        ui.hang()
                        for one in (page, listing):
                            await one.shows("Playhead does not answer")
                            await one.run("window.held = null; true")
                        ui.go_on()
                    else:
                        for one in (page, listing):
                            await one.run(_LATE)
                    await page.until(
                        "document.querySelector('.line').innerText.startsWith('sealed') && "
                        "/verdict\\s+recorded/.test(document.getElementById('summary').innerText) && "
                        "/effects\\s+2/.test(document.getElementById('summary').innerText) && "
                        "document.querySelectorAll('#effects [data-seq]').length === 2 && "
                        "document.getElementById('reading').textContent === ''"
                    )
                    await listing.until(
                        "document.getElementById('rows').innerText.includes('recorded')"
                    )
            finally:
                ui.go_on()
                await asyncio.to_thread(ui.stop)


_WAIT = """
const ask = fetch;
window.fetch = async (path, given) => {
  if (String(path).startsWith('/data/now') && !window.free) await new Promise((done) => { window.go = done; });
  return ask(path, given);
};
"""
"""Has what is now asked for only once the test lets it."""


async def test_a_page_that_was_old_when_it_came_goes_on(tmp_path: Path, chromium: Chromium) -> None:
    """A run that ended between the page and the first look at what is now."""
    async with controlled(Config(store=tmp_path / "store")) as api:
        with RawOrigin(_say_ok) as origin:

            def ask() -> int:
                import httpx

                with httpx.Client(
                    proxy=api.running.url_for("shop"), trust_env=False, timeout=60
                ) as client:
                    return client.get(f"{origin.url}/orders/7").status_code

            assert await asyncio.to_thread(ask) == 200
            ui = Ui(tmp_path / "store")
            await asyncio.to_thread(ui.__enter__)
            try:
                async with chromium.page() as page:
                    await page.call("Page.addScriptToEvaluateOnNewDocument", source=_WAIT)
                    name, _, value = ui.cookie.partition("=")
                    await page.call(
                        "Network.setCookie", name=name, value=value, url=ui.origin, httpOnly=True
                    )
                    await page.go(ui.address(path_of("shop")))
                    await page.shows("recording")
                    await api.running.end("shop")
                    await page.run("window.free = true; window.go?.(); true")
                    await page.until(
                        "document.querySelector('.line').innerText.startsWith('sealed') && "
                        "/verdict\\s+recorded/.test(document.getElementById('summary').innerText)"
                    )
            finally:
                await asyncio.to_thread(ui.stop)


def _is_at(seq: int, total: int) -> str:
    """Give a script that says whether the sliders are at a step of so many."""
    return (
        "[...document.querySelectorAll('[role=slider], input[type=range]')].some("
        f"(one) => (one.getAttribute('aria-valuetext') || '').startsWith('step {seq} of {total}:'))"
    )


async def test_an_open_run_is_stopped(tmp_path: Path) -> None:
    """By the process that writes it, whichever process shows the page."""
    with RawOrigin(_say_ok) as origin:
        async with controlled(Config(store=tmp_path / "store")) as api:

            def ask() -> int:
                import httpx

                with httpx.Client(
                    proxy=api.running.url_for("shop"), trust_env=False, timeout=60
                ) as client:
                    return client.get(f"{origin.url}/orders/7").status_code

            assert await asyncio.to_thread(ask) == 200
            ui = Ui(tmp_path / "store", "--allow-run")
            await asyncio.to_thread(ui.__enter__)
            try:
                cookie = await asyncio.to_thread(ui.open_session)
                told = await asyncio.to_thread(
                    ui.post, "/data/runs/shop/stop", cookie, {"reason": "enough"}
                )
                assert told.status == 200
                assert await asyncio.to_thread(ask) == 424
            finally:
                await asyncio.to_thread(ui.stop)


def test_an_agent_at_a_breakpoint_goes_on(tmp_path: Path) -> None:
    """It is listed with what it asks; a page to read cannot let it go."""
    store = tmp_path / "store"
    with Origin({"/{tail:.*}": serve}) as shop:
        words = ("--store", store, "--run", "tape", "-q", "--")
        done = playhead("record", *words, sys.executable, *AGENT, shop.url)
        assert done.returncode == 0, done.stderr
        command = [
            *COMMAND,
            "replay",
            "tape",
            "--store",
            str(store),
            "--no-sandbox",
            "--break",
            "effect",
            "-q",
        ]
        held = prepared.start(
            [*command, "--", sys.executable, *AGENT, shop.url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            with Ui(store) as reader, Ui(store, "--allow-run") as ui:
                cookie = ui.open_session()
                wait_until(lambda: ui.ask("/data/breaks", cookie).json["breaks"], timeout_s=60)
                (row,) = ui.ask("/data/breaks", cookie).json["breaks"]
                assert row["url"].endswith("/v1/refunds")
                shown = ui.ask("/gates", cookie).text
                for word in ("Step", "Continue", "Quit"):  # as they are found, of each held agent
                    assert f'>{word}<span class="sr"> {row["id"]}</span></button>' in shown
                path = f"/data/breaks/{quote(row['id'], safe='')}/continue"
                assert reader.post(path, reader.open_session(), {}).status == 403
                assert ui.post(path, cookie, {}).status == 200
                assert ui.ask("/data/breaks", cookie).json["breaks"] == []
            out, err = held.communicate(timeout=60)
            assert (held.returncode, b"Refunded" in out) == (0, True), err
        finally:
            if held.returncode is None:
                held.kill()
                held.communicate()


async def test_a_run_without_a_step_waits_for_one(tmp_path: Path, browser: Browser) -> None:
    """Quietly: it asks for no step before there is one."""

    async def write(store: Store) -> None:
        await store.runs.create("idle", mode="record", at_ns=1)

    with Ui(write_store(tmp_path / "store", write)) as ui:
        await ui.show(browser, path_of("idle"))
        await browser.find("heading", "^No step$")
        await browser.press("End")
        await browser.until("document.getElementById('place').textContent.endsWith('of 0')")
        check_quiet(browser, ui.origin)
