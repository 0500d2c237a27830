"""Runs as a tree: below each recording its replays, branches and the runs that resume it, oldest first."""

import time
from collections.abc import Callable, Iterator, Sequence

from ...store import RunInfo, Store
from ...tape.records.events import EventKind
from .fit import fit

_WIDTH = 80
_EARLY = 20
"""Events of a run among which it says that it is a branch, or resumes another."""


def find_role(store: Store, run: RunInfo) -> str:
    """Say what a run is to the one that it plays. Raises: LogCorrupt."""
    if run.has_resumed:
        return "resumed"
    if run.is_only_in_archive:
        return "in the archive"  # which knows what it was
    for number, event in enumerate(store.events.all(run)):
        if event.kind is EventKind.NOTED and "branch" in event.data:
            return f"branch at {int(event.data['branch']['at'])}"
        if number >= _EARLY:
            break
    return "replay"


def render_tree(runs: Sequence[RunInfo], role_of: Callable[[RunInfo], str]) -> Iterator[str]:
    """Give a line for each run, those that play another below it.

    role_of: says what a run is to the one that it plays.
    """
    below: dict[int, list[RunInfo]] = {}
    known = {run.number for run in runs}
    for run in runs:
        below.setdefault(run.parent_number if run.parent_number in known else 0, []).append(run)
    for run in below.get(0, ()):
        yield _line(run, "", None if run.parent is None else f"of {run.parent}, which is gone")
        yield from _render_below(below, run, "  ", role_of)


def _render_below(
    below: dict[int, list[RunInfo]], run: RunInfo, indent: str, role_of: Callable[[RunInfo], str]
) -> Iterator[str]:
    for child in below.get(run.number, ()):
        yield _line(child, indent, role_of(child))
        yield from _render_below(below, child, f"{indent}  ", role_of)


def _line(run: RunInfo, indent: str, what: str | None) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.created_ns / 1e9))
    told = [run.status.value, what or run.mode, began, *run.labels]
    return indent + fit(f"{run.id}  {'  '.join(told)}", _WIDTH - len(indent))
