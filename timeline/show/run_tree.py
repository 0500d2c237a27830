"""Runs as a tree: below each recording its replays and branches, oldest first."""

import time
from collections.abc import Callable, Iterator, Sequence

from ...store import RunInfo, Store
from ...tape.records.events import EventKind
from .fit import fit

_WIDTH = 80
_EARLY = 20
"""Events of a run among which it says that it is a branch."""


def find_point(store: Store, run: RunInfo) -> int | None:
    """Find the exchange at which a run leaves its tape; None where it is no branch. Raises: LogCorrupt."""
    for number, event in enumerate(store.events.all(run)):
        if event.kind is EventKind.NOTED and "branch" in event.data:
            return int(event.data["branch"]["at"])
        if number >= _EARLY:
            break
    return None


def render_tree(
    runs: Sequence[RunInfo], point_of: Callable[[RunInfo], int | None]
) -> Iterator[str]:
    """Give a line for each run, those that play another below it.

    point_of: gives the exchange at which a run leaves its tape.
    """
    below: dict[int, list[RunInfo]] = {}
    known = {run.number for run in runs}
    for run in runs:
        below.setdefault(run.parent_number if run.parent_number in known else 0, []).append(run)
    for run in below.get(0, ()):
        yield _line(run, "", None if run.parent is None else f"of {run.parent}, which is gone")
        for child in below.get(run.number, ()):
            at = point_of(child)
            yield _line(child, "  ", "replay" if at is None else f"branch at {at}")


def _line(run: RunInfo, indent: str, what: str | None) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.created_ns / 1e9))
    told = [run.status.value, what or run.mode, began, *run.labels]
    return indent + fit(f"{run.id}  {'  '.join(told)}", _WIDTH - len(indent))
