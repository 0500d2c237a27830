"""Another index in the place of a run's: whole or not at all, and nothing pulled from under a playback."""

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from playhead.store import RunInfo, RunOpen, Store
from playhead.store.lmdb_keys import number_key
from playhead.tape.exchange import Fingerprint, Seq
from playhead.tape.matching.index import Entry, Index
from playhead.tests.store.maintenance.test_recovery import children
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.store_child import index_of

KILLS = 40 if os.environ.get("PLAYHEAD_FULL") else 4
COUNT = 300


def made_of(letter: str, count: int = 3) -> Index:
    """An index whose keys begin with a letter."""
    return index_of(letter, count)


def keys(store: Store, run: RunInfo) -> set[bytes]:
    """The first letters of an index's keys, by both ways of looking."""
    found = {key[:1] for key in store.index.fingerprints(run).values()}
    for seq, key in store.index.fingerprints(run).items():
        assert store.index.next_use(run, key, 0) == seq
        assert store.index.find_fingerprint(run, b"raw" + key[:1] + b"%012d" % seq) == key
    return found


@pytest.fixture
def run(tmp_path: Path) -> RunInfo:
    with Store.open(tmp_path) as store:
        return record_run(store, "tape", [ask({"n": n}) for n in range(3)])


def test_a_replaced_index_is_found_again(tmp_path: Path, run: RunInfo) -> None:
    """In any process that opens the store; the exchanges stay as they were recorded."""
    with Store.open(tmp_path) as store:
        before = list(store.exchanges.all(run))
        done = store.index.replace(run, made_of("a"))
        assert done.rules == b"rules a"
        assert done.canonical == 7
    with Store.open(tmp_path, readonly=True) as store:
        again = store.runs.get("tape")
        assert again == done
        assert keys(store, again) == {b"a"}
        assert list(store.exchanges.all(again)) == before


def test_the_old_index_gives_its_space_back(tmp_path: Path, run: RunInfo) -> None:
    """Where nobody plays the tape."""
    with Store.open(tmp_path) as store:
        for letter in "ab":
            run = store.index.replace(run, made_of(letter))
        assert rows(store) == 2 * 3
        assert run.stale == ()


def rows(store: Store) -> int:
    with store._database.reading() as transaction:
        return sum(
            transaction.stat(store._database.tables[name])["entries"]
            for name in ("fingerprints", "raws")
        )


def test_a_playback_that_is_open_keeps_the_index_it_began_with(
    tmp_path: Path, run: RunInfo
) -> None:
    """Its rows go with the next index after its end."""

    async def play(store: Store) -> None:
        old = store.runs.get("tape")
        before = store.index.fingerprints(old)
        playing = await store.runs.create("tape", mode="playback", at_ns=time.time_ns(), parent=old)
        first = await asyncio.to_thread(store.index.replace, old, made_of("a"))
        assert store.index.fingerprints(old) == before
        second = await asyncio.to_thread(store.index.replace, first, made_of("b"))
        assert store.index.fingerprints(old) == before
        assert keys(store, first) == {b"a"}
        assert keys(store, second) == {b"b"}
        await store.runs.seal(playing, reason="test", at_ns=time.time_ns())
        third = await asyncio.to_thread(store.index.replace, second, made_of("c"))
        assert (keys(store, third), rows(store)) == ({b"c"}, 6)

    with Store.open(tmp_path) as store:
        asyncio.run(play(store))


def test_a_new_run_gets_no_number_of_an_index(tmp_path: Path, run: RunInfo) -> None:
    """Both come from one counter."""
    with Store.open(tmp_path) as store:
        done = store.index.replace(run, made_of("a"))
        other = record_run(store, "other", [ask({})])
        assert other.number > done.index_number > run.number
        with store._database.reading() as transaction:
            assert (
                transaction.get(number_key(done.index_number), db=store._database.tables["runs"])
                is None
            )


def test_an_open_run_is_not_indexed_anew(tmp_path: Path) -> None:
    """It is still being written under its own rules."""
    with Store.open(tmp_path) as store:
        still = record_run(store, "open", [ask({})], seal=False)
        with pytest.raises(RunOpen, match="still being recorded"):
            store.index.replace(still, made_of("a"))


def test_a_kill_leaves_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    """kill -9 at any instant; who reads meanwhile sees one of them whole."""
    with Store.open(tmp_path) as store:
        record_run(store, "tape", [ask({"n": n}) for n in range(COUNT)])
        store.index.replace(store.runs.get("tape"), index_of("a", COUNT))
    chance = random.Random(7)
    for _ in range(KILLS):
        with children(("reindex", tmp_path, "tape", COUNT)) as (child,):
            child.begin()
            child.read()
            with Store.open(tmp_path, readonly=True) as store:
                deadline = time.monotonic() + chance.random() * 0.2
                while time.monotonic() < deadline:
                    assert_whole(store)
            child.kill()
        with Store.open(tmp_path) as store:
            assert_whole(store)
            assert rows(store) == 2 * COUNT


def assert_whole(store: Store) -> None:
    """All rows of one index, and the row of the run that belongs to it."""
    with store._database.reading():
        pass
    before = store.runs.get("tape")
    found = store.index.fingerprints(before)
    if store.runs.get("tape").index_number != before.index_number:
        return  # replaced between two looks, and nobody plays it: its rows may have gone
    letters = {key[:1] for key in found.values()}
    assert len(found) == COUNT
    assert letters == {before.rules.removeprefix(b"rules ")}


def test_an_entry_is_a_value() -> None:
    """What the tests above are made with."""
    assert made_of("a", 1).entries == (
        Entry(Seq(1), Fingerprint(b"a" + b"%015d" % 1), b"rawa" + b"%012d" % 1),
    )
