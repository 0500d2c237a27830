"""`replay --like`: the newest good recording of the task that a command turns out to be given.

What the task is, is known once the command asks a model for the first time. So it is started against the likeliest recording: the newest
that ended well and was made by the same command, else the newest that ended well. If its first model call is of another task, it is
ended, and started again against the newest good recording of that one. Nothing left the machine meanwhile.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ...store import RunInfo, RunStatus, Store
from ...tape.exchange import Exchange
from ...tape.records.events import Event, EventKind
from ...timeline.cost.ledger import read_ledger
from ...timeline.cost.render import show_usd
from ...timeline.cost.sums import Bill
from ...timeline.outcomes.outcome import find_outcome
from ...timeline.outcomes.task import Known, Task, choose_tape, find_task, read_task
from ...timeline.state.calls_before import Exchanges
from ..errors import EngineError
from .runtime import Runtime

_EVERY_S = 0.05
_LOOKED_AT = 1000
"""Recordings that are looked at, the newest first."""
_FEW = 100
"""Requests among which it is, where the log does not tell which are to models."""
_CALLS = 12
"""Model calls among which the first of a conversation is looked for."""


def list_good(store: Store) -> Iterator[RunInfo]:
    """Give the recordings that ended well and are here, the newest first. Blocking."""
    recordings = (
        run
        for run in reversed(store.runs.all())
        if run.mode == "record" and run.status is not RunStatus.OPEN and run.exchanges
    )
    for run in islice(recordings, _LOOKED_AT):
        here = not run.is_only_in_archive
        if here and find_outcome(run, store.events.all(run)).is_ok:
            yield run


def guess_tape(store: Store, command: Sequence[str]) -> str:
    """Guess which recording is of the same task before the command has said anything.

    Raises: EngineError, where none ended well.
    """
    newest: str | None = None
    for run in list_good(store):
        newest = newest or run.id
        if _command_of(store, run) == list(command):
            return run.id
    if newest is None:
        raise EngineError(
            "there is no recording that ended well to play",
            "record one first; one whose command failed is good once you say so: playhead label RUN ok",
        )
    return newest


def _command_of(store: Store, run: RunInfo) -> list[str] | None:
    for event in store.events.all(run):
        words = event.data.get("command") if event.kind is EventKind.NOTED else None
        if isinstance(words, list | tuple):
            return list(words)
    return None


class TaskWatch:
    """Watches for the first model call of a replay, and says which recording it should have been of."""

    def __init__(self, runtime: Runtime, tape: str) -> None:
        """Begin to watch a replay of a recording."""
        self._store = runtime.store
        self._registry = runtime.registry
        self._tape = self._store.runs.get(tape)
        self._event = 0
        self._decided = False
        self.other: str | None = None
        """The recording to play instead."""
        self.problem: EngineError | None = None
        """Why there is none to play."""

    @property
    def is_over(self) -> bool:
        """Whether this replay is not to go on."""
        return self.other is not None or self.problem is not None

    async def watch(self, stop: Callable[[int], None]) -> None:
        """Look until the task is known; stop the command where it is another one.

        stop: sends a signal to the command.
        """
        while not await asyncio.to_thread(self._look):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(_EVERY_S)
        if self.is_over:
            stop(signal.SIGKILL)

    async def finish(self) -> None:
        """Look once more, when the command has ended: it may have been quicker than we are."""
        if not self._decided:
            await asyncio.to_thread(
                self._store.writer.call, lambda _: None
            )  # all of its log is there
            await asyncio.to_thread(self._look)

    def _look(self) -> bool:
        """Say whether the task is known by now; decide on it. Blocking."""
        asked = self._find_asked()
        if asked is not None:
            self._decide(asked)
            self._decided = True
        return self._decided

    def _find_asked(self) -> Task | None:
        """Find the task in what has been asked so far."""
        open_run = self._registry.sole_run
        if open_run is None or open_run.info is None:
            return None
        run = open_run.info
        while page := self._store.events.read(run, self._event, 100):
            for event in page:
                exchange = self._find_exchange(run, event)
                if exchange is None and _asks_model(event):
                    return None  # its exchange is written a little later
                self._event = event.number
                task = read_task(exchange) if exchange is not None else None
                if task is not None:
                    return task
        return None

    def _find_exchange(self, run: RunInfo, event: Event) -> Exchange | None:
        if not _asks_model(event):
            return None
        if "tape_seq" in event.data:
            return self._store.exchanges.find(self._tape, event.data["tape_seq"])
        return self._store.exchanges.find(run, event.seq)

    def _decide(self, asked: Task) -> None:
        own = _task_of(self._store, self._tape)
        if own is not None and own.fingerprint == asked.fingerprint:
            return
        known = (Known(run, _task_of(self._store, run)) for run in list_good(self._store))
        chosen = choose_tape(known, asked)
        if chosen is not None and chosen[0].run.number == self._tape.number:
            return
        if chosen is not None:
            self.other = chosen[0].run.id
            return
        self.problem = EngineError(
            f"no recording that ended well is of this task: {asked.text[:80]!r}",
            "record it: playhead record -- COMMAND; or name the recording to play",
        )


def _asks_model(event: Event) -> bool:
    asks = event.kind in (EventKind.VERDICT, EventKind.INTENT)
    return asks and event.data["request_class"] == "inference"


def _task_of(store: Store, run: RunInfo) -> Task | None:
    """Find the task of a recording; only its first requests to models are read."""
    asked = (event.seq for event in store.events.all(run) if _asks_model(event))
    seqs = list(islice(asked, _CALLS)) or store.exchanges.seqs(run)[:_FEW]
    found = (store.exchanges.find(run, seq) for seq in seqs)
    return find_task(one for one in found if one is not None)


def saved_line(store: Store, run: RunInfo) -> str:
    """Say in one line what a replay saved, and what it spent. Blocking."""
    bill = Bill("run")
    bill.add(run.id, read_ledger(Exchanges(store, run), lanes=False))
    spent, saved = bill.spent, bill.saved
    used = spent.tokens.input + spent.tokens.output
    whole = used + saved.tokens.input + saved.tokens.output
    if spent.usd + saved.usd:
        share = int(100 * saved.usd / (spent.usd + saved.usd))
    elif whole:
        share = 100 * (whole - used) // whole
    else:
        share = 100 if bill.saved_requests and not bill.sent else 0
    money = "?" if spent.unpriced else show_usd(spent.usd)
    return f"saved {share} % | ${money} | {used} tokens"
