"""Bodies too large to be held: written to a file while they pass, named by their hash in the end.

    bodies/HH/HASH        a body, or the list of its pieces; 32 bytes of BLAKE3 in hex, HH its first two digits
    bodies/partial-PID-N  one that is on its way; those of processes that died go when the store is opened

Writing is done on threads. Who feeds a spool asks for its `backlog` and waits in `settle` when there is too
much of it: that is what bounds memory. Equal bodies are one file.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import psutil

from ..tape.boundary import Digest
from ..tape.codec import PIECE_BYTES, BadRecord, pack_piece, unpack_pieces
from ..tape.model import Chunk, Secret, Spilled
from ..tape.redact_stream import WINDOW_BYTES, Stream
from .errors import LogCorrupt, StoreUnwritable

_WRITE_BYTES = 1 << 20
"""Gathered before a thread is asked to write."""
_PIECE_BATCH = 1024
_READ_BYTES = 256 * 1024

_numbers = itertools.count(1)


class Spool:
    """One body on its way into a file. Belongs to a running loop."""

    def __init__(
        self,
        folder: Path,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: Callable[[], Stream | None] = lambda: None,
    ) -> None:
        """Begin an empty body in a store's folder of bodies.

        pieces: whether a list of its pieces is kept.
        redact: makes what takes its secrets out, or gives None. With `pieces` that is done while it is written;
            without, what was taken can be read as it came, from a file without a name, until it is kept.
        Raises: StoreUnwritable.
        """
        self._folder = folder
        self._stream = redact()
        self._body = _Partial(folder, Digest(boundary, apart=self._stream is not None))
        self._raw = None if pieces or self._stream is None else _Partial(folder, named=False)
        self._list = _Partial(folder, Digest()) if pieces else None
        self._pending: list[bytes] = []
        self._pieces: list[bytes] = []
        self._backlog = 0
        self._size = 0
        self._writing: asyncio.Future[None] | None = None
        self._kept: Spilled | None = None
        self.secrets: tuple[Secret, ...] = ()
        """Where placeholders stand, once it was kept or measured."""
        self._failed: StoreUnwritable | None = None

    @property
    def size(self) -> int:
        """Bytes taken so far."""
        return self._size

    @property
    def backlog(self) -> int:
        """Bytes that are not in the file yet."""
        return self._backlog

    def write(self, data: bytes, chunk: Chunk | None = None) -> None:
        """Take a piece; returns at once.

        Raises: StoreUnwritable, if an earlier write failed.
        """
        if self._failed is not None:
            raise StoreUnwritable(str(self._failed), self._failed.hint)
        self._pending.append(data)
        self._backlog += len(data)
        self._size += len(data)
        if chunk is not None and self._list is not None:
            self._pieces.append(pack_piece(chunk))
        if self._writing is None and (
            self._backlog >= _WRITE_BYTES or len(self._pieces) >= _PIECE_BATCH
        ):
            self._begin()

    async def settle(self, backlog: int = 0) -> None:
        """Wait until no more than so many bytes are not in the file yet.

        Raises: StoreUnwritable.
        """
        while self._failed is None and self._backlog > backlog:
            await self._step()
        if self._failed is not None:
            raise StoreUnwritable(str(self._failed), self._failed.hint)

    async def keep(self) -> Spilled:
        """Make what was taken durable under its name; nothing can be written after.

        Raises: StoreUnwritable.
        """
        if self._kept is None:
            while self._failed is None and (self._pending or self._pieces or self._writing):
                await self._step()
            await self.settle()
            self._kept = await asyncio.to_thread(self._keep)
        return self._kept

    async def measure(self) -> Spilled:
        """Give the digests of what was taken, without keeping it; nothing can be written after.

        Raises: StoreUnwritable.
        """
        await self.settle()
        await asyncio.to_thread(self._finish)
        digest, match = self._body.finish()
        return Spilled(digest, self._size, match)

    async def read(self, start: int, size: int) -> bytes:
        """Read from what was taken; shorter only at its end.

        Raises: StoreUnwritable.
        """
        await self.settle()
        return await asyncio.to_thread((self._raw or self._body).read, start, size)

    def drop(self) -> None:
        """Let go of the file; what was kept stays. Twice is once."""
        for partial in (self._body, self._raw, self._list):
            if partial is not None:
                partial.drop()

    async def _step(self) -> None:
        if self._writing is None:
            self._begin()
        assert self._writing is not None
        await asyncio.wait([self._writing])

    # ---- on threads ----------------------------------------------------------------------------

    def _begin(self) -> None:
        data, self._pending = self._pending, []
        pieces, self._pieces = self._pieces, []
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(None, self._write, data, pieces)
        size = sum(map(len, data))
        self._writing.add_done_callback(lambda done: self._written(done, size))

    def _write(self, data: list[bytes], pieces: list[bytes]) -> None:
        if self._raw is not None:
            for piece in data:
                self._raw.put(piece)
        if self._stream is None:
            self._body.write(data)
        else:
            for piece in data:
                for at in range(0, len(piece), WINDOW_BYTES):
                    self._body.take(*self._stream.feed(piece[at : at + WINDOW_BYTES]))
        if self._list is not None and pieces:
            self._list.write(pieces)

    def _written(self, done: "asyncio.Future[None]", size: int) -> None:
        self._writing = None
        self._backlog -= size
        error = done.exception() if not done.cancelled() else None
        if error is not None:
            self._failed = _unwritable(self._folder, error)

    def _keep(self) -> Spilled:
        try:
            self._finish()
            digest, match = self._body.keep()
            pieces = self._list.keep()[0] if self._list is not None else b""
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        return Spilled(digest, self._size, match, pieces)

    def _finish(self) -> None:
        """Write what waited to be seen whole."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._body.take(*stream.finish())
            self.secrets = tuple(stream.secrets)


class _Partial:
    """A file on its way to its name."""

    def __init__(self, folder: Path, digest: Digest | None = None, *, named: bool = True) -> None:
        self._folder = folder
        self._digest = digest or Digest()
        self._finished: tuple[bytes, bytes] | None = None
        self._path = folder / f"partial-{os.getpid()}-{next(_numbers)}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise _unwritable(folder, error) from error
        if not named:
            # It has none from now on: should we die, the file goes with us.
            self._path.unlink()
        self._file: BinaryIO | None = os.fdopen(descriptor, "r+b", buffering=0)

    def write(self, data: list[bytes]) -> None:
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
        if self._file is None:
            return
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def finish(self) -> tuple[bytes, bytes]:
        if self._finished is None:
            self._finished = self._digest.finish()
        return self._finished

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, start) if self._file is not None else b""

    def keep(self) -> tuple[bytes, bytes]:
        digests = self.finish()
        assert self._file is not None
        os.fsync(self._file.fileno())
        target = body_path(self._folder, digests[0])
        target.parent.mkdir(mode=0o700, exist_ok=True)
        os.replace(self._path, target)
        self._file.close()
        self._file = None
        for folder in (target.parent, self._folder):
            _sync_folder(folder)
        return digests

    def drop(self) -> None:
        if self._file is not None:  # else it was kept
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def body_path(folder: Path, digest: bytes) -> Path:
    """Give the place of a kept body in a store's folder of bodies."""
    name = digest.hex()
    return folder / name[:2] / name


def read_pieces(folder: Path, spilled: Spilled) -> Iterator[tuple[Chunk, bytes]]:
    """Read a spilled body piece by piece, in the pieces it came in where they were listed.

    The last piece is given only if the whole fits its hash.
    Raises: LogCorrupt, naming the file.
    """
    digest = Digest()
    held: tuple[Chunk, bytes] | None = None
    try:
        with open(body_path(folder, spilled.digest), "rb") as body:
            for chunk in _chunks(folder, spilled):
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


def _chunks(folder: Path, spilled: Spilled) -> Iterator[Chunk]:
    if not spilled.pieces:
        for start in range(0, spilled.size, _READ_BYTES):
            yield Chunk(0, min(_READ_BYTES, spilled.size - start))
        return
    with open(body_path(folder, spilled.pieces), "rb") as listed:
        while packed := listed.read(PIECE_BYTES * _PIECE_BATCH):
            yield from unpack_pieces(packed)


def read_file(folder: Path, digest: bytes) -> Iterator[bytes]:
    """Read a kept file; the last piece is given only if the whole fits its hash.

    Raises: LogCorrupt, naming the file.
    """
    found = Digest()
    held = b""
    try:
        with open(body_path(folder, digest), "rb") as file:
            while data := file.read(_READ_BYTES):
                if held:
                    yield held
                found.update(data)
                held = data
    except OSError as error:
        raise LogCorrupt(f"the body {digest.hex()} cannot be read: {error}") from error
    if found.finish()[0] != digest:
        raise LogCorrupt(f"the body {digest.hex()} does not fit its hash")
    if held:
        yield held


def keep_file(folder: Path, digest: bytes, pieces: Iterable[bytes]) -> None:
    """Keep a file that came from elsewhere.

    Raises: BadRecord, where it does not fit its hash; StoreUnwritable.
    """
    partial = _Partial(folder)
    try:
        for piece in pieces:
            partial.write([piece])
        if partial.finish()[0] != digest:
            raise BadRecord(f"the body {digest.hex()} does not fit its hash")
        partial.keep()
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        partial.drop()


def clear_partial(folder: Path) -> None:
    """Remove what processes that have died were writing."""
    for path in folder.glob("partial-*"):
        pid = path.name.split("-")[1]
        if not pid.isdigit() or (int(pid) != os.getpid() and not psutil.pid_exists(int(pid))):
            with contextlib.suppress(OSError):
                path.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(folder: Path, error: BaseException) -> StoreUnwritable:
    return StoreUnwritable(
        f"cannot write a body into {folder}: {error}",
        "free space or make the folder writable; what is in the store is whole",
    )
