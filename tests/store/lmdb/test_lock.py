"""Who has a store open: many together, or one alone."""

import os
import threading
from pathlib import Path

import pytest

from playhead.store import Store, StoreError
from playhead.store.lmdb.lock import hold_alone, hold_shared
from playhead.store.paths import LOCK
from playhead.tests.store.maintenance.test_recovery import children


def test_exclusive_work_names_who_has_the_store_open(store_dir: Path) -> None:
    """Another process, by its pid."""
    with children(("endless", store_dir, "r")) as (child,):
        child.begin()
        child.read()
        with pytest.raises(
            StoreError, match=rf"rekey needs .* alone, and process {child.process.pid} "
        ) as caught:
            hold_alone(store_dir, "rekey")
        assert "end that first" in caught.value.hint
        child.kill()
    hold_alone(store_dir, "rekey").close()


@pytest.mark.parametrize("readonly", [False, True], ids=["writer", "reader"])
def test_whoever_opens_a_store_holds_it(store_dir: Path, readonly: bool) -> None:
    """Until it is closed; readers and writers do so together."""
    Store.open(store_dir).close()
    with Store.open(store_dir, readonly=readonly):
        hold_shared(store_dir, readonly=False).close()
        with pytest.raises(StoreError, match=rf"this process \({os.getpid()}\) has it open"):
            hold_alone(store_dir, "rekey")
    hold_alone(store_dir, "rekey").close()
    assert (store_dir / LOCK).stat().st_mode & 0o777 == 0o600


def test_an_opening_waits_for_exclusive_work_to_end(store_dir: Path) -> None:
    """And gives up after a while, naming who does it."""
    Store.open(store_dir).close()
    alone = hold_alone(store_dir, "rekey")
    with pytest.raises(StoreError, match=rf"worked on by this process \({os.getpid()}\)"):
        hold_shared(store_dir, readonly=True, patience_s=0.0)
    opened = threading.Thread(target=lambda: Store.open(store_dir, readonly=True).close())
    opened.start()
    alone.close()
    opened.join(10)
    assert not opened.is_alive()


def test_a_store_that_refuses_to_open_is_let_go_of(store_dir: Path) -> None:
    """An error on the way leaves nothing held."""
    (store_dir / "log.lmdb").mkdir(parents=True)
    (store_dir / "log.lmdb" / "data.mdb").write_bytes(b"garbage " * 2000)
    with pytest.raises(StoreError, match="is not a store"):
        Store.open(store_dir)
    hold_alone(store_dir, "rekey").close()
