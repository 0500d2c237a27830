"""The folder of body files, and a file on its way into it: what spools and `body_files.py` share.

Rule: a file gets its name only once it is whole and durable; until then it is named `partial-OWNER-N`, or has no name.
"""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...tape.canonical.spilled_digest import Digest
from ..encryption.cipher import StoreCipher, WritableFile
from ..errors import StoreUnwritable
from ..folder_ownership import make_own_folder
from .body_memory import BodyMemory

PIECE_BATCH = 1024
"""Pieces of a list that are written or read at a time."""
_THREADS = 2

_numbers = itertools.count(1)


class BodyFolder:
    """The folder of body files of a store: its place, its cipher, and the memory and threads of bodies on their way."""

    def __init__(self, store: Path, cipher: StoreCipher, owner: str = "") -> None:
        """Keep them in the store of a folder.

        owner: name of the file of this process, where it has one.
        """
        self.folder = store / cipher.folder
        self.cipher = cipher
        self.owner = owner or str(os.getpid())
        self.memory = BodyMemory()
        """What bodies on their way take of this process's memory."""
        self.threads = ThreadPoolExecutor(_THREADS, "playhead-bodies")
        """They write bodies: what other work is done on threads does not wait behind these."""

    def path(self, digest: bytes) -> Path:
        """Give the place of a kept body.

        digest: 32 bytes of BLAKE3, of the body as it is without encryption.
        """
        name = self.cipher.body_name(digest)
        return self.folder / name[:2] / name


class Partial:
    """A file on its way to its name."""

    def __init__(
        self, files: BodyFolder, digest: Digest | None = None, *, named: bool = True
    ) -> None:
        """Begin one.

        named: False takes its name away at once: it cannot be kept, and nobody else can open it.
        Raises: StoreUnwritable.
        """
        self._files = files
        folder = files.folder
        self._digest = digest or Digest()
        self._finished: tuple[bytes, bytes] | None = None
        self.size = 0
        """Bytes that were written."""
        self._path = folder / f"partial-{files.owner}-{next(_numbers)}"
        try:
            make_folder(folder)
            descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            if not named:
                # It has none from now on: should we die, the file goes with us.
                self._path.unlink()
            self._file: WritableFile | None = files.cipher.begin_file(descriptor)
        except OSError as error:
            raise unwritable(folder, error) from error

    def write(self, data: list[bytes]) -> None:
        """Write pieces."""
        if self._file is None:  # dropped meanwhile
            return
        for piece in data:
            self._digest.update(piece)
        self.put(b"".join(data))

    def take(self, data: bytes, compared: bytes) -> None:
        """Write a piece that is compared as something else."""
        if data:
            self._digest.update(data, compared)
            self.put(data)

    def put(self, data: bytes) -> None:
        """Write a piece without a hash."""
        if self._file is not None:
            self._file.put(data)
            self.size += len(data)

    def finish(self) -> tuple[bytes, bytes]:
        """Give the digests of what was written: of all, and of what is compared."""
        if self._finished is None:
            self._finished = self._digest.finish()
        return self._finished

    def read(self, start: int, size: int) -> bytes:
        """Read from what was written."""
        return self._file.read(start, size) if self._file is not None else b""

    def keep(self) -> tuple[bytes, bytes]:
        """Make it durable under its name; give its digests."""
        digests = self.finish()
        assert self._file is not None
        self._file.finish()
        target = self._files.path(digests[0])
        target.parent.mkdir(mode=0o700, exist_ok=True)
        # Its exchange comes now, however long ago it was written: until then its age is what keeps it.
        os.utime(self._path)
        os.replace(self._path, target)
        self._file.close()
        self._file = None
        for folder in (target.parent, self._files.folder):
            sync_folder(folder)
        return digests

    def drop(self) -> None:
        """Let go of it; what was kept stays. Twice is once."""
        if self._file is not None:  # else it was kept
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are not there; their names are durable."""
    for one in make_own_folder(folder):
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(folder: Path, error: BaseException) -> StoreUnwritable:
    """Make the error for a body that could not be written."""
    return StoreUnwritable(
        f"cannot write a body into {folder}: {error}",
        "free space or make the folder writable; stored runs are intact",
    )
