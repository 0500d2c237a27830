"""The runs that a question is about: those that are named, or those since a time."""

import time
from collections.abc import Sequence
from datetime import datetime

from ...config.values import parse_duration
from ...store import RunInfo, Store


def parse_since(text: str, now_ns: int) -> int:
    """Read a time in the past: `30d` or `12h` before now, or a date, with a time or without.

    Raises: ValueError.
    """
    try:
        return now_ns - round(parse_duration(text) * 1e9)
    except ValueError:
        pass
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1e9)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is no time: expected 30d or 12h before now, or a date as 2026-11-24"
        ) from None


def read_since(text: str | None) -> int:
    """Read `--since`; the beginning of time without it.

    Raises: ValueError.
    """
    return 0 if text is None else parse_since(text, time.time_ns())


def choose_runs(
    store: Store, names: Sequence[str], since_ns: int
) -> tuple[list[RunInfo], list[RunInfo]]:
    """Give the runs that are named, else those that went on since a time; and those of them that only an archive has.

    Raises: UnknownRun; LogCorrupt.
    """
    if names:
        return list({run.number: run for run in map(store.runs.get, names)}.values()), []
    runs = [run for run in store.runs.all() if not run.sealed_ns or run.sealed_ns >= since_ns]
    by_number = {run.number: run for run in runs}
    away = [
        run
        for run in runs
        if run.is_only_in_archive
        or ((tape := by_number.get(run.parent_number)) is not None and tape.is_only_in_archive)
    ]
    gone = {run.number for run in away}
    return [run for run in runs if run.number not in gone], away
