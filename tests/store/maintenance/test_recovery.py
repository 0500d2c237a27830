"""Several processes and one store, and what is left of a process that was killed."""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import lmdb
import psutil
import pytest

from playhead.config import Config, Retention
from playhead.proxy.cli import main
from playhead.proxy.operations.retention import collect
from playhead.store import Owner, RunInfo, RunStatus, Store
from playhead.store.lmdb.process_liveness import create_liveness_file
from playhead.store.lmdb_keys import pair_key
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support import prepared, store_child
from playhead.tests.support.counts import FULL
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.needs import need
from playhead.tests.support.process import read_json, wait_until
from playhead.tests.support.store_child import nth

KILLS = 100 if FULL else 5
PROCESSES, RUNS, EXCHANGES = 8 if FULL else 4, 5, 20


class Child:
    """A process that writes; it begins when told to."""

    def __init__(self, *arguments: object, inside: tuple[str, ...] = ()) -> None:
        command = [sys.executable, "-m", store_child.__name__, *map(str, arguments)]
        imports = () if inside else ("playhead.store", "playhead.tests.support.exchanges")
        self.process: subprocess.Popen[bytes] = prepared.start(
            [*inside, *command], imports=imports, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.lines: list[str] = []
        """What it was told is durable."""

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), "the process ended"
        self.lines.append(line.decode().strip())
        return self.lines[-1]

    def kill(self) -> None:
        """End it as a power switch would, and read what it had still said."""
        self.process.send_signal(signal.SIGKILL)
        rest, _ = self.process.communicate(timeout=20)
        assert rest.endswith(b"\n") or not rest
        self.lines += rest.decode().splitlines()

    def told(self, what: str) -> set[int]:
        return {int(line.split()[1]) for line in self.lines if line.startswith(what + " ")}

    @property
    def run(self) -> str:
        return self.lines[0].removeprefix("open ")


@contextlib.contextmanager
def children(
    *all_arguments: tuple[object, ...], inside: tuple[str, ...] = ()
) -> Iterator[list[Child]]:
    """Start processes at once; none is left behind.

    inside: the command that they are started with.
    """
    started = [Child(*arguments, inside=inside) for arguments in all_arguments]
    try:
        yield started
    finally:
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                child.process.kill()
            with contextlib.suppress(ValueError):
                child.process.communicate(timeout=20)


def check_recovered(store: Store, child: Child) -> list[int]:
    """Nothing that was acknowledged is lost or torn; give the seqs that are unknown."""
    info = store.runs.get(child.run)
    events = store.events.read(info)
    intents = {event.seq for event in events if event.kind is EventKind.INTENT}
    outcomes = [event.seq for event in events if event.kind is EventKind.OUTCOME]
    assert child.told("intent") <= intents
    assert child.told("outcome") <= set(outcomes) <= set(store.exchanges.seqs(info))
    assert len(outcomes) == len(set(outcomes))
    for exchange in store.exchanges.all(info):
        assert exchange == nth(info.id, exchange.seq)
    assert store.events.find_broken_link(info) is None
    assert info.status is RunStatus.RECOVERED
    assert info.end == "its process died"
    assert info.exchanges == max(store.exchanges.seqs(info), default=0)
    last = events[-1]
    assert last.kind is EventKind.RECOVERED
    assert [event.kind for event in events].count(EventKind.RECOVERED) == 1
    assert list(last.data["unknown"]) == sorted(intents - set(outcomes))
    return sorted(intents - set(outcomes))


@pytest.mark.timeout(120 + 3 * KILLS)
def test_a_killed_process_loses_nothing_that_was_acknowledged(store_dir: Path) -> None:
    """kill -9 anywhere; the run is recovered at the next opening, what was in flight is unknown."""
    random_points = random.Random(20)
    unknown = 0
    for start in range(0, KILLS, 10):
        count = min(10, KILLS - start)
        with children(*[("endless", store_dir, "r")] * count) as started:
            for child in started:
                child.begin()
                for _ in range(random_points.randrange(1, 120)):
                    child.read()
                child.kill()
                with Store.open(store_dir) as store:
                    unknown += len(check_recovered(store, child))
    assert unknown > 0, "no process was killed with something in flight"
    with Store.open(store_dir) as store:
        runs = store.runs.all()
        assert [run.id for run in runs] == ["r", *(f"r~{n}" for n in range(2, KILLS + 1))]
        assert {run.status for run in runs} == {RunStatus.RECOVERED}


def test_readers_see_what_is_committed_while_a_process_writes(store_dir: Path) -> None:
    """Every acknowledged exchange at once; and after a kill the run is shown for what it is."""
    with children(("endless", store_dir, "r")) as (child,):
        child.begin()
        assert child.read() == "open r"
        with Store.open(store_dir, readonly=True) as reader:
            info = reader.runs.get("r")
            assert info.status is RunStatus.OPEN
            assert reader.runs.owner_alive(info)
            for _ in range(150):
                what, seq = child.read().split()
                if what == "outcome":
                    assert reader.exchanges.find(info, int(seq)) == nth("r", int(seq))
            assert reader.runs.find_latest() is None
            assert reader.events.find_broken_link(info) is None
            assert reader.runs.reload(info).exchanges >= max(child.told("outcome"))
            child.kill()
            assert not reader.runs.owner_alive(info)
            assert reader.runs.reload(info).status is RunStatus.RECOVERED
            assert [run.status for run in reader.runs.all()] == [RunStatus.RECOVERED]
            # Shown, and not written: a reader writes nothing.
            assert all(event.kind is not EventKind.RECOVERED for event in reader.events.read(info))
        # Each command that reads says so too, and none of them falls over an unfinished log.
        listed = read_json("runs", "--store", store_dir)
        assert [run["status"] for run in listed] == ["recovered"]
        assert read_json("receipt", "r", "--store", store_dir)["status"] == "recovered"
        with Store.open(store_dir) as store:
            check_recovered(store, child)


def test_many_processes_write_one_store_at_once(store_dir: Path) -> None:
    """No run and no exchange is lost, no number and no name is given twice."""
    arguments = ("runs", store_dir, "run", RUNS, EXCHANGES)
    with children(*[arguments] * PROCESSES) as started:
        for child in started:
            child.begin()
        outputs = [child.process.communicate(timeout=60)[0].decode().split() for child in started]
        assert [child.process.returncode for child in started] == [0] * PROCESSES
    names = list(itertools.chain.from_iterable(outputs))
    assert len(names) == PROCESSES * RUNS
    with Store.open(store_dir) as store:
        runs = store.runs.all()
        assert sorted(run.id for run in runs) == sorted(names)
        assert set(names) == {"run", *(f"run~{n}" for n in range(2, PROCESSES * RUNS + 1))}
        assert [run.number for run in runs] == list(range(1, PROCESSES * RUNS + 1))
        for info in runs:
            assert info.status is RunStatus.SEALED
            assert list(store.exchanges.all(info)) == [
                nth(info.id, seq) for seq in range(1, EXCHANGES + 1)
            ]
            assert len(store.events.read(info)) == 2 + 2 * EXCHANGES
            assert store.events.find_broken_link(info) is None


async def write_old(store: Store) -> None:
    """A run that ended long ago."""
    run = await store.runs.create("old", mode="record", at_ns=1)
    for seq in range(1, 11):
        await store.exchanges.save(run.number, partial(make_record, nth("old", seq)))
    await store.runs.seal(run, reason="test", at_ns=2)


@pytest.mark.timeout(120)
def test_runs_are_deleted_while_many_processes_write(store_dir: Path) -> None:
    """A `gc` loop beside writers: what is old goes, nothing that is written is lost or there twice."""
    config = Config(store=store_dir, retention=Retention(keep_s=3600.0))
    arguments = ("runs", store_dir, "run", RUNS, EXCHANGES)
    deleted = 0
    with children(*[arguments] * PROCESSES) as started:
        for child in started:
            child.begin()
        rounds = 0
        while rounds < 3 or any(child.process.poll() is None for child in started):
            with Store.open(store_dir) as store:
                asyncio.run(write_old(store))
            found = collect(config, dry_run=False)
            deleted += sum(one.goes for one in found.sentences)
            rounds += 1
        outputs = [child.process.communicate(timeout=60)[0].decode().split() for child in started]
        assert [child.process.returncode for child in started] == [0] * PROCESSES
    names = list(itertools.chain.from_iterable(outputs))
    assert len(set(names)) == len(names) == PROCESSES * RUNS
    assert deleted == rounds
    with Store.open(store_dir) as store:
        runs = store.runs.all()
        assert sorted(run.id for run in runs) == sorted(names)
        assert len({run.number for run in runs}) == len(runs)
        for info in runs:
            assert info.status is RunStatus.SEALED
            assert list(store.exchanges.all(info)) == [
                nth(info.id, seq) for seq in range(1, EXCHANGES + 1)
            ]
            assert store.events.find_broken_link(info) is None


# ---- runs of a process that is not there any more ----------------------------------------------


@pytest.fixture(scope="module")
def nobody() -> Owner:
    """A process that has died."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    started = psutil.Process(gone.pid).create_time()
    gone.wait()
    return Owner(gone.pid, started)


@contextlib.contextmanager
def opened_by(owner: Owner, store_dir: Path) -> Iterator[Store]:
    """A store whose runs belong to another process."""
    with Store.open(store_dir) as store:
        store.runs.owner = owner
        yield store


async def write_run(store: Store, name: str) -> RunInfo:
    """Two exchanges with an outcome, a read and an effect without, one with what had passed."""
    run = await store.runs.create(name, mode="record", at_ns=1)
    for seq in (1, 2, 3, 4, 5):
        store.events.append(run.number, make_intent(make_exchange(seq)))
    for seq in (4, 1):
        await store.exchanges.save(run.number, partial(make_record, make_exchange(seq)))
    await store.exchanges.save(run.number, lambda: make_record(make_exchange(5), final=False))
    return run


async def test_what_was_in_flight_is_unknown(store_dir: Path, nobody: Owner) -> None:
    """Never `not sent`: in order, with a reason, also where something had passed already."""
    with opened_by(nobody, store_dir) as store:
        await write_run(store, "r")
    with Store.open(store_dir) as store:
        info = store.runs.get("r")
        assert (info.status, info.exchanges, info.end) == (
            RunStatus.RECOVERED,
            5,
            "its process died",
        )
        last = store.events.read(info)[-1]
        assert last.data == {"reason": "its process died", "exchanges": 5, "unknown": (2, 3, 5)}
        assert store.runs.find_latest() == info
        before = store.events.read(info)
    with Store.open(store_dir) as store:
        assert store.events.read(info) == before, "recovering twice is recovering once"
        assert (await store.runs.seal(info, reason="late", at_ns=9)).status is RunStatus.RECOVERED
        assert store.events.read(info) == before


async def test_runs_of_living_processes_are_left_alone(store_dir: Path, nobody: Owner) -> None:
    """Only what nobody writes any more is closed."""
    with opened_by(nobody, store_dir) as store:
        await write_run(store, "dead")
    alive = create_liveness_file(store_dir)
    # Its process id means nothing here, as that of a process in another container.
    with opened_by(replace(nobody, file=alive.name), store_dir) as store:
        await write_run(store, "mine")
    with Store.open(store_dir) as store:
        statuses = {run.id: run.status for run in store.runs.all()}
        assert statuses == {"dead": RunStatus.RECOVERED, "mine": RunStatus.OPEN}
        await store.exchanges.save(2, lambda: make_record(make_exchange(6)))
        assert store.events.find_broken_link(store.runs.get("mine")) is None
    alive.close()
    with Store.open(store_dir) as store:
        assert store.runs.get("mine").status is RunStatus.RECOVERED


def test_a_process_in_another_container_is_seen_to_be_there(store_dir: Path) -> None:
    """It has process ids of its own; its run is not taken for dead while it is written, and is once it has died."""
    need("private process ids")
    inside = ("unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
    with children(("endless", store_dir, "r"), inside=inside) as (child,):
        child.begin()
        for _ in range(5):
            child.read()
        for _ in range(2):
            with Store.open(store_dir) as store:
                info = store.runs.get("r")
                assert info.owner is not None
                assert info.owner.pid < 10, "its id there"
                assert info.status is RunStatus.OPEN
                assert store.runs.owner_alive(info)
            child.read()
        child.kill()
        # The process inside may outlive the one that was killed by a moment.
        with Store.open(store_dir, readonly=True) as store:
            wait_until(lambda: not store.runs.owner_alive(info))
        with Store.open(store_dir) as store:
            check_recovered(store, child)


async def test_a_store_of_an_earlier_version_keeps_its_owners(store_dir: Path) -> None:
    """A run whose row names no file is judged by process id and start time, as it was then."""
    me = Owner(os.getpid(), psutil.Process().create_time())
    with opened_by(me, store_dir) as store:
        await write_run(store, "r")
    with Store.open(store_dir) as store:
        assert store.runs.get("r").status is RunStatus.OPEN


def test_liveness_files_of_dead_processes_are_removed(store_dir: Path) -> None:
    """A kill leaves one; the next opening removes it, and none of the living."""
    folder = store_dir / "owners"
    with children(("endless", store_dir, "r")) as (child,):
        child.begin()
        child.read()
        (living,) = folder.iterdir()
        with Store.open(store_dir):
            assert living in folder.iterdir()
            assert len(list(folder.iterdir())) == 2
        assert list(folder.iterdir()) == [living]
        child.kill()
    with Store.open(store_dir) as store:
        assert [file.name for file in folder.iterdir()] == [store._database.owner_file]


async def test_a_damaged_log_does_not_keep_the_store_from_opening(
    store_dir: Path, nobody: Owner
) -> None:
    """The run is closed all the same, and says where reading ended."""
    with opened_by(nobody, store_dir) as store:
        await write_run(store, "bad")
        await write_run(store, "good")
    with lmdb.open(str(store_dir / "log.lmdb"), max_dbs=20) as environment:
        events = environment.open_db(b"events", create=False)
        with environment.begin(write=True, db=events) as transaction:
            transaction.put(pair_key(1, 4), b"\0" * 16 + b"garbage")
    with Store.open(store_dir) as store:
        bad, good = store.runs.all()
        assert bad.status is good.status is RunStatus.RECOVERED
        assert "event 4" in bad.end
        assert store.events.read(bad, after=4)[-1].data["unknown"] == (1, 2)
        assert store.events.read(good)[-1].data["unknown"] == (2, 3, 5)


async def test_a_process_that_was_taken_for_dead_loses_nothing(store_dir: Path) -> None:
    """Another process ended its run (as one in another container may): what both wrote stands in the chain."""
    with Store.open(store_dir) as store:
        info = await write_run(store, "r")
        told = Event(EventKind.RECOVERED, 2, {"reason": "its process died", "unknown": ()})
        number = len(store.events.read(info)) + 1

        def from_elsewhere(transaction: lmdb.Transaction) -> None:
            known = store.events._chains.pop(info.number)
            store.events.put(transaction, info.number, told)
            store.events._chains[info.number] = known

        store.writer.call(from_elsewhere)
        await store.exchanges.save(info.number, lambda: make_record(make_exchange(2)))
        store.events.append(info.number, Event(EventKind.NOTED, 3, {"text": "still here"}))
        await store.exchanges.save(info.number, lambda: make_record(make_exchange(3)))
        events = store.events.read(info)[number - 1 :]
        kinds = [event.kind.value for event in events]
        assert kinds == ["recovered", "outcome", "noted", "outcome"]
        assert [event.number for event in events] == list(range(number, number + 4))
        assert store.events.find_broken_link(info) is None


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("runs",), 2),
        (("show", "r", "1"), 2),
        (("receipt", "r"), 2),
        (("seal", "r"), 2),
        (("serve", "--listen", "127.0.0.1:0"), 2),
        (("record", "--", "true"), 2),
        (("replay", "--no-sandbox", "r", "--", "true"), 125),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_store_that_is_none_is_a_sentence_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], code: int
) -> None:
    """Never a traceback, whatever the command; a replay says 125."""
    (tmp_path / "log.lmdb").mkdir()
    (tmp_path / "log.lmdb" / "data.mdb").write_bytes(b"garbage " * 2000)
    with pytest.raises(SystemExit) as caught:
        main([command[0], "--store", str(tmp_path), *command[1:]])
    assert caught.value.code == code
    told = capsys.readouterr().err
    assert "is not a store" in told
    assert "hint: " in told
    assert "Traceback" not in told
