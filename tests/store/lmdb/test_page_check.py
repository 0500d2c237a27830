"""The pages of a store's file are read before LMDB's engine trusts them."""

from functools import partial
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.operations.verify import verify_runs
from playhead.store import Record, Store, StoreError
from playhead.store.lmdb.page_check import check_pages
from playhead.tests.support.exchanges import make_exchange, make_record

PAGE = 4096
FLAGS_AT = 10
BRANCH, LEAF = 1, 2


def _same(record: Record) -> Record:
    return record


async def _fill(path: Path) -> Path:
    with Store.open(path) as store:
        run = await store.runs.create("r", mode="record", at_ns=1)
        for seq in range(1, 30):
            body = b"%d" % seq * 700
            record = make_record(make_exchange(seq, body=body))
            await store.exchanges.save(run.number, partial(_same, record))
        await store.runs.seal(run, reason="done", at_ns=2)
    return path / "log.lmdb" / "data.mdb"


async def test_pages_that_would_end_the_process_are_named(store_dir: Path) -> None:
    """Pages of rows that say they are of another kind: LMDB's engine aborts where it walks over one."""
    data = await _fill(store_dir)
    assert check_pages(store_dir) is None
    whole = bytearray(data.read_bytes())
    for at in range(2 * PAGE, len(whole), PAGE):
        if whole[at + FLAGS_AT] == LEAF:
            whole[at + FLAGS_AT] = BRANCH
    data.write_bytes(whole)
    with pytest.raises(StoreError, match=r"is damaged: .*; and [0-9]+ more") as caught:
        verify_runs(Config(store=store_dir), None)
    assert caught.value.hint == "put back a copy of it"


async def test_a_file_that_was_cut_is_named(store_dir: Path) -> None:
    """In the middle of a page, at the end of one, in its first two."""
    data = await _fill(store_dir)
    whole = data.read_bytes()
    for length in (100, PAGE, 2 * PAGE, 3 * PAGE + 7):
        data.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="is damaged"):
            check_pages(store_dir)


def test_pages_are_left_alone_while_somebody_has_the_store_open(store_dir: Path) -> None:
    """What is committed meanwhile would look like damage; who has it open is said."""
    with Store.open(store_dir):
        why = check_pages(store_dir)
    assert why is not None
    assert "has it open" in why
    assert check_pages(store_dir) is None
    assert check_pages(store_dir / "none") is None
