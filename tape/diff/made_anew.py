"""Say whether a value that differs between two recordings is proved to be made anew by the client, by its place and its form.

How a value looks does not tell what it is for: 20 digits may be drawn or be an amount, and a UUID may be drawn or be the document that
is deleted or read. So its place has to prove it as well:

1. It is called as the identifier of a request or process is (`field_name_meaning.py`), or is the `id` of a JSON-RPC message.
2. It is called as the time at which something was made, and the value is a time of its own recording: not before this began, and not
   after the request.

A place that is called as a quantity or a party is content whatever is there. Where a value came from is not known here:
who proposes a rule also has to prove that no value of the place was there before the client made it.
"""

import re
from calendar import timegm
from collections.abc import Iterable, Iterator
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple

from .classify_differing_values import ValueClass, bare
from .field_name_meaning import names_party, names_quantity, names_request, names_time

_BEFORE_S = 300.0
"""How long before the recording a program may have begun."""
_AFTER_S = 5.0
"""By how much the clock of a client may be ahead."""
_NOW_S = 60.0
"""How long before its request a client has looked at its clock."""
_ZONES_S = 14 * 3600.0
"""How far local days are from those of UTC."""
_DAY_S = 86400.0
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""Of a second: times since the epoch are counted in s, ms, us or ns."""
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_DAY = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2})")
_ISO = re.compile(
    r"([0-9]{4})-?(0[1-9]|1[0-2])-?([0-9]{2})[T ]([0-9]{2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r" ?(Z|UTC|([+-])([0-9]{2}):?([0-9]{2}))?"
)
"""Year, month, day, hour, minute, second, fraction, and zone with its sign, hours and minutes."""


class Window(NamedTuple):
    """When a value can have been made, in seconds since the epoch."""

    begun_s: float
    """The recording."""
    asked_s: float
    """The request."""


class Value(NamedTuple):
    """A value of a recording, as a difference shows it."""

    shown: str
    window: Window


def is_proved(
    place: str, value_class: ValueClass, values: Iterable[Value], *, is_call: bool = False
) -> bool:
    """Say whether values of a class at one place are proved to be made anew, by the name of the place.

    is_call: the place is the `id` of a JSON-RPC message.
    """
    if value_class is ValueClass.CONTENT or names_party(place) or names_quantity(place):
        return False
    if is_call or names_request(place, counts=value_class is ValueClass.COUNTER):
        return True
    return (
        value_class is ValueClass.TIME
        and names_time(place)
        and all(is_time_of(bare(one.shown), one.window) for one in values)
    )


def is_time_of(text: str, window: Window) -> bool:
    """Say whether a text or number is a time between the beginning of a recording and a request of it."""
    first, last = min(window) - _BEFORE_S, window.asked_s + _AFTER_S
    return any(first <= at <= last for at in _read_times(text))


def ahead_of(text: str, window: Window) -> float | None:
    """Give by how many seconds a text or number is a time after a request, or before it if negative; None if it is no time.

    Of the units in which a number may count, the one that brings it nearest to the request.
    """
    ahead = [at - window.asked_s for at in _read_times(text)]
    return min(ahead, key=abs, default=None)


def is_moment_of(text: str, asked_s: float) -> bool:
    """Say whether a text or number is the time at which a request was made, which may be written to the minute."""
    found = _ISO.fullmatch(text)
    slack_s = _NOW_S if found is None or found[6] else _NOW_S + 60.0
    return any(asked_s - slack_s <= at <= asked_s + _AFTER_S for at in _read_times(text))


def is_second_of(text: str, asked_s: float) -> bool:
    """Say whether a text or number is the time at which a request was made, written with its seconds."""
    found = _ISO.fullmatch(text)
    return (found is None or found[6] is not None) and is_moment_of(text, asked_s)


def is_day_of(text: str, window: Window) -> bool:
    """Say whether a text is a day between the beginning of a recording and a request of it, in any zone."""
    day_s, first = _read_day(text), min(window) - _BEFORE_S
    return day_s is not None and first - _ZONES_S - _DAY_S < day_s <= window.asked_s + _ZONES_S


def _read_times(text: str) -> Iterator[float]:
    """Give what times a text may say, in seconds since the epoch."""
    if _NUMBER.fullmatch(text):
        yield from (float(text) / unit for unit in _UNITS)
        return
    found = _ISO.fullmatch(text)
    if found is None:
        told = parsedate_tz(text)
        if told is not None and told[9] is not None:
            yield mktime_tz(told)
        return
    year, month, day, hour, minute, second = (int(found[at] or 0) for at in range(1, 7))
    fraction = float(f"0.{found[7] or 0}")
    at_s = timegm((year, month, day, hour, minute, second)) + fraction
    if found[9]:
        ahead_s = 3600 * int(found[10]) + 60 * int(found[11])
        yield at_s + (ahead_s if found[9] == "-" else -ahead_s)
        return
    yield at_s
    # What people write has no fractions of a second; then its zone may be any.
    if not found[8] and fraction:
        yield from (at_s + 900 * quarters for quarters in range(-56, 57) if quarters)


def _read_day(text: str) -> float | None:
    """Read a day; its beginning in UTC."""
    found = _DAY.fullmatch(text)
    return None if found is None else timegm((*map(int, found.groups()), 0, 0, 0))
