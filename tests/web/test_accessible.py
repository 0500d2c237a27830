"""Everybody can use the page: no violation that axe-core finds, a visible focus at each stop, names for all that is pressed."""

import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.browser import Browser
from playhead.tests.support.counts import FULL
from playhead.tests.support.needs import has, need
from playhead.tests.support.process import playhead
from playhead.tests.web.cases.kinds_store import RUN as EVERY
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.refund_store import DUPLICATE, RUN

PAGES = {
    "runs": "/runs",
    "the tree": "/runs?tree=1",
    "a search without a hit": "/runs?q=nothing-like-it&in=text",
    "a run": path_of(RUN),
    "a step": path_of(RUN, DUPLICATE),
    "bytes": f"{path_of(RUN, DUPLICATE)}&view=raw",
    "an origin": f"{path_of(RUN, DUPLICATE)}&path=amount",
    "a diff": f"/diff/refund-fixed/{RUN}",
    "gates": "/gates",
    "destinations": "/destinations",
    "an unknown run": "/runs/refnud",
    "an unknown step": path_of(RUN, 99),
}
_AXE = """axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
.then((found) => found.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html.slice(0, 200))]))"""


@cache
def load_axe() -> str:
    """Give axe-core's script: as node finds it, or with PLAYHEAD_FULL=1 as npm has it; without it the test is skipped."""
    node = need("node")
    if FULL and not has("axe-core"):
        with tempfile.TemporaryDirectory() as folder:
            words = ("install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            done = subprocess.run(
                [need("npm"), *words, "--prefix", folder, "axe-core"],
                capture_output=True,
                check=False,
                timeout=100,
            )
            if done.returncode:
                pytest.skip("needs axe-core, which npm does not give")
            return Path(folder, "node_modules/axe-core/axe.min.js").read_text("utf-8")
    need("axe-core")
    place = subprocess.run(
        [node, "-p", "require.resolve('axe-core/axe.min.js')"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(place.stdout.strip()).read_text("utf-8")


@pytest.fixture(scope="module")
def ui(refund_store: Path) -> Iterator[Ui]:
    """A page with which something can be changed: it has the most controls."""
    with Ui(refund_store, "--allow-run") as ui:
        yield ui


async def _violations(browser: Browser) -> list[Any]:
    await browser.call("Runtime.evaluate", expression=load_axe())
    found: list[Any] = await browser.run(_AXE)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(ui: Ui, browser: Browser, dark: bool) -> None:
    """On any page, in either scheme, at 1280 and 400 pixels."""
    load_axe()
    for width in (1280, 400):
        await browser.resize(width, dark=dark)
        for name, path in PAGES.items():
            await ui.show(browser, path)
            assert await _violations(browser) == [], (name, width)


async def test_axe_finds_nothing_in_a_file(
    refund_store: Path, tmp_path: Path, browser: Browser
) -> None:
    """Nor in a run as one file, with a cause open."""
    load_axe()
    file = tmp_path / "refund.html"
    done = playhead("export", RUN, "--html", file, "--store", refund_store)
    assert done.returncode == 0, done.stderr
    await browser.go(f"{file.as_uri()}#{DUPLICATE}")
    await browser.click("button", r"^Origin of (form )?amount: 4900$")
    for dark in (False, True):
        await browser.resize(1280, dark=dark)
        assert await _violations(browser) == []


async def test_axe_finds_nothing_at_any_kind_of_step(kinds_ui: Ui, browser: Browser) -> None:
    """Pictures, bytes, streams, WebSockets, faults."""
    load_axe()
    for seq in range(1, 100, 7):
        await kinds_ui.show(browser, path_of(EVERY, seq))
        await browser.find("heading", rf"^{seq}\b")
        assert await _violations(browser) == [], seq


@pytest.mark.parametrize("name", PAGES if FULL else ("a step", "gates"))
async def test_each_stop_of_the_focus_is_seen_and_named(
    ui: Ui, browser: Browser, name: str
) -> None:
    """From the first link round to it again: each has a role, a name, a visible focus, and is in view."""
    await ui.show(browser, PAGES[name])
    stops = []
    for _ in range(150):
        await browser.press("Tab")
        if await browser.run("document.activeElement === document.body"):
            break
        here = await browser.focused()
        stops.append((here.role, here.name))
        assert here.name.strip(), here
        seen = await browser.run(
            "(() => { const s = getComputedStyle(document.activeElement), r = document.activeElement.getBoundingClientRect();"
            " return [s.outlineStyle !== 'none' || s.boxShadow !== 'none', r.bottom > 0 && r.top < innerHeight && r.width > 0]; })()"
        )
        assert seen == [True, True], here
    assert stops[0] == ("link", "Skip to content")
    assert {("link", "Runs"), ("link", "Gates"), ("link", "Destinations")} <= {
        (role, label.partition(" (")[0]) for role, label in stops
    }


@pytest.mark.parametrize("name", PAGES if FULL else ("runs", "an origin", "an unknown run"))
async def test_each_page_has_its_landmarks(ui: Ui, browser: Browser, name: str) -> None:
    """One of each, one heading of level 1, and a title that begins like it."""
    await ui.show(browser, PAGES[name])
    await browser.find("main", "")
    await browser.find("banner", "")
    await browser.find("navigation", "^Main$")
    assert await browser.run("document.querySelectorAll('h1').length") == 1
    heading = await browser.run("document.querySelector('h1').innerText.trim()")
    title = await browser.run("document.title")
    assert title == f"{heading} - Playhead"
    assert await browser.run("document.documentElement.lang") == "en"


async def test_the_regions_of_a_run_have_their_names(ui: Ui, browser: Browser) -> None:
    """As docs/ui.md lists them."""
    await ui.show(browser, path_of(RUN, DUPLICATE))
    await browser.find("heading", rf"^{DUPLICATE}\b")
    names = {one.name for one in await browser.nodes("region")}
    wanted = {
        "Summary",
        "Timeline",
        "Scrubbers",
        "Effects",
        "Steps",
        "Step",
        "Request",
        "Answer",
        "Context",
        "Edges",
    }
    assert wanted - names == set()
    assert {one.name for one in await browser.nodes("slider")} == {
        "Time",
        "Same kind",
        "Same lane",
        "Effects",
    }
    assert {one.name for one in await browser.nodes("tab")} == {"Readable", "Raw"}


async def test_less_motion_is_less_motion(ui: Ui, browser: Browser) -> None:
    """Where somebody asks for that, nothing moves by itself."""
    await browser.call(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
    )
    await ui.show(browser, path_of(RUN))
    await browser.find("heading", f"^{RUN}$")
    assert await browser.run("document.getAnimations().length") == 0


async def test_a_gate_is_told_to_those_who_do_not_see_it(ui: Ui, browser: Browser) -> None:
    """There is a live region on every page, in which news are written."""
    for path in ("/runs", path_of(RUN), "/gates"):
        await ui.show(browser, path)
        await browser.until("document.querySelector('[aria-live], [role=status]') !== null")
