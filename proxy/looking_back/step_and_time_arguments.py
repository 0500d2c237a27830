"""Read what names a step or a time on the command line: the one place in which the verbs that look back do so.

A step is `SEQ`, or `SEQ.PART` of a WebSocket. A time is that of a clock, or so much before now or after a run began. Whether a run has
the step, or was under way at the time, is asked of the run.
"""

import contextlib
import re
import time
from datetime import datetime
from typing import NamedTuple

from ...config.parse_values import parse_duration, show

_STEP = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,9}))?")
_NUMBER = re.compile(r"[0-9.]+")
"""A number without a unit: a year, or a count of what is meant; configurations mean seconds by it, and here nobody can know."""
_CLOCKS = ("%H:%M", "%H:%M:%S")
_DAY_S = 86_400


class StepName(NamedTuple):
    """The name of a step."""

    seq: int
    """Any number: the run may not have it."""
    part: int = 0
    """Of a model call of a WebSocket its place among these; 0 for all of the exchange."""


def parse_step(text: str) -> StepName:
    """Read SEQ, or SEQ.PART.

    Raises: ValueError, saying what would be right.
    """
    found = _STEP.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{show(text)} is no step of a run: expected its SEQ, as 7, or SEQ.PART of a WebSocket, as 7.2"
        )
    return StepName(int(found[1]), int(found[2] or 0))


def parse_seq(text: str) -> int:
    """Read SEQ, of what has no parts.

    Raises: ValueError, saying what would be right.
    """
    try:
        step = parse_step(text)
    except ValueError:
        raise ValueError(f"{show(text)} is no step of a run: expected its SEQ, as 7") from None
    if "." in text:
        raise ValueError(f"{show(text)} names a part: expected a SEQ alone, as {step.seq}")
    return step.seq


def parse_since(text: str, now_ns: int) -> int:
    """Read a time in the past: `30d` or `12h` before now, or a date, with a time or without; as nanoseconds since the epoch.

    Raises: ValueError, saying what would be right.
    """
    found = _parse_date(text)
    if found is None and not _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):
            return now_ns - round(parse_duration(text) * 1e9)
    if found is None:
        raise ValueError(
            f"{show(text)} {_find_fault(text)}: expected 30d or 12h before now (at most 36500d), or a date as 2026-11-24"
        )
    return found


def _find_fault(text: str) -> str:
    """Say why a text is no time."""
    return "has no unit" if _NUMBER.fullmatch(text) else "is no time"


def read_since(text: str | None) -> int:
    """Read `--since`; the beginning of time without it.

    Raises: ValueError.
    """
    return 0 if text is None else parse_since(text, time.time_ns())


def parse_moment(text: str, began_ns: int) -> int:
    """Read a moment of a run: `+12s` since it began, `03:12:05` by the clock, or a date, with a time or without.

    began_ns: when the run began. A time of the clock is the first one since then, and all of its second.
    Raises: ValueError, saying what would be right.
    """
    if text.startswith("+") and not _NUMBER.fullmatch(text[1:]):
        with contextlib.suppress(ValueError):
            return began_ns + round(parse_duration(text[1:]) * 1e9)
    for form in _CLOCKS:
        with contextlib.suppress(ValueError):
            return _next_time(time.strptime(text, form), began_ns)
    found = _parse_date(text)
    if found is None:
        raise ValueError(
            f"{show(text)} {_find_fault(text.removeprefix('+'))}: expected +12s since the run began, 03:12:05, or 2026-11-24T03:12:05"
        )
    return found


def _next_time(clock: time.struct_time, began_ns: int) -> int:
    """Give the end of the first second since a run began in which the clock shows a time."""
    for days in (0, 1):
        day = time.localtime(began_ns // 1_000_000_000 + days * _DAY_S)
        moment = (*day[:3], clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1)
        found = int(time.mktime(moment)) * 1_000_000_000 + 999_999_999
        if found >= began_ns:
            break
    return found


def _parse_date(text: str) -> int | None:
    """Read a date, with a time or without, as nanoseconds since the epoch; None for what is none."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return int(datetime.fromisoformat(text).timestamp() * 1e9)
    return None
