"""Body files without encryption, and the interfaces of a file that is written or read."""

import os
from types import TracebackType
from typing import BinaryIO, Protocol, Self


class WritableFile(Protocol):
    """A file that is written, and may be read meanwhile. `read` and `put` may be called from several threads."""

    def put(self, data: bytes) -> None:
        """Write what follows."""

    def read(self, start: int, size: int) -> bytes:
        """Read from what was put; shorter only at its end."""

    def finish(self) -> None:
        """Make what was put durable; nothing follows."""

    def close(self) -> None:
        """Let go of the file."""


class ReadableFile(Protocol):
    """A file that is read from its start."""

    def read(self, size: int, /) -> bytes:
        """Read what follows; shorter only at the end.

        Raises: OSError; BadRecord.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class PlainFile:
    """A file that lies as it is."""

    def __init__(self, descriptor: int) -> None:
        """Begin an empty one, which owns the descriptor from now on."""
        self._file = os.fdopen(descriptor, "r+b", buffering=0)

    def put(self, data: bytes) -> None:
        """Write what follows."""
        write_all(self._file, data)

    def read(self, start: int, size: int) -> bytes:
        """Read from what was put; shorter only at its end."""
        return os.pread(self._file.fileno(), size, start)

    def finish(self) -> None:
        """Make what was put durable; nothing follows."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of some data into a file without a buffer."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
