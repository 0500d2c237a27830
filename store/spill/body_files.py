"""The files of bodies that are too large for memory.

    bodies/HH/HASH          a body, or the list of its pieces; 32 bytes of BLAKE3 in hex, HH its first two digits
    bodies/partial-OWNER-N  a file that is being written; removed when the store is opened after its process died
    bodies/gone-OWNER-HASH  a file that is being removed; put back when the store is opened after its process died

In an encrypted store the folder is `bodies-KEYID`, the files are encrypted (`encryption/encrypted_files.py`), and HASH is
a keyed hash. Equal bodies share one file.
"""

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...tape.canonical.spilled_digest import Digest
from ...tape.exchange import Chunk, Spilled
from ...tape.records.codec import PIECE_BYTES, BadRecord, unpack_pieces
from ..encryption.cipher import ReadableFile, StoreCipher
from ..errors import LogCorrupt, StoreUnwritable
from ..lmdb.process_liveness import is_locked
from .partial_file import PIECE_BATCH, BodyFolder, Partial, unwritable

if TYPE_CHECKING:
    from ...tape.redaction.redact_large_body import Stream
    from .spool import Spool

_READ_BYTES = 256 * 1024
_NAME = re.compile(r"[0-9a-f]{64}")


class BodyFiles(BodyFolder):
    """The body files of a store, `store.bodies`: begin a spool, read, keep and remove files. From any thread, but for `spool`."""

    def __init__(self, store: Path, cipher: StoreCipher, owner: str = "") -> None:
        """See `BodyFolder`."""
        super().__init__(store, cipher, owner)
        self._store = store

    def spool(
        self,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: "Callable[[], Stream | None]" = lambda: None,
        aside: bool = False,
    ) -> "Spool":
        """Begin a body that is too large to be held, or is set aside while others are. On a running loop.

        boundary: of a multipart body, so that it can be compared without.
        pieces: whether a list of its pieces is kept, as of an answer.
        redact: makes what takes its secrets out; see `Spool`.
        aside: only set it aside; see `Spool`.
        Raises: StoreUnwritable.
        """
        from .spool import Spool  # late: it needs a loop

        return Spool(self, boundary, pieces=pieces, redact=redact, aside=aside)

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

        Gives each piece's time (in microseconds; 0 where no pieces were listed) and size, and its bytes: at most 256 KiB where
        no pieces were listed. The last piece is given only if the whole fits its hash.
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

        chunks: its pieces in order; their sizes add up to the body's.
        Where nothing can be written it stays in memory: nothing is raised.
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
        """Read a kept file as it is, in pieces of at most 256 KiB: a spilled body, or the list of its pieces.

        digest: 32 bytes of BLAKE3. The last piece is given only if the whole fits it.
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
        """Keep a file that came from elsewhere: a spilled body, or the list of its pieces. Durable when it returns.

        digest: 32 bytes of BLAKE3.
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
        """Keep a body that was made of another; give its digests (32 bytes each): of what it is, and of what is compared of it.

        Durable when it returns.
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
        """Remove files that nothing needs; give how many bytes that were. Blocks; see `Removal.remove_unneeded_files`.

        needed: digests of 32 bytes.
        before_s: what was put there since then, in seconds since the epoch, stays.
        Raises: OSError.
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
            import psutil  # late: hardly any is

            return int(owner) == os.getpid() or psutil.pid_exists(int(owner))
        return is_locked(self._store, owner)
