"""Runs in an archive: moved there and back byte for byte, by many at once, and never half."""

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from mitmproxy.connection import Client, ConnectionState

import playhead
from playhead import PlayheadError
from playhead.addons.run.registry import RunRegistry
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.proxy.cli import cli
from playhead.proxy.operations.find_tape import redactor_of
from playhead.proxy.operations.restore_archived import open_place, restore_run
from playhead.proxy.operations.verify import verify_runs
from playhead.store import RunInfo, RunOpen, Store, find_key
from playhead.store.lmdb.database import Database
from playhead.store.lmdb.writer import Writer
from playhead.store.lmdb_keys import pair_key
from playhead.store.maintenance.removal import Removal
from playhead.store.maintenance.upgrade import upgrade
from playhead.tape.exchange import (
    Close,
    Exchange,
    Message,
    MessageKind,
    RedactedText,
    WebSocketSummary,
)
from playhead.tape.records.codec import encode_rest
from playhead.tests.support import old_archive as old_archive_maker
from playhead.tests.support import prepared
from playhead.tests.support.engine import NOBODY
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.stored import all_of, record_all
from playhead.timeline.formats.tape_file import import_tape
from playhead.timeline.formats.upgrade_file import upgrade_file

FULL = bool(os.environ.get("PLAYHEAD_FULL"))


def run(
    store: Path,
    *arguments: str,
    archive: str = "../attic",
    hot: str = "0s",
    keep: str = "30d",
) -> Result:
    """Run a command, with a configuration that archives."""
    config = store.parent / f"{store.name}.yaml"
    config.write_text(
        f"store: {store}\nretention: {{hot: {hot}, archive: '{archive}', keep: {keep}}}\n"
    )
    return CliRunner().invoke(cli, [*arguments, "-c", str(config)], standalone_mode=False)


def done(store: Path, *arguments: str, code: int = 0, **options: str) -> str:
    """Run a command that works; give what it says."""
    made = run(store, *arguments, **options)
    assert (made.exception, made.return_value or 0) == (None, code), made.output
    return made.stdout


def refused(store: Path, *arguments: str, **options: str) -> str:
    """Run a command that fails; give what a person is told."""
    made = run(store, *arguments, **options)
    assert isinstance(made.exception, PlayheadError), made.output
    return str(made.exception)


def make(path: Path, *names: str) -> Path:
    """Make a store with runs of every sort of row."""
    path.parent.mkdir(exist_ok=True)
    with Store.open(path) as store:
        for name in names:
            asyncio.run(record_all(store, name))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two runs."""
    return make(tmp_path / "here" / "s", "night", "day")


def attic(store: Path) -> Path:
    """The folder of its archive."""
    return store.parent.parent / "attic"


def seal_anew(store: Path) -> None:
    """Seal the only batch of its archive, as a person can who writes there."""
    import pyarrow.parquet as pq

    from playhead.store.archive.seal import sum_file
    from playhead.store.archive.writing import rewrite_steps

    (index,) = (attic(store) / "steps").iterdir()
    sums = {}
    for file in attic(store).glob("*/*.parquet"):
        if file.parent.name != "steps":
            with file.open("rb") as opened:
                sums[file.parent.name] = sum_file(opened)
    with pq.ParquetFile(index) as opened:
        sealed = rewrite_steps(opened, sums)
    index.write_bytes(sealed)


def refused_to_verify(store: Path, *names: str) -> str:
    """Verify what is damaged; give what is said of it."""
    return done(store, "verify", *names, code=1)


def files(store: Path) -> list[str]:
    """All that the archive holds."""
    return sorted(
        str(one.relative_to(attic(store))) for one in attic(store).rglob("*") if one.is_file()
    )


def everything(store: Path, name: str) -> tuple[object, ...]:
    """All that the store holds of a run, but where it lies."""
    with Store.open(store, readonly=True) as opened:
        info, *rest = all_of(opened, name)
        return (info.id, info.status, info.exchanges, info.sealed_ns, info.rules, *rest)


def test_a_run_comes_back_as_it_was(store: Path) -> None:
    """Bytes, events, messages, large bodies, the index; what is asked of it does not need to know."""
    before = {name: everything(store, name) for name in ("night", "day")}
    shown = done(store, "show", "night", "4")
    told = done(store, "archive")
    assert "archived: night: ended" in told
    assert "2 archived, 0 stay" in told
    with Store.open(store, readonly=True) as opened:
        assert [one.is_only_in_archive for one in opened.runs.all()] == [True, True]
        assert opened.exchanges.seqs(opened.runs.get("night")) == []
    assert "archived" in done(store, "runs")
    assert done(store, "show", "night", "4") == shown
    for command in (("receipt", "night"), ("effects", "night"), ("verify", "night")):
        done(store, *command)
    done(store, "receipt", "day")
    assert json.loads(done(store, "verify", "day", "--json"))[0]["problems"] == []
    assert {name: everything(store, name) for name in ("night", "day")} == before
    assert (
        done(store, "archive")
        == "0 archived, 2 stay\n  night: it is archived\n  day: it is archived\n"
    )


OLD = Path(__file__).with_name("archive-of-pieces.tar.gz")


def old_archive(folder: Path) -> Path:
    """Unpack the archive of `support.old_archive` and its store, which is told where the archive is now."""
    with tarfile.open(OLD) as tar:
        tar.extractall(folder, filter="data")
    upgrade(folder / "store", None, backup=False)
    with Store.open(folder / "store") as store:
        for info in store.runs.all():
            assert info.archived is not None
            moved = replace(info, archived=replace(info.archived, place=str(folder / "archive")))
            store.writer.call(lambda txn, moved=moved: store.runs.put(txn, moved))  # type: ignore[misc]  # bound
    for index in (folder / "archive" / "steps").iterdir():
        upgrade_file(index)
    return folder / "store"


@pytest.mark.parametrize("name", old_archive_maker.NAMES)
def test_a_run_comes_back_from_an_archive_that_could_not_be_read(tmp_path: Path, name: str) -> None:
    """An earlier version refused what it had written of streams and frames; all of it is there."""
    store = old_archive(tmp_path)
    done(store, "verify", name)
    done(store, "receipt", name)
    with Store.open(store, readonly=True) as opened, Store.open(tmp_path / "other") as other:
        (exported,) = import_tape(
            other, lambda: [(tmp_path / f"{name}.tape").read_bytes()], 1 << 20, lambda *_: None
        )
        run = opened.runs.get(name)
        exchanges = list(opened.exchanges.all(run))
        assert exchanges == list(other.exchanges.all(exported))
        assert list(opened.events.raw(run)) == list(other.events.raw(exported))
        assert list(opened.messages.all(run, 1)) == list(other.messages.all(exported, 1))
    (one,) = exchanges
    assert one.response is not None
    pieces = [piece.size for piece in one.response.chunks]
    assert pieces == {"stream": [11, 11, 14]}.get(name, [])


def test_what_is_archived_is_chosen(tmp_path: Path) -> None:
    """By age; not what is pinned, unless it is named."""
    path = make(tmp_path / "here" / "s", "one", "two", "three")
    done(path, "pin", "two")
    assert "0 archived, 3 stay" in done(path, "archive", hot="36500d")
    told = json.loads(done(path, "archive", "--dry-run", "--json"))
    assert [(one["run"], one["goes"]) for one in told["runs"]] == [
        ("one", True),
        ("two", False),
        ("three", True),
    ]
    assert told["archived"] is False
    assert files(path) == []
    assert "1 archived" in done(path, "archive", "two", hot="36500d")
    with Store.open(path, readonly=True) as opened:
        assert [one.id for one in opened.runs.all() if one.is_only_in_archive] == ["two"]


def test_a_run_that_is_open_is_not_archived(store: Path) -> None:
    """Not by age, and not by name."""
    with opened_run(store):
        assert "open: it has not ended" in done(store, "archive", "--dry-run")
        made = run(store, "archive", "open")
    assert isinstance(made.exception, RunOpen)


@contextmanager
def opened_run(store: Path) -> Iterator[None]:
    """Have another process hold a run open."""
    told = (
        "import asyncio, sys; from pathlib import Path; from playhead.store import Store\n"
        "store = Store.open(Path(sys.argv[1]))\n"
        "async def begin(): await store.runs.create('open', mode='record', at_ns=1)\n"
        "asyncio.run(begin()); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", told, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield
        process.communicate(b"\n", timeout=20)


def test_a_run_is_erased_from_the_archive(store: Path) -> None:
    """With its bytes, in a file of its own or in one that it shares; the others are what they were."""
    with Store.open(store) as opened:
        asyncio.run(_record_marked(opened))
    before = everything(store, "night")
    done(store, "archive")
    assert b"said-only-here" in _unpacked(store)
    assert done(store, "erase", "marked", "--yes") == "erased: marked\n"
    assert b"said-only-here" not in _unpacked(store)
    assert len({Path(one).name for one in files(store)}) == 1
    assert {row["run"] for row in _rows(store, "steps")} == {"day", "night"}
    done(store, "show", "night")
    assert everything(store, "night") == before
    for name in ("night", "day"):
        done(store, "erase", name, "--yes")
    assert files(store) == []


def test_nothing_is_erased_while_the_archive_is_out_of_reach(store: Path) -> None:
    """Neither what is there nor what is here; nobody is told that it was."""
    done(store, "archive", "night", "day")
    done(store, "show", "night")  # it is in the store, too
    before = everything(store, "night")
    attic(store).rename(attic(store).with_name("elsewhere"))
    told = refused(store, "erase", "night", "--yes")
    assert "nothing of run 'night' was erased, since a part of it is archived" in told
    assert everything(store, "night") == before
    attic(store).with_name("elsewhere").rename(attic(store))
    with Store.open(store, readonly=True) as opened:
        assert not opened.removal.erasing
    done(store, "erase", "night", "--yes")
    assert {row["run"] for row in _rows(store, "steps")} == {"day"}


def test_a_copy_of_a_store_takes_nothing_from_the_archive(store: Path) -> None:
    """The first one's runs lie there, too; a copy that takes the archive over says so."""
    done(store, "archive")
    copy = store.parent / "copy"
    shutil.copytree(store, copy)
    before = files(store)
    assert f"is a copy of {store}" in refused(copy, "erase", "night", "--yes")
    assert files(store) == before
    assert "night" in done(copy, "runs")
    done(copy, "show", "night")
    assert "seq 1" in done(store, "show", "day", "1", "--raw")
    done(copy, "archive", "--adopt")
    done(copy, "erase", "night", "--yes")
    assert files(store) != before


def test_a_store_that_was_moved_has_its_archive(store: Path) -> None:
    """On its disk it is the same folder; where it is put back from a backup it has the same path."""
    done(store, "archive")
    moved = store.rename(store.parent / "moved")
    done(moved, "erase", "night", "--yes")
    shutil.copytree(moved, store)
    shutil.rmtree(moved)
    done(store, "erase", "day", "--yes")
    assert files(store) == []


async def _record_marked(store: Store) -> None:
    info = await store.runs.create("marked", mode="record", at_ns=1)
    exchange = make_exchange(1, body=b"said-only-here")
    store.events.append(info.number, make_intent(exchange))
    await store.exchanges.save(info.number, lambda: make_record(exchange))
    await store.runs.seal(info, reason="done", at_ns=2)


def _rows(store: Path, folder: str) -> list[dict[str, object]]:
    import polars  # here: every process that runs tests collects this file

    rows = polars.read_parquet(attic(store) / folder / "*.parquet").to_dicts()
    return list(rows)


def _unpacked(store: Path) -> bytes:
    rows = _rows(store, "exchanges")
    return b"".join(row["request_body"] + row["record"] for row in rows)  # type: ignore[operator]


def test_gc_deletes_archived_runs_and_drops_copies(store: Path) -> None:
    """By `keep` from the archive, too; a copy that was written to is more than the archive holds, and stays."""
    done(store, "archive")
    for name in ("night", "day"):
        done(store, "show", name)
    done(store, "note", "day", "looked at it")
    done(store, "gc", keep="forever")
    with Store.open(store, readonly=True) as opened:
        assert {one.id: one.is_only_in_archive for one in opened.runs.all()} == {
            "night": True,
            "day": False,
        }
    for name in ("night", "day"):
        assert "sound" in done(store, "verify", name)
    assert "2 deleted" in done(store, "gc")
    assert files(store) == []
    with Store.open(store, readonly=True) as opened:
        assert opened.runs.all() == []


def test_what_is_archived_while_gc_looks_leaves_nothing_behind(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may do that between the sentence and the deletion: the next one takes it out of both."""
    from playhead.timeline.archiving.move_runs import archive_runs

    delete = Removal.delete

    def slow(removal: Removal, runs: Sequence[RunInfo]) -> int:
        opened = Store(removal._database)
        archive_runs(opened, open_place(str(attic(store))), runs, "elsewhere", time.time_ns)
        return delete(removal, runs)

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "delete", slow)
        assert "night: it was marked or archived" in done(store, "gc")
    assert len(files(store)) > 0
    assert "2 deleted" in done(store, "gc")
    assert files(store) == []


def test_a_run_that_an_import_would_refuse_stays(store: Path) -> None:
    """It is sound, and its WebSocket has a message more than its exchange says: an import would refuse it."""

    async def talk() -> None:
        with Store.open(store) as opened:
            info = await opened.runs.create("odd", mode="record", at_ns=7)
            exchange = make_exchange(
                1,
                response=make_response(b"", 101),
                websocket=WebSocketSummary(1, 5, Close(3, True, 1000, RedactedText(""))),
            )
            opened.events.append(info.number, make_intent(exchange))
            for number in range(2):
                said = Message(1, True, MessageKind.TEXT, b"hello")
                opened.messages.append(info.number, exchange.seq, number, said)
            await opened.exchanges.save(info.number, lambda: make_record(exchange))
            await opened.runs.seal(info, reason="done", at_ns=99)

    asyncio.run(talk())
    told = done(store, "archive", code=1)
    assert "odd: it would not come back: message 1 of exchange 1 where none belongs" in told
    assert "2 archived, 1 stay" in told
    assert "1 " in done(store, "show", "odd")


def test_a_copy_that_was_written_to_is_archived_anew(store: Path) -> None:
    """Once it was restored long enough ago, or by name; what the archive had of it goes."""
    done(store, "archive")
    for name in ("night", "day"):
        done(store, "show", name)
    done(store, "note", "day", "looked at it")
    before = everything(store, "day")
    told = done(store, "archive", hot="1h")
    assert "night: it is archived" in told
    assert re.search(r"day: written to since it was restored \d+s ago, retention.hot is 1h", told)
    assert "archived: day: written to since it was restored" in done(store, "archive")
    with Store.open(store, readonly=True) as opened:
        assert {one.id: one.is_only_in_archive for one in opened.runs.all()} == {
            "night": False,
            "day": True,
        }
    steps = [(row["run"], row["seq"]) for row in _rows(store, "steps")]
    assert sorted(steps) == [(name, seq) for name in ("day", "night") for seq in (1, 3, 4)]
    done(store, "verify", "day")
    done(store, "receipt", "day")
    assert everything(store, "day") == before
    done(store, "gc", keep="forever")
    done(store, "verify", "night")


def test_an_archived_step_is_held_against_its_log(store: Path) -> None:
    """It is shown without restoring its run, and not otherwise than it was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    done(store, "archive")
    (file,) = (attic(store) / "exchanges").iterdir()
    rows = pq.read_table(file)
    told = rows.schema.metadata
    forged = [body.replace(b"1", b"9") for body in rows["request_body"].to_pylist()]
    at = rows.schema.get_field_index("request_body")
    column = pa.array(forged, pa.binary())
    forged_rows = rows.set_column(at, rows.schema.field(at), column)
    pq.write_table(forged_rows.replace_schema_metadata(told), file)
    seal_anew(store)
    assert "exchange 3" not in refused_to_verify(store, "day")
    assert "first bad seq 3" in refused_to_verify(store, "night")
    assert "exchange 3 in" in refused(store, "show", "night", "3")
    assert "does not fit the hash in its log" in refused(store, "show", "night", "3")


def test_no_bit_of_an_archive_changes_unnoticed(store: Path) -> None:
    """Whichever file it is in, and wherever: `verify` says so of every run of the batch, and puts none back."""
    done(store, "archive")
    told = done(store, "verify")
    assert told.count("sound") == 2
    for file in sorted(attic(store).glob("*/*.parquet")):
        sound = file.read_bytes()
        step = max(1, len(sound) // 40)
        for at in {*range(0, len(sound), step), len(sound) - 1}:
            file.write_bytes(sound[:at] + bytes((sound[at] ^ 1 << at % 8,)) + sound[at + 1 :])
            assert [one.problems != () for one in verify_runs(Config(store=store), None)] == [
                True,
                True,
            ]
        file.write_bytes(sound)
    assert done(store, "verify") == told
    with Store.open(store, readonly=True) as opened:
        assert all(run.is_only_in_archive for run in opened.runs.all())


def test_a_file_of_an_archive_that_is_gone_is_damage(store: Path) -> None:
    """Each run in it is listed; those that the store has whole are sound."""
    done(store, "archive", "night")
    for file in attic(store).glob("events/*"):
        file.unlink()
    told = refused_to_verify(store)
    assert "night: bad" in told
    assert "day: sound" in told
    assert "missing; expected" in told


def test_a_copy_in_the_store_does_not_hide_a_damaged_archive(store: Path) -> None:
    """It goes with the next `gc`, and the archive is then all there is."""
    done(store, "archive", "night")
    done(store, "receipt", "night")
    (file,) = (attic(store) / "bodies").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    assert "have the hash" in refused_to_verify(store, "night")


def test_what_a_power_cut_must_not_undo_is_flushed_first(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That files are about to be written, and that those which are removed are not needed."""
    from playhead.store.archive.storage import Place

    seen: list[str] = []

    def noting(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            seen.append(what)
            return function(*arguments)

        return call

    monkeypatch.setattr(Database, "sync", noting("flush", Database.sync))
    monkeypatch.setattr(Writer, "call", noting("commit", Writer.call))
    monkeypatch.setattr(Place, "writing", noting("write", Place.writing))
    monkeypatch.setattr(Place, "remove", noting("remove", Place.remove))
    done(store, "archive")
    done(store, "erase", "day", "--yes")
    done(store, "show", "night", "4")
    before = [seen[at - 1] for at, what in enumerate(seen) if what in ("write", "remove")]
    assert {"flush", "write", "remove"} >= set(before)
    assert {"write", "remove"} <= set(seen)


def test_a_folder_that_is_made_outlasts_a_power_cut(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is flushed in the folder above it, up to the first that was there."""
    flushed = set()

    def flush(descriptor: int, flush: Callable[[int], None] = os.fsync) -> None:
        flushed.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", flush)
    done(store, "archive", archive="../new/attic")
    above = store.parent.parent
    assert {str(above), str(above / "new"), str(above / "new" / "attic")} <= flushed


def test_what_is_not_there_whole_is_not_taken_for_archived(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs stay; the next go begins anew."""
    from playhead.store.archive.writing import BatchWriter

    finish = BatchWriter.finish

    def lose(writer: BatchWriter) -> Any:
        made = finish(writer)
        (file,) = (attic(store) / "events").iterdir()
        file.write_bytes(file.read_bytes()[:-1])
        return made

    with monkeypatch.context() as patched:
        patched.setattr(BatchWriter, "finish", lose)
        assert "expected" in refused(store, "archive")
    with Store.open(store, readonly=True) as opened:
        assert not any(one.is_only_in_archive for one in opened.runs.all())
    assert "2 archived" in done(store, "archive")
    assert len({Path(one).name for one in files(store)}) == 1


def _other_reason(exchange: Exchange) -> bytes:
    """Pack an exchange as another one, as a faulty writer might."""
    return encode_rest(replace(exchange, reason="another") if exchange.seq == 3 else exchange)


def _nothing(exchange: Exchange) -> bytes:
    return b"nothing" if exchange.seq == 3 else encode_rest(exchange)


@pytest.mark.parametrize("fault", [_other_reason, _nothing])
def test_a_run_that_would_not_come_back_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Exchange], bytes]
) -> None:
    """All that is written is read back and compared; the other runs are moved without it."""
    from playhead.store.archive import writing

    path = make(tmp_path / "here" / "s", "night")
    with Store.open(path) as opened:
        record_run(opened, "day", [ask()])
    before = everything(path, "night")
    with monkeypatch.context() as patched:
        patched.setattr(writing, "encode_rest", fault)
        told = done(path, "archive", code=1)
    assert "not archived: night: " in told
    assert "archived: day" in told
    with Store.open(path, readonly=True) as opened:
        assert {one.id: one.is_only_in_archive for one in opened.runs.all()} == {
            "night": False,
            "day": True,
        }
    assert everything(path, "night") == before
    assert "1 archived" in done(path, "archive")
    steps = [(row["run"], row["seq"]) for row in _rows(path, "steps")]
    assert sorted(steps) == [("day", 1), ("night", 1), ("night", 3), ("night", 4)]


def test_gc_gives_space_back_though_the_archive_is_out_of_reach(store: Path) -> None:
    """What it could not delete there is named, and deleted the next time that it can be."""
    done(store, "archive", "night")
    data = store / "log.lmdb" / "data.mdb"
    before = data.stat().st_size
    attic(store).rename(attic(store).with_name("elsewhere"))
    attic(store).mkdir()  # where its disk is mounted
    assert "cannot be removed" in refused(store, "gc")
    assert "cannot be removed" in refused(store, "gc")
    with Store.open(store, readonly=True) as opened:
        assert opened.runs.all() == []
        assert len(opened.archive.unneeded()) == 1
    assert data.stat().st_size < before
    attic(store).rmdir()
    attic(store).with_name("elsewhere").rename(attic(store))
    done(store, "gc")
    assert files(store) == []


def test_without_an_archive_nothing_is_moved(store: Path) -> None:
    """It is said what to set."""
    config = store.parent / "none.yaml"
    config.write_text(f"store: {store}\n")
    made = CliRunner().invoke(cli, ["archive", "-c", str(config)])
    assert "there is no archive" in str(made.exception)


def test_one_step_is_shown_without_restoring_its_run(store: Path) -> None:
    """As it is shown from the store; the run stays where it is."""
    shown = [done(store, "show", "night", "3", *json) for json in ((), ("--json",))]
    done(store, "archive")
    assert [done(store, "show", "night", "3", *json) for json in ((), ("--json",))] == shown
    assert "holds no exchange 2" in refused(store, "show", "night", "2")
    done(store, "gc", keep="forever")
    done(store, "show", "day", "1")
    with Store.open(store, readonly=True) as opened:
        assert opened.runs.get("day").is_only_in_archive


def test_a_playback_brings_its_tape(store: Path) -> None:
    """Its receipt is nothing without."""
    with Store.open(store) as opened:
        tape = opened.runs.get("night")

        async def play() -> None:
            info = await opened.runs.create("night", mode="playback", at_ns=100, parent=tape)
            await opened.runs.seal(info, reason="done", at_ns=101)

        asyncio.run(play())
    told = done(store, "receipt", "night@1", "--json")
    done(store, "archive")
    assert done(store, "receipt", "night@1", "--json") == told
    with Store.open(store, readonly=True) as opened:
        assert {one.id: one.is_only_in_archive for one in opened.runs.all()} == {
            "night": False,
            "day": True,
            "night@1": False,
        }


def test_a_replay_restores_its_tape(store: Path) -> None:
    """By its name, or as the newest."""
    done(store, "archive")
    for name in ("night", "latest"):
        made = run(store, "replay", name, "--no-sandbox", "-q", "--store", str(store), "--", "true")
        assert made.exception is None, made.output
    with Store.open(store, readonly=True) as opened:
        assert {
            one.id: one.is_only_in_archive for one in opened.runs.all() if one.parent is None
        } == {
            "night": False,
            "day": False,
        }


async def test_a_tape_that_is_asked_for_later_is_restored(store: Path) -> None:
    """By the proxy that plays it, for its first client; and it is said why, where that cannot be."""
    done(store, "archive")
    (events,) = (attic(store) / "events").iterdir()
    config = Config(store=store, mode=Mode.PLAYBACK)
    with Store.open(store) as opened:
        registry = RunRegistry(
            opened,
            config,
            lambda _: redactor_of(config),
            NOBODY,
            restore=partial(restore_run, opened),
        )
        events.rename(events.with_suffix(".lost"))
        told = await registry.assign(_client(40000), ("day", "x"))
        assert isinstance(told, OpenRun)
        assert "archived and cannot be restored: events/" in told.lifetime.problem
        events.with_suffix(".lost").rename(events)
        playing = await asyncio.gather(
            *(registry.assign(_client(port), ("night", "x")) for port in (40001, 40002))
        )
        for open_run in playing:
            assert isinstance(open_run, OpenRun)
            assert open_run.lifetime.problem == ""
            assert open_run.tape is not None
            assert opened.exchanges.seqs(open_run.tape) == [1, 3, 4]
        await registry.close("done")


def _client(port: int) -> Client:
    return Client(
        peername=(f"127.0.0.{port % 100 + 1}", port),
        sockname=("127.0.0.1", 8080),
        timestamp_start=1.0,
        state=ConnectionState.OPEN,
    )


def test_an_archive_that_lacks_an_exchange_is_refused(store: Path) -> None:
    """Its files are sound, and what they hold is not all of the run."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    done(store, "archive")
    (file,) = (attic(store) / "exchanges").iterdir()
    (index,) = (attic(store) / "steps").iterdir()
    for one in (file, index):
        rows = pq.read_table(one)
        kept = rows.filter(pc.not_equal(rows["seq"], 3))
        pq.write_table(kept.replace_schema_metadata(rows.schema.metadata), one)
    seal_anew(store)
    assert "exchange 3 is missing" in refused(store, "receipt", "night")
    nothing_taken(store)


POINTS = ["first file", "index", "taking out", "taken out"]


@pytest.mark.parametrize("point", POINTS if FULL else POINTS[1:3])
def test_a_kill_loses_nothing_and_leaves_nothing_twice(store: Path, point: str) -> None:
    """Whatever was written by then is removed by the next go, and every run is in one place."""
    before = {name: everything(store, name) for name in ("night", "day")}
    config = store.parent / "s.yaml"
    done(store, "archive", "--dry-run")
    killed = prepared.run(
        [sys.executable, "-m", "playhead.tests.support.archive_child", point, str(config)],
        imports=prepared.FOR_OURS,
        timeout=60,
    )
    assert killed.returncode == 9, killed.stderr
    if point != "taken out":
        with Store.open(store, readonly=True) as opened:
            assert not any(one.is_only_in_archive for one in opened.runs.all())
    done(store, "archive")
    assert not [one for one in files(store) if not one.endswith(".parquet")]
    steps = [(row["run"], row["seq"]) for row in _rows(store, "steps")]
    assert sorted(steps) == [(name, seq) for name in ("day", "night") for seq in (1, 3, 4)]
    for name in ("night", "day"):
        done(store, "show", name)
    assert {name: everything(store, name) for name in ("night", "day")} == before


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _foreign(file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"run": ["night"]}), file)


def _newer(file: Path) -> None:
    import pyarrow.parquet as pq

    from playhead.store.archive import schema

    found = pq.read_table(file)
    told = {**(found.schema.metadata or {}), schema.VERSION_KEY: b"2"}
    pq.write_table(found.replace_schema_metadata(told), file)


@pytest.mark.parametrize("damage", [_cut, _empty, _foreign, _newer, Path.unlink])
def test_a_damaged_archive_is_named_and_nothing_is_taken_from_it(
    store: Path, damage: Callable[[Path], None]
) -> None:
    """Whichever file it is; and put back, all is well."""
    before = everything(store, "night")
    done(store, "archive")
    for name in files(store):
        file = attic(store) / name
        kept = file.read_bytes()
        damage(file)
        assert name.removesuffix(".parquet") in refused(store, "receipt", "night")
        nothing_taken(store)
        file.write_bytes(kept)
    done(store, "receipt", "night")
    assert everything(store, "night") == before


def nothing_taken(store: Path) -> None:
    """Assert that a run is where it was, with no row of it here."""
    with Store.open(store, readonly=True) as opened:
        info = opened.runs.get("night")
        assert info.is_only_in_archive
        assert opened.exchanges.seqs(info) == []
        assert opened.events.read(info) == []


def test_a_changed_byte_is_refused_or_changes_nothing(store: Path) -> None:
    """Anywhere in any file: what comes back is what was written, or nothing does."""
    before = everything(store, "night")
    done(store, "archive")
    chance = random.Random(1)
    found = 0
    for name in files(store):
        file = attic(store) / name
        kept = file.read_bytes()
        for _ in range(60 if FULL else 4):
            at = chance.randrange(len(kept))
            file.write_bytes(kept[:at] + bytes([kept[at] ^ 0x55]) + kept[at + 1 :])
            made = run(store, "receipt", "night")
            if made.exception is None:
                assert everything(store, "night") == before
                with Store.open(store) as opened:
                    opened.archive.drop_restored(opened.runs.all())
            else:
                assert isinstance(made.exception, PlayheadError), made.exception
                nothing_taken(store)
                found += 1
        file.write_bytes(kept)
    assert found


def test_a_folder_that_cannot_be_written_moves_nothing(store: Path) -> None:
    """It is said, and the runs stay."""
    attic(store).write_bytes(b"a file")
    assert "cannot be written" in refused(store, "archive")
    with Store.open(store, readonly=True) as opened:
        assert not any(one.is_only_in_archive for one in opened.runs.all())


def test_a_run_that_is_not_sound_stays(store: Path) -> None:
    """It is named, and the others are moved."""
    with Store.open(store) as opened:
        info = opened.runs.get("night")
        database = opened._database
        row = database.row("exchanges", pair_key(info.number, 3), b"nothing")
        database.writer.call(lambda txn: database.put_row(txn, row))
    told = done(store, "archive", code=1)
    assert "not archived: night: seq 3:" in told
    assert "archived: day" in told
    with Store.open(store, readonly=True) as opened:
        assert {one.id: one.is_only_in_archive for one in opened.runs.all()} == {
            "night": False,
            "day": True,
        }


def test_an_encrypted_store_is_not_archived_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it seals would lie there as it is."""
    monkeypatch.setenv("PLAYHEAD_ENCRYPTION_KEY", "11" * 32)
    path = tmp_path / "here" / "s"
    path.parent.mkdir()
    with Store.open(path, key=find_key(None, os.environ)) as opened:
        asyncio.run(record_all(opened))
    assert "encrypted" in refused(path, "archive")
    assert "1 archived" in done(path, "archive", "--unencrypted")
    assert json.loads(done(path, "verify", "night", "--json"))[0]["problems"] == []


def test_without_pyarrow_it_is_said_what_is_missing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else needs it."""
    done(store, "archive", "day")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "needs pyarrow" in refused(store, "archive")
    assert "needs pyarrow" in refused(store, "show", "day")
    done(store, "show", "night")


QUERIES = re.findall(
    r"^```(sql|python)\n(.*?)^```$",
    (Path(playhead.__file__).parent / "docs" / "archive.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


def test_others_read_it_as_the_documentation_says(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB and Polars, without us: each query of the page."""
    import duckdb

    done(store, "archive", archive="archive")
    monkeypatch.chdir(store.parent)
    found = []
    with duckdb.connect() as connection:
        for kind, text in QUERIES:
            if kind == "sql":
                found.append(connection.execute(text).fetchall())
            else:
                names: dict[str, Any] = {}
                exec(text, names)
                found.append(names["slowest"].rows())
    asked = "https://api.test/v1/refunds"
    assert found == [
        [
            ("day", "api.test", "read", 2, 0),
            ("night", "api.test", "read", 2, 0),
            ("day", "api.test", "effect", 1, 0),
            ("night", "api.test", "effect", 1, 0),
        ],
        [(3, '{"amount": 1}')],
        [("day", 3, asked), ("night", 3, asked)],
        [(name, seq, "api.test") for name in ("day", "night") for seq in (1, 3, 4)],
        [(name, 3, "api.test", "/v1/refunds", 2000) for name in ("day", "night")],
    ]
