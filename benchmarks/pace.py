"""Whether a stream is played as it came: gaps between pieces as a client saw them, recorded and played.

The client is a process of its own and does nothing else. What it sees twice without any proxy is measured
too: that is as exact as this machine can say.
"""

import statistics
from itertools import pairwise
from typing import Any

from measure import DIRECT, Plan, blame, new_scratch
from proxies import WireClient, WirePorts, playhead, running, wire_upstream
from report import Bar, Section

STREAMS = 20
"""At once: each on a connection of its own over HTTP/1.1, all on one over HTTP/2."""
EVENTS = 100
"""Of each stream; gaps are 5 to 60 ms, see `wire_upstream.py`."""
GAP_BAR_MS = 15.0
"""Most difference of a gap, 95th percentile."""

Arrived = list[list[tuple[float, int]]]
"""Of each stream, of each piece: ms since it was asked for, and bytes."""


def pace(plan: Plan) -> list[Section]:
    """Record event streams, play them with `pace: recorded`, and compare the gaps between events."""
    events = EVENTS // 4 if plan.quick else EVENTS
    found: dict[str, list[tuple[Arrived, Arrived]]] = {}
    with wire_upstream(plan.folder) as ports:
        for turn in range(plan.rounds):
            for http in plan.rng.sample(["h1", "h2"], 2):
                plan.say(f"pace, round {turn + 1} of {plan.rounds}: {http}")
                with blame(DIRECT):
                    pair = _direct(ports, http, events)
                found.setdefault(f"{http}, no proxy, twice", []).append(pair)
                if plan.with_playhead:
                    pair = _recorded_and_played(plan, ports, http, events)
                    found.setdefault(f"{http}, recorded and played", []).append(pair)
    return [_section(found, events)]


def _direct(ports: WirePorts, http: str, events: int) -> tuple[Arrived, Arrived]:
    client = _client(None, ports, http, events)
    try:
        return client.go()["arrived"], client.go()["arrived"]
    finally:
        client.close()


def _recorded_and_played(
    plan: Plan, ports: WirePorts, http: str, events: int
) -> tuple[Arrived, Arrived]:
    _, store = new_scratch(plan)
    settings = store.with_name("pace.yaml")
    settings.write_text("playback:\n  pace: recorded\n")
    found: list[Arrived] = []
    for mode in ("record", "playback"):
        tool = playhead(mode, plan.folder, store, "bench", "--config", str(settings))
        with running([tool], plan.folder) as started, blame(mode):
            client = _client(started[tool.name].port, ports, http, events)
            try:
                found.append(client.go()["arrived"])
            finally:
                client.close()
    return found[0], found[1]


def _client(proxy: int | None, ports: WirePorts, http: str, events: int) -> WireClient:
    return WireClient(
        do="sse", proxy=proxy, upstream=ports.tls, http=http, streams=STREAMS, count=events
    )


def _section(found: dict[str, list[tuple[Arrived, Arrived]]], events: int) -> Section:
    section = Section(
        f"{STREAMS} event streams of {events} events at once: how much the second time differs",
        (
            *("streams", "gap p50 ms", "p95 ms", "most ms"),
            *("arrival p50 ms", "p95 ms", "most ms", "other pieces"),
        ),
        notes=["gap: since the event before; arrival: since the request"],
    )
    raw: dict[str, Any] = {}
    for name, pairs in found.items():
        gaps = sorted(some for pair in pairs for some in _differences(pair, _gaps))
        arrivals = sorted(some for pair in pairs for some in _differences(pair, _arrivals))
        others = sum(_other_pieces(pair) for pair in pairs)
        raw[name] = {"gaps_ms": gaps, "arrivals_ms": arrivals, "other_pieces": others}
        section.rows.append((name, *_figures(gaps), *_figures(arrivals), str(others)))
    section.raw = raw
    for http in ("h1", "h2"):
        played = raw.get(f"{http}, recorded and played")
        p95_ms = percentile(played["gaps_ms"], 95) if played else None
        others = played["other_pieces"] if played else None
        section.bars.append(Bar(f"pace, {http}: gaps, p95", GAP_BAR_MS, p95_ms, "ms"))
        section.bars.append(Bar(f"pace, {http}: streams in other pieces", 0, others, "streams"))
    return section


def percentile(values: list[float], percent: int) -> float:
    """Give the value that so many percent of some sorted values do not exceed."""
    return values[min(len(values) - 1, len(values) * percent // 100)]


def _figures(values: list[float]) -> tuple[str, str, str]:
    figures = (statistics.median(values), percentile(values, 95), values[-1])
    return tuple(f"{one:.2f}" for one in figures)  # type: ignore[return-value]  # three of them


def _differences(pair: tuple[Arrived, Arrived], times: Any) -> list[float]:
    return [
        abs(one - other)
        for before, after in zip(*pair, strict=True)
        for one, other in zip(times(before), times(after), strict=False)
    ]


def _gaps(stream: list[tuple[float, int]]) -> list[float]:
    return [after[0] - before[0] for before, after in pairwise(stream)]


def _arrivals(stream: list[tuple[float, int]]) -> list[float]:
    return [at_ms for at_ms, _ in stream]


def _other_pieces(pair: tuple[Arrived, Arrived]) -> int:
    """Count the streams whose pieces differ in number or size."""
    sizes = [[[size for _, size in stream] for stream in one] for one in pair]
    return sum(before != after for before, after in zip(*sizes, strict=True))
