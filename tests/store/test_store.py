"""The store against a model in memory, and what it does with a file that is none of its own."""

import asyncio
import os
import resource
import shutil
import struct
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    rule,
)

from playhead.store import (
    LogCorrupt,
    RunInfo,
    RunStatus,
    Store,
    StoreError,
    StoreKey,
    StoreTooNew,
    StoreUnwritable,
    UnknownRun,
)
from playhead.store.lmdb.process_liveness import create_liveness_file
from playhead.store.lmdb_keys import FORMAT, MAX_NAME_BYTES, TABLES, number_key
from playhead.tape.exchange import Alpn, Exchange, Fingerprint, RedactedText
from playhead.tape.records.codec import encode_exchange
from playhead.tape.records.events import Event, EventKind, content_hash, with_hashes
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_outcome,
    make_record,
    make_response,
)
from playhead.tests.support.strategies import exchanges, plain_values
from playhead.tests.support.unprivileged import own_folder, unprivileged

# ---- the machine -------------------------------------------------------------------------------


@dataclass
class ModelRun:
    """What a run should hold."""

    info: RunInfo
    events: list[tuple[EventKind, Any]] = field(default_factory=list)
    exchanges: dict[int, Exchange] = field(default_factory=dict)
    raws: dict[bytes, bytes] = field(default_factory=dict)
    origins: dict[tuple[str, int, tuple[bytes, ...]], bytes] = field(default_factory=dict)
    uses: set[tuple[bytes, int]] = field(default_factory=set)
    sealed: bool = False


_names = st.sampled_from(
    ["a", "b", "a~2", "a@1", "a~", "b@", "ü" * 100, "x" * 200, "0", "\x01", "~2"]
)
_seqs = st.integers(1, 6)


class StoreMachine(RuleBasedStateMachine):
    """Random operations; the store and a few dicts must agree."""

    runs = Bundle("runs")
    key: StoreKey | None = None
    """What the store is encrypted under."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.owner = create_liveness_file(self.folder)
        self.store = self.open()
        self.model: dict[str, ModelRun] = {}

    def open(self) -> Store:
        """Open the store; its runs belong to somebody who outlives that."""
        store = Store.open(self.folder, key=self.key)
        store.runs.owner = replace(store.runs.owner, file=self.owner.name)
        return store

    def teardown(self) -> None:
        self.store.close()
        self.owner.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    def wait(self, start: Callable[[], Awaitable[Any]]) -> Any:
        """Start on the loop and wait."""

        async def run() -> Any:
            return await start()

        return self.loop.run_until_complete(run())

    def settle(self) -> None:
        """Wait for what nobody waited for."""
        self.store.writer.call(lambda _: None)

    # ---- writing

    @initialize(target=runs)
    def first(self) -> str:
        made = self.wait(lambda: self.store.runs.create("a", mode="record", at_ns=1))
        return self.opened(made, "a", None)

    @rule(target=runs, name=_names)
    def record(self, name: str) -> str:
        wanted = name
        number = 2
        while wanted in self.model:
            wanted = f"{name}~{number}"
            number += 1
        return self.opened(
            self.wait(lambda: self.store.runs.create(name, mode="record", at_ns=1)), wanted, None
        )

    @rule(target=runs, tape=runs)
    def play(self, tape: str) -> str:
        parent = self.model[tape].info
        number = 1
        while f"{tape}@{number}" in self.model:
            number += 1
        made = self.wait(
            lambda: self.store.runs.create(
                tape, mode="playback", at_ns=1, parent=parent, agent=RedactedText("x"), rules=b"r"
            )
        )
        return self.opened(made, f"{tape}@{number}", parent)

    def opened(self, made: RunInfo, name: str, parent: RunInfo | None) -> str:
        assert made.id == name
        assert made.parent == (parent.id if parent else None)
        assert made.number == len(self.model) + 1
        known = ModelRun(made)
        data = {"id": name, "mode": made.mode, "parent": made.parent, "agent": made.agent}
        known.events.append((EventKind.OPENED, data))
        self.model[name] = known
        return name

    @rule(
        run=runs,
        data=st.dictionaries(st.text(max_size=5).map("k{}".format), plain_values, max_size=3),
        how=st.integers(0, 2),
    )
    def append(self, run: str, data: dict[str, Any], how: int) -> None:
        known = self.model[run]
        if known.sealed:
            return
        number, event = known.info.number, Event(EventKind.NOTED, 5, data)
        if how == 0:
            self.store.events.append(number, event)
        elif how == 1:
            self.store.events.append_made(number, lambda: event)
        else:
            self.wait(lambda: self.store.events.append_durably(number, event))
        known.events.append((EventKind.NOTED, data))

    @rule(run=runs, seq=_seqs, data=st.data(), waited=st.booleans())
    def save(self, run: str, seq: int, data: st.DataObject, waited: bool) -> None:
        known = self.model[run]
        if known.sealed:
            return
        fingerprints = st.sampled_from([Fingerprint(bytes([n]) * 16) for n in (0, 1, 255)])
        drawn = data.draw(exchanges(seq))
        before = known.exchanges.get(seq)
        if before is not None:  # what has passed so far, then the whole: the same request
            drawn = replace(drawn, fingerprint=before.fingerprint, request=before.request)
        else:
            drawn = replace(drawn, fingerprint=data.draw(fingerprints))
        final = data.draw(st.booleans())
        record = make_record(drawn, final=final)
        if waited:
            self.wait(lambda: self.store.exchanges.save(known.info.number, lambda: record))
        else:
            self.store.exchanges.save_unwaited(known.info.number, lambda: record)
        known.exchanges[seq] = drawn
        known.uses.add((drawn.fingerprint, seq))
        known.raws.setdefault(record.raw, drawn.fingerprint)
        if drawn.alpn.offers:
            key = (drawn.request.host, drawn.request.port, drawn.alpn.offers)
            known.origins.setdefault(key, drawn.alpn.chosen or b"")
        if final:
            told = with_hashes(make_outcome(drawn), content_hash(encode_exchange(drawn)))
            known.events.append((EventKind.OUTCOME, told.data))

    @rule(run=runs, blocking=st.booleans())
    def seal(self, run: str, blocking: bool) -> None:
        known = self.model[run]
        if blocking:
            ended = self.store.runs.seal_blocking(known.info, reason="enough", at_ns=9)
        else:
            ended = self.wait(lambda: self.store.runs.seal(known.info, reason="enough", at_ns=9))
        assert ended.status is RunStatus.SEALED
        if not known.sealed:
            known.sealed = True
            data = {
                "reason": "enough",
                "exchanges": max(known.exchanges, default=0),
                "unfinished": (),
            }
            known.events.append((EventKind.SEALED, data))
        known.info = ended

    @rule(readonly=st.booleans())
    def reopen(self, readonly: bool) -> None:
        self.store.close()
        if readonly:
            with Store.open(self.folder, readonly=True, key=self.key) as self.store:
                self.agree()
        self.store = self.open()

    # ---- reading

    @rule(name=_names)
    def ask_for_a_name(self, name: str) -> None:
        found = self.store.runs.find(name)
        assert (found.id if found else None) == (name if name in self.model else None)

    @rule()
    def agree(self) -> None:
        """Everything that can be read is what the model holds."""
        if self.store._database.writable:
            self.settle()
        listed = self.store.runs.all()
        assert [run.id for run in listed] == list(self.model)
        for info in listed:
            self.agree_on(info, self.model[info.id])
        sealed = [run for run in self.model.values() if run.sealed and run.info.mode == "record"]
        latest = self.store.runs.find_latest()
        assert (latest.id if latest else None) == (sealed[-1].info.id if sealed else None)

    def agree_on(self, info: RunInfo, known: ModelRun) -> None:
        store = self.store
        assert info.status is (RunStatus.SEALED if known.sealed else RunStatus.OPEN)
        assert info.exchanges == max(known.exchanges, default=0)
        assert (info.number, info.parent, info.mode) == (
            known.info.number,
            known.info.parent,
            known.info.mode,
        )
        assert store.runs.get(info.id) == store.runs.reload(known.info) == info
        events = store.events.read(info)
        assert [(event.kind, event.data) for event in events] == known.events
        assert [event.number for event in events] == list(range(1, len(known.events) + 1))
        middle = len(events) // 2
        assert store.events.read(info, middle, 2) == events[middle : middle + 2]
        for size in (1, 2, len(events) or 1, 1000):
            assert list(store.events.all(info, size)) == events
        assert store.events.find_broken_link(info) is None
        assert store.exchanges.seqs(info) == sorted(known.exchanges)
        assert list(store.exchanges.all(info)) == [
            known.exchanges[seq] for seq in sorted(known.exchanges)
        ]
        assert store.exchanges.find(info, 99) is None
        for raw, fingerprint in known.raws.items():
            assert store.index.find_fingerprint(info, raw) == fingerprint
        assert store.index.find_fingerprint(info, b"never seen......") is None
        for host, port, offers in known.origins:
            assert store.alpn.find(info, host, port, offers) == known.origins[host, port, offers]
        assert store.alpn.find(info, "elsewhere", 1, (b"h2",)) is None
        for fingerprint in {bytes([n]) * 16 for n in (0, 1, 2, 255)}:
            uses = sorted(seq for used, seq in known.uses if used == fingerprint)
            for after in range(7):
                expected = next((seq for seq in uses if seq > after), None)
                assert store.index.next_use(info, Fingerprint(fingerprint), after) == expected


class EncryptedStoreMachine(StoreMachine):
    """The same in an encrypted store."""

    key = StoreKey(bytes(range(32)), "a test")


TestStoreMachine = StoreMachine.TestCase
TestEncryptedStoreMachine = EncryptedStoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=200 if os.environ.get("PLAYHEAD_FULL") else 12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestEncryptedStoreMachine.settings = settings(
    TestStoreMachine.settings,
    max_examples=200 if os.environ.get("PLAYHEAD_FULL") else 5,
)


# ---- names -------------------------------------------------------------------------------------


async def open_run(store: Store, name: str = "r", **more: Any) -> RunInfo:
    return await store.runs.create(name, mode="record", at_ns=1, **more)


@pytest.mark.parametrize(
    "name",
    ["", "x" * (MAX_NAME_BYTES + 1), "ü" * 201, "x" * 5000, "\0", "\0a~", "\ud800", "a\udcff"],
    ids=ascii,
)  # fmt: skip
async def test_a_name_that_cannot_be_kept_is_refused_and_harms_nobody(
    store_dir: Path, name: str
) -> None:
    """A key that LMDB refuses would fail the batch, and with it every other run."""
    with Store.open(store_dir) as store:
        other = await open_run(store, "other")
        with pytest.raises(StoreError, match="cannot be the name of a run"):
            await open_run(store, name)
        await store.events.append_durably(other.number, Event(EventKind.NOTED, 1, {}))
        assert store.runs.find(name) is None
        assert [run.id for run in store.runs.all()] == ["other"]


async def test_the_longest_name_can_be_used_again_and_played(store_dir: Path) -> None:
    """The number that is added to it still fits into a key."""
    name = "x" * MAX_NAME_BYTES
    with Store.open(store_dir) as store:
        first, second = await open_run(store, name), await open_run(store, name)
        played = [
            await store.runs.create(second.id, mode="playback", at_ns=1, parent=second)
            for _ in range(12)
        ]
        names = [first.id, second.id, *(run.id for run in played)]
        assert names == [name, f"{name}~2", *(f"{name}~2@{n}" for n in range(1, 13))]
        assert [store.runs.get(run).id for run in names] == names


async def test_counters_of_names_are_no_runs(store_dir: Path) -> None:
    """They stand beside the names, and nobody can ask for them."""
    with Store.open(store_dir) as store:
        tape = await open_run(store)
        await open_run(store)
        await store.runs.create("r", mode="playback", at_ns=1, parent=tape)
        assert [run.id for run in store.runs.all()] == ["r", "r~2", "r@1"]
        for key in ("\0r~", "\0r@", "\0{}~{}"):
            assert store.runs.find(key) is None
    kept = [key for key, _ in rows(store_dir, "names")]
    assert len(kept) == 5


async def test_an_unknown_run_comes_with_the_nearest_names(store_dir: Path) -> None:
    """And an empty store says that it is empty."""
    with Store.open(store_dir) as store:
        with pytest.raises(UnknownRun) as caught:
            store.runs.get("refund")
        assert "no runs yet" in caught.value.hint
        for name in ("refunds", "search", "weather"):
            await open_run(store, name)
        with pytest.raises(UnknownRun) as caught:
            store.runs.get("refund")
        assert caught.value.nearest == ("refunds",)
        assert "refunds" in caught.value.hint


async def test_what_is_seen_of_an_agent_may_be_any_bytes(store_dir: Path) -> None:
    """A command line that is no UTF-8 must not make the list of runs unreadable."""
    with Store.open(store_dir) as store:
        await open_run(store, "odd", agent="python \udcff\udce4 \ud83d agent.py")
    with Store.open(store_dir) as store:
        (run,) = store.runs.all()
        assert run.agent == "python \udcff\udce4 \ud83d agent.py"
        assert store.events.read(run)[0].data["agent"] == run.agent


async def test_listing_runs_reads_no_tape(store_dir: Path) -> None:
    """The list is the same when every event and exchange of sealed runs is gone."""
    with Store.open(store_dir) as store:
        for name in ("a", "b"):
            run = await open_run(store, name)
            await store.exchanges.save(run.number, lambda: make_record(make_exchange(3)))
            await store.runs.seal(run, reason="x", at_ns=2)
        before = store.runs.all()
    with raw(store_dir) as environment:
        for table in ("events", "exchanges", "fingerprints"):
            with environment.begin(write=True) as transaction:
                transaction.drop(environment.open_db(table.encode(), transaction), delete=False)
    with Store.open(store_dir, readonly=True) as store:
        assert store.runs.all() == before
        assert [run.exchanges for run in before] == [3, 3]


async def test_bytes_keep_the_fingerprint_that_they_were_given_first(store_dir: Path) -> None:
    """A run is indexed under one set of rules; negotiated protocols stand as they were first seen too."""
    first, second = (
        make_exchange(seq, fingerprint=Fingerprint(bytes([seq]) * 16), alpn=Alpn((b"h2",), alpn))
        for seq, alpn in ((1, b"h2"), (2, None))
    )
    with Store.open(store_dir) as store:
        run = await open_run(store)
        for exchange in (first, second):
            await store.exchanges.save(run.number, partial(make_record, exchange))
        assert store.index.find_fingerprint(run, make_record(second).raw) == first.fingerprint
        assert store.alpn.find(run, "api.test", 443, (b"h2",)) == b"h2"


async def test_asking_the_owner_of_a_run(store_dir: Path) -> None:
    """A message is there until somebody looks, for that run alone."""
    with Store.open(store_dir) as store:
        first, second = await open_run(store, "a"), await open_run(store, "b")
        await asyncio.to_thread(store.owner_requests.ask, first, "seal")
        assert store.owner_requests.was_asked(first, "seal")
        assert not store.owner_requests.was_asked(second, "seal")
        assert not store.owner_requests.was_asked(first, "something else")
        assert store.runs.owner_alive(first)


# ---- what somebody changed ---------------------------------------------------------------------


@contextmanager
def raw(store_dir: Path) -> Iterator[lmdb.Environment]:
    """The file without the store; one at a time in a process."""
    with lmdb.open(
        str(store_dir / "log.lmdb"), max_dbs=len(TABLES), map_size=1 << 30
    ) as environment:
        yield environment


def rows(store_dir: Path, table: str) -> list[tuple[bytes, bytes]]:
    with raw(store_dir) as environment, environment.begin() as transaction:
        database = environment.open_db(table.encode(), transaction, create=False)
        with transaction.cursor(database) as cursor:
            return [(bytes(key), bytes(value)) for key, value in cursor]


def put(store_dir: Path, table: str, key: bytes, value: bytes | None) -> None:
    with raw(store_dir) as environment, environment.begin(write=True) as transaction:
        database = environment.open_db(table.encode(), transaction, create=False)
        if value is None:
            assert transaction.delete(key, db=database)
        else:
            transaction.put(key, value, db=database)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[bytes, bytes]]]:
    """A store with a run of twelve events between two others."""
    folder = tmp_path_factory.mktemp("logged")

    async def write() -> None:
        with Store.open(folder) as store:
            for name in ("before", "r", "after"):
                run = await open_run(store, name)
                for seq in range(1, 6):
                    exchange = make_exchange(seq)
                    store.events.append(run.number, make_intent(exchange))
                    await store.exchanges.save(run.number, partial(make_record, exchange))
                await store.runs.seal(run, reason="x", at_ns=2)

    asyncio.run(write())
    return folder, [row for row in rows(folder, "events") if row[0][:8] == number_key(2)]


def first_broken(folder: Path, name: str = "r") -> int | None:
    with Store.open(folder, readonly=True) as store:
        return store.events.find_broken_link(store.runs.get(name))


@tries(8, 100)
@given(number=st.integers(1, 12), place=st.integers(0, 10**6), change=st.integers(1, 255))
def test_a_flipped_byte_is_found_where_it_is(
    logged: tuple[Path, list[tuple[bytes, bytes]]], number: int, place: int, change: int
) -> None:
    """In the hash or in what it covers; the first event that was changed is named, and no other run."""
    folder, events = logged
    assert len(events) == 12
    key, value = events[number - 1]
    changed = bytearray(value)
    changed[place % len(value)] ^= change
    put(folder, "events", key, bytes(changed))
    try:
        assert first_broken(folder) == number
        assert first_broken(folder, "before") is first_broken(folder, "after") is None
    finally:
        put(folder, "events", key, value)
    assert first_broken(folder) is None


def test_an_event_that_was_taken_out_or_swapped_is_found(
    logged: tuple[Path, list[tuple[bytes, bytes]]],
) -> None:
    """Each event carries the hash of the one before it."""
    folder, events = logged
    put(folder, "events", events[4][0], None)
    assert first_broken(folder) == 6
    put(folder, "events", *events[4])
    for mine, other in ((4, 5), (5, 4)):
        put(folder, "events", events[mine][0], events[other][1])
    assert first_broken(folder) == 5
    for index in (4, 5):
        put(folder, "events", *events[index])
    assert first_broken(folder) is None


@pytest.mark.parametrize(
    "value", [b"", b"short", b"\0" * 16, b"\0" * 16 + b"\xc1", b"\0" * 40], ids=ascii
)
def test_a_damaged_event_is_named(
    logged: tuple[Path, list[tuple[bytes, bytes]]], value: bytes
) -> None:
    """Run and number, in one sentence."""
    folder, events = logged
    put(folder, "events", events[2][0], value)
    try:
        with Store.open(folder, readonly=True) as store:
            run = store.runs.get("r")
            with pytest.raises(LogCorrupt, match="run 2, event 3: "):
                store.events.read(run)
            assert len(store.events.read(run, 0, 2)) == 2
            assert len(store.events.read(run, 3)) == 9
            assert store.events.find_broken_link(run) == 3
    finally:
        put(folder, "events", *events[2])


@pytest.mark.parametrize(
    "value", [b"", b"\0", b"\1garbage", b"\2", b"\0" + b"\x93\1\2\3"], ids=ascii
)
async def test_a_damaged_exchange_is_named(store_dir: Path, value: bytes) -> None:
    """The others are still read."""
    with Store.open(store_dir) as store:
        run = await open_run(store)
        for seq in (1, 2):
            await store.exchanges.save(run.number, partial(make_record, make_exchange(seq)))
    put(store_dir, "exchanges", struct.pack(">QQ", 1, 2), value)
    with Store.open(store_dir, readonly=True) as store:
        assert store.exchanges.find(run, 1) == make_exchange(1)
        with pytest.raises(LogCorrupt, match="run r, exchange 2: "):
            store.exchanges.find(run, 2)


async def test_a_damaged_row_of_a_run_is_named(store_dir: Path) -> None:
    """And does not keep a writer from opening the store."""
    with Store.open(store_dir) as store:
        for name in ("a", "b"):
            await open_run(store, name)
    put(store_dir, "runs", number_key(2), b"\x81\xa2id\xc0")
    with Store.open(store_dir) as store:
        assert store.runs.get("a").number == 1
        with pytest.raises(LogCorrupt, match="run 2: "):
            store.runs.all()
        with pytest.raises(LogCorrupt, match="run 2: "):
            store.runs.get("b")


# ---- opening -----------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("readonly", [False, True], ids=["writer", "reader"])


def refusal(path: Path, readonly: bool) -> StoreError:
    """What `Store.open` says: one sentence that names the place, and a hint."""
    with pytest.raises(StoreError) as caught:
        Store.open(path, readonly=readonly)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value


@BOTH
def test_a_newer_store_is_refused(store_dir: Path, readonly: bool) -> None:
    """Its path, both versions, what to do; and not a byte of it is changed."""
    Store.open(store_dir).close()
    put(store_dir, "meta", b"format", b"%d" % (FORMAT + 1))
    before = (store_dir / "log.lmdb" / "data.mdb").read_bytes()
    error = refusal(store_dir, readonly)
    assert isinstance(error, StoreTooNew)
    assert f"has format {FORMAT + 1}; this version reads up to {FORMAT}" in str(error)
    assert "newer Playhead" in error.hint
    assert (store_dir / "log.lmdb" / "data.mdb").read_bytes() == before


@BOTH
def test_a_store_of_an_earlier_format_is_refused(store_dir: Path, readonly: bool) -> None:
    """Both versions, what to do; and not a byte of it is changed."""
    Store.open(store_dir).close()
    put(store_dir, "meta", b"format", b"1")
    before = (store_dir / "log.lmdb" / "data.mdb").read_bytes()
    error = refusal(store_dir, readonly)
    assert f"has format 1; this version reads {FORMAT}" in str(error)
    assert "no released version wrote that" in error.hint
    assert (store_dir / "log.lmdb" / "data.mdb").read_bytes() == before


@BOTH
@pytest.mark.parametrize(
    "content",
    [b"x", b"garbage " * 2000, b"\0" * 100_000, bytes(range(256)) * 64, b"SQLite format 3\0" * 1024],
    ids=["a byte", "text", "zeros", "bytes", "sqlite"],
)  # fmt: skip
def test_a_file_that_is_no_store_is_refused(
    store_dir: Path, readonly: bool, content: bytes
) -> None:
    """And left as it is."""
    file = store_dir / "log.lmdb" / "data.mdb"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert "is not a store" in str(refusal(store_dir, readonly))
    assert file.read_bytes() == content


@BOTH
async def test_a_store_that_was_cut_short_is_refused(store_dir: Path, readonly: bool) -> None:
    """Touching a page that is not there would end the process by a signal."""
    with Store.open(store_dir) as store:
        run = await open_run(store)
        for seq in range(1, 40):
            exchange = make_exchange(seq, response=make_response(os.urandom(20_000)))
            await store.exchanges.save(run.number, partial(make_record, exchange))
    file = store_dir / "log.lmdb" / "data.mdb"
    for size in (file.stat().st_size // 3, 3 * 4096, 2 * 4096, 4096, 10):
        os.truncate(file, size)
        assert "cut short" in str(refusal(store_dir, readonly)) or size <= 4096


@BOTH
def test_somebody_elses_database_is_left_alone(store_dir: Path, readonly: bool) -> None:
    """No table of ours is made in it."""
    (store_dir / "log.lmdb").mkdir(parents=True)
    with raw(store_dir) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"theirs", b"1")
    assert "not a store of Playhead" in str(refusal(store_dir, readonly))
    with raw(store_dir) as environment, environment.begin() as transaction:
        assert [bytes(key) for key, _ in transaction.cursor()] == [b"theirs"]


@BOTH
def test_a_format_that_is_no_number_is_refused(store_dir: Path, readonly: bool) -> None:
    """In a sentence."""
    Store.open(store_dir).close()
    put(store_dir, "meta", b"format", b"one")
    with pytest.raises(StoreError, match="no format version"):
        Store.open(store_dir, readonly=readonly)


def test_a_reader_makes_nothing(store_dir: Path) -> None:
    """Where there is no store, an empty file, or a file in place of a folder."""
    assert "no store" in str(refusal(store_dir, True))
    assert not store_dir.exists()
    (store_dir / "log.lmdb").mkdir(parents=True)
    (store_dir / "log.lmdb" / "data.mdb").touch()
    assert "no store" in str(refusal(store_dir, True))
    file = store_dir / "a file"
    file.touch()
    assert "no store" in str(refusal(file, True))


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """For a writer too."""
    file = tmp_path / "a file"
    file.touch()
    assert isinstance(refusal(file, False), StoreUnwritable)


@BOTH
async def test_the_same_store_twice_in_one_process_is_refused(
    store_dir: Path, readonly: bool
) -> None:
    """It would end every lock of the first; the first one works on."""
    with Store.open(store_dir) as store:
        run = await open_run(store)
        error = refusal(store_dir, readonly)
        assert "already open in this process" in str(error)
        assert "use that one" in error.hint
        await store.events.append_durably(run.number, Event(EventKind.NOTED, 1, {}))
    Store.open(store_dir, readonly=readonly).close()


async def test_reading_a_closed_store_is_told_in_a_sentence(store_dir: Path) -> None:
    """What LMDB says never comes out as it is."""
    store = Store.open(store_dir)
    run = await open_run(store)
    store.close()
    for read in (
        store.runs.all,
        store.runs.find_latest,
        lambda: store.runs.find("r"),
        lambda: store.runs.reload(run),
        lambda: store.events.read(run),
        lambda: store.events.find_broken_link(run),
        lambda: store.exchanges.find(run, 1),
        lambda: store.exchanges.seqs(run),
        lambda: store.index.find_fingerprint(run, b"x" * 16),
        lambda: store.index.next_use(run, Fingerprint(b"x" * 16), 0),
        lambda: store.alpn.find(run, "h", 1, ()),
        lambda: store.owner_requests.was_asked(run, "seal"),
    ):
        with pytest.raises(StoreError, match="cannot be read") as caught:
            read()
        assert caught.value.hint


# ---- permissions -------------------------------------------------------------------------------


async def test_a_read_only_folder_is_read_and_not_written(caplog: pytest.LogCaptureFixture) -> None:
    """With and without a lock file; a writer gets a sentence."""
    with own_folder() as folder, unprivileged():
        path = folder / "store"
        with Store.open(path) as store:
            run = await open_run(store)
            await store.exchanges.save(run.number, lambda: make_record(make_exchange()))
        log = path / "log.lmdb"
        for file in log.iterdir():
            file.chmod(0o400)
        log.chmod(0o500)
        assert isinstance(refusal(path, False), StoreUnwritable)
        for _ in range(2):
            with Store.open(path, readonly=True) as store:
                assert store.exchanges.find(store.runs.get("r"), 1) == make_exchange()
            log.chmod(0o700)
            (log / "lock.mdb").unlink(missing_ok=True)
            log.chmod(0o500)
        assert [file.name for file in log.iterdir()] == ["data.mdb"]
        log.chmod(0o000)
        refusal(path, True)
        refusal(path, False)


def test_a_store_cannot_be_made_where_nothing_may_be_written() -> None:
    """A sentence, and nothing is left behind."""
    with own_folder() as folder, unprivileged():
        folder.chmod(0o500)
        assert isinstance(refusal(folder / "store", False), StoreUnwritable)
        assert list(folder.iterdir()) == []


def test_a_reader_holds_its_place_where_it_can(store_dir: Path) -> None:
    """A copy without a lock file may get a writer any time: pages in use must be known to it."""
    Store.open(store_dir).close()
    (store_dir / "log.lmdb" / "lock.mdb").unlink()
    with Store.open(store_dir, readonly=True) as store:
        assert store._database.environment.flags()["lock"]
        assert (store_dir / "log.lmdb" / "lock.mdb").exists()


def test_a_full_disk_at_the_start_is_told_in_a_sentence(store_dir: Path) -> None:
    """Not even the tables fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        error = refusal(store_dir, False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(error, StoreUnwritable)
    Store.open(store_dir).close()
