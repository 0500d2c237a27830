"""The one writer: a batch is on disk whole or not at all, and nobody is told before it is."""

import asyncio
import contextlib
import logging
import resource
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from playhead.store import Record, RunInfo, Store, StoreError, StoreUnwritable
from playhead.store.lmdb import open as lmdb_open
from playhead.store.lmdb import writer
from playhead.store.lmdb.free_space import FreeSpace
from playhead.tape.exchange import Alpn
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_record, make_response
from playhead.tests.support.process import wait_until


@pytest.fixture
async def store(store_dir: Path) -> AsyncIterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


def noted(text: object) -> Event:
    return Event(EventKind.NOTED, 1, {"text": text})


async def open_run(store: Store, name: str = "r") -> RunInfo:
    return await store.runs.create(name, mode="record", at_ns=1)


@contextlib.asynccontextmanager
async def held(store: Store) -> AsyncIterator[None]:
    """Hold a commit open meanwhile; what is handed over becomes the next batch."""
    begun, released = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        begun.set()
        assert released.wait(20)

    done = store.writer.submit(lambda: wait)
    assert await asyncio.to_thread(begun.wait, 20)
    try:
        yield
    finally:
        released.set()
        await done


def transactions(store: Store) -> int:
    return int(store._database.environment.info()["last_txnid"])


# ---- batches -----------------------------------------------------------------------------------


async def test_what_queued_while_a_commit_ran_is_one_batch(store: Store) -> None:
    """An idle writer commits at once, a busy one takes all that has come."""
    run = await open_run(store)
    before = transactions(store)
    await store.events.append_durably(run.number, noted("alone"))
    assert transactions(store) == before + 1
    async with held(store):
        futures = [store.events.append_durably(run.number, noted(number)) for number in range(50)]
    await asyncio.gather(*futures)
    assert transactions(store) <= before + 3
    assert [event.data["text"] for event in store.events.read(run)[1:]] == ["alone", *range(50)]


async def test_what_others_will_join_is_collected(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit does for all of it; what has to be written at once takes it along."""
    monkeypatch.setattr(writer, "_COLLECT_S", 3600)
    begun: list[object] = []

    def submit(*, collect: bool) -> "asyncio.Future[Any]":
        return store.writer.submit(lambda: begun.append, collect=collect)

    collected = [submit(collect=True) for _ in range(3)]
    await asyncio.sleep(0)
    assert begun == []
    await submit(collect=False)
    await asyncio.gather(*collected)
    assert len(begun) == 4
    assert len({id(transaction) for transaction in begun}) == 1
    monkeypatch.setattr(writer, "_COLLECT_S", 0.001)
    await submit(collect=True)  # nothing joins it


async def test_what_nobody_waits_for_begins_no_commit_by_itself(store: Store) -> None:
    """It goes with the next that is waited for, on a flush, or when there is much of it."""
    run = await open_run(store)
    before = transactions(store)
    store.events.append(run.number, noted("unwaited"))
    assert transactions(store) == before
    await store.events.append_durably(run.number, noted("waited"))
    assert [event.data["text"] for event in store.events.read(run)[1:]] == ["unwaited", "waited"]
    assert transactions(store) == before + 1
    store.events.append(run.number, noted("flushed"))
    store.writer.flush()
    wait_until(lambda: len(store.events.read(run)) == 4)
    for number in range(1000):
        store.events.append(run.number, noted(number))
    wait_until(lambda: len(store.events.read(run)) > 500)


async def test_nobody_is_told_before_the_commit(store: Store) -> None:
    """A future that is done means that a reader sees it."""
    run = await open_run(store)
    seen = []
    for number in range(20):
        future = store.events.append_durably(run.number, noted(number))
        future.add_done_callback(lambda _: seen.append(len(store.events.read(run))))
        await future
    await asyncio.sleep(0)
    assert seen == list(range(2, 22))


async def test_a_waiter_that_was_cancelled_harms_nobody(store: Store) -> None:
    """What it handed over is written all the same."""
    run = await open_run(store)
    async with held(store):
        gone = store.events.append_durably(run.number, noted("gone"))
        waiting = store.events.append_durably(run.number, noted("waiting"))
        gone.cancel()
    await waiting
    assert [event.data["text"] for event in store.events.read(run)[1:]] == ["gone", "waiting"]


async def test_closing_writes_what_is_left(store_dir: Path) -> None:
    """Also what nobody waits for; a run whose process let go of the store is recovered."""
    store = Store.open(store_dir)
    run = await open_run(store)
    for number in range(100):
        store.events.append(run.number, noted(number))
    store.close()
    with Store.open(store_dir) as again:
        kinds = [event.kind for event in again.events.read(run)]
        assert kinds[1:] == [EventKind.NOTED] * 100 + [EventKind.RECOVERED]


async def test_records_are_made_before_the_transaction_begins(store: Store) -> None:
    """So that other processes do not wait for packing."""
    run = await open_run(store)
    before = transactions(store)
    at: list[int] = []

    def make() -> Record:
        at.append(transactions(store))
        return make_record(make_exchange())

    await store.exchanges.save(run.number, make)
    assert at == [before]


# ---- the caller's own fault --------------------------------------------------------------------


async def test_a_record_that_cannot_be_made_is_told_to_its_caller_alone(store: Store) -> None:
    """The rest of the batch is written, and so is what comes later."""
    run = await open_run(store)

    def broken() -> Record:
        raise RuntimeError("cannot be made")

    async with held(store):
        bad = store.exchanges.save(run.number, broken)
        good = store.exchanges.save(run.number, lambda: make_record(make_exchange(2)))
    with pytest.raises(RuntimeError, match="cannot be made"):
        await bad
    await good
    await store.exchanges.save(run.number, lambda: make_record(make_exchange(3)))
    assert store.exchanges.seqs(run) == [2, 3]


@pytest.mark.parametrize("part", ["outcome", "fingerprint", "seq"])
async def test_nothing_of_a_record_that_failed_is_written(store: Store, part: str) -> None:
    """An exchange stands there with all its rows or not at all."""
    run = await open_run(store)
    exchange = make_exchange(1, alpn=Alpn((b"h2",)))
    outcome: Event | None = None
    if part == "outcome":
        outcome = Event(EventKind.OUTCOME, 1, {"seq": 1, "status": object()})
    elif part == "fingerprint":
        exchange = make_exchange(1, fingerprint=None)
    else:
        exchange = make_exchange(-1)
    with pytest.raises((TypeError, OverflowError)):
        await store.exchanges.save(run.number, lambda: Record(exchange, b"r" * 16, outcome))
    assert store.exchanges.seqs(run) == []
    assert len(store.events.read(run)) == 1
    assert store.index.find_fingerprint(run, b"r" * 16) is None
    await store.events.append_durably(run.number, noted("the next one"))
    assert store.events.find_broken_link(run) is None


async def test_an_event_that_is_lost_unwaited_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A recorder that loses data silently is worse than one that is down."""
    run = await open_run(store)
    with caplog.at_level(logging.ERROR):
        store.events.append(run.number, noted(object()))
        store.events.append_made(run.number, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        await store.events.append_durably(run.number, noted("after"))
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert len(told) == 2
    assert "division by zero" in told[1]
    assert [event.data.get("text") for event in store.events.read(run)[1:]] == ["after"]


# ---- the disk's fault --------------------------------------------------------------------------


async def fill(store: Store, run: RunInfo, rounds: int = 200) -> tuple[list[int], list[int]]:
    """Save until the store refuses; give the seqs that were acknowledged, and those that failed."""
    acknowledged: list[int] = []
    failed: list[int] = []
    for start in range(1, rounds * 10, 10):
        exchanges = [
            make_exchange(seq, response=make_response(_noise(seq)))
            for seq in range(start, start + 10)
        ]
        futures = []
        for exchange in exchanges:
            try:
                futures.append(store.exchanges.save(run.number, partial(make_record, exchange)))
            except StoreUnwritable:
                break
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        for exchange, outcome in zip(exchanges, outcomes, strict=False):
            (failed if outcome else acknowledged).append(exchange.seq)
            if outcome is not None:
                assert isinstance(outcome, StoreUnwritable)
                assert outcome.hint
        if failed:
            return acknowledged, failed
    raise AssertionError("the store took everything")


def check_whole(store: Store, run: RunInfo, acknowledged: list[int], failed: list[int]) -> None:
    """Everything that was acknowledged is there, nothing of what failed is."""
    assert store.exchanges.seqs(run) == acknowledged
    outcomes = [event.seq for event in store.events.read(run) if event.kind is EventKind.OUTCOME]
    assert outcomes == acknowledged
    assert not set(failed) & set(acknowledged)
    assert store.events.find_broken_link(run) is None
    for exchange in store.exchanges.all(run):
        assert exchange.response is not None
        assert exchange.response.body == _noise(exchange.seq)


async def test_a_full_map_fails_the_batch_and_all_that_follows(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting futures get StoreUnwritable with a hint, later operations are refused, reading goes on.

    What says how a run stands, and what another process asks, is tried all the same.
    """
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 1000.0)
    monkeypatch.setattr(lmdb_open, "_MAP_BYTES", 512 * 1024)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        acknowledged, failed = await fill(store, run)
        assert acknowledged
        assert store.writer.failed is not None
        for refused in (
            lambda: store.events.append(run.number, noted("x")),
            lambda: store.events.append_durably(run.number, noted("x")),
            lambda: store.exchanges.save(run.number, lambda: make_record(make_exchange())),
            lambda: store.runs.create("other", mode="record", at_ns=1),
        ):
            with pytest.raises(StoreUnwritable, match="cannot write the store") as caught:
                refused()
            assert "free space" in caught.value.hint
        assert store.writer.take_lost(run.number) >= len(failed) + 3
        check_whole(store, run, acknowledged, failed)
        await store.runs.seal(run, reason="x", at_ns=1)
    monkeypatch.undo()
    with Store.open(store_dir) as again:
        check_whole(again, again.runs.get("r"), acknowledged, failed)
        more = await open_run(again, "more")
        await again.exchanges.save(more.number, lambda: make_record(make_exchange()))


async def test_a_full_disk_fails_the_batch_and_leaves_the_file_whole(
    store_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files stands in for the disk: a write ends with an error in the middle.

    Once there is free space writing goes on by itself.
    """
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 0.05)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600 * 1024, hard))
        try:
            with caplog.at_level(logging.CRITICAL):
                acknowledged, failed = await fill(store, run)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert acknowledged
        check_whole(store, run, acknowledged, failed)
        wait_until(lambda: store.writer.failed is None)
        await store.exchanges.save(run.number, lambda: make_record(make_exchange(9000)))
        assert store.events.find_broken_link(run) is None
    with Store.open(store_dir) as again:
        info = again.runs.get("r")
        assert again.exchanges.seqs(info) == [*acknowledged, 9000]
        assert again.events.find_broken_link(info) is None


class _GivenUp:
    """An environment after LMDB could not write its meta page: nothing can be begun in it any more."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def begin(self, **_: Any) -> Any:
        raise lmdb.PanicError("MDB_PANIC: Update of meta page failed")


async def test_what_lmdb_has_given_up_is_opened_again(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself, once nobody reads; what was acknowledged is there, and both go on."""
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 0.02)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        await store.events.append_durably(run.number, noted("before"))
        database = store._database
        with database.reading() as transaction:
            given_up: Any = _GivenUp(database.environment)
            database.environment = store.writer._environment = given_up
            with pytest.raises(StoreUnwritable, match="MDB_PANIC"):
                await store.events.append_durably(run.number, noted("lost"))
            with pytest.raises(StoreError, match=r"MDB_PANIC|opened again"):
                store.events.read(run)
            # Whoever reads still has what they began with.
            assert transaction.stat(database.tables["events"])["entries"] == 2
            assert database.environment is given_up
        wait_until(lambda: store.writer.failed is None)
        await store.events.append_durably(run.number, noted("after"))
        told = [event.data.get("text") for event in store.events.read(run)]
        assert told == [None, "before", "after"]
        assert store.events.find_broken_link(run) is None
        assert store.runs.all()[0].id == "r"


async def test_what_cannot_be_opened_again_is_tried_again(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the disk can be read: by then the environment that LMDB gave up is closed."""
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 0.02)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        database = store._database
        again, tries = database._again, [StoreUnwritable("not yet"), OSError("nor now")]

        def fail() -> lmdb.Environment:
            if tries:
                raise tries.pop()
            return again()

        monkeypatch.setattr(database, "_again", fail)
        given_up: Any = _GivenUp(database.environment)
        database.environment = store.writer._environment = given_up
        with pytest.raises(StoreUnwritable, match="MDB_PANIC"):
            await store.events.append_durably(run.number, noted("lost"))
        wait_until(lambda: store.writer.failed is None)
        assert not tries
        await store.events.append_durably(run.number, noted("after"))
        assert [event.data.get("text") for event in store.events.read(run)] == [None, "after"]


async def test_recording_stops_before_the_disk_is_full(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little free space left only what says how a run stands is written; deleting is tried too."""
    monkeypatch.setattr(writer, "_CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 0.02)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        old = await open_run(store, "old")
        await store.runs.seal(old, reason="x", at_ns=1)
        with monkeypatch.context() as patch:
            patch.setattr(FreeSpace, "find_shortage", lambda *_, **__: 1 << 20)
            with pytest.raises(StoreUnwritable, match="full but for 1024 KiB"):
                await store.events.append_durably(run.number, noted("refused"))
            with pytest.raises(StoreUnwritable):
                store.events.append(run.number, noted("refused at once"))
            await store.events.append_durably(run.number, noted("vital"), vital=True)
            assert store.removal.delete([old]) > 0
            assert store.writer.failed is not None
        wait_until(lambda: store.writer.failed is None)
        assert store.writer.outages == 1
        assert store.writer.take_lost(run.number) == 2
        await store.events.append_durably(run.number, noted("after"))
        texts = [event.data["text"] for event in store.events.read(run)[1:]]
        assert texts == ["vital", "after"]
        assert store.events.find_broken_link(run) is None


def test_unused_pages_of_the_file_count_as_free_space(store_dir: Path) -> None:
    """On a disk that is full a store from which much was deleted can still be written."""
    with Store.open(store_dir) as store:
        meta = store._database.tables["meta"]
        free_space = store.writer._free_space
        store.writer.call(lambda txn: txn.put(b"large", bytes(6 << 20), db=meta))
        assert free_space._unused() < 1 << 20
        store.writer.call(lambda txn: txn.delete(b"large", db=meta))
        assert 6 << 20 <= free_space._unused() < 7 << 20


@pytest.mark.parametrize("power", [False, True])
def test_the_strict_setting_flushes_the_meta_page_too(store_dir: Path, power: bool) -> None:
    """`durability: power` costs a second flush; nothing else changes."""
    with Store.open(store_dir, power=power) as store:
        flags = store._database.environment.flags()
        assert (flags["sync"], flags["metasync"], flags["writemap"]) == (True, power, False)


async def test_a_store_that_cannot_be_written_keeps_no_frames(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is raised for every request must not grow with them."""
    monkeypatch.setattr(lmdb_open, "_MAP_BYTES", 512 * 1024)
    with Store.open(store_dir) as store:
        run = await open_run(store)
        await fill(store, run)
        errors = []
        for _ in range(3):
            with pytest.raises(StoreUnwritable) as caught:
                store.events.append(run.number, noted("x"))
            errors.append(caught.value)
        assert len({id(error) for error in errors}) == 3


async def test_a_closed_store_refuses(store_dir: Path) -> None:
    """With a sentence and a hint, for every way of writing; closing twice is closing once."""
    store = Store.open(store_dir)
    run = await open_run(store)
    store.close()
    store.close()
    for refused in (
        lambda: store.events.append(run.number, noted("x")),
        lambda: store.events.append_durably(run.number, noted("x")),
        lambda: store.runs.seal_blocking(run, reason="x", at_ns=1),
    ):
        with pytest.raises(StoreUnwritable, match="closed") as caught:
            refused()
        assert caught.value.hint


async def test_blocking_calls_have_a_deadline(store: Store) -> None:
    """A disk that hangs, or another process that was stopped in a commit, is told of."""
    async with held(store):
        with pytest.raises(StoreUnwritable, match="took no write for") as caught:
            store.writer.call(lambda _: None, timeout_s=0.05)
    assert caught.value.hint


def test_settings_are_those_that_were_measured(store_dir: Path) -> None:
    """Never writemap (a full disk would kill the process), never unsynced; the meta page may lag."""
    with Store.open(store_dir) as store:
        flags = store._database.environment.flags()
        assert (flags["sync"], flags["metasync"], flags["writemap"], flags["lock"]) == (
            True,
            False,
            False,
            True,
        )
        assert store._database.environment.info()["map_size"] >= 1 << 40


def _noise(seq: int) -> bytes:
    return b"".join(hash((seq, index)).to_bytes(8, "big", signed=True) for index in range(400))
