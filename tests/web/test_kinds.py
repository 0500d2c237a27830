"""A run with one exchange of every state and kind: each is shown for what it is, at every width and in both schemes."""

import pytest

from playhead.tests.support.browser import Browser
from playhead.tests.support.counts import FULL
from playhead.tests.web.cases.checks import check_quiet, shown_text
from playhead.tests.web.cases.kinds_store import (
    BRANCH,
    CRASHED,
    PLAN,
    PLAYED,
    RUN,
    STOPPED,
    make_plan,
)
from playhead.tests.web.cases.page_process import Ui, path_of

SEQS = make_plan()[1]
GROUPS = sorted({one.group for one in PLAN})


def test_each_kind_is_shown(kinds_ui: Ui) -> None:
    """With the words of the plan, none of which is folded away."""
    for kind in PLAN:
        answer = kinds_ui.ask(path_of(RUN, SEQS[kind.name]), kinds_ui.cookie)
        assert answer.status == 200, kind.name
        shown = shown_text(answer.text)
        assert [word for word in kind.shows if word not in shown] == [], kind.name


@pytest.mark.parametrize("group", GROUPS)
async def test_a_browser_shows_each_kind(kinds_ui: Ui, browser: Browser, group: str) -> None:
    """As readable and without a complaint, and as raw. Of each group the last one; with PLAYHEAD_FULL=1 all."""
    kinds = [one for one in PLAN if one.group == group]
    for kind in kinds if FULL else kinds[-1:]:
        seq = SEQS[kind.name]
        await kinds_ui.show(browser, path_of(RUN, seq))
        await browser.find("heading", rf"^{seq}\b")
        shown = await browser.text()
        assert [word for word in kind.shows if word not in shown] == [], kind.name
        await browser.click("tab", "^Raw$")
        await browser.until("document.querySelector('#panel-raw pre') !== null")
    check_quiet(browser, kinds_ui.origin)


# Of each other run words that its page has.
RUNS = {
    PLAYED: ("NOT FAITHFUL", "stubbed", "discarded", "live", "refused", "changed", "exhausted", "reordered", "unused", "drifted"),
    BRANCH: ("hypothetical", "sandboxed", "branch at 2 of every"),
    CRASHED: ("recovered",),
    STOPPED: ("stopped", "ann", "enough"),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
async def test_each_sort_of_run_is_shown(kinds_ui: Ui, browser: Browser, run: str) -> None:
    """A playback with its receipt and divergences, a branch, and runs that did not end well."""
    await kinds_ui.show(browser, path_of(run))
    await browser.find("heading", f"^{run}$")
    await browser.shows(*RUNS[run])
    check_quiet(browser, kinds_ui.origin)


async def test_a_step_without_an_exchange_is_shown(kinds_ui: Ui, browser: Browser) -> None:
    """A refused one: what was decided on it, and its divergence with both values."""
    await kinds_ui.show(browser, path_of(PLAYED))
    await browser.find("heading", r"^5 POST https://api\.anthropic\.com")
    step = await browser.run("document.getElementById('step').innerText")
    assert [word for word in ("refused", "changed", "7", "8") if word not in step] == []
    await browser.tab_to("slider", "^Time$")
    await browser.press("ArrowLeft")
    await browser.find("heading", r"^4\b")
    await browser.find("region", "^Answer$")
    await browser.press("ArrowRight")
    await browser.find("heading", r"^5\b")
    check_quiet(browser, kinds_ui.origin)


async def test_the_list_shows_the_tree(kinds_ui: Ui, browser: Browser) -> None:
    """Children are below their parent once the tree is asked for, and the columns are those of the contract."""
    await kinds_ui.show(browser)
    await browser.find("heading", "^Runs$")
    columns = [one.name for one in await browser.nodes("columnheader")]
    wanted = (
        "Run",
        "Outcome",
        "Verdict",
        "Began",
        "Duration",
        "Cost",
        "Effects",
        "Divergences",
        "Labels",
        "Parent",
    )
    assert [one for one in wanted if not any(one in name for name in columns)] == []
    await browser.click("button", "^Tree$")
    await browser.until("location.search.includes('tree=1')")
    await browser.find("link", f"^{RUN}$")
    names = [one.name for one in await browser.nodes("link") if one.name in {RUN, PLAYED, BRANCH}]
    assert names[:3] == [RUN, PLAYED, BRANCH]


async def test_an_idle_gap_is_folded(kinds_ui: Ui, browser: Browser) -> None:
    """Eight minutes in which nothing happened: their length is text, for all readers."""
    strip = kinds_ui.ask(f"/data/runs/{RUN}/strip?width=500", kinds_ui.cookie).json
    assert len(strip["gaps"]) == 1
    await kinds_ui.show(browser, path_of(RUN))
    seq = SEQS["an idle gap"]
    await browser.shows("idle 8 min")
    told = await browser.run("document.querySelector('[aria-label=\"Idle gaps\"]').textContent")
    assert (told.startswith("idle 8 min"), told.endswith(f"before {seq}")) == (True, True)


async def test_an_address_opens_the_bytes(kinds_ui: Ui, browser: Browser) -> None:
    """Its tab is the chosen one from the start."""
    await kinds_ui.show(browser, f"{path_of(RUN, SEQS['gzip'])}&view=raw")
    tab = await browser.find("tab", "^Raw$")
    assert tab.properties.get("selected") is True


@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), (400, True), *([(400, False), (1280, True)] if FULL else [])],
)
async def test_the_run_fits_the_window(
    kinds_ui: Ui, browser: Browser, width: int, dark: bool
) -> None:
    """Nothing is wider than the window, whatever the exchange."""
    await browser.resize(width, dark=dark)
    for seq in list(SEQS.values())[:: 9 if FULL else 27]:
        await kinds_ui.show(browser, path_of(RUN, seq))
        await browser.find("heading", rf"^{seq}\b")
        assert await browser.run("document.documentElement.scrollWidth - innerWidth") <= 0, seq
