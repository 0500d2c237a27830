"""The recordings that ended well, of a store and of its archives: what `replay --like` chooses from. Blocking."""

import contextlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from ...store import Archived, RunInfo, RunStatus, Store, StoreError
from ...store.tables.run_info import began
from ...tape.exchange import Exchange, Message
from ...tape.records.events import Event, EventKind, decode_event
from ...timeline.outcomes.outcome import find_outcome, read_outcome
from ...timeline.outcomes.task import Task, find_task
from ...timeline.receipts.command.command_end import find_command
from ...timeline.steps.websocket_calls import split_websocket
from ..operations.restore_archived import open_place
from ..standard_streams import print_status

if TYPE_CHECKING:
    from ...store.archive.reading import BatchReader

_LOOKED_AT = 1000
"""Recordings that are looked at, the newest first; of those in archives as many."""
_FEW = 100
"""Requests among which the first to a model is, where the log does not tell which these are."""
_CALLS = 12
"""Model calls among which the first of a conversation is looked for."""


@dataclass(slots=True)
class Recording:
    """A recording that ended well, wherever it is."""

    info: RunInfo
    _source: "_Stored | _Archived"
    _task: Task | None = None
    _is_read: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        """The command that was recorded; empty where no launcher did it."""
        return find_command(self._source.events())

    @property
    def task(self) -> Task | None:
        """Its task; None where it asked no model that is known. Only its first requests to models are read, once."""
        if not self._is_read:
            asked = (event.seq for event in self._source.events() if asks_model(event))
            seqs = list(islice(asked, _CALLS)) or self._source.seqs()[:_FEW]
            self._task = find_task(one for seq in seqs for one in self._asked(seq))
            self._is_read = True
        return self._task

    def _asked(self, seq: int) -> Iterator[Exchange]:
        """Give what may be a model call: an exchange, or each call of a WebSocket."""
        found = self._source.find(seq)
        if found is None:
            return
        if found.websocket is None:
            yield found
            return
        calls = split_websocket(found, self._source.messages(seq))
        yield from (made for _, made, _ in islice(calls, _CALLS))


def recording_of(store: Store, run: RunInfo) -> Recording:
    """Give a recording that a store has, whatever its outcome."""
    return Recording(run, _Stored(store, run))


def asks_model(event: Event) -> bool:
    """Say whether an event tells of a request to a model."""
    asks = event.kind in (EventKind.VERDICT, EventKind.INTENT)
    return asks and event.data["request_class"] == "inference"


def list_good(store: Store) -> Iterator[Recording]:
    """Give the recordings that ended well, the newest first: those that are here, then those in archives."""
    return chain(list_stored(store), list_archived(store))


def list_stored(store: Store) -> Iterator[Recording]:
    """Give the recordings that ended well and are here, the newest first."""
    for run in _recordings(store, archived=False):
        if read_outcome(store, run).is_ok:
            yield recording_of(store, run)


def list_archived(store: Store) -> Iterator[Recording]:
    """Give the recordings that ended well and are in an archive alone, the newest first.

    What cannot be read is passed over, and that is said on stderr.
    """
    runs = _recordings(store, archived=True)
    if runs and importlib.util.find_spec("pyarrow") is None:
        print_status("playhead: archived recordings are left out: install playhead[archive]")
        return
    with _Batches() as batches:
        for run in runs:
            assert run.archived is not None
            source = _Archived(batches, run.archived)
            try:
                is_ok = find_outcome(run, source.events()).is_ok
            except StoreError as error:
                print_status(f"playhead: archived run {run.id!r} is left out: {error}")
                continue
            if is_ok:
                yield Recording(run, source)


def _recordings(store: Store, *, archived: bool) -> list[RunInfo]:
    runs = (
        run
        for run in sorted(store.runs.all(), key=began, reverse=True)
        if run.mode == "record"
        and run.status is not RunStatus.OPEN
        and run.exchanges
        and not run.is_explored
    )
    return list(islice((run for run in runs if run.is_only_in_archive is archived), _LOOKED_AT))


class _Stored:
    """A recording of a store."""

    def __init__(self, store: Store, info: RunInfo) -> None:
        self._store = store
        self._info = info

    def events(self) -> Iterable[Event]:
        return self._store.events.all(self._info)

    def find(self, seq: int) -> Exchange | None:
        return self._store.exchanges.find(self._info, seq)

    def messages(self, seq: int) -> Iterable[Message]:
        return self._store.messages.all(self._info, seq)

    def seqs(self) -> list[int]:
        return list(self._store.exchanges.seqs(self._info))


class _Archived:
    """A recording that only an archive has, read where it is."""

    def __init__(self, batches: "_Batches", where: Archived) -> None:
        self._batches = batches
        self._where = where

    def events(self) -> Iterable[Event]:
        rows = self._batches.open(self._where).events(self._where.id)
        return (decode_event(row, number) for number, row in enumerate(rows, 1))

    def find(self, seq: int) -> Exchange | None:
        return self._batches.open(self._where).find_step(self._where.id, seq)

    def messages(self, seq: int) -> Iterable[Message]:
        return self._batches.open(self._where).messages(self._where.id, seq)

    def seqs(self) -> list[int]:
        return list(range(1, _FEW + 1))


class _Batches:
    """Batches of archives, of which the last that was asked for is open."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._last: tuple[tuple[str, str], BatchReader] | None = None

    def __enter__(self) -> "_Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def open(self, where: Archived) -> "BatchReader":
        from ...store.archive.reading import BatchReader  # needs pyarrow

        key = where.place, where.batch
        if self._last is None or self._last[0] != key:
            self._open.close()
            reader = self._open.enter_context(BatchReader(open_place(where.place), where.batch))
            self._last = key, reader
        return self._last[1]
