"""Spools: bodies too large for memory, written to a file as they pass and named by their hash at the end.

Threads do the writing. The code that feeds a spool checks its `backlog` and waits in `settle` while it is too large: that
bounds memory. Equal bodies share one file.

A spool can also set a body aside that is not too large, while other bodies take the memory. Such a body is written as it came
into a file without a name, and taken back at its end: how it is stored does not depend on what else goes on.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...tape.canonical.spilled_digest import Digest
from ...tape.exchange import Chunk, Secret, Spilled
from ...tape.records.codec import pack_piece, unpack_pieces
from ..errors import StoreUnwritable
from .partial_file import PIECE_BATCH, BodyFolder, Partial, unwritable

if TYPE_CHECKING:
    from ...tape.redaction.redact_large_body import Stream

_WRITE_BYTES = 256 * 1024
"""Gathered before a thread is asked to write."""
_COPY_BYTES = 1 << 20
"""Read at a time of a body that was set aside and has become too large for that."""


class Spool:
    """One body on its way into a file. Belongs to a running loop."""

    def __init__(
        self,
        files: BodyFolder,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: "Callable[[], Stream | None]" = lambda: None,
        aside: bool = False,
    ) -> None:
        """Begin an empty body among a store's body files.

        pieces: whether a list of its pieces is kept.
        redact: makes what takes its secrets out, or gives None. With `pieces` that is done while it is written;
            without, what was taken can be read as it came, from a file without a name, until it is kept.
        aside: only set it aside, until `outgrow` is called.
        Raises: StoreUnwritable.
        """
        self._files = files
        self._stream = redact()
        self._boundary = boundary
        self._keeps_raw = not pieces and self._stream is not None
        self._raw = Partial(files, named=False) if aside or self._keeps_raw else None
        self._body = None if aside else self._make_body()
        self._outgrown = not aside
        self._with_pieces = pieces
        self._list: Partial | None = None
        self._listed: list[bytes] = []
        """Pieces that are not in their file yet. The thread that writes."""
        self._pending: list[bytes] = []
        self._pieces: list[bytes] = []
        self._backlog = 0
        self._size = 0
        self._writing: asyncio.Future[None] | None = None
        self._kept: Spilled | None = None
        self._dropped = False
        self._redacted: Stream | None = None
        """What took its secrets out, once it was kept or measured."""
        self._failed: StoreUnwritable | None = None

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Where placeholders stand, once it was kept or measured."""
        return tuple(self._redacted.secrets) if self._redacted is not None else ()

    @property
    def originals(self) -> tuple[tuple[int, bytes], ...]:
        """What stood there, if that was asked for."""
        return tuple(self._redacted.originals) if self._redacted is not None else ()

    @property
    def _replaced(self) -> tuple[tuple[bytes, bool], ...]:
        return self._redacted.replaced if self._redacted is not None else ()

    @property
    def size(self) -> int:
        """Bytes taken so far."""
        return self._size

    @property
    def backlog(self) -> int:
        """Bytes that are not in the file yet."""
        return self._backlog

    @property
    def is_behind(self) -> bool:
        """Whether the disk takes less than comes, over all bodies of the store."""
        return self._files.memory.is_behind

    @property
    def is_aside(self) -> bool:
        """Whether it is only set aside, and can be taken back."""
        return not self._outgrown

    def outgrow(self) -> None:
        """Have it become a kept body: it has become too large to be taken back."""
        self._outgrown = True

    def write(self, data: bytes, chunk: Chunk | None = None) -> None:
        """Take a piece; returns at once.

        Raises: StoreUnwritable, if an earlier write failed.
        """
        if self._failed is not None:
            raise StoreUnwritable(str(self._failed), self._failed.hint)
        if self._dropped:
            return
        self._pending.append(data)
        self._add_backlog(len(data))
        self._size += len(data)
        if chunk is not None and self._with_pieces:
            self._pieces.append(pack_piece(chunk))
        if self._writing is None and (
            self._backlog >= _WRITE_BYTES or len(self._pieces) >= PIECE_BATCH
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
            await self._flush()
            self._kept = await asyncio.to_thread(self._keep)
        return self._kept

    async def take_back(self) -> tuple[bytes, list[Chunk]]:
        """Read a body that was set aside: its bytes as they came, and its pieces.

        Raises: StoreUnwritable.
        """
        assert not self._outgrown
        await self._flush()
        return await asyncio.to_thread(self._take_back)

    async def measure(self) -> Spilled:
        """Give the digests of what was taken, without keeping it; nothing can be written after.

        Raises: StoreUnwritable.
        """
        await self.settle()
        await asyncio.to_thread(self._finish)
        assert self._body is not None
        digest, match = self._body.finish()
        return Spilled(digest, self._size, match, replaced=self._replaced)

    async def read(self, start: int, size: int) -> bytes:
        """Read from what was taken; shorter only at its end.

        Raises: StoreUnwritable.
        """
        await self.settle()
        file = self._raw or self._body
        assert file is not None
        return await asyncio.to_thread(file.read, start, size)

    def drop(self) -> None:
        """Let go of the file; what was kept stays. Twice is once."""
        self._dropped = True
        self._add_backlog(-sum(map(len, self._pending)))
        self._pending, self._pieces = [], []
        if self._writing is None:
            self._close()  # else once a thread is through: the descriptor may be another file's by then

    def _close(self) -> None:
        for partial in (self._body, self._raw, self._list):
            if partial is not None:
                partial.drop()

    def _add_backlog(self, size: int) -> None:
        self._backlog += size
        self._files.memory.backlog += size

    async def _flush(self) -> None:
        """Wait until everything was handed to the files."""
        while self._failed is None and (self._pending or self._pieces or self._writing):
            await self._step()
        await self.settle()

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
        self._writing = loop.run_in_executor(self._files.threads, self._write, data, pieces)
        size = sum(map(len, data))
        self._writing.add_done_callback(lambda done: self._written(done, size))

    def _written(self, done: "asyncio.Future[None]", size: int) -> None:
        self._writing = None
        self._add_backlog(-size)
        error = done.exception() if not done.cancelled() else None
        if isinstance(error, StoreUnwritable):
            self._failed = error
        elif error is not None:
            self._failed = unwritable(self._files.folder, error)
        if self._dropped:
            self._close()

    def _write(self, data: list[bytes], pieces: list[bytes]) -> None:
        if self._raw is not None:
            for piece in data:
                self._raw.put(piece)
        if self._body is not None:
            self._put(self._body, data)
        elif self._outgrown:
            self._copy()
        self._listed += pieces
        if len(self._listed) >= PIECE_BATCH:
            self._write_list()

    def _put(self, body: Partial, data: list[bytes]) -> None:
        """Write what follows of a body that is kept."""
        if self._stream is None:
            body.write(data)
            return
        from ...tape.redaction.redact_large_body import WINDOW_BYTES

        for piece in data:
            for at in range(0, len(piece), WINDOW_BYTES):
                body.take(*self._stream.feed(piece[at : at + WINDOW_BYTES]))

    def _copy(self) -> None:
        """Write a body that was set aside into the file that is kept."""
        assert self._raw is not None
        self._body = self._make_body()
        start = 0
        while data := self._raw.read(start, _COPY_BYTES):
            self._put(self._body, [data])
            start += len(data)
        if not self._keeps_raw:
            self._raw.drop()
            self._raw = None

    def _make_body(self) -> Partial:
        return Partial(self._files, Digest(self._boundary, apart=self._stream is not None))

    def _write_list(self) -> Partial:
        if self._list is None:
            self._list = Partial(self._files, Digest())
        self._list.write(self._listed)
        self._listed = []
        return self._list

    def _take_back(self) -> tuple[bytes, list[Chunk]]:
        assert self._raw is not None
        listed = b"".join(self._listed)
        try:
            if self._list is not None:
                listed = self._list.read(0, self._list.size) + listed
            return self._raw.read(0, self._size), unpack_pieces(listed)
        except OSError as error:
            raise unwritable(self._files.folder, error) from error

    def _keep(self) -> Spilled:
        try:
            self._finish()
            assert self._body is not None
            digest, match = self._body.keep()
            pieces = self._write_list().keep()[0] if self._with_pieces else b""
        except OSError as error:
            raise unwritable(self._files.folder, error) from error
        return Spilled(digest, self._size, match, pieces, self._replaced)

    def _finish(self) -> None:
        """Write what waited to be seen whole."""
        if self._body is None:
            self._copy()
        assert self._body is not None
        stream, self._stream = self._stream, None
        if stream is not None:
            self._body.take(*stream.finish())
            self._redacted = stream
