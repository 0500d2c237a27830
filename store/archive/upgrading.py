"""Bring the `steps` file of a batch to the current version; the other files of a batch are as the first version wrote them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...tape.records.codec import BadRecord
from .schema import FILES_KEY
from .seal import sum_file
from .writing import rewrite_steps


def add_seal(source: Path, target: Path) -> None:
    """Write version 2 of a file of version 1: with the hashes of the batch's other files, and sealed.

    source: in the folder `steps`, with the other folders of the archive beside it.
    Raises: BadRecord, where another file is not there or has another length than it was written with; OSError.
    """
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            sums = {}
            for folder, size in json.loads(file.metadata.metadata[FILES_KEY]).items():
                other = source.parent.parent / folder / source.name
                if not other.is_file():
                    raise BadRecord(f"{other} is not there; an archive is upgraded in one folder")
                with other.open("rb") as opened:
                    sums[folder] = sum_file(opened)
                if sums[folder].size != size:
                    raise BadRecord(f"{other} is {sums[folder].size} bytes long; expected {size}")
            target.write_bytes(rewrite_steps(file, sums))
    except (pa.ArrowException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRecord(f"no index of an archive: {error!r:.200}") from error
