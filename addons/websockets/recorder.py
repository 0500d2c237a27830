"""A WebSocket that is being recorded.

Messages are appended and not waited for: the log keeps their order, and whatever the agent sends out because
of one waits for a later commit. They are written soon all the same: nothing else may be for as long as a WebSocket is open. What is not written yet is bounded all the same (`backlog`), by whoever
reads from the two sides.
"""

import asyncio
from dataclasses import replace

from ...store import StoreUnwritable
from ...tape.exchange import (
    Message,
    MessageKind,
    RawClose,
    RawMessage,
    RawWebSocketSummary,
)
from ..run.pending_exchange import (
    PendingExchange,
    WebSocket,
)

_FLUSH_BYTES = 1024 * 1024
"""Messages of so many bytes are written without waiting for the next commit."""
_FLUSH_S = 0.05
"""And any after so long."""
_OWN_BYTES = 1024
"""What a message takes in memory beside its data, until it is written."""
HOLED = "messages of the WebSocket could not be written"


class WebSocketRecorder(WebSocket):
    """A WebSocket that is being recorded."""

    def __init__(self, pending: PendingExchange) -> None:
        """Begin with the handshake's answer."""
        self._pending = pending
        self._messages = 0
        self._size = 0
        self._unflushed = 0
        """Bytes appended since a commit was last asked for."""
        self._outages = pending.open_run.store.writer.outages
        """How often writing had stopped when it began."""
        self._writing: asyncio.Future[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        """Writes what has been appended."""
        self.backlog = 0
        """Bytes that may not be written yet."""
        self.close: RawClose | None = None
        self.has_replaced_answer = False
        """Whether redaction replaced a value in a message of the server that is written."""

    @property
    def holed(self) -> bool:
        """Whether messages of it may be missing in the store."""
        return self._outages != self._pending.open_run.store.writer.outages

    @property
    def is_behind(self) -> bool:
        """Whether the disk takes less than comes; see `Spool`."""
        return self._pending.open_run.store.bodies.memory.is_behind

    @property
    def over(self) -> bool:
        """Whether it is saved: nothing more of it is kept."""
        return self._pending.progress.saved

    def note(
        self, kind: MessageKind, data: bytes, frames: tuple[int, ...], *, from_client: bool
    ) -> None:
        """Keep a message, before it is passed on.

        Raises: StoreUnwritable.
        """
        pending = self._pending
        run = pending.open_run.info
        if pending.progress.saved or run is None:
            return
        at_us = pending.now_us()
        if self.close is not None:
            at_us = max(at_us, self.close.at_us + 1)  # it crossed the closing frame
        message = RawMessage(
            at_us, from_client, kind, data, frames, pending.open_run.on_the_way.last_seq
        )
        if self.holed:
            pending.open_run.miss(StoreUnwritable(HOLED))
            return
        try:
            pending.open_run.store.messages.record(
                run.number,
                pending.seq,
                self._messages,
                message,
                self._redact,
                originals=pending.open_run.keeps_originals and not from_client,
            )
        except StoreUnwritable as error:
            pending.open_run.miss(error)
            return
        self._messages += 1
        self._size += len(data)
        self.backlog += len(data) + _OWN_BYTES
        self._unflushed += len(data) + _OWN_BYTES
        self._ask()

    def _redact(self, came: RawMessage) -> Message:
        """Take the secrets out of a message. Runs on the writer's thread."""
        message = self._pending.open_run.redactor.message(came)
        self.has_replaced_answer |= bool(message.secrets) and not message.from_client
        return message

    def end(self, code: int, reason: str, *, by_client: bool) -> None:
        """Note a closing frame, or 1006 for a connection that ended without one; the second answers the first."""
        if self.close is None:
            self.close = RawClose(self._pending.now_us(), by_client, code, reason)
        elif self.close.by_client != by_client and self.close.answer is None:
            self.close = replace(self.close, answer=(code, reason))

    def snapshot(self) -> RawWebSocketSummary:
        """Give what has passed so far."""
        return RawWebSocketSummary(self._messages, self._size, self.close)

    async def settle(self, backlog: int = 0) -> None:
        """Wait until no more than so many bytes may not be written yet."""
        while self._writing is not None and self.backlog > backlog:
            await asyncio.wait([self._writing])

    def _ask(self) -> None:
        if self._writing is not None or not self._unflushed:
            return
        if self._unflushed < _FLUSH_BYTES:
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(_FLUSH_S, self._write)
            return
        self._write()

    def _write(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._writing is not None or not self._unflushed:
            return
        size, self._unflushed = self.backlog, 0
        # Ordered behind all that was appended before.
        try:
            writing = self._pending.open_run.store.writer.submit(lambda: lambda _: None)
        except StoreUnwritable:  # the next append says so
            return
        self._writing = writing
        writing.add_done_callback(lambda done: self._written(done, size))

    def _written(self, done: "asyncio.Future[None]", size: int) -> None:
        self._writing = None
        self.backlog -= size
        if not done.cancelled() and done.exception() is None:
            self._ask()  # else the next append says what is wrong
