"""Read a batch back before the store drops its runs, and name the runs that differ from the records written.

Every byte of every record is compared, read from the archive as a later restore reads it. So a fault of the writer, of the
reader or of the storage cannot lose a run.
"""

from collections.abc import Iterable

from blake3 import blake3

from ...tape.records.tape_file import Kind, hash_record
from ..errors import StoreError
from .reading import BatchReader
from .storage import Place
from .writing import Written


def find_unreadable(place: Place, batch: str, written: Iterable[Written]) -> dict[str, str]:
    """Find the runs of a batch that do not come back as they were put: why, by archive id.

    Raises: StoreError, where the batch cannot be opened at all.
    """
    found: dict[str, str] = {}
    sound: set[bytes] = set()
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
                    f"{batch} of the archive {place.name} does not give back what was put into it"
                )
    return found


def _hash(batch: BatchReader, archive_id: str, given: set[bytes]) -> bytes:
    """Hash the records of a run as `BatchWriter` does.

    given: digests of bodies that were checked already; grows.
    """
    told, body, name = blake3(), blake3(), b""
    for record in batch.records(archive_id, given):
        if record.kind is Kind.PIECE:
            body.update(record.data)
            continue
        _check_body(batch, body, name)
        name = b""
        if record.kind is Kind.BODY:
            body, name = blake3(), record.data
        else:
            hash_record(told, record)
    _check_body(batch, body, name)
    return told.digest()


def _check_body(batch: BatchReader, body: blake3, name: bytes) -> None:
    if name and body.digest() != name:
        raise StoreError(
            f"bodies/{batch.name}.parquet: the body {name.hex()} does not fit its hash"
        )
