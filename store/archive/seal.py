"""Give every byte of a batch a check: `steps` contains the hash of each other file, and a seal over itself.

The *seal* is the BLAKE3 of the `steps` file, computed while the seal's own 64 characters are zeros. It is in the file's
metadata, and is found by its bytes, before anything else of the file is interpreted. So one flipped bit in any file of a batch
is noticed. A seal proves nothing against a person who can write the archive: that person can seal a changed file.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from blake3 import blake3

from ..errors import StoreError
from .schema import FILES_KEY, SCHEMAS

SEAL_KEY = "playhead.seal"
_CHARACTERS = 64
UNSEALED = "0" * _CHARACTERS
_MARK = SEAL_KEY.encode() + bytes((0x18, _CHARACTERS))
"""A key of the metadata, and the beginning of its value: a field of bytes and its length (Thrift's compact protocol)."""
_PIECE_BYTES = 1 << 20


class FileSum(NamedTuple):
    """Length in bytes and BLAKE3, as hex digits, of a file."""

    size: int
    digest: str


class HashedFile:
    """A file that is written from its beginning to its end, with the hash of all that was written."""

    closed = False

    def __init__(self, file: Any) -> None:
        """Take a file; whoever opened it closes it."""
        self._file = file
        self._hash = blake3()
        self._size = 0

    def write(self, data: Any) -> int:
        """Write; give the number of bytes."""
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Give the number of bytes that were written."""
        return self._size

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._file.flush()

    def sum(self) -> FileSum:
        """Describe the file as it is now."""
        return FileSum(self._size, self._hash.hexdigest())


def describe_files(sums: Mapping[str, FileSum]) -> dict[str, str]:
    """Give the metadata of `steps` that describes the other files of its batch."""
    files = {folder: {"bytes": one.size, "blake3": one.digest} for folder, one in sums.items()}
    return {FILES_KEY.decode(): json.dumps(files)}


def parse_files(metadata: Mapping[bytes, bytes]) -> dict[str, FileSum]:
    """Read what `describe_files` gave.

    Raises: ValueError, KeyError, TypeError, AttributeError: it is something else.
    """
    found = {}
    for folder, told in json.loads(metadata[FILES_KEY]).items():
        size, digest = told["bytes"], told["blake3"]
        if folder not in SCHEMAS or type(size) is not int or len(bytes.fromhex(digest)) != 32:
            raise ValueError(f"it describes {folder!r:.40} as {told!r:.80}")
        found[folder] = FileSum(size, digest)
    return found


def seal(data: bytes) -> bytes:
    """Seal a `steps` file that has the seal `UNSEALED`."""
    at = _find(data)
    assert at is not None
    assert data[at : at + _CHARACTERS] == UNSEALED.encode()
    return data[:at] + blake3(data).hexdigest().encode() + data[at + _CHARACTERS :]


def fits_seal(data: bytes) -> bool | None:
    """Say whether a `steps` file is as it was sealed; None if it has no seal."""
    at = _find(data)
    if at is None:
        return None
    return seal(data[:at] + UNSEALED.encode() + data[at + _CHARACTERS :]) == data


def sum_file(file: Any) -> FileSum:
    """Read an open file to its end; give its length and hash.

    Raises: OSError.
    """
    found, size = blake3(), 0
    while piece := file.read(_PIECE_BYTES):
        found.update(piece)
        size += len(piece)
    return FileSum(size, found.hexdigest())


def check_sum(where: str, expected: FileSum, found: FileSum) -> None:
    """Check that a file is the one that `steps` describes.

    Raises: StoreError.
    """
    if found != expected:
        raise StoreError(
            f"{where}: its {found.size} bytes have the hash {found.digest:.16}; expected {expected.size} bytes with"
            f" {expected.digest:.16}",
            "put back a copy of it; nothing was taken from it",
        )


def _find(data: bytes) -> int | None:
    # The metadata is at the end of the file; a mark in a row before it is no seal.
    at = data.rfind(_MARK)
    return at + len(_MARK) if at >= 0 else None
