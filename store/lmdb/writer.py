"""The one writer of a process: a thread that commits at once if it is idle.

Operations that are handed over during a commit are the next batch. A batch is one LMDB transaction, so
it is on disk whole or not at all, and other processes wait for at most one batch. Waiting callers are notified after the
commit, never before. Who says that others will hand over something soon has it collected for a millisecond: a commit
costs as much as a third of all other work on a small exchange.

What nobody waits for (a read's intent, a playback's verdicts) begins no commit by itself: it goes with the
next one that is waited for, or when somebody flushes, or when there is much of it. A commit costs about as
much as forwarding a small request, so this is a third of the cost of recording one.

If the disk is full, or nearly full, operations are refused until there is free space again, which is checked once a second.
Meanwhile `failed` says why, and `lost` counts by run the operations that were not written.
"""

import concurrent.futures
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import lmdb

from ..errors import StoreError, StoreUnwritable
from ..lmdb_keys import PROBE_ROW
from .free_space import FreeSpace

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger(__name__)

Operation = Callable[[lmdb.Transaction], Any]
"""What to do inside the transaction; runs on the writer's thread.

What it raises before its first put is told to its caller alone; after that it may fail by LMDB only.
"""

Maker = Callable[[], Operation]
"""Work to be done before the transaction begins, so that other processes do not wait for it."""


_COLLECT_S = 0.001
"""How long operations are collected that others will join."""

_MAX_UNAWAITED = 256
"""Operations nobody waits for that begin a commit all the same."""


_CHECK_EVERY_S = 0.25
"""Seconds between two checks of the free space, while there is enough."""
_RETRY_EVERY_S = 1.0
"""The same while there is too little."""


class _Entry(NamedTuple):
    make: Maker
    waiter: "asyncio.Future[Any] | concurrent.futures.Future[Any] | None"
    run: int = 0
    vital: bool = False
    """Tried also while other operations are refused."""


class Writer:
    """Apply operations in the order they were handed over.

    `append`, `submit` and `call` may be called from any thread. While nothing can be written `failed` holds the
    error, and operations are refused with it: a recorder that loses data silently is worse than one that is down.
    """

    def __init__(
        self,
        environment: lmdb.Environment,
        free_space: FreeSpace,
        after_failure: Callable[[], None],
        reopen: Callable[[], lmdb.Environment | None],
    ) -> None:
        """Start the thread.

        free_space: is checked before a batch.
        after_failure: called on the writer's thread when a batch did not reach the disk, to drop
            whatever was remembered of it.
        reopen: opens the environment anew, which LMDB has given up, if it can be done now.
        """
        import asyncio  # late: who only reads makes none of these, and has no loop

        self._find_loop = asyncio.get_running_loop
        self.failed: StoreUnwritable | None = None
        self.failures = 0
        """Operations that failed by themselves and that nobody waited for. Writer's thread."""
        self.outages = 0
        """How often writing had to stop."""
        self.lost: Counter[int] = Counter()
        """Operations that were not written, by run, until they are taken out with `take_lost`."""
        self._free_space = free_space
        self._checked_at = 0.0
        self._environment = environment
        self._path = environment.path()
        self._reopen = reopen
        self._given_up = False
        """By LMDB, until it is open again."""
        self._after_failure = after_failure
        self._entries: list[_Entry] = []
        self._condition = threading.Condition(threading.Lock())
        self._closing = False
        self._wanted = False
        self._waking = False
        self._collecting = False
        self._thread = threading.Thread(target=self._run, name="playhead-writer", daemon=True)
        self._thread.start()

    def append(self, make: Maker, run: int = 0) -> None:
        """Hand over an operation nobody waits for; it is committed with the next, or by `flush`.

        run: that it belongs to.
        Raises: StoreUnwritable.
        """
        self._hand_over(_Entry(make, None, run))

    def take_lost(self, run: int) -> int:
        """Give how many operations of a run were not written, and count anew."""
        with self._condition:
            return self.lost.pop(run, 0)

    def count_lost(self, run: int, count: int) -> None:
        """Put back what was taken out and could not be told."""
        with self._condition:
            self.lost[run] += count

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

    def submit(
        self, make: Maker, run: int = 0, *, vital: bool = False, collect: bool = False
    ) -> "asyncio.Future[Any]":
        """Hand over an operation; the future is done after its commit. Call on a running loop.

        run: that it belongs to.
        vital: try it also when little space is free: it is small, and says how a run stands.
        collect: wait up to a millisecond for what others hand over, so that one commit does for all.
        Raises: StoreUnwritable, at once or in the future.
        """
        loop = self._find_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._hand_over(_Entry(make, future, run, vital), wake=False)
        if collect and not self._waking and not self._collecting:
            self._collecting = True
            loop.call_later(_COLLECT_S, self._wake)
        elif not collect and not self._waking:
            # Woken once the loop is through with what is ready now: under load that makes one commit of
            # what several connections hand over, and when idle it is at once.
            self._waking = True
            loop.call_soon(self._wake)
        return future

    def _wake(self) -> None:
        self._waking = self._collecting = False
        self.flush()

    def call(self, operation: Operation, timeout_s: float = 60.0) -> Any:
        """Hand over an operation and block until its commit. Never call on an event loop.

        It is tried also when little space is free: who deletes makes some.
        Raises: StoreUnwritable, also when it is not done in time; whatever the operation raises.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._hand_over(_Entry(lambda: operation, future, vital=True))
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():  # the operation's own
                raise
            raise StoreUnwritable(
                f"the store {self._path} took no write for {timeout_s:g} s",
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
            if self.failed is not None and not entry.vital:
                self._count([entry])
                # A new one each time: an exception that is raised again keeps every frame it passed.
                again = StoreUnwritable(str(self.failed), self.failed.hint)
                again.is_said = True
                raise again
            if self._closing:
                raise StoreUnwritable("the store is closed", "open it again to write to it")
            self._entries.append(entry)
            wanted = (wake and entry.waiter is not None) or len(self._entries) >= _MAX_UNAWAITED
            if wanted and not self._wanted:
                self._wanted = True
                self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._wanted and not self._closing:
                    if not self._condition.wait(
                        _RETRY_EVERY_S if self.failed is not None else None
                    ):
                        break
                batch, self._entries = self._entries, []
                self._wanted = False
                if self._closing and not batch:
                    return
            if self.failed is not None:
                self._try_again()
            if batch:
                self._commit(batch)

    def _try_again(self) -> None:
        """Write something small, if there is free space, to see whether more can be written."""
        if time.monotonic() - self._checked_at < _RETRY_EVERY_S:
            return
        self._checked_at = time.monotonic()
        if self._given_up:
            self._open_again()
            return
        try:
            if self._free_space.find_shortage(again=True) is not None:
                return
            self._environment.reader_check()
            with self._environment.begin(write=True) as transaction:
                meta = self._environment.open_db(b"meta", txn=transaction)
                transaction.put(PROBE_ROW, str(self.outages).encode(), db=meta)
        except lmdb.PanicError as error:
            logger.debug("LMDB has given up: %s", error)
            self._given_up = True
            self._open_again()
            return
        except (lmdb.Error, OSError, MemoryError) as error:
            logger.debug("nothing can be written yet: %s", error)
            return
        logger.warning("the store %s can be written again", self._path)
        with self._condition:
            self.failed = None

    def _open_again(self) -> None:
        """Open the environment anew: a page that says which commit is the last could not be written."""
        try:
            environment = self._reopen()
        except (lmdb.Error, OSError, StoreError) as error:
            logger.debug("it cannot be opened again yet: %s", error)
            return
        if environment is not None:
            self._environment = environment
            self._free_space.use(environment)
            self._given_up = False
            self._checked_at = 0.0

    def _check_free_space(self) -> None:
        """Check whether there is enough free space to go on."""
        if self.failed is not None or time.monotonic() - self._checked_at < _CHECK_EVERY_S:
            return
        self._checked_at = time.monotonic()
        try:
            left = self._free_space.find_shortage()
        except (lmdb.Error, OSError) as error:
            logger.debug("the free space cannot be determined: %s", error)
            return
        if left is not None:
            self._fail(f"its disk is full but for {left >> 10} KiB")

    def _fail(self, why: str) -> StoreUnwritable:
        failure = StoreUnwritable(
            f"cannot write the store {self._path}: {why}",
            "free space or make the folder writable: writing then resumes by itself; stored runs are intact",
        )
        failure.is_said = True
        if self.failed is None:
            logger.error("%s; %s", failure, failure.hint)
            self.outages += 1
        with self._condition:
            self.failed = failure
        return failure

    def _count(self, entries: list[_Entry]) -> None:
        """Count what is lost. Under the lock."""
        self.lost.update(entry.run for entry in entries if entry.run)

    def _refuse(self, entries: list[_Entry], failure: StoreUnwritable) -> None:
        with self._condition:
            self._count(entries)
        _tell(entries, [(None, failure)] * len(entries))

    def _commit(self, batch: list[_Entry]) -> None:
        self._check_free_space()
        if self.failed is not None:
            self._refuse([entry for entry in batch if not entry.vital], self.failed)
            batch = [entry for entry in batch if entry.vital]
            if not batch:
                return
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
                            self.failures += 1
                            logger.error("a record could not be written", exc_info=error)
                        results.append((None, error))
        except (lmdb.Error, OSError, MemoryError) as error:
            self._after_failure()
            self._checked_at = time.monotonic()
            self._refuse(batch, self._fail(str(error)))
        else:
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


def _resolve(waiting: "list[tuple[asyncio.Future[Any], Any, Any]]") -> None:
    for future, value, error in waiting:
        if future.done():  # its caller was cancelled
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
