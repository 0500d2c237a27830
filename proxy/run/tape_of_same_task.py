"""`replay --like`: the newest good recording of the task that a command is given.

What the task is, is known once the command asks a model for the first time, and a command is not started twice: what it did on this
machine by then, it would do once more. So it is started against the likeliest recording: the newest that ended well and was made by the
same command, else the one whose task is in the words of the command, else the newest that ended well. If its first model call is of
another task, it is ended, and it is said which recording to name.
"""

import asyncio
import shlex
import signal
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from ...store import RunInfo, Store
from ...tape.exchange import Exchange
from ...tape.records.events import Event, EventKind
from ...tape.shell_words import shell_word
from ...timeline.cost.ledger import read_ledger
from ...timeline.cost.render import show_usd
from ...timeline.cost.sums import Bill
from ...timeline.outcomes.task import Known, Task, choose_tape, read_task
from ...timeline.state.calls_before import Exchanges
from ..errors import EngineError
from .good_recordings import (
    Recording,
    asks_model,
    list_archived,
    list_good,
    list_stored,
    recording_of,
)
from .runtime import Runtime

_EVERY_S = 0.05
_TELLING = 8
"""Characters from which on a task in the words of a command is no coincidence."""
_READ = 200
"""Recordings of which the task is read, to be looked for in a command; the newest."""


def guess_tape(store: Store, command: Sequence[str]) -> str:
    """Guess which recording is of the same task before the command has said anything. Blocking.

    Raises: EngineError, where none ended well.
    """
    newest: str | None = None
    for list_some in (list_stored, list_archived):
        for recording in list_some(store):
            if recording.command == tuple(command):
                return recording.info.id
            newest = newest or recording.info.id
        told = _find_told(islice(list_some(store), _READ), command)
        if told is not None:
            return told
    if newest is None:
        raise EngineError(
            "there is no recording that ended well to play",
            "record one first; one whose command failed is good once you say so: playhead label RUN ok",
        )
    return newest


def _find_told(known: Iterable[Recording], command: Sequence[str]) -> str | None:
    """Find the recording whose task is in the words of a command: the longest one, of these the newest."""
    best, length = None, _TELLING - 1
    for recording in known:
        told = recording.task.text if recording.task is not None else ""
        if len(told) > length and any(told in word for word in command):
            best, length = recording.info.id, len(told)
    return best


class TaskWatch:
    """Watches for the first model call of a replay, and says which recording it should have been of."""

    def __init__(self, runtime: Runtime, tape: str, command: Sequence[str]) -> None:
        """Begin to watch a replay of a recording.

        command: what is replayed, as it may be shown.
        """
        self._store = runtime.store
        self._command = command
        self._registry = runtime.registry
        self._tape = self._store.runs.get(tape)
        self._event = 0
        self._decided = False
        self.problem: EngineError | None = None
        """Why this replay is not to go on."""

    async def watch(self, stop: Callable[[int], None]) -> None:
        """Look until the task is known; stop the command where it is another one.

        stop: sends a signal to the command.
        """
        while not await asyncio.to_thread(self._look):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(_EVERY_S)
        if self.problem is not None:
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
                if exchange is None and asks_model(event):
                    return None  # its exchange is written a little later
                self._event = event.number
                task = read_task(exchange) if exchange is not None else None
                if event.kind is EventKind.NOTED and "task" in event.data:
                    task = Task.from_noted(event.data["task"])
                if task is not None:
                    return task
        return None

    def _find_exchange(self, run: RunInfo, event: Event) -> Exchange | None:
        if not asks_model(event):
            return None
        if "tape_seq" in event.data:
            return self._store.exchanges.find(self._tape, event.data["tape_seq"])
        return self._store.exchanges.find(run, event.seq)

    def _decide(self, asked: Task) -> None:
        own = recording_of(self._store, self._tape).task
        if own is not None and own.fingerprint == asked.fingerprint:
            return
        known = (Known(one.info, one.task) for one in list_good(self._store))
        chosen, told = choose_tape(known, asked), repr(asked.text[:80])
        if chosen is None:
            self.problem = EngineError(
                f"no recording that ended well is of this task: {told}",
                "record it: playhead record -- COMMAND; or name the recording to play",
            )
        elif chosen[0].run.number != self._tape.number:
            name = chosen[0].run.id
            self.problem = EngineError(
                f"its task is that of {name!r}, {told}, and it was started against {self._tape.id!r}; it was ended, and is"
                " not started twice, because it may have changed this machine",
                f"playhead replay {shell_word(name)} -- {shlex.join(self._command)}",
            )


def saved_line(store: Store, run: RunInfo) -> str:
    """Say in one line what a replay saved: its share of the whole, money and tokens. Blocking."""
    bill = Bill("run")
    bill.add(run.id, read_ledger(Exchanges(store, run), lanes=False))
    spent, saved = bill.spent, bill.saved
    tokens = saved.tokens.input + saved.tokens.output
    whole = tokens + spent.tokens.input + spent.tokens.output
    usd = spent.usd + saved.usd
    # A sum that lacks a price says nothing of a share.
    if usd and not spent.unpriced and not saved.unpriced:
        share = int(100 * saved.usd / usd)
    elif whole:
        share = 100 * tokens // whole
    else:
        share = 100 if bill.saved_requests and not bill.sent else 0
    money = "?" if saved.unpriced else show_usd(saved.usd)
    return f"saved {share} % | ${money} | {tokens} tokens"
