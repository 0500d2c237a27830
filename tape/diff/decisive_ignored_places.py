"""Say whether a place that only the user's own rules leave out may decide what a request does: then a replay that rests on it says so.

No list of names of what decides would ever be whole (`x-on-behalf-of`, `x-act-as`, `x-owner`, ...), so this asks the other way round: everything
decides but what is called as made anew by the client (`field_name_meaning.py`), or is in metadata. Header fields always do: those that do not are in the
shipped lists, and no difference.

The time of a read is often what is asked for (`?date=2026-01-01`), whatever it is called: it is made anew only if it is, on both sides, the time of
its own request, to the second.
"""

import re
from typing import NamedTuple

from ..exchange import RequestClass
from .classify_differing_values import bare
from .divergence_types import Difference
from .field_name_meaning import name_words, names_party, names_quantity, names_request, names_time
from .made_anew import is_second_of
from .suggest_rule import is_content

_STEP = re.compile(r"[^.\[\]'\"]+")
_METADATA = frozenset(("metadata", "meta"))


class Moments(NamedTuple):
    """When two requests that differ were made, in seconds since the epoch."""

    recorded_s: float
    asked_s: float


def may_decide(
    one: Difference, request_class: RequestClass, moments: Moments | None = None
) -> bool:
    """Say whether a request that differs at a place may be another one.

    one: found under the shipped rules alone.
    moments: without them no time is known to be made anew.
    """
    if request_class is RequestClass.TELEMETRY:
        return False
    kind, _, path = one.place.partition(" ")
    if kind not in ("body", "query", "form") or is_content(one, request_class):
        return True
    if names_party(one.place) or names_quantity(one.place):
        return True
    if names_request(one.place):
        return False
    if names_time(one.place):
        in_url = kind in ("query", "form")
        return (in_url or request_class is RequestClass.READ) and not _is_present(one, moments)
    around = _STEP.findall(path)[:-1]
    return not any(_METADATA.intersection(name_words(step)[-1:]) for step in around)


def _is_present(one: Difference, moments: Moments | None) -> bool:
    """Say whether the values of a difference are times at which their requests were made; in a replay the clock may be that of the tape."""
    if moments is None:
        return False
    asked = bare(one.asked)
    return is_second_of(bare(one.recorded), moments.recorded_s) and any(
        is_second_of(asked, at_s) for at_s in moments
    )
