"""The files of bodies that are too large for memory.

    bodies/HH/HASH          a body, or the list of its pieces; 32 bytes of BLAKE3 in hex, HH its first two digits
    bodies/partial-OWNER-N  a file that is being written; removed when the store is opened after its process died
    bodies/gone-OWNER-HASH  a file that is being removed; put back when the store is opened after its process died

In an encrypted store the folder is `bodies-KEYID`, the files are encrypted (`encryption/encrypted_files.py`), and HASH is
a keyed hash. Equal bodies share one file.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from ...tape.canonical.spilled_digest import Digest
from ...tape.exchange import Chunk, Spilled
from ...tape.records.codec import PIECE_BYTES, BadRecord, unpack_pieces
from ..encryption.cipher import ReadableFile, StoreCipher, WritableFile
from ..errors import LogCorrupt, StoreUnwritable
from ..folder_ownership import make_own_folder
from ..lmdb.liveness import is_locked
from .body_memory import BodyMemory

PIECE_BATCH = 1024
"""Pieces of a list that are written or read at a time."""
_READ_BYTES = 256 * 1024
_THREADS = 2
_NAME = re.compile(r"[0-9a-f]{64}")

_numbers = itertools.count(1)


class BodyFiles:
    """The folder of body files of a store."""

    def __init__(self, store: Path, cipher: StoreCipher, owner: str = "") -> None:
        """Keep them in the store of a folder.

        owner: name of the file of this process, where it has one.
        """
        self.folder = store / cipher.folder
        self.cipher = cipher
        self.owner = owner or str(os.getpid())
        self.memory = BodyMemory()
        self.threads = ThreadPoolExecutor(_THREADS, "playhead-bodies")
        """They write bodies: what other work is done on threads does not wait behind these."""
        self._store = store

    def path(self, digest: bytes) -> Path:
        """Give the place of a kept body."""
        name = self.cipher.body_name(digest)
        return self.folder / name[:2] / name

    def open(self, digest: bytes) -> ReadableFile:
        """Open a kept body; use it as a context manager.

        Raises: OSError; BadRecord.
        """
        return self.cipher.open_file(self.path(digest))

    def kept(self) -> list[Path]:
        """List all kept files, by name; whatever else somebody put there is none of ours."""
        return sorted(
            path
            for path in self.folder.glob("??/*")
            if _NAME.fullmatch(path.name)
            and path.name.startswith(path.parent.name)
            and not (path.is_symlink() or path.parent.is_symlink())
        )

    def read(self, spilled: Spilled) -> Iterator[tuple[Chunk, bytes]]:
        """Read a spilled body piece by piece, in the pieces it came in where they were listed.

        The last piece is given only if the whole fits its hash.
        Raises: LogCorrupt, naming the file.
        """
        digest = Digest()
        held: tuple[Chunk, bytes] | None = None
        try:
            with self.open(spilled.digest) as body:
                for chunk in self._chunks(spilled):
                    if held is not None:
                        yield held
                    data = body.read(chunk.size)
                    digest.update(data)
                    held = (chunk, data)
        except (OSError, BadRecord) as error:
            raise LogCorrupt(f"a body of {spilled.size} bytes cannot be read: {error}") from error
        if digest.finish()[0] != spilled.digest or digest.size != spilled.size:
            raise LogCorrupt(f"the body {spilled.digest.hex()} does not fit its hash")
        if held is not None:
            yield held

    def _chunks(self, spilled: Spilled) -> Iterator[Chunk]:
        if not spilled.pieces:
            for start in range(0, spilled.size, _READ_BYTES):
                yield Chunk(0, min(_READ_BYTES, spilled.size - start))
            return
        with self.open(spilled.pieces) as listed:
            while packed := listed.read(PIECE_BYTES * PIECE_BATCH):
                yield from unpack_pieces(packed)

    def read_aside(
        self, body: bytes, chunks: Sequence[Chunk]
    ) -> Generator[tuple[Chunk, bytes], None, None]:
        """Give a body that is in memory piece by piece out of a file without a name, once the first piece is asked for.

        Where nothing can be written it stays in memory.
        """
        file: Partial | None = None
        try:
            with contextlib.suppress(StoreUnwritable, OSError):
                file = Partial(self, named=False)
                file.put(body)
                body = b""
            start = 0
            for chunk in chunks:
                data = body[start : start + chunk.size]
                if not body and file is not None:
                    data = file.read(start, chunk.size)
                yield chunk, data
                start += chunk.size
        finally:
            if file is not None:
                file.drop()

    def read_file(self, digest: bytes) -> Iterator[bytes]:
        """Read a kept file as it is; the last piece is given only if the whole fits its hash.

        Raises: LogCorrupt, naming the file.
        """
        found = Digest()
        held = b""
        try:
            with self.open(digest) as file:
                while data := file.read(_READ_BYTES):
                    if held:
                        yield held
                    found.update(data)
                    held = data
        except (OSError, BadRecord) as error:
            raise LogCorrupt(f"the body {digest.hex()} cannot be read: {error}") from error
        if found.finish()[0] != digest:
            raise LogCorrupt(f"the body {digest.hex()} does not fit its hash")
        if held:
            yield held

    def keep_file(self, digest: bytes, pieces: Iterable[bytes]) -> None:
        """Keep a file that came from elsewhere.

        Raises: BadRecord, where it does not fit its hash; StoreUnwritable.
        """
        partial = Partial(self)
        try:
            for piece in pieces:
                partial.write([piece])
            if partial.finish()[0] != digest:
                raise BadRecord(f"the body {digest.hex()} does not fit its hash")
            partial.keep()
        except OSError as error:
            raise unwritable(self.folder, error) from error
        finally:
            partial.drop()

    def keep_anew(
        self,
        pieces: Iterable[tuple[bytes, bytes]],
        boundary: bytes,
        is_needed: Callable[[], bool],
    ) -> tuple[bytes, bytes] | None:
        """Keep a body that was made of another; give its digests: of what it is, and of what is compared of it.

        pieces: each with what is compared of it.
        boundary: of a multipart body, so that it can be compared without.
        is_needed: asked once all were given; where it says no, nothing is kept, and None is given.
        Raises: StoreUnwritable.
        """
        partial = Partial(self, Digest(boundary, apart=True))
        try:
            for data, compared in pieces:
                partial.take(data, compared)
            return partial.keep() if is_needed() else None
        except OSError as error:
            raise unwritable(self.folder, error) from error
        finally:
            partial.drop()

    def remove_unneeded(self, needed: Iterable[bytes], before_s: float) -> int:
        """Remove files that nothing needs; give how many bytes that were.

        before_s: what was put there since then stays.
        """
        names = {self.cipher.body_name(digest) for digest in needed}
        freed = 0
        for path in self.kept():
            with contextlib.suppress(FileNotFoundError):
                if path.name not in names and path.stat().st_mtime < before_s:
                    freed += self._remove(path, before_s)
        return freed

    def _remove(self, path: Path, before_s: float) -> int:
        """Remove a file unless it was put there again just now."""
        aside = self.folder / f"gone-{self.owner}-{path.name}"
        os.rename(path, aside)
        found = aside.stat()
        if found.st_mtime >= before_s:
            self._put_back(aside)
            return 0
        aside.unlink()
        return found.st_size

    def _put_back(self, aside: Path) -> None:
        """Give a file that was set aside its place again, unless another has it."""
        name = aside.name.rpartition("-")[2]
        with contextlib.suppress(FileExistsError):
            os.link(aside, self.folder / name[:2] / name)
        aside.unlink()

    def clear_partial(self) -> None:
        """Remove what processes that have died were writing; put back what they had set aside to remove it."""
        for path in self.folder.glob("partial-*"):
            if not self._is_alive(path.name.split("-")[1]):
                with contextlib.suppress(OSError):
                    path.unlink()
        for path in self.folder.glob("gone-*"):
            if not self._is_alive(path.name.split("-")[1]):
                with contextlib.suppress(OSError):
                    self._put_back(path)

    def _is_alive(self, owner: str) -> bool:
        if owner.isdigit():  # of one that has no file
            return int(owner) == os.getpid() or psutil.pid_exists(int(owner))
        return is_locked(self._store, owner)


class Partial:
    """A file on its way to its name."""

    def __init__(
        self, files: BodyFiles, digest: Digest | None = None, *, named: bool = True
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
        "free space or make the folder writable; what is in the store is whole",
    )
