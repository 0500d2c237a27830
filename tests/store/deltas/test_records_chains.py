"""Exchanges that stand on others, in a real store: back byte for byte, deleted, damaged, shared between runs."""

import asyncio
import base64
import itertools
import os
import shutil
import struct
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import lmdb
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from playhead.store import Archived, LogCorrupt, RunInfo, RunStatus, Store
from playhead.store.deltas.choose_base import shared_prefix_name
from playhead.store.deltas.record_codec import MAX_DEPTH, parse
from playhead.store.encryption.key import StoreKey
from playhead.store.lmdb_keys import number_key, pair_key
from playhead.tape.exchange import Exchange, RunId
from playhead.tests.support.conversations import bodies, step, words
from playhead.tests.support.exchanges import make_exchange, make_record, write_run

SCREENSHOTS = [base64.b64encode(Random(n).randbytes(6200 + n)) for n in range(3)]
"""Large enough to be kept once, by themselves."""


def do(start: Callable[[], Awaitable[Any]]) -> Any:
    """Start on a loop of its own and wait."""

    async def run() -> Any:
        return await start()

    return asyncio.run(run())


def record(store: Store, name: str, exchanges: list[Exchange]) -> RunInfo:
    """Write a sealed run, one exchange after another."""
    return asyncio.run(write_run(store, name, exchanges))


def conversation(name: str, steps: int = 5, **sizes: Any) -> list[Exchange]:
    """A conversation as exchanges 1, 2, 3 ..."""
    return [step(seq, body) for seq, body in enumerate(bodies(name, steps, **sizes), 1)]


def rows(store: Store, table: str) -> dict[bytes, bytes]:
    """All of a table."""
    database = store._database
    with database.reading() as transaction, transaction.cursor(database.tables[table]) as cursor:
        return {bytes(key): bytes(value) for key, value in cursor}


def stored_bytes(store: Store) -> int:
    """What exchanges and shared prefixes take, keys aside."""
    return sum(len(value) for table in ("exchanges", "openings") for value in rows(store, table).values())  # fmt: skip


def act(store: Store, operation: Callable[[lmdb.Transaction], Any]) -> Any:
    """Do something in a write transaction."""
    return store.writer.call(operation)


def delete(store: Store, run: RunInfo) -> None:
    store.removal.delete([run])


def erase(store: Store, run: RunInfo) -> None:
    store.removal.erase([run])


def archive(store: Store, run: RunInfo) -> None:
    """Say that a run lies in an archive."""
    where = Archived("/archive", "go", "id", len(store.events.read(run)))
    assert [one.id for one in store.archive.moved("go", [(run, where)])] == [run.id]


# ---- the machine -------------------------------------------------------------------------------


class ChainMachine(RuleBasedStateMachine):
    """Conversations of several runs, saved once and again, interleaved, deleted; a dict must agree."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.store = Store.open(self.folder)
        self.held: dict[int, dict[int, Exchange]] = {}
        self.infos: dict[int, RunInfo] = {}

    def teardown(self) -> None:
        self.store.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    @rule(target=runs)
    def begin(self) -> int:
        async def create() -> RunInfo:
            return await self.store.runs.create("r", mode="record", at_ns=1)

        info = self.loop.run_until_complete(create())
        self.infos[info.number] = info
        self.held[info.number] = {}
        return info.number

    @rule(
        run=runs,
        who=st.sampled_from("abc"),
        steps=st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=12),
        size=st.sampled_from([5, 300, 5000]),
        screenshots=st.lists(st.sampled_from(SCREENSHOTS), max_size=3),
    )
    def speak(
        self, run: int, who: str, steps: list[tuple[int, bool]], size: int, screenshots: list[bytes]
    ) -> None:
        """Save steps of a conversation in any order; some of them are going to be written again, or were."""
        if run not in self.held:
            return
        said = list(bodies(who, 12, said=size))
        for seq, final in steps:
            shown = b"".join(b'"%b",' % screenshot for screenshot in screenshots[: seq % 4])
            exchange = step(seq, said[seq - 1].replace(b"[", b"[" + shown, 1))
            save = self.store.exchanges.save_unwaited
            save(self.infos[run].number, partial(make_record, exchange, final=final))
            self.held[run][seq] = exchange
        self.store.writer.call(lambda _: None)

    @rule(run=runs, forever=st.booleans())
    def delete(self, run: int, forever: bool) -> None:
        if self.held.pop(run, None) is not None:
            self.store.runs.seal_blocking(self.infos[run], reason="enough", at_ns=9)
            (erase if forever else delete)(self.store, self.infos[run])

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.folder)

    @invariant()
    def agree(self) -> None:
        for run, held in self.held.items():
            info = self.infos[run]
            assert self.store.exchanges.seqs(info) == sorted(held)
            for seq, exchange in held.items():
                assert self.store.exchanges.find(info, seq) == exchange
        kept = {key[:8] for key in rows(self.store, "exchanges")}
        assert kept == {number_key(run) for run, held in self.held.items() if held}
        assert {key[:8] for key in rows(self.store, "blocks")} <= kept
        names = {key for key in rows(self.store, "openings") if len(key) == 16}
        users, uses = rows(self.store, "users"), rows(self.store, "uses")
        assert {key[:16] for key in users} == names
        assert {key[16:] + key[:16] for key in users} == set(uses)
        assert {key[:8] for key in uses} <= kept
        for key, value in rows(self.store, "exchanges").items():
            if len(key) == 16:
                assert parse(value).depth <= MAX_DEPTH


ChainMachine.TestCase.settings = settings(
    max_examples=100 if os.environ.get("PLAYHEAD_FULL") else 8,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
TestChainMachine = ChainMachine.TestCase


# ---- what it is for ----------------------------------------------------------------------------


def test_a_conversation_takes_little_more_than_what_is_new_in_it(store_dir: Path) -> None:
    """Each request repeats the whole of it; letters without repetitions take five bits each, or more."""
    exchanges = conversation("a", 80, said=600)
    new = 80 * (600 + 600 + 80) + 9000
    with Store.open(store_dir) as store:
        run = record(store, "a", exchanges)
        assert sum(len(exchange.request.body) for exchange in exchanges) > 40 * new
        # Its first step is there twice, and each 32nd step holds what 31 others say.
        assert stored_bytes(store) < 2 * new
        assert list(store.exchanges.all(run)) == exchanges


def test_runs_that_begin_the_same_way_share_a_prefix(store_dir: Path) -> None:
    """The second ticket takes a tenth of the first."""
    with Store.open(store_dir) as store:
        record(store, "a", conversation("a", 1, system_size=20_000))
        first = stored_bytes(store)
        for name in "bcde":
            record(store, name, conversation(name, 1, system_size=20_000))
        assert stored_bytes(store) < 1.4 * first
        assert len(rows(store, "uses")) == 5
        for name in "abcde":
            assert list(store.exchanges.all(store.runs.get(name))) == conversation(
                name, 1, system_size=20_000
            )


def test_a_shared_prefix_goes_with_the_last_run_that_uses_it(store_dir: Path) -> None:
    """The others are whole meanwhile, and nothing is left in the end."""
    with Store.open(store_dir) as store:
        runs = [record(store, name, conversation(name)) for name in "abc"]
        for number, run in enumerate(runs):
            assert len(rows(store, "users")) == 3 - number
            assert any(len(key) == 16 for key in rows(store, "openings"))
            delete(store, run)
            for left in runs[number + 1 :]:
                assert list(store.exchanges.all(left)) == conversation(left.id)
        for table in ("exchanges", "openings", "users", "uses"):
            assert rows(store, table) == {}


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("take_out", [erase, archive])
def test_nothing_of_a_removed_run_is_left_in_a_shared_prefix(
    store_dir: Path, take_out: Callable[[Store, RunInfo], None], others: int
) -> None:
    """Erased, or moved to an archive, where it can be erased; what began like it stands on another shared prefix then."""
    with Store.open(store_dir) as store:
        first = record(store, "secret", conversation("secret"))
        runs = [record(store, name, conversation(name)) for name in "abc"[:others]]
        take_out(store, first)
        assert len({key[:16] for key in rows(store, "openings")}) == min(others, 1)
        for name in {key for key in rows(store, "openings") if len(key) == 16}:
            with store._database.reading() as transaction:
                value = store.exchanges._records.find(transaction, 0, name) or b""
            assert words("secret asks 0", 300).encode() not in value
            assert words("a asks 0", 300).encode() in value
        for run in runs:
            assert list(store.exchanges.all(run)) == conversation(run.id)
        after = record(store, "after", conversation("after"))
        assert list(store.exchanges.all(after)) == conversation("after")


def test_an_exchange_that_is_written_anew_takes_nothing_with_it(store_dir: Path) -> None:
    """What stood on it stands alone then."""
    exchanges = conversation("a", 6)
    anew = step(3, next(iter(bodies("else", 1))))
    with Store.open(store_dir) as store:
        run = do(lambda: store.runs.create("a", mode="record", at_ns=1))
        for exchange in [*exchanges, anew]:
            store.exchanges.save_unwaited(run.number, partial(make_record, exchange))
        store.writer.call(lambda _: None)
        assert list(store.exchanges.all(run)) == [*exchanges[:2], anew, *exchanges[3:]]


def test_a_process_does_without_a_prefix_that_another_removed(store_dir: Path) -> None:
    """It remembers it, and looks whether it is still there."""
    with Store.open(store_dir) as store:
        one = record(store, "a", conversation("a"))
        remembered = dict(store.exchanges._shared_prefixes._kept)
        assert remembered
        delete(store, one)
        store.exchanges._shared_prefixes._kept.update(remembered)
        two = record(store, "b", conversation("b"))
        assert list(store.exchanges.all(two)) == conversation("b")


def test_agents_that_take_turns_are_each_stored_on_their_own(store_dir: Path) -> None:
    """Four in one run, through the store's own threads and batches."""
    conversations = [list(bodies(name, 12, said=2000)) for name in "abcd"]
    turns = itertools.chain.from_iterable(zip(*conversations, strict=True))
    exchanges = [step(seq, body) for seq, body in enumerate(turns, 1)]
    with Store.open(store_dir) as store:

        async def write() -> RunInfo:
            run = await store.runs.create("a", mode="record", at_ns=1)
            for batch in itertools.batched(exchanges, 7):
                saves = [
                    store.exchanges.save(run.number, partial(make_record, one)) for one in batch
                ]
                await asyncio.gather(*saves)
            return run

        run = do(write)
        new = 4 * 12 * (2000 + 2000 + 80)
        assert stored_bytes(store) < new
        assert list(store.exchanges.all(run)) == exchanges


def test_a_large_conversation_comes_back_from_any_step(store_dir: Path) -> None:
    """Beyond what the tables of the level remember, and with an edit in its first half."""
    said = [words(f"said {number}", 9000) for number in range(80)]
    sent = [" ".join(said[: 40 + number]).encode() for number in range(10)]
    sent = [body.replace(b"a", b"-", number) for number, body in enumerate(sent)]
    exchanges = [step(seq, body) for seq, body in enumerate(sent, 1)]
    with Store.open(store_dir) as store:
        run = record(store, "a", exchanges)
        assert stored_bytes(store) < 1.5 * (50 * 9000)
    for seq in (10, 3, 7):
        with Store.open(store_dir, readonly=True) as store:
            assert store.exchanges.find(run, seq) == exchanges[seq - 1]


def test_an_encrypted_store_shares_and_forgets_as_any_other(store_dir: Path) -> None:
    """What a shared prefix is called there says nothing of what it holds."""
    key = StoreKey(b"k" * 32, "a test")
    with Store.open(store_dir, key=key) as store:
        runs = [record(store, name, conversation(name)) for name in "abc"]
        (name,) = {place[:16] for place in rows(store, "openings")}
        assert name != shared_prefix_name(conversation("a")[0].request)
        assert len(rows(store, "users")) == 3
        delete(store, runs[1])
        erase(store, runs[0])
    with Store.open(store_dir, key=key) as store:
        assert list(store.exchanges.all(runs[2])) == conversation("c")
        delete(store, runs[2])
        assert not any(rows(store, table) for table in ("exchanges", "openings", "users", "uses"))


def test_runs_that_are_taken_in_are_stored_on_each_other(store_dir: Path) -> None:
    """Though their events come by themselves."""
    exchanges = conversation("a", 20)
    with Store.open(store_dir) as store, store.ingest() as ingest:
        number = ingest.begin("a")
        for exchange in exchanges:
            ingest.save(number, replace(make_record(exchange), outcome=None))
        info = RunInfo(number, RunId("a"), "record", 1, RunStatus.SEALED)
        (run,) = ingest.publish([info])
        assert list(store.exchanges.all(run)) == exchanges
        assert stored_bytes(store) < sum(len(one.request.body) for one in exchanges) / 5


def test_a_run_that_is_taken_in_again_stands_on_nothing_of_the_first_go(store_dir: Path) -> None:
    """An archive that fails in the middle of a restore, and then does not: what had been there is gone."""
    exchanges = conversation("a", 80)
    with Store.open(store_dir) as store:
        run = record(store, "a", exchanges)
        archive(store, run)
        for end in (70, 80):
            with store.ingest() as ingest:
                number = ingest.begin_restore(store.runs.get("a"))
                for exchange in exchanges[:end]:
                    ingest.save(number, replace(make_record(exchange), outcome=None))
                if end == 80:
                    ingest.publish_restored(run, 5)
        assert list(store.exchanges.all(store.runs.get("a"))) == exchanges


# ---- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [1, 3, 5])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_what_is_damaged_is_named(store_dir: Path, seq: int, how: str) -> None:
    """The exchange that was asked for, and the one it stands on; those before it are whole."""
    exchanges = conversation("a")
    with Store.open(store_dir) as store:
        run = record(store, "a", exchanges)
        key, table = pair_key(run.number, seq), store._database.tables["exchanges"]

        def damage(transaction: lmdb.Transaction) -> None:
            value = bytes(transaction.get(key, db=table) or b"")
            if how == "gone":
                transaction.delete(key, db=table)
            elif how == "cut":
                transaction.put(key, value[:-5], db=table)
            else:
                place = len(value) - 3
                flipped = bytes([value[place] ^ 0x55])
                transaction.put(key, value[:place] + flipped + value[place + 1 :], db=table)

        act(store, damage)
    with Store.open(store_dir, readonly=True) as store:
        for sound in range(1, seq):
            assert store.exchanges.find(run, sound) == exchanges[sound - 1]
        if how == "gone":
            assert store.exchanges.find(run, seq) is None
        else:
            with pytest.raises(LogCorrupt, match=f"run a, exchange {seq}: "):
                store.exchanges.find(run, seq)
        for later in range(seq + 1, 6):
            with pytest.raises(
                LogCorrupt, match=rf"exchange {later}: its delta base, exchange {seq}, is"
            ):
                store.exchanges.find(run, later)


def test_a_damaged_shared_prefix_is_named_and_not_used_again(store_dir: Path) -> None:
    """What stands on it says so; what comes after begins another."""
    with Store.open(store_dir) as store:
        one = record(store, "a", conversation("a"))
        name = next(iter(rows(store, "openings")))
        table = store._database.tables["openings"]
        act(store, lambda txn: txn.put(name, b"\2nonsense, and more of it", db=table))
    with Store.open(store_dir) as store:
        with pytest.raises(
            LogCorrupt, match=f"its delta base, shared prefix {name.hex()}, is damaged"
        ):
            store.exchanges.find(one, 1)
        two = record(store, "b", conversation("b"))
        assert list(store.exchanges.all(two)) == conversation("b")


def test_a_circle_of_records_is_refused(store_dir: Path) -> None:
    """Nothing stands on what lies as deep as itself."""
    with Store.open(store_dir) as store:
        run = record(store, "a", conversation("a"))
        table = store._database.tables["exchanges"]

        def tie(transaction: lmdb.Transaction) -> None:
            for seq, base in ((4, 5), (5, 4)):
                key = pair_key(run.number, seq)
                value = bytes(transaction.get(key, db=table) or b"")
                head = struct.pack(">BBI", 3, MAX_DEPTH, base)
                transaction.put(key, head + value[6:], db=table)

        act(store, tie)
        with pytest.raises(LogCorrupt, match="exchange 5: its delta base, exchange 4, has depth"):
            store.exchanges.find(run, 5)


def test_an_erasure_goes_on_where_it_meets_damage(store_dir: Path) -> None:
    """What is damaged is lost with the shared prefix or without; the rest is whole."""
    with Store.open(store_dir) as store:
        one, two, three = (record(store, name, conversation(name)) for name in "abc")
        key, table = pair_key(two.number, 1), store._database.tables["exchanges"]
        act(store, lambda txn: txn.put(key, bytes(txn.get(key, db=table) or b"")[:-4], db=table))
        erase(store, one)
        assert list(store.exchanges.all(three)) == conversation("c")
        with pytest.raises(LogCorrupt, match="run b, exchange 1: "):
            store.exchanges.find(two, 1)


# ---- what is read twice ------------------------------------------------------------------------


def test_what_was_read_is_kept_within_bounds(store_dir: Path) -> None:
    """And a value that was written anew is not taken for what it was."""
    with Store.open(store_dir) as store:
        run = do(lambda: store.runs.create("a", mode="record", at_ns=1))
        cache = store.exchanges._records._cache
        cache._most_bytes = 50_000
        for exchange in conversation("a", 20):
            store.exchanges.save_unwaited(run.number, partial(make_record, exchange))
        store.writer.call(lambda _: None)
        for _ in range(2):
            assert list(store.exchanges.all(run)) == conversation("a", 20)
            assert 0 < cache._bytes <= 50_000
            assert cache._bytes == sum(len(value) for _, value in cache._values.values())
        other = make_exchange(20)
        store.exchanges.save_unwaited(run.number, partial(make_record, other))
        store.writer.call(lambda _: None)
        assert store.exchanges.find(run, 20) == other
