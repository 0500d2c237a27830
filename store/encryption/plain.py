"""The cipher interface of a store, and the cipher of a store without a key, which leaves rows and body files as they are. May be used from any thread."""

from pathlib import Path

from ..paths import BODIES
from .key import ID_BYTES
from .plain_files import PlainFile, ReadableFile, WritableFile


class StoreCipher:
    """The cipher of a store without a key: nothing changes, at no cost."""

    check = b""
    """Check value of the key in `meta`; empty without a key."""

    @property
    def folder(self) -> str:
        """Name of the folder of body files."""
        return body_folder(self.check)

    def stored_key(self, table: str, key: bytes) -> bytes:
        """Give the key of a row as it is stored in LMDB."""
        return key

    def plain_key(self, table: str, place: bytes) -> bytes:
        """Give the key of a row from its stored key, in a table whose keys contain no text."""
        return place

    def encrypt(self, table: str, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Give key and value of a row as they are stored in LMDB."""
        return key, value

    def decrypt(self, table: str, place: bytes, data: bytes) -> bytes:
        """Give the value of a row.

        Raises: BadRecord.
        """
        return data

    def decrypt_row(self, table: str, place: bytes, data: bytes) -> tuple[bytes, bytes]:
        """Give key and value of a row.

        Raises: BadRecord.
        """
        return place, data

    def body_name(self, digest: bytes) -> str:
        """Give the name of the file that holds a body."""
        return digest.hex()

    def begin_file(self, descriptor: int) -> WritableFile:
        """Begin an empty body file, which owns the descriptor from now on."""
        return PlainFile(descriptor)

    def open_file(self, path: Path) -> ReadableFile:
        """Open a body file that was finished; use it as a context manager.

        Raises: OSError; BadRecord.
        """
        return open(path, "rb")


def body_folder(check: bytes) -> str:
    """Give the name of the folder of body files for what a store says of its key."""
    return f"{BODIES}-{check[:ID_BYTES].hex()}" if check else BODIES
