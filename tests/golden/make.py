"""Make the golden file of each format's current version, where it is not there yet.

    python -m playhead.tests.golden.make

A golden file is what the first Playhead of its version wrote. It is never written again: the tests read all of them, upgraded
where a version is an earlier one. So what is compared says nothing of how our types are written today (`describe`).

    store-N.tar.gz, store-N-encrypted.tar.gz     a store with runs of every sort of row, and what is in it: store-N.json
    tape-N.tape                                  its run `talk` as one file, and what is in it: tape-N.json
    archive-N.tar.gz                             the same run as Parquet files, and what is in it: archive-N.json
    receipt-N.json                               the receipt of its run `talk@1`
    configuration-N.yaml, configuration-N.json   a file with a key of every sort, and what it means
"""

import asyncio
import base64
import dataclasses
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from playhead.config import ArchivePlace, loads
from playhead.config.schema import CONFIG_VERSION
from playhead.store import RunInfo, Store, StoreKey
from playhead.store.archive import VERSION as ARCHIVE_VERSION
from playhead.store.lmdb_keys import FORMAT, OLDEST_FORMAT
from playhead.tape.exchange import (
    Alpn,
    Chunk,
    Close,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    RequestClass,
    Spilled,
    WebSocketSummary,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tape.records.tape_file import VERSION as TAPE_VERSION
from playhead.tests.support.conversations import bodies, step
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response
from playhead.timeline import build
from playhead.timeline.formats.tape_file import RecordIngest, export_tape, import_tape, records_of
from playhead.timeline.receipts.receipt import RECEIPT_VERSION

if TYPE_CHECKING:
    from playhead.store.archive.storage import Place

FOLDER = Path(__file__).parent
VERSIONS: Mapping[str, tuple[int, int]] = {
    "store": (OLDEST_FORMAT, FORMAT),
    "tape": (1, TAPE_VERSION),
    "archive": (1, ARCHIVE_VERSION),
    "receipt": (1, RECEIPT_VERSION),
    "configuration": (1, CONFIG_VERSION),
}
"""By format: the first version that was released, and the current one."""
KEY = StoreKey(bytes(range(32)), "the golden files")
BATCH = "golden"
ARCHIVE_ID = "0" * 32
_PICTURE = base64.b64encode(Random(1).randbytes(6200)).decode()
_PIECES = (b"a body too large ", b"to be held, ", b"in pieces")
_MESSAGES = (
    Message(1, True, MessageKind.TEXT, b"hello", (2, 3)),
    Message(2, False, MessageKind.BINARY, bytes(range(256))),
)


# ---- what is written -----------------------------------------------------------------------------


async def write(folder: Path, key: StoreKey | None = None) -> None:
    """Write a store: chains of two conversations with a shared prefix, and what else an exchange can be."""
    with Store.open(folder, key=key) as store:
        tape = await _record(store, "talk", await _exchanges(store))
        told = [step(seq, body) for seq, body in enumerate(bodies("other", 2), 1)]
        await _record(store, "other", told)
        await _play(store, tape)


async def _exchanges(store: Store) -> list[Exchange]:
    talk = [step(seq, body) for seq, body in enumerate(bodies("talk", 6), 1)]
    seen = json.dumps({"picture": _PICTURE}).encode()
    url = "POST https://api.test/v1/refunds"
    fault = Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), 2, Ending.FIN)
    spool = store.bodies.spool()
    for at, piece in enumerate(_PIECES):
        spool.write(piece, Chunk(at, len(piece)))
    spilled: Spilled = await spool.keep()
    spool.drop()
    return [
        *talk,
        make_exchange(7, "POST https://api.test/v1/see", body=seen),
        make_exchange(8, url, kind=RequestClass.EFFECT, body=b"{}", response=None, fault=fault),
        make_exchange(
            9,
            url,
            kind=RequestClass.EFFECT,
            response=make_response(b"in two", chunks=(Chunk(1, 3), Chunk(2, 3))),
            gone=Gone(3, 1, True),
            alpn=Alpn((b"h2", b"http/1.1"), b"h2"),
        ),
        make_exchange(10, response=replace(make_response(b""), spilled=spilled)),
        make_exchange(
            11,
            response=make_response(b"", 101),
            websocket=WebSocketSummary(
                2, 261, Close(3, True, 1000, RedactedText(""), (1000, RedactedText("bye")))
            ),
        ),
    ]


async def _record(store: Store, name: str, exchanges: Iterable[Exchange]) -> RunInfo:
    run = await store.runs.create(name, mode="record", at_ns=1, agent=RedactedText("agent.py"))
    for exchange in exchanges:
        await store.events.append_durably(run.number, make_intent(exchange))
        if exchange.websocket is not None:
            for number, message in enumerate(_MESSAGES):
                store.messages.append(run.number, exchange.seq, number, message)
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=9)


async def _play(store: Store, tape: RunInfo) -> None:
    """Write a playback that was served the first exchange, and refused another."""
    run = await store.runs.create(tape.id, mode="playback", at_ns=10, parent=tape)
    first = store.exchanges.find(tape, 1)
    assert first is not None
    asked = make_intent(first).data
    served = {"verdict": "served", "reason": "on the tape", "tape_seq": 1, "match": "exact"}
    refused = {"seq": 2, "verdict": "refused", "reason": "not on the tape"}
    for data in ({**asked, **served}, {**asked, **refused}):
        store.events.append(run.number, Event(EventKind.VERDICT, 11, data))
    store.events.append(run.number, Event(EventKind.NOTED, 12, {"child_exit": 1, "text": "a note"}))
    await store.runs.seal(run, reason="the command ended with 1", at_ns=13)


# ---- what is in it -------------------------------------------------------------------------------


def describe(store: Store, *names: str) -> dict[str, Any]:
    """Say what a store holds of runs, in JSON that follows none of our types.

    names: of the runs; all where none is given.
    """
    runs = [store.runs.get(name) for name in names] or store.runs.all()
    return {run.id: _run(store, run) for run in runs}


def _run(store: Store, run: RunInfo) -> dict[str, Any]:
    return {
        "mode": run.mode,
        "status": run.status.value,
        "parent": run.parent,
        "agent": run.agent,
        "end": run.end,
        "chain": store.events.find_broken_link(run) is None,
        "events": [
            [one.kind.value, one.at_ns, one.seq, one.data.get("reason")]
            for one in store.events.all(run)
        ],
        "exchanges": [_exchange(store, run, one) for one in store.exchanges.all(run)],
    }


def _exchange(store: Store, run: RunInfo, exchange: Exchange) -> dict[str, Any]:
    request, response, fault = exchange.request, exchange.response, exchange.fault
    gone, talk = exchange.gone, exchange.websocket
    made: dict[str, Any] = {
        "seq": exchange.seq,
        "class": exchange.request_class.value,
        "request": [request.method, request.url, _hash(request.body), _fields(request.headers)],
        "times": [exchange.started_ns, exchange.end_us],
        "fingerprint": exchange.fingerprint.hex(),
    }
    if response is not None:
        made["response"] = [response.status, _hash(response.body), _fields(response.headers)]
        made["pieces"] = [[one.at_us, one.size] for one in response.chunks]
        if response.spilled is not None:
            data = [piece for _, piece in store.bodies.read(response.spilled)]
            made["spilled"] = [response.spilled.size, _hash(b"".join(data)), len(data)]
    if fault is not None:
        made["fault"] = [fault.kind.value, fault.phase.value, fault.text, fault.ending.value]
    if gone is not None:
        made["gone"] = [gone.at_us, gone.chunks, gone.head]
    if exchange.alpn.chosen is not None:
        made["alpn"] = exchange.alpn.chosen.decode()
    if talk is not None:
        assert talk.close is not None
        made["close"] = [talk.close.code, talk.close.by_client, talk.close.answer]
        made["messages"] = [
            [one.at_us, one.from_client, one.kind.value, _hash(one.data), list(one.frames)]
            for one in store.messages.all(run, exchange.seq)
        ]
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def _fields(headers: Iterable[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def describe_tape(file: Path, folder: Path) -> dict[str, Any]:
    """Say what a tape holds, once it is imported into a store in `folder`."""
    with Store.open(folder) as store:
        import_tape(store, lambda: [file.read_bytes()], 1 << 30, lambda *_: None)
        return describe(store)


def describe_archive(archive: Path, folder: Path) -> dict[str, Any]:
    """Say what an archive holds, once it is taken into a store in `folder`."""
    from playhead.store.archive.reading import BatchReader

    with (
        Store.open(folder) as store,
        BatchReader(place_of(archive), BATCH) as reader,
        store.ingest() as ingest,
    ):
        taking = RecordIngest(store, ingest)
        for record in taking.files(reader.records(ARCHIVE_ID)):
            taking.ingest(record)
        taking.publish()
        return describe(store)


def describe_configuration(text: str) -> dict[str, Any]:
    """Say what a configuration means."""
    found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(loads(text)), default=str))
    return found


# ---- files -----------------------------------------------------------------------------------------


def place_of(folder: Path) -> "Place":
    """Open an archive in a folder."""
    from playhead.store.archive.storage import Place

    return Place(ArchivePlace(folder=folder))


def pack(folder: Path, target: Path, pattern: str) -> None:
    """Pack the files of a folder, as deterministically as can be."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file():
                about = tarfile.TarInfo(str(path.relative_to(folder)))
                about.size = path.stat().st_size
                with path.open("rb") as file:
                    tar.addfile(about, file)
    target.write_bytes(gzip.compress(made.getvalue(), mtime=0))


def unpack(name: str, folder: Path) -> Path:
    """Unpack a golden file into a folder; give that."""
    with tarfile.open(FOLDER / name) as tar:
        tar.extractall(folder, filter="data")
    return folder


def _dump(name: str, value: Any) -> None:
    (FOLDER / name).write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def _make_store(work: Path, version: int) -> None:
    asyncio.run(write(work / "store-encrypted", KEY))
    for name in ("", "-encrypted"):
        folder = work / f"store{name}"
        for left in ("lock", "log.lmdb/lock.mdb"):
            (folder / left).unlink(missing_ok=True)
        pack(folder, FOLDER / f"store-{version}{name}.tar.gz", "*")
    with Store.open(work / "store", readonly=True) as store:
        _dump(f"store-{version}.json", describe(store))


def _make_tape(work: Path, version: int) -> None:
    with Store.open(work / "store", readonly=True) as store:
        made: list[bytes] = []
        export_tape(store, store.runs.get("talk"), made.append, lambda *_: None)
    file = FOLDER / f"tape-{version}.tape"
    file.write_bytes(b"".join(made))
    _dump(f"tape-{version}.json", describe_tape(file, work / "imported"))


def _make_archive(work: Path, version: int) -> None:
    from playhead.store.archive.writing import BatchWriter

    place = place_of(work / "archive")
    place.prepare()
    with (
        Store.open(work / "store", readonly=True) as store,
        BatchWriter(place, BATCH, "host") as writer,
    ):
        records = records_of(store, store.runs.get("talk"), set())
        writer.begin(ARCHIVE_ID, next(records), ())
        for record in records:
            writer.put(record)
        writer.finish()
    pack(work / "archive", FOLDER / f"archive-{version}.tar.gz", "*.parquet")
    found = describe_archive(work / "archive", work / "recalled")
    _dump(f"archive-{version}.json", found)


def _make_receipt(work: Path, version: int) -> None:
    with Store.open(work / "store", readonly=True) as store:
        _dump(f"receipt-{version}.json", build(store, store.runs.get("talk@1")).to_json())


def _make_configuration(_: Path, version: int) -> None:
    text = (FOLDER / f"configuration-{version}.yaml").read_text("utf-8")
    _dump(f"configuration-{version}.json", describe_configuration(text))


_MAKERS: Mapping[str, tuple[str, Callable[[Path, int], None]]] = {
    "store": ("store-{}.tar.gz", _make_store),
    "tape": ("tape-{}.tape", _make_tape),
    "archive": ("archive-{}.tar.gz", _make_archive),
    "receipt": ("receipt-{}.json", _make_receipt),
    "configuration": ("configuration-{}.json", _make_configuration),
}
"""By format: the name of its golden file, and what makes it."""


def golden(form: str, version: int) -> Path:
    """Give the golden file of a version of a format."""
    return FOLDER / _MAKERS[form][0].format(version)


def main() -> None:
    """Make what is missing."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        asyncio.run(write(work / "store"))
        for form, (_, make) in _MAKERS.items():
            if not golden(form, VERSIONS[form][1]).exists():
                make(work, VERSIONS[form][1])
                print(f"made {golden(form, VERSIONS[form][1])}")


if __name__ == "__main__":
    main()
