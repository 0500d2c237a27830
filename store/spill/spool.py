"""Spools: bodies too large for memory, written to a file as they pass and named by their hash at the end.

Threads do the writing. The code that feeds a spool checks its `backlog` and waits in `settle` while it is too large: that
bounds memory. Equal bodies share one file.

Writing is done on threads. Who feeds a spool asks for its `backlog` and waits in `settle` when there is too
much of it: that is what bounds memory. Equal bodies are one file.
"""

import asyncio
from collections.abc import Callable

from ...tape.canonical.spilled_digest import Digest
from ...tape.exchange import Chunk, Secret, Spilled
from ...tape.records.codec import pack_piece
from ...tape.redaction.stream import WINDOW_BYTES, Stream
from ..errors import StoreUnwritable
from .body_files import PIECE_BATCH, BodyFiles, Partial, unwritable

_WRITE_BYTES = 1 << 20
"""Gathered before a thread is asked to write."""


class Spool:
    """One body on its way into a file. Belongs to a running loop."""

    def __init__(
        self,
        files: BodyFiles,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: Callable[[], Stream | None] = lambda: None,
    ) -> None:
        """Begin an empty body among a store's body files.

        pieces: whether a list of its pieces is kept.
        redact: makes what takes its secrets out, or gives None. With `pieces` that is done while it is written;
            without, what was taken can be read as it came, from a file without a name, until it is kept.
        Raises: StoreUnwritable.
        """
        self._files = files
        self._stream = redact()
        self._body = Partial(files, Digest(boundary, apart=self._stream is not None))
        self._raw = None if pieces or self._stream is None else Partial(files, named=False)
        self._list = Partial(files, Digest()) if pieces else None
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
            self._failed = unwritable(self._files.folder, error)

    def _keep(self) -> Spilled:
        try:
            self._finish()
            digest, match = self._body.keep()
            pieces = self._list.keep()[0] if self._list is not None else b""
        except OSError as error:
            raise unwritable(self._files.folder, error) from error
        return Spilled(digest, self._size, match, pieces)

    def _finish(self) -> None:
        """Write what waited to be seen whole."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._body.take(*stream.finish())
            self.secrets = tuple(stream.secrets)
