"""What tests of the page share: stores that no test changes, a page of each, and one browser."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from playhead.tests.support.browser import Browser, Chromium
from playhead.tests.support.needs import need
from playhead.tests.web.cases.hostile_store import write_hostile_store
from playhead.tests.web.cases.kinds_store import write_kinds_store
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.refund_store import write_refund_store


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser that runs until the last test has ended."""
    need("Chromium")
    with Chromium.running(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


@pytest.fixture
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    """A page without the cookies or the cache of another test, 1280 pixels wide."""
    async with chromium.same_page() as page:
        await page.resize(1280)
        yield page


@pytest.fixture(scope="session")
def refund_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The double refund, to be read."""
    return write_refund_store(tmp_path_factory.mktemp("refund") / "store")


@pytest.fixture(scope="session")
def kinds_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One exchange of every kind, to be read."""
    return write_kinds_store(tmp_path_factory.mktemp("kinds") / "store")


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile text wherever text can stand, to be read."""
    return write_hostile_store(tmp_path_factory.mktemp("hostile") / "store")


@pytest.fixture(scope="session")
def refund_ui(refund_store: Path) -> Iterator[Ui]:
    """The page of the double refund, which only reads."""
    with Ui(refund_store) as ui:
        yield ui


@pytest.fixture(scope="session")
def kinds_ui(kinds_store: Path) -> Iterator[Ui]:
    """The page of every kind, which only reads."""
    with Ui(kinds_store) as ui:
        yield ui


@pytest.fixture(scope="session")
def hostile_ui(hostile_store: Path) -> Iterator[Ui]:
    """The page of hostile text, which only reads."""
    with Ui(hostile_store) as ui:
        yield ui
