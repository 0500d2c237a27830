"""A data file that was cut short is refused by name, and one that lacks only free pages is read."""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store, StoreError
from playhead.store.maintenance.compact import compact
from playhead.tests.support import prepared
from playhead.tests.support.cut_child import PAGE_BYTES
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three runs, and free pages behind them."""
    with Store.open(tmp_path / "s") as opened:
        for name in ("one", "two", "three"):
            record_run(opened, name, [ask(os.urandom(5000)) for _ in range(4)])
    compact(tmp_path / "s")
    with Store.open(tmp_path / "s") as opened:
        # What is written next has no room but behind this; what is written after that takes what it leaves in front.
        for size in (1 << 18, *range(9)):
            opened.writer.call(partial(_put, opened, bytes(size)))
    return tmp_path / "s"


def _put(store: Store, value: bytes, transaction: Any) -> None:
    store._database.put(transaction, "mail", b"x", value)


@pytest.mark.parametrize("command", [("runs",), ("show", "one", "4"), ("show", "three")])
def test_a_cut_file_is_named_by_whoever_looks(store: Path, command: tuple[str, ...]) -> None:
    """Wherever it was cut; no process is ended by a signal."""
    child = [sys.executable, "-m", "playhead.tests.support.cut_child", str(store), *command]
    done = prepared.run(child, imports=prepared.FOR_OURS, timeout=60, text=True)
    assert done.returncode == 0, done.stderr
    whole, *cut = json.loads(done.stdout)
    assert "refused" not in whole
    refused = [said for said in cut if said != whole]
    assert len(refused) > 10
    assert all(said.startswith("refused: the store at ") for said in refused)
    assert all("was cut short: " in said for said in refused)


def test_a_file_that_lacks_free_pages_is_whole(store: Path) -> None:
    """LMDB need not write them; it is refused once a page is missing that is in use."""
    file = store / "log.lmdb" / "data.mdb"
    pages = file.stat().st_size // PAGE_BYTES
    with Store.open(store, readonly=True) as opened:
        runs = opened.runs.all()
        exchanges = [list(opened.exchanges.all(run)) for run in runs]
    lacking = 0
    with pytest.raises(StoreError, match="was cut short"):  # noqa: PT012  # one of them raises
        while True:
            os.truncate(file, (pages - lacking - 1) * PAGE_BYTES)
            with Store.open(store, readonly=True) as opened:
                assert [list(opened.exchanges.all(run)) for run in opened.runs.all()] == exchanges
            lacking += 1
    assert lacking > 10


@pytest.mark.parametrize("readonly", [True, False])
def test_a_file_whose_list_of_free_pages_is_gone_is_refused(store: Path, readonly: bool) -> None:
    """Then nobody can tell."""
    os.truncate(store / "log.lmdb" / "data.mdb", 2 * PAGE_BYTES)
    with pytest.raises(StoreError, match="the list of free pages needs byte"):
        Store.open(store, readonly=readonly)
