"""The one writer of a process: a thread that commits at once when idle.

What is handed over while a commit runs is the next batch; there is no timer. A batch is one LMDB
transaction, so that it is on disk whole or not at all, and other processes are only kept waiting for one
batch. Waiting callers are told after the commit, never before.

What nobody waits for (a read's intent, a playback's verdicts) begins no commit by itself: it goes with the
next one that is waited for, or when somebody flushes, or when there is much of it. A commit costs about as
much as forwarding a small request, so this is a third of the cost of recording one.
"""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import lmdb

from .errors import StoreUnwritable

logger = logging.getLogger(__name__)

Operation = Callable[[lmdb.Transaction], Any]
"""What to do inside the transaction; runs on the writer's thread.

What it raises before its first put is told to its caller alone; after that it may fail by LMDB only.
"""

Maker = Callable[[], Operation]
"""Work to be done before the transaction begins, so that other processes do not wait for it."""


_MUCH = 256
"""Operations nobody waits for that begin a commit all the same."""


class _Entry(NamedTuple):
    make: Maker
    waiter: asyncio.Future[Any] | concurrent.futures.Future[Any] | None


class Writer:
    """Apply operations in the order they were handed over.

    `append`, `submit` and `call` may be called from any thread. After a failed batch `failed` holds the
    error, and every later operation is refused with it: a recorder that loses data silently is worse
    than one that is down.
    """

    def __init__(self, environment: lmdb.Environment, after_failure: Callable[[], None]) -> None:
        """Start the thread.

        after_failure: called on the writer's thread when a batch did not reach the disk, to drop
            whatever was remembered of it.
        """
        self.failed: StoreUnwritable | None = None
        self.lost = 0
        """Operations that failed by themselves and that nobody waited for. Writer's thread."""
        self._environment = environment
        self._after_failure = after_failure
        self._entries: list[_Entry] = []
        self._condition = threading.Condition(threading.Lock())
        self._closing = False
        self._wanted = False
        self._waking = False
        self._thread = threading.Thread(target=self._run, name="playhead-writer", daemon=True)
        self._thread.start()

    def append(self, make: Maker) -> None:
        """Hand over an operation nobody waits for; it is committed with the next, or by `flush`."""
        self._hand_over(_Entry(make, None))

    @property
    def waiting(self) -> int:
        """How many operations were handed over and are not in a batch yet."""
        return len(self._entries)

    def flush(self) -> None:
        """Have what was handed over committed now; does not wait for it."""
        with self._condition:
            if self._entries and not self._wanted:
                self._wanted = True
                self._condition.notify()

    def submit(self, make: Maker) -> asyncio.Future[Any]:
        """Hand over an operation; the future is done after its commit. Call on a running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._hand_over(_Entry(make, future), wake=False)
        if not self._waking:
            # Woken once the loop is through with what is ready now: under load that makes one commit of
            # what several connections hand over, and when idle it is at once.
            self._waking = True
            loop.call_soon(self._wake)
        return future

    def _wake(self) -> None:
        self._waking = False
        self.flush()

    def call(self, operation: Operation, timeout_s: float = 60.0) -> Any:
        """Hand over an operation and block until its commit. Never call on an event loop.

        Raises: StoreUnwritable, also when it is not done in time; whatever the operation raises.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._hand_over(_Entry(lambda: operation, future))
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():  # the operation's own
                raise
            raise StoreUnwritable(
                f"the store {self._environment.path()} took no write for {timeout_s:g} s",
                "is another process that writes it stopped, or the disk hanging?",
            ) from None

    def close(self) -> None:
        """Write what is left and end the thread. Blocks."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join()

    def _hand_over(self, entry: _Entry, *, wake: bool = True) -> None:
        with self._condition:
            if self.failed is not None:
                # A new one each time: an exception that is raised again keeps every frame it passed.
                raise StoreUnwritable(str(self.failed), self.failed.hint)
            if self._closing:
                raise StoreUnwritable("the store is closed", "open it again to write to it")
            self._entries.append(entry)
            wanted = (wake and entry.waiter is not None) or len(self._entries) >= _MUCH
            if wanted and not self._wanted:
                self._wanted = True
                self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._wanted and not self._closing:
                    self._condition.wait()
                batch, self._entries = self._entries, []
                self._wanted = False
                if not batch:
                    return
            self._commit(batch)

    def _commit(self, batch: list[_Entry]) -> None:
        results: list[tuple[Any, BaseException | None]] = []
        operations = [_make(entry) for entry in batch]
        try:
            with self._environment.begin(write=True) as transaction:
                for entry, operation in zip(batch, operations, strict=True):
                    try:
                        results.append((operation(transaction), None))
                    except lmdb.Error:
                        raise
                    except Exception as error:  # the caller's own fault: told to the caller alone
                        if entry.waiter is None:
                            self.lost += 1
                            logger.error("a record could not be written", exc_info=error)
                        results.append((None, error))
        except (lmdb.Error, OSError, MemoryError) as error:
            failure = StoreUnwritable(
                f"cannot write the store {self._environment.path()}: {error}",
                "free space or make the folder writable, then start again; what is in it is whole",
            )
            logger.error("%s", failure)
            self._after_failure()
            with self._condition:
                self.failed = failure
                batch += self._entries
                self._entries = []
            results = [(None, failure)] * len(batch)
        _tell(batch, results)


def _make(entry: _Entry) -> Operation:
    try:
        return entry.make()
    except Exception as error:
        failure = error

        def fail(_: lmdb.Transaction) -> None:
            raise failure

        return fail


def _tell(batch: list[_Entry], results: list[tuple[Any, BaseException | None]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, Any]]] = {}
    for entry, (value, error) in zip(batch, results, strict=True):
        waiter = entry.waiter
        if isinstance(waiter, concurrent.futures.Future):
            waiter.set_exception(error) if error else waiter.set_result(value)
        elif waiter is not None:
            by_loop.setdefault(waiter.get_loop(), []).append((waiter, value, error))
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, waiting)
        except RuntimeError:  # the loop is closed, nobody is waiting any more
            logger.debug("a waiting loop was closed")


def _resolve(waiting: list[tuple[asyncio.Future[Any], Any, Any]]) -> None:
    for future, value, error in waiting:
        if future.done():  # its caller was cancelled
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
