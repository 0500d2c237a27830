"""The data of all runs: their table, comparisons and destinations."""

import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...store import RunInfo
from ...tape.canonical.canonical_request import rules_of
from ...tape.shell_words import shell_word
from ...timeline.fleet.find_runs import grep_runs
from ...timeline.steps.read_run import RunReader
from ...web.views.diff_view import DiffView, compare_runs
from ...web.views.run_facts import run_json, run_row
from ...web.views.run_page_sections import find_role_of
from ...web.views.safe_text import safe_short
from .request_and_reply import Asked, Reply, read_number, read_word, reply_json
from .store_reader import Library, newest_first

WINDOW = 50
IN = ("text", "url", "label")
_LIMIT = 200
_SEARCH_S = 8.0
_NAMED = 5
_NOW = time.time_ns


@dataclass(frozen=True, slots=True)
class Search:
    """The runs that were asked for, the newest first, and what was not searched for them."""

    found: list[RunInfo]
    is_whole: bool = True
    """Whether it did not end early."""
    not_searched: tuple[str, ...] = ()
    """Names of the runs of which the archive has the text, or a part of it: only their rows were searched."""
    command: str = ""
    """That fetches and searches them, too; empty where there are none."""


def list_runs(library: Library, asked: Asked) -> Reply:
    """Give a window of runs, the newest first."""
    begin = read_number(asked.query, "from", 0, 0, 1 << 40)
    limit = read_number(asked.query, "limit", WINDOW, 1, _LIMIT)
    search = find_runs(library, asked)
    shown = search.found[begin : begin + limit]
    rows = [run_json(library.store, info, library.find_facts(info)) for info in shown]
    return reply_json(
        {
            "runs": rows,
            "total": len(search.found),
            "complete": search.is_whole,
            "not_searched": len(search.not_searched),
        }
    )


def find_runs(library: Library, asked: Asked) -> Search:
    """Find the runs that are asked for."""
    store = library.store
    runs = list(newest_first(store))
    text = asked.query.get("q", "").strip()[:200]
    where = read_word(asked.query, "in", IN)
    if not text:
        return Search(runs)
    if where == "label":
        return Search([run for run in runs if _has_in_row(run, text, where)])
    found: list[RunInfo] = []
    missing: list[str] = []
    until = time.monotonic() + _SEARCH_S
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    is_whole = True
    for run in runs:
        if _has_in_row(run, text, where):
            found.append(run)
            continue
        is_archived = run.is_only_in_archive
        if not is_archived:
            if time.monotonic() > until:
                is_whole = False
                break
            if where == "url":
                hit = any(pattern.search(one.name) for one in RunReader(store, run).read())
            else:
                hit = any(True for _ in grep_runs(store, [run], pattern, _no_progress))
            if hit:
                found.append(run)
                continue
            tape = store.runs.find_tape(run)
            is_archived = tape is not None and tape.is_only_in_archive
        if is_archived:
            missing.append(run.id)
    command = f"playhead runs --grep {shell_word(re.escape(text))}" if missing else ""
    return Search(found, is_whole, tuple(missing), command)


def _has_in_row(run: RunInfo, text: str, where: str) -> bool:
    """Say whether what the list has of a run says something: of an archived one that is all that the store has."""
    said = [run.id, *run.labels]
    if where == "text":
        said += [run.agent, run.parent or ""]
    short = text.lower()
    return any(short in one.lower() for one in said)


def _no_progress(_done: int, _of: int) -> None:
    pass


def table_rows(library: Library, asked: Asked) -> dict[str, Any]:
    """Give the rows of the table of runs, and how many there are."""
    begin = read_number(asked.query, "from", 0, 0, 1 << 40)
    search = find_runs(library, asked)
    found = search.found
    is_tree = read_word(asked.query, "tree", ("0", "1")) == "1"
    ordered = _as_tree(found) if is_tree else [(info, 0) for info in found]
    rows = []
    now_ns = _NOW()
    until = time.monotonic() + 0.25
    for info, depth in ordered[begin : begin + WINDOW]:
        facts = library.find_facts(info, wait=time.monotonic() < until)
        row = run_row(library.store, info, facts, now_ns)
        row["depth"] = min(depth, 8)
        row["role"] = (
            find_role_of(library.store, info) if info.parent and not info.is_only_in_archive else ""
        )
        rows.append(row)
    return {
        "rows": rows,
        "total": len(found),
        "begin": begin,
        "behind": begin + WINDOW if begin + WINDOW < len(found) else None,
        "whole": search.is_whole,
        "not_searched": [safe_short(one, 60) for one in search.not_searched[:_NAMED]],
        "more_not_searched": max(0, len(search.not_searched) - _NAMED),
        "command": safe_short(search.command, 600),
    }


def _as_tree(runs: list[RunInfo]) -> list[tuple[RunInfo, int]]:
    """Put children below their parents; roots are the newest first, children the oldest first."""
    below: dict[int, list[RunInfo]] = {}
    known = {run.number for run in runs}
    for run in runs:
        below.setdefault(run.parent_number if run.parent_number in known else 0, []).append(run)
    ordered: list[tuple[RunInfo, int]] = []
    waiting = [(run, 0) for run in reversed(below.get(0, []))]
    while waiting:
        run, depth = waiting.pop()
        ordered.append((run, depth))
        waiting += [(child, depth + 1) for child in below.get(run.number, []) if child is not run]
    return ordered


class Comparisons:
    """The comparisons that were made last."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._make = lru_cache(4)(self._compare)

    def find(self, first: str, second: str) -> DiffView:
        """Compare two runs, or give what was found before.

        Raises: UnknownRun; LogCorrupt; ControlError, where one is in the archive alone.
        """
        find = self._library.find_here
        return self._make(find(first), find(second))

    def _compare(self, one: RunInfo, other: RunInfo) -> DiffView:
        rules = rules_of(self._library.config, time.thread_time)
        return compare_runs(self._library.store, (one, other), rules)


def get_diff(comparisons: Comparisons, asked: Asked) -> Reply:
    """Give a window of the rows of a comparison."""
    begin = read_number(asked.query, "from", 0, 0, 1 << 40)
    limit = read_number(asked.query, "limit", 100, 1, _LIMIT)
    view = comparisons.find(asked.parameters["first"], asked.parameters["second"])
    return reply_json(view.to_json(begin, limit))
