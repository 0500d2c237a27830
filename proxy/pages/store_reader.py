"""The store as pages read it: open runs, what is known of each, and the threads that find out more meanwhile."""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn
from zlib import crc32

from ... import PlayheadError
from ...config import Config
from ...store import RunInfo, RunStatus, Store
from ...timeline.reading.call_cost import has_prices
from ...timeline.state.calls_before import Exchanges
from ...timeline.steps.tracer import Price
from ...web.views.addresses import run_path
from ...web.views.run_facts import RunFacts, is_quick, read_facts
from ...web.views.run_index import RunIndex
from ...web.views.scrubber_stops import Scrubbers
from ..control.http.error_body import ControlError
from ..operations.open_store import open_store

logger = logging.getLogger(__name__)

_OPEN = 6
"""Runs that are kept in memory."""
_EVENTS = 2000
"""Events that are read while nobody else may look at a run."""
_EXCHANGES = 4
_SOON_S = 0.12
"""How long a request waits for what is not read yet."""
_SHORT_S = 0.002
_END_S = 1.0
"""How long what is being computed may take to end: the receipt of a long run takes minutes."""
_LISTED = 200
"""Runs, the newest, whose changes the list shows by itself."""
_FACTS = 5000
"""Runs whose facts are remembered."""
_GIVE_WAY_S = 1.0
"""How long what is read meanwhile stands still for requests; the next moment is its own, however many there are."""
_NICE = 19
"""Of a process that computes facts: a browser needs both processors of a small machine."""


class Waited:
    """Counts the requests that somebody waits for: threads share one interpreter, and each of them would get a part of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            if not self._count:
                self._changed.notify_all()

    def give_way(self) -> None:
        """Stand still while a request is under way, for a second at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, _GIVE_WAY_S)


class OpenRun:
    """A run that somebody looks at."""

    def __init__(self, index: RunIndex) -> None:
        self.index = index
        self.scrubbers = Scrubbers(index)
        self._reading = threading.Lock()
        self._listed: tuple[object, Exchanges] | None = None

    def read_soon(self) -> None:
        """Read on for a moment: of a short run all of it."""
        until = time.monotonic() + _SOON_S
        while self.index.read_log(_EVENTS):
            if time.monotonic() > until:
                return
        while time.monotonic() < until and self.index.read_steps(_EXCHANGES):
            pass

    def read_log(self) -> None:
        """Read the log to its end, however long that takes: where a scrubber leads is about the whole run."""
        while self.index.read_log(_EVENTS):
            pass

    def read_rest(self, stop: threading.Event, waited: Waited) -> None:
        """Read all there is, and let others look meanwhile."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            while not stop.is_set() and self.index.read_log(_EVENTS):
                time.sleep(_SHORT_S)
                waited.give_way()
            while not stop.is_set() and self.index.read_steps(_EXCHANGES):
                time.sleep(_SHORT_S)
                waited.give_way()
        except PlayheadError as error:
            logger.error("page: %s", error)
        finally:
            self._reading.release()

    @property
    def exchanges(self) -> Exchanges:
        """The exchanges of the run as they are now; of one that has ended, its seqs are listed once."""
        index = self.index
        if index.info.status is RunStatus.OPEN:
            return Exchanges(index.store, index.info)
        state = index.info.sealed_ns, index.info.exchanges
        if self._listed is None or self._listed[0] != state:
            self._listed = state, Exchanges(index.store, index.info)
        return self._listed[1]


class Library:
    """One store, read. Methods block, unless they say otherwise; they may be called from any thread."""

    def __init__(self, config: Config, words: tuple[str, ...] = ()) -> None:
        """Open the store of a configuration.

        words: flags that give another command the same configuration.
        Raises: StoreError.
        """
        self.config = config
        self.words = words or ("--store", str(config.store))
        self.store: Store = open_store(config, readonly=True)
        self.threads = ThreadPoolExecutor(4, thread_name_prefix="page")
        self._behind = ThreadPoolExecutor(2, thread_name_prefix="page-reads")
        self._open: OrderedDict[int, OpenRun] = OrderedDict()
        self._facts: OrderedDict[int, tuple[object, RunFacts]] = OrderedDict()
        self._finding: dict[int, Future[None]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.waited = Waited()
        self._computing: set[subprocess.Popen[bytes]] = set()
        self._price: Price | None = None

    def close(self) -> bool:
        """Stop reading, and close the store; False where something is still being computed after a second.

        Then the store stays open, and only the end of the process ends what is computed: see `end_process`.
        """
        self._stop.set()
        with self._lock:
            for process in self._computing:
                process.kill()
        until = time.monotonic() + _END_S
        for pool in (self.threads, self._behind):
            pool.shutdown(wait=False, cancel_futures=True)
        for thread in (*self.threads._threads, *self._behind._threads):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                return False
        self.store.close()
        return True

    def find_here(self, name: str) -> RunInfo:
        """Find a run that can be read: an archived one would be an empty one.

        Raises: UnknownRun; ControlError.
        """
        info = self.store.runs.get(name)
        if info.is_only_in_archive:
            raise ControlError(
                503,
                f"Run {info.id!r} is in the archive",
                hint="open its page, which fetches it, and ask again",
                near=((f"Fetch {info.id}", run_path(info.id)),),
            )
        return info

    def open_run(self, name: str) -> OpenRun:
        """Open a run, or give it as it is open already; it is read on with.

        Raises: UnknownRun; LogCorrupt; ControlError, for one that is in the archive alone.
        """
        info = self.find_here(name)
        with self._lock:
            run = self._open.get(info.number)
            if run is None:
                run = self._open[info.number] = OpenRun(
                    RunIndex(self.store, info, self._find_price())
                )
                while len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(info.number)
        index = run.index
        if not index.complete:
            if index.info.status is RunStatus.OPEN:
                index.info = info
            if is_quick(info) or not index.logged:  # of a long run the steps are read behind
                run.read_soon()
            if not index.complete:
                self._submit(run.read_rest, self._stop, self.waited)
        else:  # a note or a label may have been given it since
            index.info = info
            index.read_log(_EVENTS)
        return run

    def find_facts(self, info: RunInfo, *, wait: bool = True) -> RunFacts | None:
        """Give the facts of a run; None where they are still being computed, or cannot be.

        wait: whether to compute those of a short run at once.
        """
        if info.is_only_in_archive:
            return None
        state = info.status, info.exchanges, info.sealed_ns, info.labels, self._revision(info)
        known = self._facts.get(info.number)
        if known is not None and known[0] == state:
            return known[1]
        if wait and is_quick(info):
            self._read_facts(info, state)
            known = self._facts.get(info.number)
            return known[1] if known is not None else None
        with self._lock:
            finding = self._finding.get(info.number)
            if finding is None or finding.done():
                made = self._submit(self._read_facts_beside, info, state)
                if made is not None:
                    self._finding[info.number] = made
        return known[1] if known is not None else None

    def find_version(self, info: RunInfo) -> str:
        """Name all that the page of a run shows beside its lines: it is out of date once this is another one.

        Whoever shows something asks for the version first: what is read behind that is as new, or newer.
        """
        run, known = self._open.get(info.number), self._facts.get(info.number)
        index = run.index if run is not None else None
        read = index and (index.logged and index.revision, index.complete)
        row = info.status, info.exchanges, info.sealed_ns, info.labels, info.pinned, info.end
        return f"{sum_up((row, read, known and known[0])):08x}"

    def find_version_of_all(self) -> str:
        """Name all that the list of runs shows."""
        runs = self.store.runs.all()[-_LISTED:]
        return f"{sum_up([self.find_version(one) for one in runs]):08x}"

    def _revision(self, info: RunInfo) -> int:
        """Give how far the log of a run has been read whose facts may be computed again at each of its events."""
        run = self._open.get(info.number)
        return run.index.revision if run is not None and run.index.logged and is_quick(info) else 0

    def _read_facts(self, info: RunInfo, state: object) -> None:
        with contextlib.suppress(PlayheadError):
            self._remember(info, state, read_facts(self.store, info))

    def _read_facts_beside(self, info: RunInfo, state: object) -> None:
        """Have another process compute them: of a long run that takes seconds, in which a thread of ours would slow down all pages."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            with self._lock:
                self._computing.add(process)
                if self._stop.is_set():
                    process.kill()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                # It ends once its standard input does, as when we are killed.
                process.stdin.write(pickle.dumps((self.config, info.id)))
                process.stdin.flush()
                told = process.stdout.read()
            except OSError:  # it was killed
                told = b""
            finally:
                with self._lock:
                    self._computing.discard(process)
                process.kill()
        if told:
            self._remember(info, state, pickle.loads(told))  # our own process's

    def _remember(self, info: RunInfo, state: object, found: RunFacts) -> None:
        with self._lock:
            self._facts[info.number] = state, found
            while len(self._facts) > _FACTS:
                self._facts.popitem(last=False)

    def _submit(self, work: Any, *given: Any) -> "Future[None] | None":
        try:
            return self._behind.submit(work, *given)
        except RuntimeError:  # it is being closed
            return None

    def _find_price(self) -> Price | None:
        if self._price is None and has_prices():
            from ...timeline.cost.ledger import price_call

            self._price = price_call
        return self._price


def sum_up(value: object) -> int:
    """Give a number that is another one where a value is, in all likelihood."""
    return crc32(repr(value).encode("utf-8", "backslashreplace"))


def end_process(code: int) -> NoReturn:
    """End the process without waiting for its threads, which only read."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def newest_first(store: Store) -> Iterator[RunInfo]:
    """Give all runs, the newest first."""
    return reversed(store.runs.all())


def main() -> None:
    """Compute the facts of a run for the process that started this one: see `Library`."""
    os.nice(_NICE)
    config, name = pickle.load(sys.stdin.buffer)  # our own parent's

    def end_with_parent() -> None:
        os.read(0, 1)
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    with contextlib.suppress(PlayheadError), open_store(config, readonly=True) as store:
        told = pickle.dumps(read_facts(store, store.runs.get(name)))
        sys.stdout.buffer.write(told)


if __name__ == "__main__":
    main()
