"""Where a request went, as the log of its run tells it: what patterns are matched with."""

import re
from collections.abc import Mapping
from typing import Any

from ...config.targets.request_interpretations import Ways, find_ways
from ...tape.canonical.target_overrides import claimed, read_claims


def ways_of(data: Mapping[str, Any], place: tuple[str, str, int, str]) -> Ways:
    """Give what a request can be taken for, as an intent or verdict tells it.

    place: its URL taken apart.
    """
    scheme, host, port, target = place
    more = claimed(read_claims(data.get("claims", ())), scheme, port)
    return find_ways(data["method"].upper(), scheme, host, port, target, more)


_PLACE = re.compile(r"(https?)://(\[[^\]]*\]|[^/?#:\[]*)(?::(\d{1,5}))?((?:[/?#*].*)?)", re.DOTALL)


def split_place(text: str) -> tuple[str, str, int, str] | None:
    """Give scheme, host, port and target of a request's URL, as rules ask for them; None where it is none.

    The target stands as it was sent: two slashes, a `#` or a tab in it are nothing special.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    scheme, host, port, target = found.groups()
    return scheme, host.strip("[]"), int(port or (443 if scheme == "https" else 80)), target or "/"
