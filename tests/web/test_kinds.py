"""A run with one exchange of every state and kind: each is shown for what it is, at every width and in both schemes."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support.browser import Browser
from playhead.tests.support.needs import need
from playhead.tests.web.cases.checks import check_quiet
from playhead.tests.web.cases.kinds_store import (
    BRANCH,
    CRASHED,
    PLAN,
    PLAYED,
    RUN,
    STOPPED,
    make_plan,
    write_kinds_store,
)
from playhead.tests.web.cases.page_process import Ui, path_of

SEQS = make_plan()[1]
GROUPS = sorted({one.group for one in PLAN})


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    store = write_kinds_store(tmp_path_factory.mktemp("kinds") / "store")
    with Ui(store) as ui:
        yield ui


@pytest.fixture(scope="module")
def cookie(ui: Ui) -> str:
    return ui.open_session()


async def _open(browser: Browser, ui: Ui, cookie: str, path: str) -> None:
    name, _, value = cookie.partition("=")
    await browser.call("Network.setCookie", name=name, value=value, url=ui.origin)
    await browser.go(ui.address(path))


@pytest.mark.parametrize("group", GROUPS)
async def test_each_kind_is_shown(ui: Ui, cookie: str, tmp_path: Path, group: str) -> None:
    """With the words of the plan, as readable and without a complaint; raw works for each."""
    need("Chromium")
    async with Browser.open(tmp_path / "profile") as browser:
        await browser.resize(1280)
        for kind in (one for one in PLAN if one.group == group):
            seq = SEQS[kind.name]
            await _open(browser, ui, cookie, path_of(RUN, seq))
            await browser.find("heading", rf"^{seq}\b")
            shown = await browser.text()
            assert [word for word in kind.shows if word not in shown] == [], kind.name
            await browser.go(ui.address(f"{path_of(RUN, seq)}&view=raw"))
            await browser.find("heading", rf"^{seq}\b")
            tab = await browser.find("tab", "^Raw$")
            assert tab.properties.get("selected") is True, kind.name
        check_quiet(browser, ui.origin)


# Of each other run words that its page has.
RUNS = {
    PLAYED: ("NOT FAITHFUL", "stubbed", "discarded", "live", "refused", "changed", "exhausted", "reordered", "unused", "drifted"),
    BRANCH: ("hypothetical", "sandboxed", "branch"),
    CRASHED: ("recovered",),
    STOPPED: ("stopped", "ann", "enough"),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
async def test_each_sort_of_run_is_shown(ui: Ui, cookie: str, tmp_path: Path, run: str) -> None:
    """A playback with its receipt and divergences, a branch, and runs that did not end well."""
    need("Chromium")
    async with Browser.open(tmp_path / "profile") as browser:
        await _open(browser, ui, cookie, path_of(run))
        await browser.find("heading", f"^{run}$")
        shown = await browser.text()
        assert [word for word in RUNS[run] if word not in shown] == []
        check_quiet(browser, ui.origin)


async def test_the_list_shows_the_tree(ui: Ui, cookie: str, tmp_path: Path) -> None:
    """Children are below their parent once the tree is asked for, and the columns are those of the contract."""
    need("Chromium")
    async with Browser.open(tmp_path / "profile") as browser:
        await _open(browser, ui, cookie, "/runs")
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
        names = [
            one.name for one in await browser.nodes("link") if one.name in {RUN, PLAYED, BRANCH}
        ]
        assert names[:3] == [RUN, PLAYED, BRANCH]


async def test_an_idle_gap_is_folded(ui: Ui, cookie: str, tmp_path: Path) -> None:
    """Eight minutes in which nothing happened, with their length written."""
    need("Chromium")
    strip = ui.ask(f"/data/runs/{RUN}/strip?width=500", cookie).json
    assert len(strip["gaps"]) == 1
    async with Browser.open(tmp_path / "profile") as browser:
        await _open(browser, ui, cookie, path_of(RUN))
        await browser.find("region", "^Timeline$")
        shown = await browser.text()
        assert any(words in shown for words in ("idle 8min", "idle 8 min", "8 min idle"))


@pytest.mark.parametrize(("width", "dark"), itertools.product((1280, 400), (False, True)))
async def test_the_run_fits_the_window(
    ui: Ui, cookie: str, tmp_path: Path, width: int, dark: bool
) -> None:
    """Nothing is wider than the window, whatever the exchange."""
    need("Chromium")
    async with Browser.open(tmp_path / "profile") as browser:
        await browser.resize(width, dark=dark)
        for seq in list(SEQS.values())[::9]:
            await _open(browser, ui, cookie, path_of(RUN, seq))
            await browser.find("heading", rf"^{seq}\b")
            assert await browser.run("document.documentElement.scrollWidth - innerWidth") <= 0, seq
