"""Whether a POST ever waits for a delayed acknowledgement.

With Nagle's algorithm a small rest of a message is held back until the peer has acknowledged what went
before, and a peer that has nothing to say does that after 40 ms on Linux: proxies that write a request in two
parts were seen to lose that on POSTs of 32 to 90 KB. One route of ours does so on purpose, to show that it
would be seen.
"""

import math
import statistics
from dataclasses import dataclass
from itertools import chain
from typing import Any

from measure import DIRECT, Plan, blame, new_scratch
from pace import percentile
from proxies import WireClient, WirePorts, playhead, running, wire_upstream
from report import Bar, Section

SIZES_KB = (32, 48, 64, 90)
"""Bodies, in KB of 1,024 bytes."""
POSTS = 100
"""Of each size, over one connection."""
STEP_BAR_MS = 30.0
"""Most that a proxy may add to the median without one, 95th percentile; a delayed acknowledgement adds 40 ms.

That of the best round counts: what the machine does meanwhile hits some rounds, a step hits each.
"""
ON_PURPOSE = "direct, Nagle on purpose"


@dataclass(frozen=True, slots=True)
class Case:
    """How the POSTs travel."""

    http: str
    tls: bool

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.http}, {'TLS' if self.tls else 'plain'}"


CASES = (Case("h1", tls=False), Case("h1", tls=True), Case("h2", tls=True))

Took = dict[str, dict[int, list[list[float]]]]
"""Sorted ms by route, size and round."""


def nagle(plan: Plan) -> list[Section]:
    """Measure POSTs of 32 to 90 KB, one at a time over one connection."""
    took: dict[Case, Took] = {case: {} for case in CASES}
    with wire_upstream(plan.folder) as ports:
        for turn in range(plan.rounds):
            for case in plan.rng.sample(CASES, len(CASES)):
                plan.say(f"nagle, round {turn + 1} of {plan.rounds}: {case.name}")
                seed = plan.rng.randrange(1 << 30)
                _post(plan, took[case], DIRECT, case, ports, None, seed)
                if not case.tls:
                    _post(plan, took[case], ON_PURPOSE, case, ports, None, seed, nodelay=False)
                if plan.with_playhead:
                    _through_playhead(plan, took[case], case, ports, seed)
    return [_section(case, found) for case, found in took.items()]


def _through_playhead(plan: Plan, took: Took, case: Case, ports: WirePorts, seed: int) -> None:
    _, store = new_scratch(plan)
    for mode in ("record", "playback"):
        tool = playhead(mode, plan.folder, store, "bench")
        with running([tool], plan.folder) as started:
            _post(plan, took, f"playhead, {mode}", case, ports, started[tool.name].port, seed)


def _post(
    plan: Plan,
    took: Took,
    name: str,
    case: Case,
    ports: WirePorts,
    proxy: int | None,
    seed: int,
    *,
    nodelay: bool = True,
) -> None:
    with blame(f"{name}, {case.name}"):
        client = WireClient(
            do="posts",
            proxy=proxy,
            upstream=ports.tls if case.tls else ports.plain,
            http=case.http,
            tls=case.tls,
            nodelay=nodelay,
            sizes=[size * 1024 for size in SIZES_KB],
            count=POSTS // 5 if plan.quick else POSTS,
            seed=seed,
        )
        try:
            found: dict[str, list[float]] = client.go()["took_ms"]
        finally:
            client.close()
    for size, some in found.items():
        took.setdefault(name, {}).setdefault(int(size) // 1024, []).append(sorted(some))


def _section(case: Case, took: Took) -> Section:
    section = Section(
        f"POSTs over one connection, {case.name}: median, p95 of the best round, most; ms",
        ("route", *(f"{size} KB" for size in SIZES_KB), "p95 added, most"),
        raw=took,
    )
    added: dict[str, float] = {}
    for name, by_size in took.items():
        cells = []
        for size in SIZES_KB:
            middle_ms = statistics.median(chain(*by_size[size]))
            p95_ms = min(percentile(some, 95) for some in by_size[size])
            most_ms = max(chain(*by_size[size]))
            cells.append(f"{middle_ms:.2f} {p95_ms:.2f} {most_ms:.1f}")
            over_ms = p95_ms - statistics.median(chain(*took[DIRECT][size]))
            added[name] = max(added.get(name, 0.0), over_ms)
        section.rows.append((name, *cells, f"{added[name]:.2f}"))
    if added.get(ON_PURPOSE, math.inf) < STEP_BAR_MS:
        section.notes.append("the step made on purpose was not seen: here nobody would have it")
    for mode in ("record", "playback"):
        value: Any = added.get(f"playhead, {mode}")
        name = f"nagle, {case.name}, {mode}: p95 added"
        section.bars.append(Bar(name, STEP_BAR_MS, value, "ms"))
    return section
