"""Destinations for a person, in 80 columns, and as JSON types."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from ..show.fit import columns, fit
from .destinations import Destination

WIDTH = 80
_HOST = 34
_AGENTS = 5


def render_destinations(found: Iterable[Destination]) -> Iterator[str]:
    """Give the lines of a listing; one that says so where there is none."""
    listed = list(found)
    if not listed:
        yield "nothing was sent to any host"
        return
    yield f"{'HOST':<{_HOST}} {'REQUESTS':>8} {'SENT':>8} {'RECEIVED':>8} FIRST SEEN"
    for one in listed:
        host = fit(one.host, _HOST)
        host += " " * (_HOST - columns(host))
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.first_ns / 1e9))
        counts = f"{one.requests:>8} {show_bytes(one.bytes_out):>8} {show_bytes(one.bytes_in):>8}"
        yield f"{host} {counts} {began}"
        agents = sorted(one.agents.items(), key=lambda pair: -pair[1].total())
        for agent, classes in agents[:_AGENTS]:
            told = ", ".join(f"{count} {kind}" for kind, count in classes.most_common())
            yield f"  {fit(f'{agent}: {told}', WIDTH - 2)}"
        if len(agents) > _AGENTS:
            yield f"  … and {len(agents) - _AGENTS} more agents"
        if one.personal:
            kinds = ", ".join(f"{count} {kind}" for kind, count in one.personal.most_common())
            yield f"  personal data: {kinds}"
        if one.refused:
            yield f"  {one.refused} not sent: refused or denied"


def show_bytes(size: int) -> str:
    """Give a size in a few characters."""
    value, unit = float(size), 0
    units = ("B", "kB", "MB", "GB", "TB")
    while value >= 1000 and unit < len(units) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} B" if not unit else f"{value:.1f} {units[unit]}"


def destination_json(one: Destination) -> dict[str, Any]:
    """Give a destination; `docs/cost.md` describes it."""
    return {
        "host": one.host,
        "first_ns": one.first_ns,
        "first_run": one.first_run,
        "requests": one.requests,
        "refused": one.refused,
        "bytes_out": one.bytes_out,
        "bytes_in": one.bytes_in,
        "agents": {agent: dict(classes) for agent, classes in one.agents.items()},
        "personal_data": dict(one.personal),
    }
