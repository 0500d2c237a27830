"""Runs as files: out of one store and into another, from JSON lines, and nothing of a file that is not sound."""

import asyncio
import base64
import contextlib
import http.client
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import Config, Mode
from playhead.proxy.cli import cli
from playhead.proxy.operations.find_tape import choose_recording
from playhead.proxy.operations.tape_files import import_file
from playhead.store import RunInfo, RunOpen, RunStatus, Store, StoreError, StoreTooNew
from playhead.store.lmdb_keys import number_key
from playhead.tape.exchange import (
    Chunk,
    Message,
    MessageKind,
    Repeat,
    RepeatKind,
    RunId,
    Seq,
    Spilled,
    WebSocketSummary,
)
from playhead.tape.folders.manifest import Entry, Manifest, Step, pack_manifest, pack_step
from playhead.tape.folders.manifest import Kind as FileKind
from playhead.tape.records.codec import encode_exchange, encode_message, pack_map
from playhead.tape.records.events import CHAIN_START, Event, EventKind, encode_event
from playhead.tape.records.tape_file import Kind, TapeWriter, read_records
from playhead.tests.support.engine import running_engine
from playhead.tests.support.exchanges import (
    make_exchange,
    make_record,
    make_response,
)
from playhead.tests.support.folder_cases import FORGED
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.stored import all_of, file_entry, folder_of, record_all, save_folder
from playhead.timeline.formats.tape_file import export_tape
from playhead.timeline.receipts import receipt as receipts
from playhead.timeline.receipts.receipt import Receipt, build

SECRET = "sk-proj-" + "a1B2c3D4" * 6


def run(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def refused(*arguments: str | Path) -> str:
    """Run a command that fails; give what a person is told."""
    made = run(*arguments)
    assert isinstance(made.exception, PlayheadError), made.output
    return str(made.exception)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A store with the run `night`."""
    with Store.open(tmp_path / "one") as store:
        asyncio.run(record_all(store))
    return tmp_path / "one"


def test_a_tape_is_the_same_run_in_another_store(recorded: Path, tmp_path: Path) -> None:
    """Exchanges, events with their chain, messages, large bodies with their pieces, the index."""
    tape, other = tmp_path / "night.tape", tmp_path / "two"
    made = run("export", "night", "--tape", tape, "--store", recorded)
    assert made.exit_code == 0, made.output
    assert tape.stat().st_mode & 0o777 == 0o600
    taken = run("import", tape, "--store", other)
    assert (taken.exit_code, taken.output) == (0, "night: 4 exchanges\n")
    with Store.open(recorded, readonly=True) as one, Store.open(other, readonly=True) as two:
        assert all_of(one, "night") == all_of(two, "night")
        assert two.events.find_broken_link(two.runs.get("night")) is None


def test_a_playback_brings_its_tape(recorded: Path, tmp_path: Path) -> None:
    """A receipt needs both; names that are taken become others, and the two still belong together."""
    with Store.open(recorded) as store:
        tape = store.runs.get("night")

        async def play() -> None:
            info = await store.runs.create("night", mode="playback", at_ns=100, parent=tape)
            await store.runs.seal(info, reason="done", at_ns=101)

        asyncio.run(play())
    file = tmp_path / "played.tape"
    assert run("export", "night@1", "--tape", file, "--store", recorded).exit_code == 0
    again = run("import", file, "--store", recorded, "--json")
    assert [row["id"] for row in json.loads(again.stdout)] == ["night~2", "night~2@1"]
    with Store.open(recorded, readonly=True) as store:
        assert store.runs.get("night~2@1").parent == "night~2"
        assert store.runs.get("night~2@1").parent_number == store.runs.get("night~2").number


def test_another_run_of_its_name_is_not_taken_for_its_tape(recorded: Path, tmp_path: Path) -> None:
    """Once a tape was deleted its name is free: what was played is gone, and nothing else stands for it."""
    with Store.open(recorded) as store:
        tape = store.runs.get("night")

        async def play() -> None:
            info = await store.runs.create("night", mode="playback", at_ns=100, parent=tape)
            await store.runs.seal(info, reason="done", at_ns=101)

        asyncio.run(play())
        store.removal.delete([tape])
        assert asyncio.run(record_all(store)).id == "night"
        played = store.runs.get("night@1")
        assert store.runs.find_tape(played) is None
        assert receipts.build(store, played).parts.tape.gone
        parts: list[bytes] = []
        runs = export_tape(store, played, parts.append, lambda _done, _of: None)
        assert [one.id for one in runs] == ["night@1"]


def test_a_run_that_is_deleted_while_it_is_exported_is_no_tape(recorded: Path) -> None:
    """What was read by then would stand for all of it."""
    with Store.open(recorded) as store:
        info = store.runs.get("night")

        def delete(done: int, _of: int) -> None:
            if done == 1:
                store.removal.delete([info])

        with pytest.raises(StoreError, match="deleted while it was exported"):
            export_tape(store, info, lambda _: None, delete)


def test_a_file_that_is_there_is_not_overwritten(recorded: Path, tmp_path: Path) -> None:
    """It may be the only copy of something."""
    (tmp_path / "kept").write_text("mine")
    told = refused("export", "night", "--tape", tmp_path / "kept", "--store", recorded)
    assert "there already" in told
    assert (tmp_path / "kept").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_run_that_has_not_ended_is_not_exported(tmp_path: Path) -> None:
    """Its tape would lack what is still to come."""
    with Store.open(tmp_path / "one") as store:
        info = asyncio.run(_begun(store))
        with pytest.raises(RunOpen, match="has not ended"):
            export_tape(store, info, lambda _: None, lambda _done, _of: None)


async def _begun(store: Store) -> RunInfo:
    return await store.runs.create("open", mode="record", at_ns=1)


def test_what_holds_for_one_machine_is_not_imported(tmp_path: Path) -> None:
    """Inodes that would say a file was not touched, and set-uid bits."""
    entry = file_entry(b"x")._replace(mode=0o6755, inode=3, changed_ns=9)
    row = pack_manifest(Manifest(b"/w", {b"a": entry}, saved=True))
    _tape(tmp_path / "t", [RUN, (Kind.FOLDER, bytes(8) + row), EXCHANGE])
    assert run("import", tmp_path / "t", "--store", tmp_path / "s").exit_code == 0
    with Store.open(tmp_path / "s", readonly=True) as store:
        found = store.folders.find(store.runs.get("evil"))
    assert found is not None
    assert found.imported
    assert found.entries == {b"a": file_entry(b"x")._replace(mode=0o755)}


def test_a_content_is_in_a_file_once(tmp_path: Path) -> None:
    """Of a run and what plays it; both need it where they come to, and it goes with the last."""
    with Store.open(tmp_path / "one") as store:
        tape = asyncio.run(record_all(store))

        async def play() -> None:
            info = await store.runs.create("night", mode="playback", at_ns=100, parent=tape)
            save_folder(store, info, "night")
            await store.runs.seal(info, reason="done", at_ns=101)

        asyncio.run(play())
    file = tmp_path / "t"
    assert run("export", "night@1", "--tape", file, "--store", tmp_path / "one").exit_code == 0
    kinds = [record.kind for record in read_records([file.read_bytes()])]
    assert kinds.count(Kind.CONTENT) == 5
    assert run("import", file, "--store", tmp_path / "two").exit_code == 0
    with Store.open(tmp_path / "one", readonly=True) as one, Store.open(tmp_path / "two") as two:
        expected = folder_of(one, one.runs.get("night"))
        for name in ("night@1", "night"):
            assert folder_of(two, two.runs.get(name)) == expected
            two.removal.delete([two.runs.get(name)])
        assert not any(two.folders.holds(digest) for digest in expected[2])


# ---- hostile files -----------------------------------------------------------------------------

ROW: dict[str, Any] = {
    "id": "evil",
    "mode": "record",
    "status": "sealed",
    "parent": None,
    "created_ns": 1,
    "sealed_ns": 2,
    "exchanges": 1,
    "agent": "",
    "end": "",
    "rules": b"",
    "canonical": 0,
}


def _told(kind: EventKind, **data: Any) -> bytes:
    return encode_event(Event(kind, 1, data), CHAIN_START)[0]


RUN = (Kind.RUN, pack_map(ROW))
EVENT = _told(EventKind.OPENED, id="evil")
EXCHANGE = (Kind.EXCHANGE, encode_exchange(make_exchange()))
TALK = encode_exchange(make_exchange(websocket=WebSocketSummary(1, 1, None)))


def _message(number: int) -> tuple[Kind, bytes]:
    key = (1).to_bytes(8, "big") + number.to_bytes(8, "big")
    return Kind.MESSAGE, key + encode_message(Message(number, False, MessageKind.TEXT, b"more"))


def _forged(path: bytes) -> bytes:
    """A manifest with a path that leads elsewhere."""
    return pack_manifest(Manifest(b"/w", {**BESIDE, path: file_entry(b"")}))


def _forged_step(path: bytes) -> list[tuple[Kind, bytes]]:
    step = pack_step(Step(1, {path: file_entry(b"")}, ()))
    start = pack_manifest(Manifest(b"/w", BESIDE))
    return [(Kind.FOLDER, bytes(8) + start), (Kind.FOLDER, bytes(7) + b"\1" + step)]


def _swapped_step() -> list[tuple[Kind, bytes]]:
    """A folder becomes a link, and what was in it would be written by way of the link."""
    start = {b"d": Entry(FileKind.FOLDER, 0o755), b"d/x": file_entry(b"")}
    step = pack_step(Step(1, {b"d": BESIDE[b"link"]}, ()))
    rows = pack_manifest(Manifest(b"/w", start)), step
    return [(Kind.FOLDER, bytes((*bytes(7), at)) + row) for at, row in enumerate(rows)]


BESIDE = {b"a": file_entry(b""), b"link": Entry(FileKind.LINK, 0o777, target=b"/etc")}
LOST = Spilled(b"x" * 32, 1, b"x" * 32)
SPILLED = encode_exchange(make_exchange(response=replace(make_response(b""), spilled=LOST)))


def _tape(file: Path, records: Sequence[tuple[Kind, bytes]]) -> None:
    parts: list[bytes] = []
    writer = TapeWriter(parts.append)
    for kind, data in records:
        writer.put(kind, data)
    writer.close()
    file.write_bytes(b"".join(parts))


def test_an_open_websocket_may_have_more_messages_than_its_exchange_says(tmp_path: Path) -> None:
    """Messages are written as they pass; a recorder that died over it had not written its exchange again."""
    file, store = tmp_path / "talk.tape", tmp_path / "store"
    _tape(file, [RUN, (Kind.EXCHANGE, TALK), *(_message(number) for number in range(3))])
    done = CliRunner().invoke(cli, ["import", str(file), "--store", str(store)])
    assert done.exit_code == 0, done.output
    with Store.open(store, readonly=True) as opened:
        assert len(list(opened.messages.all(opened.runs.get("evil"), Seq(1)))) == 3


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "no run"),
        ([EXCHANGE], "before any run"),
        ([(Kind.RUN, b"\xc1")], "msgpack"),
        ([(Kind.RUN, b"\x91" * 100_000)], "msgpack"),
        ([(Kind.RUN, pack_map({**ROW, "id": 7}))], "'id'"),
        ([(Kind.RUN, pack_map({name: ROW[name] for name in ROW if name != "parent"}))], "'parent'"),
        ([(Kind.RUN, b"\x92" + b"\xdd\x00\x50\x00\x00" + bytes(9))], "not unpacked"),
        ([(Kind.RUN, pack_map({**ROW, "mode": "live"}))], "live"),
        ([(Kind.RUN, pack_map({**ROW, "status": "open"}))], "open"),
        ([(Kind.RUN, pack_map({**ROW, "exchanges": -1}))], "below zero"),
        ([(Kind.RUN, pack_map({**ROW, "id": ""}))], "name of a run"),
        ([(Kind.RUN, pack_map({**ROW, "id": "x" * 5000}))], "name of a run"),
        ([RUN, (Kind.EVENT, b"short")], "msgpack"),
        ([RUN, (Kind.EVENT, EVENT[:-1] + b"\0")], "."),
        ([RUN, (Kind.EVENT, EVENT), (Kind.EVENT, EVENT)], "does not follow"),
        ([RUN, (Kind.EVENT, _told(EventKind.VERDICT, seq=1))], "whose 'method' is missing"),
        ([RUN, (Kind.EVENT, _told(EventKind.OUTCOME, seq=1, status=200))], "'verdict' is missing"),
        ([RUN, (Kind.EVENT, _told(EventKind.NOTED, text=7))], "'text' is 7"),
        ([RUN, (Kind.EVENT, _told(EventKind.OUTCOME, seq=1, hash=b"h"))], "exchange 1 is missing"),
        ([RUN, (Kind.EVENT, _told(EventKind.OUTCOME, seq=1, hash=b"h")), RUN], "1 is missing"),
        ([RUN, (Kind.EXCHANGE, b"\x94\x01\x02\x03\x04")], "exchange"),
        ([RUN, EXCHANGE, EXCHANGE], "exchange 1 after exchange 1"),
        ([RUN, (Kind.EXCHANGE, encode_exchange(make_exchange(fingerprint=b"x")))], "of 1 bytes"),
        ([RUN, (Kind.EXCHANGE, encode_exchange(make_exchange(fingerprint=b"x" * 600)))], "of 600"),
        ([RUN, (Kind.EXCHANGE, SPILLED)], "not in the file"),
        ([RUN, (Kind.EXCHANGE, TALK)], "lacks 1"),
        ([RUN, EXCHANGE, (Kind.MESSAGE, bytes(16) + b"x")], "where none belongs"),
        ([RUN, (Kind.BODY, b"y" * 32), (Kind.PIECE, b"not y"), EXCHANGE], "does not fit its hash"),
        ([RUN, (Kind.BODY, b"../../etc/passwd")], "expected 32"),
        ([RUN, (Kind.PIECE, b"alone")], "without one"),
        ([(Kind.CONTENT, b"y" * 32)], "before any run"),
        ([RUN, (Kind.CONTENT, b"y" * 32), (Kind.PIECE, b"not y")], "does not fit its hash"),
        ([RUN, (Kind.CONTENT, b"a")], "expected 32"),
        ([RUN, (Kind.FOLDER, b"short")], "without a number"),
        ([RUN, (Kind.FOLDER, bytes(8) + b"\xc1")], "msgpack"),
        ([RUN, (Kind.FOLDER, bytes(7) + b"\1" + pack_map({}))], "savepoint 1 where 0"),
        ([RUN, *[(Kind.FOLDER, bytes(8) + pack_manifest(Manifest(b"/w")))] * 2], "0 where 1"),
        ([RUN, (Kind.FOLDER, bytes(8) + pack_manifest(Manifest(b"w")))], "a folder of a manifest"),
        *(([RUN, (Kind.FOLDER, bytes(8) + _forged(one.path))], one.says) for one in FORGED),
        *(([RUN, *_forged_step(one.path)], one.says) for one in FORGED),
        ([RUN, *_swapped_step()], "no folder"),
    ],
)
def test_a_tape_that_is_not_sound_leaves_nothing(
    records: Sequence[tuple[Kind, bytes]], told: str, tmp_path: Path
) -> None:
    """The hash over all of it holds: whoever made it meant it so. Each is named, and no run of it is there."""
    file, store = tmp_path / "evil.tape", tmp_path / "store"
    _tape(file, records)
    assert re.search(told, refused("import", file, "--store", store))
    _is_empty(store)


FOLDER_TABLES = ("folders", "contents", "content_uses")


def _is_empty(path: Path) -> None:
    with Store.open(path, readonly=True) as store:
        assert store.runs.all() == []
        with store._database.reading() as transaction:
            tables = store._database.tables
            for table in (
                *("events", "exchanges", "messages", "fingerprints", "raws", "origins"),
                *FOLDER_TABLES,
            ):
                assert table not in tables or transaction.stat(tables[table])["entries"] == 0


def test_a_tape_of_a_newer_version_is_told_from_a_broken_one(
    recorded: Path, tmp_path: Path
) -> None:
    """What to do differs."""
    file = tmp_path / "night.tape"
    run("export", "night", "--tape", file, "--store", recorded)
    data = bytearray(file.read_bytes())
    data[15] += 1
    file.write_bytes(data)
    made = run("import", file, "--store", tmp_path / "two")
    assert isinstance(made.exception, StoreTooNew)
    assert "newer Playhead" in (made.exception.hint or "")
    file.write_bytes(bytes(data[:-9]))
    assert "format 2" in refused("import", file, "--store", tmp_path / "two")
    data[15] -= 1
    file.write_bytes(bytes(data[:-9]))
    assert "cut short" in refused("import", file, "--store", tmp_path / "two")
    assert "No such file" in refused("import", tmp_path / "none", "--store", tmp_path / "two")


def test_a_bomb_is_given_up(tmp_path: Path) -> None:
    """Before anything is written, at the limit that was given."""
    parts: list[bytes] = []
    writer = TapeWriter(parts.append)
    for _ in range(8):
        writer.put(Kind.PIECE, bytes(1 << 20))
    writer.close()
    bomb = tmp_path / "bomb"
    bomb.write_bytes(b"".join(parts))
    with pytest.raises(StoreError, match="unpacks to more than 4194304 bytes"):
        import_file(Config(store=tmp_path / "two"), bomb, 4 << 20)
    _is_empty(tmp_path / "two")


def test_what_a_process_that_died_had_not_published_is_dropped(tmp_path: Path) -> None:
    """The next writer clears it away."""
    with Store.open(tmp_path) as store:
        ingest = store.ingest()
        number = ingest.begin("half")
        ingest.put_event(number, EVENT)
        ingest.save(number, make_record(make_exchange()))
        # As if another process had begun it, which is gone.
        gone = pack_map({"owner": (2**22 + 1, 1.0)})
        table = store._database.tables["meta"]
        key = b"intake/" + number_key(number)
        store.writer.call(lambda txn: txn.put(key, gone, db=table))
    with Store.open(tmp_path):
        pass
    _is_empty(tmp_path)


def test_nothing_is_published_of_which_a_record_could_not_be_written(tmp_path: Path) -> None:
    """Nor what another process has dropped: a run with a hole is never taken for whole."""
    info = RunInfo(number=0, id=RunId("half"), mode="record", created_ns=1, status=RunStatus.SEALED)
    with Store.open(tmp_path) as store:
        with store.ingest() as ingest:
            number = ingest.begin("half")
            wrong = replace(make_exchange(), end_us=10**30)  # no such number in msgpack
            ingest.save(number, make_record(make_exchange(2)))
            ingest.save(number, make_record(wrong))
            with pytest.raises(StoreError, match="could not be written"):
                ingest.publish([replace(info, number=number)])
        with store.ingest() as ingest:
            number = ingest.begin("half")
            meta = store._database.tables["meta"]
            key = b"intake/" + number_key(number)
            store.writer.call(lambda txn: txn.delete(key, db=meta))
            with pytest.raises(StoreError, match="was dropped"):
                ingest.publish([replace(info, number=number)])
    _is_empty(tmp_path)


def test_what_an_outage_swallowed_is_not_published(tmp_path: Path) -> None:
    """Writing goes on by itself afterwards: the run would be short, and look whole."""
    with Store.open(tmp_path) as store:
        with store.ingest() as ingest:
            number = ingest.begin("short")
            ingest.put_event(number, EVENT)
            store.writer._fail("the disk was full for a moment")
            store.writer.call(lambda _: None)
            store.writer.failed = None
            run = RunInfo(number, RunId("short"), "record", 1, RunStatus.SEALED)
            with pytest.raises(StoreError, match="could not be written"):
                ingest.publish([run])
        assert store.runs.all() == []


# ---- JSON lines --------------------------------------------------------------------------------


def line(url: str, answer: str, **more: Any) -> str:
    """A line with a GET and its answer."""
    response = {"status": 200, "headers": {"Content-Type": "text/plain"}, "body": answer}
    return json.dumps({"request": {"method": "GET", "url": url}, "response": response, **more})


def test_lines_become_runs_that_can_be_played(tmp_path: Path) -> None:
    """Several runs in one file; a client gets the bytes."""
    file, store = tmp_path / "traffic.jsonl", tmp_path / "store"
    lines = [
        line("http://api.test/a", "first"),
        line("http://api.test/a", "second"),
        line("http://api.test/a", "another", run="other"),
        "",
    ]
    file.write_text("\n".join(lines))
    made = run("import", "--jsonl", file, "--store", store)
    assert made.output == "traffic: 2 exchanges\nother: 1 exchanges\n"
    config = Config(mode=Mode.PLAYBACK, store=store)

    async def play() -> list[bytes]:
        async with running_engine(config) as running:
            return await asyncio.to_thread(_ask, running.url_for("traffic"), 3)

    assert asyncio.run(play()) == [b"200 first", b"200 second", b"424"]
    with Store.open(store, readonly=True) as opened:
        kinds = [event.kind for event in opened.events.all(opened.runs.get("traffic"))]
    assert kinds[0] is EventKind.OPENED
    assert kinds[-1] is EventKind.SEALED


def _ask(proxy: str, times: int) -> list[bytes]:
    place = urlsplit(proxy)
    found = []
    told = base64.b64encode(f"{place.username}:{place.password}".encode()).decode()
    for _ in range(times):
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
        connection.request(
            "GET", "http://api.test/a", headers={"Proxy-Authorization": f"Basic {told}"}
        )
        answer = connection.getresponse()
        body = answer.read()
        found.append(
            b"%d %b" % (answer.status, body) if answer.status == 200 else b"%d" % answer.status
        )
        connection.close()
    return found


def test_secrets_of_lines_are_not_at_rest(tmp_path: Path) -> None:
    """They go the way of what is recorded."""
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    told = json.loads(line("https://api.test/a?key=" + SECRET, "body with " + SECRET))
    told["request"]["headers"] = {"Authorization": "Bearer " + SECRET}
    file.write_text(json.dumps(told))
    made = run("import", "--jsonl", file, "--store", store, "--json")
    assert json.loads(made.output) == [{"id": "t", "exchanges": 1, "redacted": 1}]
    kept = b"".join(data for _, data in kept_bytes(store))
    assert SECRET.encode() not in kept
    assert b"body with " in kept


def test_words_of_lines_are_kept_without_secrets(tmp_path: Path) -> None:
    """The text of a fault, the reasons for closing a WebSocket, and warnings."""
    key = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    file, store = tmp_path / "a.jsonl", tmp_path / "store"
    fault = {"kind": "reset", "phase": "head", "text": f"no such key: {key}"}
    close = {
        "at_us": 9,
        "by_client": False,
        "code": 4401,
        "reason": f"not {key}",
        "answer": [4401, f"ok {key}"],
    }
    asked = {"method": "GET", "url": "http://api.test/b"}
    lines = [
        json.dumps({"request": asked, "fault": fault, "warnings": [f"seen {key}"]}),
        json.dumps({"request": asked, "response": {"status": 101}, "websocket": {"messages": [], "close": close}}),
    ]  # fmt: skip
    file.write_text("\n".join(lines))
    made = run("import", "--jsonl", file, "--store", store)
    assert made.output == "a: 2 exchanges\n", made.exception
    with Store.open(store, readonly=True) as opened:
        first, second = opened.exchanges.all(opened.runs.get("a"))
    assert first.fault is not None
    assert first.fault.text.startswith("no such key: ghp_")
    assert first.warnings[0].startswith("seen ghp_")
    assert second.websocket is not None
    assert second.websocket.close is not None
    assert second.websocket.close.reason.startswith("not ghp_")
    assert key not in repr((first, second))


def test_placeholders_of_lines_are_known(tmp_path: Path) -> None:
    """They read like no secret; the agent that plays them has one in their place, and is not refused for it."""
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    key = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    placeholder = "ghp_" + "dr" * 18
    told = json.loads(line("http://api.test/a", "ok"))
    body = json.dumps({"note": f"with {placeholder}"})
    place = {"part": "body", "at": body.index("ghp_"), "size": 40, "kind": "github"}
    fields = {"Content-Type": "application/json"}
    told["request"] |= {"method": "POST", "body": body, "secrets": [place], "headers": fields}
    file.write_text(json.dumps(told))
    assert run("import", "--jsonl", file, "--store", store).exit_code == 0
    asked = json.dumps({"note": f"with {key}"}).encode()

    def ask(proxy: str) -> int:
        place = urlsplit(proxy)
        login = base64.b64encode(f"{place.username}:{place.password}".encode()).decode()
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
        with contextlib.closing(connection):
            login_field = {"Proxy-Authorization": f"Basic {login}"}
            connection.request("POST", "http://api.test/a", asked, fields | login_field)
            return connection.getresponse().status

    async def play() -> tuple[int, Receipt]:
        async with running_engine(Config(mode=Mode.PLAYBACK, store=store)) as running:
            status = await asyncio.to_thread(ask, running.url_for("t"))
            await running.end("t@1")
            return status, build(running.store, running.store.runs.get(RunId("t@1")))

    status, receipt = asyncio.run(play())
    assert (status, receipt.kind_alone, receipt.divergences) == (200, 1, [])


MADE = "ghp_" + "a2aaaaaa2a22222222a2a22aaaaa22aa22a2"
JWT_MADE = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhYmNkIn0." + "a2" * 21 + "Q"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("authorization", f"Bearer {MADE}"),
        ("authorization", f"Bearer {JWT_MADE}"),
        ("cookie", f"sid={MADE}"),
        ("x-api-key", MADE),
    ],
    ids=["token", "JWT", "cookie", "key"],
)
@pytest.mark.parametrize(
    ("answered", "answer"),
    [("set-cookie", f"sid={MADE}; Path=/"), ("location", f"https://:{MADE}@api.test/cb")],
    ids=["set-cookie", "location"],
)
def test_placeholders_of_lines_stay_in_the_places_that_a_line_lists(
    tmp_path: Path, field: str, value: str, answered: str, answer: str
) -> None:
    """One secret stays one placeholder: in answers, in fields and in queries."""
    token = JWT_MADE if JWT_MADE in value else MADE
    body = json.dumps({"access_token": token})
    first = json.loads(line("http://api.test/login", body))
    place = {"part": "body", "at": body.index(token), "size": len(token), "kind": "token"}
    first["response"] |= {"secrets": [place], "headers": {answered: answer}}
    first["redactions"] = ["response.body", f"response.header.{answered}"]
    second = json.loads(line(f"http://api.test/me?access_token={token}", "ok"))
    second["request"]["headers"] = {field: value}
    listed = second["redactions"] = ["request.query.access_token", f"request.header.{field}"]
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    file.write_text("\n".join(map(json.dumps, (first, second))))
    assert run("import", "--jsonl", file, "--store", store).exit_code == 0
    with Store.open(store, readonly=True) as opened:
        login, me = opened.exchanges.all(opened.runs.get("t"))
    assert login.response is not None
    assert login.response.body == body.encode()
    assert login.response.headers == ((answered.encode(), answer.encode()),)
    assert me.request.headers == ((field.encode(), value.encode()),)
    assert me.request.target == f"/me?access_token={token}"
    assert sorted(one.place for one in me.redactions) == sorted(listed)


def test_a_secret_that_a_line_lists_as_replaced_is_replaced(tmp_path: Path) -> None:
    """What does not read as a placeholder is none, whatever the line says of it."""
    body = json.dumps({"access_token": SECRET})
    told = json.loads(line(f"http://api.test/a?key={SECRET}", body))
    place = {"part": "body", "at": body.index(SECRET), "size": len(SECRET), "kind": "token"}
    fields = {"authorization": f"Bearer {SECRET}", "cookie": f"a={SECRET}", "x-api-key": SECRET}
    told["request"] |= {"headers": fields, "body": body, "secrets": [place]}
    told["response"] |= {"headers": {"set-cookie": f"a={SECRET}"}, "secrets": [place]}
    told["redactions"] = ["request.query.key", "request.body", "response.body"]
    told["redactions"] += [
        "response.header.set-cookie",
        *(f"request.header.{one}" for one in fields),
    ]
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    file.write_text(json.dumps(told))
    assert run("import", "--jsonl", file, "--store", store).exit_code == 0
    assert SECRET.encode() not in b"".join(data for _, data in kept_bytes(store))


def test_a_large_body_of_a_line_goes_into_a_file(tmp_path: Path) -> None:
    """As one that was recorded; its pieces stand."""
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    body = "x" * (HELD_BYTES + 5)
    told = json.loads(line("https://api.test/a", body))
    told["response"]["chunks"] = [[1, 5], [9, HELD_BYTES]]
    told["request"] |= {"method": "POST", "body": body}
    file.write_text(json.dumps(told))
    assert run("import", "--jsonl", file, "--store", store).exit_code == 0
    with Store.open(store, readonly=True) as opened:
        (exchange,) = opened.exchanges.all(opened.runs.get("t"))
        response = exchange.response
        assert response is not None
        assert response.spilled is not None
        assert [chunk for chunk, _ in opened.bodies.read(response.spilled)] == [
            Chunk(1, 5),
            Chunk(9, HELD_BYTES),
        ]
        assert exchange.request.spilled is not None
        assert exchange.request.body_bytes == len(body)


def test_an_effect_that_is_there_twice_is_a_possible_duplicate(tmp_path: Path) -> None:
    """Imported traffic is looked at as if it had been recorded."""
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    told = json.loads(line("https://api.test/refunds", "{}"))
    told["request"] |= {"method": "POST", "body": '{"amount": 5}'}
    file.write_text("\n".join([json.dumps(told)] * 2))
    run("import", "--jsonl", file, "--store", store)
    with Store.open(store, readonly=True) as opened:
        first, second = opened.exchanges.all(opened.runs.get("t"))
    assert first.repeat is None
    assert second.repeat == Repeat(Seq(1), RepeatKind.POSSIBLE_DUPLICATE, False)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("{", "line 2: .*truncated"),
        (line("https://api.test/a", "x", seq=1), "line 2: .*own, found 1 again"),
        (line("https://api.test/a", "x", run="y" * 500), "line 2: .*name of a run"),
        # numbers that no record can hold
        (line("https://api.test/a", "x", gone={"at_us": 1 << 70}), r"line 2: .*\$\.gone\.at_us"),
        (
            line("https://api.test/a", "x", started_ns=1 << 62, end_us=1 << 62),
            r"line 2: .*\$\.end_us",
        ),
        (
            "\n".join(
                [line("https://a.test/", "x", seq=(1 << 63) - 1), line("https://a.test/", "")]
            ),
            "line 3: .*no exchange after",
        ),
    ],
)
def test_a_line_that_cannot_be_read_leaves_nothing(second: str, told: str, tmp_path: Path) -> None:
    """Not even the lines before it."""
    file, store = tmp_path / "t.jsonl", tmp_path / "store"
    file.write_text(line("https://api.test/a", "x") + "\n" + second)
    assert re.search(told, refused("import", "--jsonl", file, "--store", store))
    _is_empty(store)


def test_a_file_without_lines_is_no_import(tmp_path: Path) -> None:
    """Nothing imported is no success."""
    (tmp_path / "t.jsonl").write_text("\n\n")
    told = refused("import", "--jsonl", tmp_path / "t.jsonl", "--store", tmp_path / "store")
    assert "no exchanges" in told


@pytest.mark.parametrize("flags", [[], ["--jsonl"]])
def test_a_folder_is_no_file_to_import(tmp_path: Path, flags: list[str]) -> None:
    """What was given is named; there is no traceback."""
    store = str(tmp_path / "store")
    done = CliRunner().invoke(cli, ["import", *flags, "--store", store, str(tmp_path)])
    assert isinstance(done.exception, PlayheadError | SystemExit)
    assert f"{str(tmp_path)!r} is a folder" in str(done.exception)


def test_what_was_there_already_is_said(recorded: Path, tmp_path: Path) -> None:
    """The same recording, whose copy is played from then on; or another one of the name. Not in another store."""
    tape, other = tmp_path / "night.tape", tmp_path / "two"
    run("export", "night", "--tape", tape, "--store", recorded)
    assert run("import", tape, "--store", other).stderr == ""
    told = run("import", tape, "--store", other).stderr
    assert (
        "the recording 'night' of this store is the same; it was imported again, as 'night~2'"
        in told
    )
    assert "which `replay night` plays now (playhead erase 'night~2' removes it)" in told
    third = tmp_path / "three"
    with Store.open(third) as store:
        record_run(store, "night", [ask()])
    told = run("import", tape, "--store", third).stderr
    assert "the name 'night' was taken; imported as 'night~2'" in told
    assert "plays now" not in told  # the one that was there is newer


def test_lines_of_a_name_that_was_taken_say_so(tmp_path: Path) -> None:
    """Without times of their own they are no recording that was there."""
    path, file = tmp_path / "store", tmp_path / "t.jsonl"
    file.write_text(line("https://a.test/", "yes"))
    run("import", "--jsonl", file, "--store", path)
    told = run("import", "--jsonl", file, "--store", path).stderr
    assert "the name 't' was taken; imported as 't~2', which `replay t` plays now" in told


def test_the_newest_is_the_one_that_began_last(tmp_path: Path) -> None:
    """Also after an older one was imported, which has the highest number."""
    path, file = tmp_path / "store", tmp_path / "r.tape"
    with Store.open(path) as store:
        for began in (100, 200):
            record_run(store, "r", [ask()], between_ns=(began, began + 1))
    assert run("export", "r~1", "--tape", file, "--store", path).exit_code == 0
    assert "r~3: 1 exchanges" in run("import", file, "--store", path).output
    with Store.open(path) as store:
        assert [one.id for one in store.runs.find_recordings("r")] == ["r~2", "r~3", "r"]
        latest = store.runs.find_latest()
        assert latest is not None
        assert latest.id == "r~2"
        assert choose_recording(store, "r") == ("r~2", ("r~3", "r"))
        record_run(store, "r", [ask()], between_ns=(300, 301))
        latest = store.runs.find_latest()
        assert latest is not None
        assert latest.id == "r~4"


def test_a_file_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    """Where its folder is missing, that it is to be made."""
    path = tmp_path / "store"
    with Store.open(path) as store:
        record_run(store, "r", [ask()])
    target = tmp_path / "nodir" / "x.tape"
    done = run("export", "r", "--tape", target, "--store", path)
    assert isinstance(done.exception, StoreError)
    assert (
        done.exception.hint
        == f"there is no folder {str(target.parent)!r}: make it first, or name a file elsewhere"
    )
    target.parent.mkdir()
    assert run("export", "r", "--tape", target, "--store", path).exit_code == 0


@pytest.mark.parametrize("name", ["latest", "x@1", "--"])
def test_lines_are_not_imported_under_a_reserved_name(tmp_path: Path, name: str) -> None:
    """As no recording is made under one."""
    done = run("import", "--jsonl", f"--run={name}", tmp_path / "none", "--store", tmp_path / "s")
    assert done.exit_code == 2
    assert f"--run: {name!r} " in done.output
