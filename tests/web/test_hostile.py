"""Hostile text stays text on the page: in a real browser, at every step, as readable and as raw."""

import itertools
import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from playhead.store import Store
from playhead.tests.support.browser import Browser
from playhead.tests.support.counts import FULL
from playhead.tests.support.looking_back import write_store
from playhead.tests.web.cases.checks import check_harmless, check_quiet, check_shown
from playhead.tests.web.cases.hostile_store import (
    HEAVY,
    HEAVY_SEQS,
    LARGE,
    LIGHT,
    NAMES,
    RUN,
    SEQS,
)
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.payloads import Payload

STEPS = LIGHT if FULL else LIGHT[::2]
"""What is put on the page by a reduced run: it takes half a second a step."""
PARTS = 4 if FULL else 2
"""The steps are walked in so many tests."""
_SEARCHED = 200
"""Characters that the page searches for."""
MOST_SENT = 300_000
MOST_HEAP = 80_000_000
"""Bytes. Source: the issue's bars."""


@asynccontextmanager
async def opened(ui: Ui, browser: Browser) -> AsyncIterator[None]:
    """Have a session, and hear no complaint until the end."""
    await ui.show(browser)
    await browser.find("heading", "^Runs$")
    yield
    check_quiet(browser, ui.origin)


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_step_does_anything(hostile_ui: Ui, browser: Browser, part: int) -> None:
    """Scrubbed by the keyboard from step to step, each payload in heads, bodies, names and words of people."""
    mine = STEPS[part::PARTS]
    async with opened(hostile_ui, browser):
        for payload in mine:
            call, effect = SEQS[payload.name]
            await hostile_ui.go(browser, path_of(RUN, call))
            await browser.find("heading", rf"^{call}\b")
            check_shown(payload, await check_harmless(browser))
            await browser.focus("slider", "^Time$")
            await browser.press("ArrowRight")
            await browser.find("heading", rf"^{effect}\b")
            check_shown(payload, await check_harmless(browser))


async def test_raw_bytes_do_nothing(hostile_ui: Ui, browser: Browser) -> None:
    """What is no text is there as escapes or in hexadecimal."""
    kinds = {"bytes", "terminal", "unicode", "svg", "json"}
    async with opened(hostile_ui, browser):
        for payload in (one for one in STEPS if one.kind in kinds):
            _, seq = SEQS[payload.name]
            await hostile_ui.go(browser, f"{path_of(RUN, seq)}&view=raw")
            await browser.find("heading", rf"^{seq}\b")
            assert payload.marker in await check_harmless(browser), payload.name


async def test_names_of_runs_do_nothing(hostile_ui: Ui, browser: Browser) -> None:
    """In the list, in the title, in addresses, and in the command that the page shows for a shell."""
    async with opened(hostile_ui, browser):
        await check_harmless(browser)
        for name in NAMES if FULL else NAMES[::3]:
            await hostile_ui.go(browser, path_of(name, 1))
            await browser.find("heading", "^" + re.escape(name) + "$")
            shown = await check_harmless(browser)
            assert shlex.quote(name) in re.sub(r"\s+", " ", shown)


async def test_labels_and_searches_do_nothing(hostile_ui: Ui, browser: Browser) -> None:
    """What is searched for stands in the address and on the page."""
    async with opened(hostile_ui, browser):
        places = ("url", "text", "label") if FULL else ("label",)
        for payload, place in itertools.product(STEPS[:: 7 if FULL else 3], places):
            query = f"/runs?q={_quoted(payload.text[:_SEARCHED])}&in={place}"
            await hostile_ui.go(browser, query)
            await browser.find("heading", "^Runs$")
            await check_harmless(browser)


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "replace"), safe="")


async def test_messages_of_a_websocket_do_nothing(hostile_ui: Ui, browser: Browser) -> None:
    """All of them are reached, window by window."""
    async with opened(hostile_ui, browser):
        await hostile_ui.go(browser, path_of("socket", 1))
        await browser.find("heading", r"^1\b")
        assert LIGHT[0].marker in await check_harmless(browser)


@pytest.mark.parametrize("payload", LARGE, ids=lambda one: one.name)
async def test_large_bodies_come_in_windows(
    hostile_ui: Ui, browser: Browser, payload: Payload
) -> None:
    """A body of 10 MB, or what unfolds to more, neither comes whole nor is held whole; what is left out is said."""
    seq = HEAVY_SEQS[payload.name]
    async with opened(hostile_ui, browser):
        before = browser.bytes_received
        for view in ("", "&view=raw"):
            await hostile_ui.go(browser, f"{path_of(HEAVY, seq)}{view}")
            await browser.find("heading", rf"^{seq}\b")
            await browser.find("region", "^Request$")
            shown = await check_harmless(browser)
            size = len(payload.data)
            assert re.search(rf"{size:,}|{size}", shown) or size < 1000
        assert browser.bytes_received - before <= 2 * MOST_SENT
        assert await browser.heap_bytes() <= MOST_HEAP


def test_no_window_is_larger_than_it_may_be(hostile_ui: Ui) -> None:
    """Of any step of hostile text, whatever is asked."""
    heavy = [[HEAVY_SEQS[one.name]] for one in LARGE]
    for run, seqs in ((RUN, [SEQS[one.name] for one in STEPS]), (HEAVY, heavy)):
        base = path_of(run).replace("/runs/", "/data/runs/")
        for seq in itertools.chain.from_iterable(seqs):
            step = f"{base}/steps/{seq}"
            for path in (
                step,
                f"{step}/body?side=request&from=0&limit=65536",
                f"{step}/context?from=0&limit=200",
            ):
                answer = hostile_ui.ask(path, hostile_ui.cookie)
                assert answer.status in (200, 404), path
                assert len(answer.body) <= 256 * 1024, path
                assert answer.field("content-type").startswith("application/json")


async def test_runs_named_by_dots_are_shown(tmp_path: Path, browser: Browser) -> None:
    """A browser takes dots out of a path: each address of these runs is another one, which it leaves as it is."""
    names = (".", "..", "~..")

    async def write(store: Store) -> None:
        for at_ns, name in enumerate(names, 1):
            await store.runs.create(name, mode="record", at_ns=at_ns)

    with Ui(write_store(tmp_path / "store", write)) as ui:
        await ui.show(browser)
        for name in names:
            await ui.go(browser, "/runs")
            await browser.click("link", f"^{re.escape(name)}$")
            await browser.until(
                "window.isLeft === undefined && document.body?.dataset.watched === 'yes' && "
                f"document.querySelector('h1').textContent === {json.dumps(name)}"
            )
            await browser.find("heading", "^No step$")
        await ui.go(browser, "/runs")
        for name in names[:2]:
            await browser.click("checkbox", f"^Compare {re.escape(name)}$")
        await browser.click("button", "^Compare$")
        await browser.until(
            "document.querySelector('.first-divergence') !== null && "
            "document.querySelector('h1').textContent === '. and ..'"
        )
        check_quiet(browser, ui.origin)
