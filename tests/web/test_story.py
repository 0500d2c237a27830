"""The double refund, from the list of runs to its cause: by five clicks at most, and by the keyboard alone."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from playhead.tests.support.agent_tapes import claude_code
from playhead.tests.support.browser import Browser
from playhead.tests.support.counts import FULL, some
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.looking_back import write_store
from playhead.tests.web.cases.checks import check_quiet
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.refund_store import (
    ASKED_FOR_IT,
    CAUSE,
    DUPLICATE,
    RUN,
    STEPS,
)

MOST_CLICKS = 5
DUPLICATE_LINK = rf"^{DUPLICATE} POST .*/v1/refunds.*possible duplicate of {CAUSE}"
ORIGIN_BUTTON = r"^Origin of (form )?amount: 4900$"
_WATCH_WIDTH = """
(function look() {
  const by = (document.documentElement?.scrollWidth ?? 0) - innerWidth;
  if (by > 0) (window.wide ??= []).push([by, document.readyState]);
  requestAnimationFrame(look);
})();
"""
"""Notes at each frame by how much a page is wider than the window, also while it is still coming."""
UNSEEN_LINK = rf"^{CAUSE} answer \$\.amount"
_PICTURES = "PLAYHEAD_PICTURES"
"""Folder that pictures of the story are written to, for the documents; none without it."""
_MOST_PICTURE = 150_000
"""Bytes."""


@asynccontextmanager
async def opened(ui: Ui, browser: Browser, path: str = "/runs") -> AsyncIterator[None]:
    """Open a page of the double refund's store; it complains of nothing until the end."""
    await ui.show(browser, path)
    await browser.find("heading", "^Runs$" if path == "/runs" else f"^{RUN}$")
    yield
    check_quiet(browser, ui.origin)


class Clicking:
    """Clicks, and counts them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.count = 0

    async def __call__(self, role: str, name: str) -> None:
        """Click one control."""
        self.count += 1
        await self._browser.click(role, name)


async def _keep_picture(browser: Browser, name: str) -> None:
    if _PICTURES in os.environ:
        _write_picture(name, await browser.picture())


def _write_picture(name: str, data: bytes) -> None:
    assert len(data) < _MOST_PICTURE
    Path(os.environ[_PICTURES], f"{name}.webp").write_bytes(data)


async def _check_cause(browser: Browser) -> None:
    await browser.find("heading", rf"^{CAUSE}\b")
    shown = await browser.text()
    assert "client left after 1.0 s" in shown
    assert "200 came at 1.6 s" in shown
    assert '"re_1"' in shown or "re_1" in shown
    assert await browser.run("location.pathname + location.search") == path_of(RUN, CAUSE)


async def test_the_cause_is_five_clicks_away(refund_ui: Ui, browser: Browser) -> None:
    """The run, its second refund, where that amount came from, and the answer that the agent never saw."""
    async with opened(refund_ui, browser):
        click = Clicking(browser)
        await _keep_picture(browser, "1-runs")
        await click("link", f"^{RUN}$")
        await browser.find("heading", f"^{RUN}$")
        await _keep_picture(browser, "2-run")
        await click("link", DUPLICATE_LINK)
        await browser.find("heading", rf"^{DUPLICATE}\b")
        await _keep_picture(browser, "3-second-refund")
        await click("button", ORIGIN_BUTTON)
        await browser.find("region", "^Cause$")
        origin = await browser.find("link", r"^3 answer .*amount")
        assert "inferred" in origin.name
        await _keep_picture(browser, "4-origin")
        await click("link", UNSEEN_LINK)
        await _check_cause(browser)
        await _keep_picture(browser, "5-cause")
        assert click.count <= MOST_CLICKS


async def test_the_cause_is_found_by_the_keyboard_alone(refund_ui: Ui, browser: Browser) -> None:
    """With Tab, arrows, End and Enter; the focus goes where the reader looks next."""
    async with opened(refund_ui, browser):
        await browser.press("Tab")
        assert (await browser.focused()).name == "Skip to content"
        await browser.tab_to("link", f"^{RUN}$")
        await browser.press("Enter")
        await browser.find("heading", f"^{RUN}$")
        await browser.tab_to("slider", "^Effects$")
        await browser.press("End")
        await browser.find("heading", rf"^{DUPLICATE}\b")
        assert (await browser.focused()).value.startswith(f"step {DUPLICATE} of {STEPS}: POST ")
        await browser.tab_to("button", ORIGIN_BUTTON)
        await browser.press("Enter")
        await browser.find("region", "^Cause$")
        inside = "document.activeElement.closest('[role=region], section') !== null"
        assert await browser.run(inside) is True
        await browser.tab_to("link", UNSEEN_LINK, most=20)
        await browser.press("Enter")
        await _check_cause(browser)
        here = await browser.focused()
        assert (here.role, here.name.split()[0]) == ("heading", str(CAUSE))


async def test_escape_closes_an_origin(refund_ui: Ui, browser: Browser) -> None:
    """The focus is back on the button that opened it."""
    async with opened(refund_ui, browser, path_of(RUN, DUPLICATE)):
        await browser.focus("button", ORIGIN_BUTTON)
        await browser.press("Enter")
        await browser.find("link", UNSEEN_LINK)
        await browser.press("Escape")
        assert "Origin of" in (await browser.focused()).name
        assert await browser.nodes("link", UNSEEN_LINK) == []


# Of a slider or the list of steps: the step it begins at, the keys that are pressed there, and the steps that each leads to.
KEYS: tuple[tuple[str, str, int, list[tuple[str, int]]], ...] = (
    ("slider", "Time", 1, [("ArrowRight", 2), ("ArrowUp", 3), ("ArrowLeft", 2), ("ArrowDown", 1)]),
    ("slider", "Time", 1, [("ArrowLeft", 1), ("End", 7), ("ArrowRight", 7), ("Home", 1)]),
    ("slider", "Time", 1, [("PageDown", 7), ("PageUp", 1)]),
    ("slider", "Same kind", 1, [("ArrowRight", 3), ("End", 7), ("ArrowLeft", 5), ("Home", 1)]),
    ("slider", "Effects", 1, [("ArrowRight", 4), ("ArrowRight", 6), ("ArrowRight", 6), ("Home", 4)]),
    ("slider", "Effects", 7, [("ArrowLeft", 6), ("ArrowLeft", 4), ("ArrowLeft", 4), ("End", 6)]),
    ("slider", "Time", 1, [("e", 4), ("e", 6), ("E", 4), ("b", 3)]),
    ("slider", "Time", 6, [("b", ASKED_FOR_IT), ("k", 7), ("K", 5), ("K", 3)]),
    ("slider", "Same lane", 1, [("l", 2), ("L", 1)]),
    ("listbox", "Steps", 1, [("ArrowDown", 2), ("End", 7), ("ArrowUp", 6), ("Home", 1)]),
    ("listbox", "Steps", 1, [("e", 4), ("b", 3), ("k", 5)]),
)  # fmt: skip


_IS_AT = f"""
new URLSearchParams(location.search).get('seq') === 'SEQ'
&& [...document.querySelectorAll('h2')].some((one) => one.innerText.startsWith('SEQ '))
&& document.querySelector('[aria-label=Time]').getAttribute('aria-valuetext').startsWith('step SEQ of {STEPS}: ')
"""


_ROWS = some(KEYS, lambda row: row[:2])


@pytest.mark.parametrize(("role", "name", "start", "keys"), _ROWS)
async def test_a_key_leads_to_a_step(
    refund_ui: Ui, browser: Browser, role: str, name: str, start: int, keys: list[tuple[str, int]]
) -> None:
    """The address names it, so that it can be passed on; every slider says where it is."""
    async with opened(refund_ui, browser, path_of(RUN, start)):
        await browser.find("heading", rf"^{start}\b")
        await browser.focus(role, f"^{name}$")
        for key, seq in keys:
            await browser.press(key)
            await browser.until(_IS_AT.replace("SEQ", str(seq)))


async def test_letters_do_nothing_elsewhere(refund_ui: Ui, browser: Browser) -> None:
    """On a link or in a text they are what they are for everybody (WCAG 2.1.4)."""
    async with opened(refund_ui, browser, path_of(RUN, 1)):
        await browser.find("heading", r"^1\b")
        await browser.focus("link", "^Runs$")
        for key in "eEkKlLb":
            await browser.press(key)
        assert await browser.run("new URLSearchParams(location.search).get('seq')") == "1"


async def test_buttons_lead_like_keys(refund_ui: Ui, browser: Browser) -> None:
    """Next, previous, and the step before the effect; where there is none, the button is disabled."""
    async with opened(refund_ui, browser, path_of(RUN, 1)):
        await browser.find("heading", r"^1\b")
        assert (await browser.find("button", "^Previous step$")).properties.get("disabled") is True
        assert (await browser.find("button", "^Before this effect$")).properties["disabled"] is True
        await browser.click("button", "^Next step$")
        await browser.find("heading", r"^2\b")
        await browser.click("link", DUPLICATE_LINK)
        await browser.find("heading", rf"^{DUPLICATE}\b")
        await browser.click("button", "^Before this effect$")
        await browser.find("heading", rf"^{ASKED_FOR_IT}\b")
        await browser.run("history.back()")
        await browser.find("heading", rf"^{DUPLICATE}\b")


async def test_enter_leads_from_the_list_to_the_step(refund_ui: Ui, browser: Browser) -> None:
    """The focus is on its heading, from where Escape leads back to the list."""
    async with opened(refund_ui, browser, path_of(RUN, 1)):
        await browser.tab_to("listbox", "^Steps$")
        await browser.press("ArrowDown", 3)
        await browser.press("Enter")
        await browser.until(f"document.activeElement.innerText?.startsWith('{CAUSE} ')")
        here = await browser.focused()
        assert (here.role, here.name.split()[0]) == ("heading", str(CAUSE))
        await browser.press("Escape")
        here = await browser.focused()
        assert (here.role, here.name) == ("listbox", "Steps")


async def test_a_lane_is_scrubbed_by_itself(tmp_path: Path, browser: Browser) -> None:
    """A sub-agent's steps are 6 and 7."""
    tape = claude_code()
    store = write_store(tmp_path / "store", lambda store: write_run(store, "code", tape.exchanges))
    with Ui(store) as ui:
        await ui.show(browser, path_of("code", 6))
        await browser.find("heading", r"^6\b")
        await browser.focus("slider", "^Same lane$")
        for key, seq in (("End", 7), ("ArrowRight", 7), ("Home", 6), ("ArrowLeft", 6)):
            await browser.press(key)
            await browser.find("heading", rf"^{seq}\b")


async def test_tabs_show_bytes(refund_ui: Ui, browser: Browser) -> None:
    """By arrows, as tabs do; the body of the request is there as it was sent."""
    async with opened(refund_ui, browser, path_of(RUN, DUPLICATE)):
        here = await browser.focus("tab", "^Readable$")
        assert here.properties.get("selected") is True
        await browser.press("ArrowRight")
        here = await browser.focused()
        assert (here.role, here.name, here.properties.get("selected")) == ("tab", "Raw", True)
        await browser.until("document.body.innerText.includes('charge=ch_1007&amount=4900')")


async def test_the_context_says_what_entered(refund_ui: Ui, browser: Browser) -> None:
    """At step 5 the timeout that the agent told the model of."""
    async with opened(refund_ui, browser, path_of(RUN, ASKED_FOR_IT)):
        await browser.find("region", "^Context$")
        shown = await browser.run(
            "[...document.querySelectorAll('section, [role=region]')].find((one) => one.innerText.includes('the request timed out')).innerText"
        )
        assert "entered" in shown


async def test_two_runs_are_compared(refund_ui: Ui, browser: Browser) -> None:
    """Chosen in the list; the first divergence comes first, and leads to the step of either run."""
    async with opened(refund_ui, browser):
        assert (await browser.find("button", "^Compare$")).properties.get("disabled") is True
        await browser.click("checkbox", "^Compare refund-fixed$")
        await browser.click("checkbox", f"^Compare {RUN}$")
        await browser.click("button", "^Compare$")
        await browser.find("heading", r"^(refund-fixed and refund|refund and refund-fixed)$")
        await browser.find("region", "^First divergence$")
        await browser.find("table", "^Side by side$")
        shown = await browser.text()
        assert shown.index("answered otherwise") < shown.index("Side by side")
        await browser.click("link", "^refund-fixed 5: ")
        await browser.find("heading", r"^5\b")


@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), (400, True), *([(400, False), (1280, True)] if FULL else [])],
)
async def test_nothing_is_wider_than_the_window(
    refund_ui: Ui, browser: Browser, width: int, dark: bool
) -> None:
    """At both widths and in both schemes; what is wide scrolls within itself."""
    async with opened(refund_ui, browser):
        await browser.resize(width, dark=dark)
        await browser.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH_WIDTH)
        for path in ("/runs", path_of(RUN, DUPLICATE), f"/diff/refund-fixed/{RUN}", "/gates"):
            await refund_ui.go(browser, path)
            await browser.until("document.body?.dataset.watched === 'yes'")
            assert await browser.run("window.wide ?? []") == [], path
            name = path.strip("/").replace("/", "-").partition("?")[0]
            await _keep_picture(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
