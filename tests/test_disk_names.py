"""Names on disk stay the same, whatever the code calls them: a store, a tape file and an archive that exist are read again.

`golden/disk_names.json` lists tables, keys, event kinds and fields, file names and Parquet columns. The list changes only
together with a new version of a format. Run the tests with `PLAYHEAD_WRITE_GOLDEN=1` to write it anew.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from playhead.store import Archived, RunInfo, Store, StoreKey, paths
from playhead.store import lmdb_keys as store_keys
from playhead.store.encryption import encrypted_files
from playhead.store.maintenance import rekey
from playhead.tape.exchange import (
    Alpn,
    Chunk,
    Close,
    Ending,
    Fault,
    FaultKind,
    Gone,
    Interim,
    Phase,
    RawAnswer,
    RawInterim,
    RedactedText,
    Redaction,
    Repeat,
    RepeatKind,
    RequestClass,
    Secret,
    Seq,
    Spilled,
    Tunnel,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.records import check_event_fields
from playhead.tape.records import tape_file as records
from playhead.tape.records.codec import encode_exchange, unpack
from playhead.tape.records.events import Event, EventKind, encode_event
from playhead.tape.records.redacted_originals import pack_originals
from playhead.tests.support.exchanges import (
    make_exchange,
    make_record,
    make_request,
    make_response,
    raw_response,
)
from playhead.tests.support.stored import record_all
from playhead.timeline.formats.tape_file import export_tape

GOLDEN = Path(__file__).parent / "golden" / "disk_names.json"


def check(section: str, found: Any) -> None:
    """Compare what was found with the section of the list; write it instead if that was asked for."""
    found = json.loads(json.dumps(found))
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("PLAYHEAD_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(golden | {section: found}, indent=1, sort_keys=True) + "\n")
        return
    assert found == golden[section], f"{GOLDEN.name}, section {section!r}"


def raw_keys(store: Path, table: str) -> list[str]:
    """Read the keys of a table from the file, without the store; numbers of runs are left out."""
    with lmdb.open(str(store / "log.lmdb"), readonly=True, max_dbs=32) as environment:
        found = environment.open_db(table.encode(), create=False)
        with environment.begin(db=found) as transaction:
            return sorted({_text(bytes(key)) for key, _ in transaction.cursor()})


def _text(key: bytes) -> str:
    return key.rstrip(bytes(range(32))).decode()


def _files(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def shape(value: Any) -> Any:
    """Give the keys of a map, with those of the maps in it."""
    if not isinstance(value, dict):
        return None
    return {key: shape(item) for key, item in sorted(value.items())}


async def make_store(folder: Path) -> RunInfo:
    """Make a store that holds a row of every sort which is written without a crash."""
    with Store.open(folder) as store:
        info = await record_all(store)
        store.archive.begin("attic", "20260101")
        store.archive.hold().close()
    return info


async def test_tables_and_rows_of_meta_keep_their_names(store_dir: Path) -> None:
    """A store is opened by the names of its tables and of the rows of `meta`."""
    await make_store(store_dir)
    with (
        lmdb.open(str(store_dir / "log.lmdb"), readonly=True) as environment,
        environment.begin() as transaction,
    ):
        tables = sorted(bytes(name).decode() for name, _ in transaction.cursor())
    rows = [
        store_keys.CHECK_ROW,
        store_keys.PROBE_ROW,
        store_keys.LEFT_ROW,
        store_keys.ERASED_ROW,
        store_keys.REWRITTEN_ROWS,
        store_keys.UPGRADE_ROW,
        rekey._AT_ROW,
        rekey._FILE_ROW,
    ]
    check("tables", tables)
    check("tables_where_needed", sorted(store_keys.OPTIONAL_TABLES))
    check("meta_rows_written", raw_keys(store_dir, "meta"))
    check("meta_rows_named", sorted(row.decode() for row in rows))
    check("plain_tables", sorted(store_keys.PLAIN_VALUES))
    check("hashed_keys", [store_keys.BLOCK_AT, store_keys.TEXT_FROM])


async def test_runs_being_imported_are_marked_under_the_same_key(store_dir: Path) -> None:
    """A store that was left in the middle of an import is cleaned up by any version that reads it."""
    with Store.open(store_dir) as store, store.ingest() as ingest:
        ingest.begin("half")
        found = set(raw_keys_of(store))
    check("meta_rows_of_an_import", sorted(found))


def raw_keys_of(store: Store) -> list[str]:
    """Read the keys of `meta` in a store that is open."""
    database = store._database
    with database.reading() as transaction, transaction.cursor(database.tables["meta"]) as cursor:
        return [_text(bytes(key)) for key, _ in cursor]


async def test_a_request_to_an_owner_keeps_its_table(store_dir: Path) -> None:
    """Another version of Playhead asks the owner of a run by the same row."""
    with Store.open(store_dir) as store:
        info = await store.runs.create("a", mode="record", at_ns=1)
        store.owner_requests.ask(info, "stop")
        database = store._database
        with (
            database.reading() as transaction,
            transaction.cursor(database.tables["mail"]) as cursor,
        ):
            keys = [bytes(key)[8:].decode() for key, _ in cursor]
        await store.runs.seal(info, reason="done", at_ns=2)
    check("owner_requests", keys)


async def test_files_of_a_store_keep_their_names(store_dir: Path) -> None:
    """Files and folders of a store are found by their names; hashes and process ids are left out."""
    await make_store(store_dir)
    names = {name for name in _files(store_dir) if not name.startswith(("bodies/", "owners/"))}
    key = StoreKey(b"k" * 32, "here")
    with Store.open(store_dir / "encrypted", key=key) as store:
        spool = store.bodies.spool()
        spool.write(b"x")
        folder = spool._files.folder.name
        partial = next(_files(store_dir / "encrypted" / folder)).partition("-")[0]
        spool.drop()
    check("files", sorted(names))
    check("encrypted_bodies", [folder, partial, encrypted_files._MAGIC.decode("latin-1")])
    check("beside", [paths.REKEYED])


async def test_rows_of_the_run_list_keep_their_keys(store_dir: Path) -> None:
    """A row of the run list is a map with the same keys, and an archived run's place is a tuple of the same length."""
    info = await make_store(store_dir)
    archived = replace(info, archived=Archived("attic", "b", "c", 3))
    row: Any = unpack(archived.encode())
    check("run_keys", sorted(row))
    check("archived_fields", len(row["archived"]))


def test_kinds_and_fields_of_events_keep_their_names() -> None:
    """A log that exists is read by the kinds of its events and by the names of their fields."""
    value, _ = encode_event(Event(EventKind.NOTED, 1, {}), b"\0" * 16)
    check("event_envelope", sorted(unpack(value[16:])))
    check("event_kinds", sorted(kind.value for kind in EventKind))
    needed = {kind.value: sorted(fields) for kind, fields in check_event_fields.NEEDED.items()}
    check("event_fields_needed", needed)
    check("event_fields", sorted(check_event_fields.MAY))


async def test_the_events_of_a_run_keep_their_fields(store_dir: Path) -> None:
    """The events that every run has are written with the same fields as before."""
    with Store.open(store_dir) as store:
        info = await record_all(store)
        fields: dict[str, list[str]] = {}
        for event in store.events.read(info):
            names = {*fields.get(event.kind.value, ()), *event.data}
            fields[event.kind.value] = sorted(names)
    check("event_fields_written", fields)


def test_exchanges_keep_their_keys() -> None:
    """An exchange that was packed is read again by the keys of its map."""
    spilled = Spilled(b"d" * 32, 9, b"m" * 32)
    secrets = (Secret("body", 0, 3, "key"),)
    plain = make_exchange(
        1,
        kind=RequestClass.EFFECT,
        response=make_response(
            b"",
            spilled=spilled,
            head_need=1,
            ragged=True,
            secrets=secrets,
            chunks=(Chunk(1, 2),),
        ),
    )
    full = replace(
        plain,
        request=replace(make_request(), spilled=spilled, secrets=secrets),
        verdict=VerdictKind.RECORDED,
        fault=Fault(FaultKind.RESET, Phase.BODY, RedactedText("reset"), 3, Ending.RST, 1),
        gone=Gone(4, 0, True),
        redactions=(Redaction("request.header.authorization", "authorization"),),
        warnings=("careful",),
        alpn=Alpn((b"h2",), b"h2"),
        repeat=Repeat(Seq(1), RepeatKind.SAFE_RETRY, False),
        withheld=RedactedText("no"),
        tunnel=Tunnel(1, 0),
        interim=(Interim(1, 103, b"Early Hints", ((b"link", b"</a.css>"),)),),
        websocket=WebSocketSummary(2, 6, Close(5, True, 1000, RedactedText(""))),
    )
    value: Any = unpack(encode_exchange(full))
    check("exchange_keys", shape(value[1]))


def test_originals_keep_their_keys() -> None:
    """What redaction replaced in an answer is read again by the keys of its map."""
    answer = make_response(b"now\n", trailers=((b"t", b"now"),), reason=b"now")
    close = WebSocketSummary(0, 0, Close(5, True, 1000, RedactedText("now")))
    kept = replace(
        make_exchange(1, response=answer, websocket=close), interim=(Interim(1, 103, b"", ()),)
    )
    raw = raw_response(
        replace(
            answer,
            reason=b"was",
            headers=((b"a", b"was"),),
            trailers=((b"t", b"was"),),
            body=b"was",
        )
    )
    told = RawAnswer(raw, (RawInterim(1, 103, b"was", ()),), (), ("was", ""))
    whole: Any = unpack(pack_originals(told, kept) or b"")
    body = make_response(b"now", secrets=(Secret("body", 0, 3, "key"),))
    part: Any = unpack(
        pack_originals(
            RawAnswer(raw_response(replace(body, body=b"was"))), make_exchange(1, response=body)
        )
        or b""
    )
    check("originals_keys", sorted({*whole, *part}))


async def test_tape_files_keep_their_records(store_dir: Path) -> None:
    """A tape file that somebody sent is read by its first line, the kinds of its records and the keys of its run."""
    data = bytearray()
    with Store.open(store_dir) as store:
        info = await record_all(store)
        export_tape(store, info, data.extend, lambda _done, _of: None)
    found = list(records.read_records([bytes(data)]))
    check("tape_file_magic", bytes(data[:14]).decode())
    check("tape_file_kinds", {kind.name: kind.value for kind in records.Kind})
    row: Any = unpack(found[0].data)
    check("tape_file_run_keys", sorted(row))


def test_parquet_files_keep_their_columns() -> None:
    """Queries that people wrote for an archive name its folders and columns."""
    pytest.importorskip("pyarrow", reason="the extra `archive` is not installed")
    from playhead.store.archive import schema

    columns = {
        folder: {field.name: str(field.type) for field in found}
        for folder, found in schema.SCHEMAS.items()
    }
    check("parquet", columns)
    check("parquet_metadata", [schema.VERSION_KEY.decode(), schema.FILES_KEY.decode()])


async def test_exchanges_of_every_codec_keep_their_first_byte(store_dir: Path) -> None:
    """The first byte of a record says how it is packed."""
    with Store.open(store_dir) as store:
        info = await store.runs.create("a", mode="record", at_ns=1)
        body = os.urandom(3000)
        for seq in (1, 2):
            exchange = make_exchange(seq, "POST https://api.test/v1/chat", body=body + bytes(seq))
            await store.exchanges.save(info.number, partial(make_record, exchange))
        small = make_exchange(3, response=None, gone=Gone(1, 0, False))
        await store.exchanges.save(info.number, lambda: make_record(small))
        database = store._database
        first: dict[str, int] = {}
        with database.reading() as transaction:
            for table in ("exchanges", "openings"):
                with transaction.cursor(database.tables[table]) as cursor:
                    for key, value in cursor:
                        if len(key) == 16:
                            seq = int.from_bytes(key[8:], "big") if table == "exchanges" else 0
                            first[f"{table} {seq}"] = bytes(value)[0]
        await store.runs.seal(info, reason="done", at_ns=2)
    check("codec_bytes", first)
