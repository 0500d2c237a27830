"""Say whether a place that only the user's own rules leave out may decide what a request does: then a replay that rests on it says so.

No list of names of what decides would ever be whole (`x-on-behalf-of`, `x-act-as`, `x-owner`, ...), so this asks the other way round: everything
decides but what is called as made anew by the client (`field_name_meaning.py`), or is in metadata. Header fields always do: those that do not are in the
shipped lists, and no difference.
"""

import re

from ..exchange import RequestClass
from .divergence_types import Difference
from .field_name_meaning import name_words, names_party, names_quantity, names_request, names_time
from .suggest_rule import is_content

_STEP = re.compile(r"[^.\[\]'\"]+")
_METADATA = frozenset(("metadata", "meta"))


def may_decide(one: Difference, request_class: RequestClass) -> bool:
    """Say whether a request that differs at a place may be another one.

    one: found under the shipped rules alone.
    """
    if request_class is RequestClass.TELEMETRY:
        return False
    kind, _, path = one.place.partition(" ")
    if kind not in ("body", "query", "form") or is_content(one, request_class):
        return True
    if names_party(one.place) or names_quantity(one.place):
        return True
    if names_request(one.place) or names_time(one.place):
        return False
    around = _STEP.findall(path)[:-1]
    return not any(_METADATA.intersection(name_words(step)[-1:]) for step in around)
