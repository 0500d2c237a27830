"""The cipher of a store: one interface for a store with a key and one without, and those of the body files that it opens.

`PlainCipher` leaves rows and files as they are, `AesCipher` encrypts them; `choose.py` makes the one for a key. Every method
may be called from any thread. This module imports neither of the two.
"""

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ..paths import BODIES
from .key import ID_BYTES


class WritableFile(Protocol):
    """A file that is written, and may be read meanwhile. `read` and `put` may be called from several threads."""

    def put(self, data: bytes) -> None:
        """Write what follows.

        Raises: OSError.
        """

    def read(self, start: int, size: int) -> bytes:
        """Read `size` bytes from an offset of what was put; fewer only at its end.

        Raises: OSError.
        """

    def finish(self) -> None:
        """Make what was put durable; nothing follows.

        Raises: OSError.
        """

    def close(self) -> None:
        """Let go of the file."""


class ReadableFile(Protocol):
    """A file that is read from its start."""

    def read(self, size: int, /) -> bytes:
        """Read the next `size` bytes; fewer only at the end.

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


class StoreCipher(Protocol):
    """Turns rows and body files into the form they have on disk, and back.

    `key` and `value` are a row as the store means it, `place` and `data` the same row as LMDB holds it.
    """

    check: bytes
    """Check value of the key in `meta`: 32 bytes; empty without a key."""

    @property
    def folder(self) -> str:
        """Name of the folder of body files, inside the store's."""

    def stored_key(self, table: str, key: bytes) -> bytes:
        """Give the key of a row as it is stored in LMDB."""

    def plain_key(self, table: str, place: bytes) -> bytes:
        """Give the key of a row from its stored key, in a table whose keys contain no text."""

    def encrypt(self, table: str, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Give key and value of a row as they are stored in LMDB."""

    def decrypt(self, table: str, place: bytes, data: bytes) -> bytes:
        """Give the value of a row.

        Raises: BadRecord, if it fails authentication or was encrypted under another key.
        """

    def decrypt_row(self, table: str, place: bytes, data: bytes) -> tuple[bytes, bytes]:
        """Give key and value of a row.

        Raises: BadRecord, as `decrypt`.
        """

    def body_name(self, digest: bytes) -> str:
        """Give the name of the file that holds a body: 64 hex digits.

        digest: 32 bytes of BLAKE3.
        """

    def begin_file(self, descriptor: int) -> WritableFile:
        """Begin an empty body file, which owns the descriptor from now on.

        Raises: OSError.
        """

    def open_file(self, path: Path) -> ReadableFile:
        """Open a body file that was finished; use it as a context manager.

        Raises: OSError; BadRecord, if it is not a file of this cipher.
        """


def body_folder(check: bytes) -> str:
    """Give the name of the folder of body files for the check value of a store's key."""
    return f"{BODIES}-{check[:ID_BYTES].hex()}" if check else BODIES
