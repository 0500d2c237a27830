"""Look back at a run: the state at a step, what a context lost, and the last step before each effect."""

import contextlib
import json
import re
import time
from datetime import datetime

import click

from ...config import Config
from ...store import StoreError
from ...timeline.state.calls_before import Exchanges
from ...timeline.state.find_state import find_seq_at, find_state
from ...timeline.state.lost import look_at
from ...timeline.state.render import (
    looked_json,
    render_lost,
    render_orphans,
    render_state,
    state_json,
)
from ..progress import ProgressBar
from .open_run import opened

_SINCE = re.compile(r"\+(\d+(?:\.\d+)?)(ms|s|min|h)?")
_UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000, "h": 3_600_000_000_000}
_PLACE = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?")


def parse_place(text: str) -> tuple[int, int]:
    """Read SEQ, or SEQ.PART of a WebSocket.

    Raises: ValueError.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no place in a run: expected SEQ, or SEQ.PART of a WebSocket")
    return int(found[1]), int(found[2] or 0)


def parse_time(text: str, begin_ns: int) -> int:
    """Read a time: `+12s` since the run began, `03:12:05` of the day it began, or an ISO date and time.

    begin_ns: when the run began.
    Raises: ValueError.
    """
    since = _SINCE.fullmatch(text)
    if since is not None:
        return begin_ns + round(float(since[1]) * _UNITS[since[2] or "s"])
    with contextlib.suppress(ValueError):
        clock = time.strptime(text, "%H:%M:%S" if text.count(":") == 2 else "%H:%M")
        day = time.localtime(begin_ns // 1_000_000_000)
        moment = (*day[:3], clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1)
        return int(time.mktime(moment)) * 1_000_000_000 + 999_999_999  # all of that second
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1e9)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no time: expected +12s since the run began, 03:12:05, or 2026-11-24T03:12:05"
        ) from None


def show_state(
    config: Config, run: str, place: str | None, at: str | None, *, as_json: bool, full: bool
) -> int:
    """Print the state of an agent at a seq or a time.

    Raises: ValueError for what is neither; UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges):
        if place is not None:
            seq, part = parse_place(place)
        else:
            seq, part = find_seq_at(exchanges, _time_in(exchanges, at or "")), 0
        state = find_state(exchanges, seq, part)
        if as_json:
            click.echo(json.dumps(state_json(state), indent=1))
            return 0
        for line in render_state(state, full=full):
            click.echo(line)
    return 0


def _time_in(exchanges: Exchanges, text: str) -> int:
    """Read a time, and see that the run had begun and not ended."""
    seqs = exchanges.seqs
    ends = [exchanges.find(seq) for seq in (seqs[:1] + seqs[-1:])]
    known = [one for one in ends if one is not None]
    if not known:
        raise StoreError(
            f"run {exchanges.info.id!r} holds no exchange", "nothing was recorded in it"
        )
    begin, last = known[0].started_ns, known[-1].started_ns + known[-1].end_us * 1000
    at_ns = parse_time(text, begin)
    if begin <= at_ns <= max(last, exchanges.info.sealed_ns):
        return at_ns
    nearest = known[0].seq if at_ns < begin else known[-1].seq
    raise StoreError(
        f"run {exchanges.info.id!r} was not under way at {text}: it went from {_clock(begin)} to {_clock(last)}, "
        f"and the nearest exchange is {nearest}",
        "give a time between them, or +12s since it began",
    )


def _clock(at_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ns / 1e9))


def show_context(
    config: Config, run: str, seq: int | None, *, lost: bool, as_json: bool, full: bool
) -> int:
    """Print what a context lost, or what nothing explains in it.

    Raises: UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges):
        with ProgressBar("reading") as progress:
            found = look_at(exchanges, seq, progress)
        if as_json:
            click.echo(json.dumps([looked_json(one) for one in found], indent=1))
            return 0
        render = render_lost if lost else render_orphans
        for line in render(found, full=full):
            click.echo(line)
    return 0
