"""Read a batch back before the store drops its runs, and name the runs that differ from the records written.

Every byte of every record is compared, read from the archive as a later restore reads it. So a fault of the writer, of the
reader or of the storage cannot lose a run.
"""

from collections.abc import Iterable

from blake3 import blake3

from ...tape.records.tape_file import Given, Kind, Record, hash_record
from ..errors import StoreError
from .reading import BatchReader
from .storage import Place
from .writing import PIECES, Written


def find_unreadable(place: Place, batch: str, written: Iterable[Written]) -> dict[str, str]:
    """Find the runs of a batch that do not come back as they were put: why, by archive id.

    Raises: StoreError, where the batch cannot be opened at all.
    """
    found: dict[str, str] = {}
    sound: Given = set()
    with BatchReader(place, batch) as opened:
        for run in written:
            given = set(sound)
            try:
                same = _hash(opened, run.archive_id, given) == run.digest
            except StoreError as error:
                found[run.archive_id] = str(error)
                continue
            if same:
                sound = given
            else:
                found[run.archive_id] = (
                    f"{batch} of the archive {place.name} does not give back the original"
                )
    return found


def _hash(batch: BatchReader, archive_id: str, given: Given) -> bytes:
    """Hash the records of a run as `BatchWriter` does.

    given: which bodies and contents were checked already; grows.
    """
    told, body = blake3(), blake3()
    name: Record | None = None
    for record in batch.records(archive_id, given):
        if record.kind is Kind.PIECE:
            body.update(record.data)
            continue
        _check_pieces(batch, body, name)
        name = None
        if record.kind in PIECES:
            body, name = blake3(), record
        else:
            hash_record(told, record)
    _check_pieces(batch, body, name)
    return told.digest()


def _check_pieces(batch: BatchReader, found: blake3, named: Record | None) -> None:
    if named is not None and found.digest() != named.data:
        raise StoreError(
            f"{PIECES[named.kind]}/{batch.name}.parquet: {named.data.hex()} does not fit its hash"
        )
