"""Large base64 is kept once for a run, and is back byte for byte."""

import asyncio
import base64
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.store import LogCorrupt, RunInfo, Store
from playhead.store.deltas import record_codec
from playhead.store.deltas.base64_blobs import MOST_BYTES, Blobs, body_place, has_blobs
from playhead.store.deltas.is_continuation import Body
from playhead.store.encryption.key import StoreKey
from playhead.store.lmdb_keys import number_key
from playhead.tape.exchange import Exchange
from playhead.tape.records.codec import BadRecord
from playhead.tests.support.conversations import bodies as conversation
from playhead.tests.support.conversations import step
from playhead.tests.support.exchanges import make_record, write_run

MARK = b"\xc1\xfdblock\0"
KEY = StoreKey(bytes(range(32)), "one.key")


def screenshot(number: int, size: int = 30_000) -> bytes:
    """A screenshot as base64."""
    return base64.b64encode(Random(number).randbytes(size))


def rows(store: Store) -> dict[bytes, bytes]:
    """The table `blocks`."""
    database = store._database
    with database.reading() as transaction, transaction.cursor(database.tables["blocks"]) as cursor:
        return {bytes(key): bytes(value) for key, value in cursor}


def looking(steps: int) -> list[Exchange]:
    """A conversation with a screenshot a step, of which the last four are shown again."""
    exchanges = []
    for seq, body in enumerate(conversation("a", steps), 1):
        shown = b"".join(b'"%b",' % screenshot(n) for n in range(max(1, seq - 3), seq + 1))
        exchanges.append(step(seq, body.replace(b"[", b"[" + shown, 1)))
    return exchanges


def record(store: Store, name: str, exchanges: list[Exchange]) -> RunInfo:
    """Write a sealed run."""
    return asyncio.run(write_run(store, name, exchanges))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path_factory.mktemp("blocks") / "store") as store:
        yield store


# ---- what is extracted --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_screenshot_takes_three_quarters_of_its_base64_and_only_once(
    store_dir: Path, key: StoreKey | None
) -> None:
    """However often it is shown, past keyframes, and what it is shown with is back."""
    exchanges = looking(40)
    with Store.open(store_dir, key=key) as store:
        run = record(store, "a", exchanges)
        found = rows(store)
        assert len(found) == 40
        assert sum(map(len, found.values())) < 40 * 30_100
        assert list(store.exchanges.all(run)) == exchanges
        database = store._database
        with database.reading() as transaction:
            held = sum(len(value) for _, value in transaction.cursor(database.tables["exchanges"]))
        assert held < 60_000
    with Store.open(store_dir, readonly=True, key=key) as store:
        assert list(store.exchanges.all(store.runs.get("a"))) == exchanges


def test_blobs_go_with_their_run(store_dir: Path) -> None:
    """Another that shows the same has its own, and still opens like it."""
    with Store.open(store_dir) as store:
        runs = [record(store, name, looking(3)) for name in "ab"]
        assert len(rows(store)) == 6
        store.removal.delete(runs[:1])
        assert {key[:8] for key in rows(store)} == {number_key(runs[1].number)}
        assert list(store.exchanges.all(runs[1])) == looking(3)
        store.removal.erase(runs[1:])
        assert rows(store) == {}


def test_a_conversation_that_begins_with_a_screenshot_shares_its_prefix(store_dir: Path) -> None:
    """Also with a process that did not write it."""
    first = looking(1)
    with Store.open(store_dir) as store:
        record(store, "a", first)
    with Store.open(store_dir) as store:
        run = record(store, "b", first)
        with store._database.reading() as transaction:
            record_ = store.exchanges._records._find_record(transaction, run.number, 1)
        assert record_ is not None
        assert isinstance(record_.base, bytes)
        assert list(store.exchanges.all(run)) == first


PARTS = st.one_of(
    st.sampled_from(
        [
            b'"',
            b"\\",
            b"\\n",
            b",",
            b'"data:image/png;base64,',
            MARK,
            MARK[:4],
            b"\xc1",
            b"=",
            b"==",
            b'","',
            b"{}",
            b"x",
            b" ",
        ]
    ),
    st.integers(0, 3).map(lambda n: screenshot(n, 6100 + n)),
    st.integers(0, 3).map(lambda n: screenshot(n, 6100)[: 8192 - 4 + n]),
    st.just(b"A" * 9000),
    st.just(screenshot(1, 9000)[:5000] + b"-" + screenshot(1, 9000)[5001:]),
    st.just(screenshot(1, 9000)[:-2] + b"B="),
    st.binary(max_size=30),
)


@given(st.lists(PARTS, max_size=8), st.lists(PARTS, max_size=8))
@settings(max_examples=60)
def test_whatever_is_extracted_is_restored(
    shared: Store, before: list[bytes], body: list[bytes]
) -> None:
    """Base64 that is none, that is cut, escaped or padded otherwise, and the mark itself."""
    head = b"".join((b"\x94", *before, b"\xc6\0\0\0\0"))
    value = head + b"".join(body)
    blobs = Blobs(shared._database)
    extracted = blobs.extract(7, value, len(head))
    assert has_blobs(extracted.value) == bool(extracted.names)
    assert len(extracted.value) <= len(value)

    def keep(transaction: lmdb.Transaction) -> bytes:
        assert blobs.put(transaction, 7, extracted)
        rest = extracted.value[extracted.body_at :]
        if extracted.names:
            end = extracted.value[: extracted.body_at]
            assert blobs.restore(transaction, 7, end) == head
            assert blobs.restore(transaction, 7, end[:5] + rest) == b"".join(body)
        return blobs.restore(transaction, 7, extracted.value)

    assert shared.writer.call(keep) == value


def test_base64_is_found_in_whatever_holds_it(shared: Store) -> None:
    """A data URL, JSON inside JSON, at the very end of a string of text."""
    blobs = Blobs(shared._database)
    for form in (
        b'{"data":"%b"}',
        b'{"url":"data:image/png;base64,%b"}',
        b'{"text":"{\\"data\\": \\"%b\\"}"}',
    ):
        value = b"\x94" + form % screenshot(5, 12_000)
        assert blobs.extract(8, value, 1).names, form
        assert len(blobs.extract(8, value, 1).value) < 100


def test_what_packs_stays_where_it_stands(shared: Store) -> None:
    """The base64 of a text, and hex: an edited one would be kept as a whole, and stands on the one before instead."""
    blobs = Blobs(shared._database)
    text = base64.b64encode(b"".join(b"line %d of a log\n" % n for n in range(2000)))
    for data in (text, Random(1).randbytes(20_000).hex().encode(), b"A" * 20_000):
        for _ in range(2):
            assert blobs.extract(8, b'\x94"%b"' % data, 1).names == []


# ---- what is damaged -------------------------------------------------------------------------------


def test_a_blob_that_is_missing_or_another_is_named(store_dir: Path) -> None:
    """And what does not show it is read."""
    exchanges = looking(6)
    with Store.open(store_dir) as store:
        run = record(store, "a", exchanges)
        first, second, *_ = found = rows(store)

        def harm(data: bytes | None) -> str:
            table = store._database.tables["blocks"]

            def change(transaction: lmdb.Transaction) -> None:
                transaction.delete(first, db=table)
                if data is not None:
                    transaction.put(first, data, db=table)

            store.writer.call(change)
            wrong = []
            for exchange in exchanges:
                try:
                    assert store.exchanges.find(run, exchange.seq) == exchange
                except LogCorrupt as error:
                    wrong.append(str(error))
            assert 1 <= len(wrong) <= 4
            assert len({told.split(": ", 1)[1] for told in wrong}) == 1
            return wrong[0]

        name = f"blob {first[8:].hex()}, which it holds, is"
        assert f"{name} missing" in harm(None)
        assert f"{name} another" in harm(found[second])
        assert f"{name} damaged" in harm(found[first][:-20])


def test_a_process_writes_whole_what_another_removed_the_blobs_of(store_dir: Path) -> None:
    """It remembers that they are there, and looks whether they still are; nothing stands on that exchange."""
    exchanges = looking(5)
    with Store.open(store_dir) as store:
        table = store._database.tables["blocks"]

        async def write() -> RunInfo:
            run = await store.runs.create("a", mode="record", at_ns=1)
            for exchange in exchanges:
                await store.exchanges.save(run.number, partial(make_record, exchange))
                if exchange.seq in (2, 4):
                    # As if it were done elsewhere.
                    store.writer.call(lambda txn: txn.drop(table, delete=False))
            return run

        run = asyncio.run(write())
        for seq in (3, 5):
            assert store.exchanges.find(run, seq) == exchanges[seq - 1]


def test_a_value_that_swells_is_refused_early(shared: Store) -> None:
    """A name takes 24 bytes, and what it names may be large."""
    blobs = Blobs(shared._database)
    extracted = blobs.extract(9, b'\x94"%b"' % screenshot(9, 1 << 20), 1)
    bomb = extracted.value[:5] + extracted.value[6:-1] * 1_000_000

    def look(transaction: lmdb.Transaction) -> None:
        assert blobs.put(transaction, 9, extracted)
        with pytest.raises(BadRecord, match=f"blobs of more than {MOST_BYTES} bytes"):
            blobs.restore(transaction, 9, bomb)

    shared.writer.call(look)


@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_name_that_is_cut_short_is_refused(shared: Store, size: int) -> None:
    """At the end of a value."""
    blobs = Blobs(shared._database)
    value = b"\xc1\0\0\0\5" + MARK + b"n" * size
    with (
        shared._database.reading() as transaction,
        pytest.raises(BadRecord, match="in the name of a blob"),
    ):
        blobs.restore(transaction, 1, value)


@pytest.mark.parametrize(
    "value", [b"\xc1", b"\xc1\0\0\0\4", b"\xc1\0\0\0\7x", b"\xc1\xff\xff\xff\xffx"]
)
def test_a_body_outside_of_its_value_is_refused(value: bytes) -> None:
    """Of a shared prefix that was damaged."""
    with pytest.raises(BadRecord):
        body_place(value)


def test_a_block_of_another_kind_is_refused(shared: Store) -> None:
    """One that stands on something cannot be read as one."""
    blobs = Blobs(shared._database)
    value = b"\xc1\0\0\0\5" + MARK + b"n" * 16

    def plant(transaction: lmdb.Transaction) -> None:
        record_ = record_codec.pack_delta(Body(b"x" * 500, 0), 3, Body(b"x" * 600, 0), 1)
        key = number_key(3) + b"n" * 16
        transaction.put(key, record_, db=shared._database.tables["blocks"])
        with pytest.raises(BadRecord, match="is damaged: a delta against exchange 3"):
            blobs.restore(transaction, 3, value)

    shared.writer.call(plant)
