"""Move runs between a store and an archive, and remove archived runs for good.

The order in which things happen, so that a kill at any point loses nothing and leaves nothing twice: a batch is marked as
unneeded, its files are written, its `steps` last, and all of it is read back; then one transaction of the store says that
its runs lie there, and drops their rows and the mark. What is marked when the next begins is removed first.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ...store import Archived, RunInfo, Store, StoreError
from ...store.archive.read_back_check import find_unreadable
from ...store.archive.reading import FOLDERS, BatchReader
from ...store.archive.schema import STEPS
from ...store.archive.storage import Place
from ...store.archive.writing import BatchWriter
from ...tape.exchange import Exchange
from ...tape.records.check_event_fields import check_event
from ...tape.records.codec import BadRecord, encode_exchange
from ...tape.records.events import EventKind, content_hash, decode_event
from ...tape.records.rewrite_tombstones import read_rewritten, replace_hashes
from ...tape.records.tape_file import Given, Record
from ..checks.integrity import verify_run
from ..formats.tape_file import RecordIngest, find_unfit, records_of
from ..reading.contract_row import ContractRow

_BATCH_BYTES = 512 << 20
"""Before packing; a batch ends with the run that exceeds it, and so does what a kill makes to be done again."""
_BATCH_RUNS = 1000
Progress = Callable[[int, int], None]
Open = Callable[[str], Place]
"""Opens an archive by the text that a run carries."""


class Moved(NamedTuple):
    """What became of runs that were to be archived."""

    runs: list[RunInfo]
    refused: list[tuple[RunInfo, str]]
    """Those that stay, and why."""


def batch_name(host: str, at_ns: int) -> str:
    """Make a name that no other batch has: its time, so that names sort by it, its host and chance."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_ns / 1e9))
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in host)[:40]
    return f"{stamp}-{name}-{secrets.token_hex(8)}"


def archive_runs(
    store: Store,
    place: Place,
    runs: Sequence[RunInfo],
    host: str,
    clock: Callable[[], int],
    progress: Progress = lambda _done, _of: None,
) -> Moved:
    """Move runs that have ended to an archive; those that are not sound stay, and are named.

    clock: nanoseconds since the epoch.
    Raises: StoreError; what was moved before is.
    """
    total = sum(run.exchanges for run in runs) or 1
    left = sorted(runs, key=lambda run: (run.id, run.number))
    moved = Moved([], [])
    done = 0
    place.prepare()
    while left:
        batch = batch_name(host, clock())
        store.archive.begin(place.name, batch)
        taken: list[RunInfo] = []
        with BatchWriter(place, batch, host) as writer:
            given: Given = set()
            while left and len(taken) < _BATCH_RUNS and writer.raw_bytes < _BATCH_BYTES:
                run = left.pop(0)
                wrong = verify_run(store, run).problems
                if wrong:
                    moved.refused.append((run, f"seq {wrong[0].seq}: {wrong[0].text}"))
                    continue
                if unfit := find_unfit(store, run):
                    moved.refused.append((run, f"it would not come back: {unfit}"))
                    continue
                _put_run(writer, run, secrets.token_hex(16), records_of(store, run, given))
                taken.append(run)
                done += run.exchanges
                progress(done, total)
            written = writer.finish() if taken else []
        bad = find_unreadable(place, batch, written) if taken else {}
        where = [Archived(place.name, batch, one.archive_id, one.events) for one in written]
        sound = [pair for pair in zip(taken, where, strict=True) if pair[1].id not in bad]
        made = store.archive.moved(batch, sound)
        moved.runs.extend(made)
        kept = {run.number for run in made}
        for run, place_of in zip(taken, where, strict=True):
            if run.number not in kept:
                why = bad.get(place_of.id, "it changed, or is being played")
                moved.refused.append((run, why))
        if made and len(made) < len(taken):
            _rewrite(store, place, batch, (), host, clock)
    return moved


def release_changed(
    store: Store,
    runs: Iterable[RunInfo],
    open_place: Open,
    host: str,
    clock: Callable[[], int],
) -> list[tuple[RunInfo, str]]:
    """Let archived runs whose copies were written to be runs of the store alone again, to be archived as any other.

    Give those that stay as they are, since their archive cannot be reached, and why.
    """
    refused: list[tuple[RunInfo, str]] = []
    for (name, batch), freed in by_batch(runs).items():
        try:
            _rewrite(store, open_place(name), batch, (), host, clock, [run.number for run in freed])
        except StoreError as error:
            refused.extend((run, str(error)) for run in freed)
    return refused


def by_batch(runs: Iterable[RunInfo]) -> dict[tuple[str, str], list[RunInfo]]:
    """Give archived runs by place and batch, in order."""
    found: dict[tuple[str, str], list[RunInfo]] = {}
    for run in runs:
        assert run.archived is not None
        found.setdefault((run.archived.place, run.archived.batch), []).append(run)
    return dict(sorted(found.items()))


def _put_run(writer: BatchWriter, run: RunInfo, archive_id: str, records: Iterator[Record]) -> None:
    writer.begin(archive_id, next(records), run.labels)
    try:
        for record in records:
            writer.put(record)
    except BadRecord as error:
        raise StoreError(f"run {run.id!r} cannot be archived: {error}") from error


def restore(
    store: Store,
    info: RunInfo,
    place: Place,
    at_ns: int,
    progress: Progress = lambda _done, _of: None,
) -> None:
    """Put what an archive holds of a run into the store again: all of it or nothing.

    Raises: StoreError, naming the file that cannot be read and what is wrong with it.
    """
    assert info.archived is not None
    where = info.archived
    with BatchReader(place, where.batch) as batch, store.ingest() as ingest:
        record_ingest = RecordIngest(store, ingest, info)
        try:
            for record in record_ingest.files(batch.records(where.id)):
                record_ingest.ingest(record)
                progress(record_ingest.exchanges, info.exchanges)
            record_ingest.publish_restored(info, at_ns)
        except BadRecord as error:
            raise StoreError(
                f"run {info.id!r} in {where.batch} of the archive {place.name} differs from the original: {error}",
                "put back a copy of its files; nothing was restored",
            ) from error


class ArchivedStep(NamedTuple):
    """One exchange of an archived run."""

    exchange: Exchange
    contracts: list[ContractRow]
    """Its contract violations."""


def find_step(where: Archived, place: Place, seq: int) -> ArchivedStep | None:
    """Find an exchange of an archived recording without restoring the run; None for a WebSocket, which may be long.

    Raises: StoreError.
    """
    with BatchReader(place, where.batch) as batch:
        exchange = batch.find_step(where.id, seq)
        if exchange is None or exchange.websocket is not None:
            return None
        rows: list[ContractRow] = []
        hashed: bytes | None = None
        for number, value in enumerate(batch.events(where.id), 1):
            event = decode_event(value, number)
            if event.kind is EventKind.REWRITTEN:
                check_event(event)
                hashes = {seq: hashed} if hashed is not None else {}
                replace_hashes(read_rewritten(event), hashes, {})
                hashed = hashes.get(seq)
            if event.seq != seq:
                continue
            if event.kind is EventKind.CONTRACT:
                rows.append(ContractRow.from_event(event.data))
            elif event.kind is EventKind.OUTCOME and "hash" in event.data:
                hashed = event.data["hash"]
        if hashed not in (None, content_hash(encode_exchange(exchange))):
            raise StoreError(
                f"exchange {seq} in {where.batch} of the archive {place.name} does not fit the hash in its log",
                "put back a copy of its files",
            )
        return ArchivedStep(exchange, rows)


def remove_archived(
    store: Store,
    runs: Iterable[RunInfo],
    open_place: Open,
    host: str,
    clock: Callable[[], int],
    progress: Progress = lambda _done, _of: None,
) -> None:
    """Delete archived runs, from their archives and from the store; files that they share with others are made anew.

    Raises: StoreError; what was deleted before is.
    """
    batches = by_batch(runs)
    for done, ((name, batch), gone) in enumerate(batches.items(), 1):
        _rewrite(store, open_place(name), batch, [run.number for run in gone], host, clock)
        progress(done, len(batches))
    remove_unneeded(store, open_place)


def _rewrite(
    store: Store,
    place: Place,
    old: str,
    gone: Collection[int],
    host: str,
    clock: Callable[[], int],
    freed: Collection[int] = (),
) -> None:
    """Put a batch in the place of another, of those of its runs that lie in it and stay, if there are any.

    gone: numbers of runs that are deleted with it.
    freed: of those that the store holds whole, and the archive no longer.
    Raises: StoreError, also where the store is a copy of another one.
    """
    store.archive.check_home()
    kept = [
        run.archived
        for run in store.runs.all()
        if run.archived is not None
        and run.archived.batch == old
        and run.number not in {*gone, *freed}
    ]
    new = None
    if kept:
        new = batch_name(host, clock())
        store.archive.begin(place.name, new)
        with BatchReader(place, old) as batch, BatchWriter(place, new, host) as writer:
            labels = {row["archive_id"]: row["labels"] for row in batch.runs()}
            given: Given = set()
            for one in kept:
                records = batch.records(one.id, given)
                writer.begin(one.id, next(records), labels[one.id])
                for record in records:
                    writer.put(record)
            written = writer.finish()
        if bad := find_unreadable(place, new, written):
            raise StoreError(next(iter(bad.values())), f"{old} stays as it is; try again")
    store.archive.rewritten(place.name, old, new, gone, freed)


def replace_outdated(store: Store, open_place: Open, host: str, clock: Callable[[], int]) -> int:
    """Put batches in the place of those that hold what runs were before they were rewritten; give how many.

    The files of the old ones go with `remove_unneeded`.
    Raises: StoreError, also where the store is a copy of another one.
    """
    found = store.archive.outdated()
    for name, batch in found:
        _rewrite(store, open_place(name), batch, (), host, clock)
    return len(found)


def remove_unneeded(store: Store, open_place: Open) -> int:
    """Remove the files of batches that nobody needs, left by a kill or by deleted runs; give the number of batches.

    Raises: StoreError.
    """
    found = store.archive.unneeded()
    if found:
        store.archive.check_home()
    for name, batch in found:
        place = open_place(name)
        for folder in (STEPS, *(folder for folder in FOLDERS if folder != STEPS)):
            place.remove(folder, batch)
        store.archive.removed(batch)
    return len(found)
