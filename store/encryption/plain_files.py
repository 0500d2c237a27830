"""Body files without encryption."""

import os
from typing import BinaryIO, override

from .cipher import WritableFile


class PlainFile(WritableFile):
    """A file that lies as it is."""

    def __init__(self, descriptor: int) -> None:
        """Begin an empty one, which owns the descriptor from now on."""
        self._file = os.fdopen(descriptor, "r+b", buffering=0)

    @override
    def put(self, data: bytes) -> None:
        write_all(self._file, data)

    @override
    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, start)

    @override
    def finish(self) -> None:
        os.fsync(self._file.fileno())

    @override
    def close(self) -> None:
        self._file.close()


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of some data into a file without a buffer."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
