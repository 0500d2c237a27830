"""Find runs by what was said in them, or by the trace that their requests belong to."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...store import RunInfo, Store
from ...tape.exchange import Seq
from ...tape.headers.trace_context import find_traces, is_same_trace
from ...tape.records.events import EventKind
from ..show.pattern_in_step import find_match
from ..steps.read_run import RunReader


@dataclass(frozen=True, slots=True)
class Found:
    """A run in which something was found."""

    run: RunInfo
    seqs: tuple[Seq, ...]
    """Where, in order; each once."""
    excerpt: str = ""
    """The text around the first place."""


Progress = Callable[[int, int], None]


def grep_runs(
    store: Store, runs: list[RunInfo], pattern: re.Pattern[str], progress: Progress
) -> Iterator[Found]:
    """Find the runs with a step that matches, as `playhead show --grep` does.

    Raises: LogCorrupt.
    """
    for done, run in enumerate(runs, 1):
        seqs: dict[Seq, None] = {}
        excerpt = ""
        for step in RunReader(store, run, texts=True).read():
            found = find_match(step, pattern)
            if found is not None:
                excerpt = excerpt or found
                seqs[step.seq] = None
        progress(done, len(runs))
        if seqs:
            yield Found(run, tuple(seqs), excerpt)


def trace_runs(store: Store, runs: list[RunInfo], trace: str, progress: Progress) -> list[Found]:
    """Find the runs with a request of a trace: by their logs, and where no log tells of it by the requests themselves.

    Raises: LogCorrupt.
    """
    found = [one for one in _each(runs, trace, lambda run: _logged(store, run)) if one.seqs]
    if found:
        return found
    reading = 0

    def read(run: RunInfo) -> Iterator[tuple[Seq, Iterable[str]]]:
        nonlocal reading
        reading += 1
        progress(reading, len(runs))
        for exchange in store.exchanges.all(run):
            yield exchange.seq, find_traces(exchange.request.headers)

    return [one for one in _each(runs, trace, read) if one.seqs]


def _each(
    runs: list[RunInfo],
    trace: str,
    read: Callable[[RunInfo], Iterator[tuple[Seq, Iterable[str]]]],
) -> Iterator[Found]:
    for run in runs:
        yield Found(run, tuple(seq for seq, traces in read(run) if _is_of(trace, traces)))


def _is_of(trace: str, traces: Iterable[str]) -> bool:
    return any(is_same_trace(one, trace) for one in traces)


def _logged(store: Store, run: RunInfo) -> Iterator[tuple[Seq, Iterable[str]]]:
    for event in store.events.all(run):
        if event.kind in (EventKind.INTENT, EventKind.VERDICT) and "traces" in event.data:
            yield event.seq, event.data["traces"]
