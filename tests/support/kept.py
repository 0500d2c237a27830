"""All that a store holds, as bytes: its files, and what is packed in them."""

from collections.abc import Iterator
from pathlib import Path

from playhead.store import Store
from playhead.store.deltas.records import KEY_BYTES
from playhead.tape.folders.manifest import read_rows
from playhead.tape.records.codec import encode_exchange


def kept_bytes(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Give each file as it lies there, and each packed record as it is read."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
    with Store.open(folder, readonly=True) as store:
        for run in store.runs.all():
            for exchange in store.exchanges.all(run):
                yield f"{run.id} {exchange.seq}", encode_exchange(exchange)
            for packed, files in read_rows(store.folders.rows(run)):
                yield f"{run.id} folder", packed
                for entry in files.values():
                    if store.folders.holds(entry.digest):
                        yield f"content {entry.digest.hex()}", store.folders.read(entry.digest)
        database, records = store._database, store.exchanges._records
        with database.reading() as transaction:
            with transaction.cursor(database.tables["openings"]) as cursor:
                names = [bytes(key) for key, _ in cursor if len(key) == KEY_BYTES]
            for name in names:
                yield f"shared prefix {name.hex()}", records.find(transaction, 0, name) or b""
