"""What one agent's large binary download costs the requests of another, in a run that has learned secrets.

The other agent asks at a steady rate, in slices: with nothing beside it, beside a download that goes past the proxy (it takes the
machine's time too), and beside one through the proxy. The order of the three changes from round to round.
"""

import statistics
import time

from measure import PLAYHEAD, Plan, blame, new_scratch
from proxies import Client, WireClient, WirePorts, playhead, running, wire_upstream
from report import Bar, Section, spread

LEARNED = 40
MEGABYTES = 100
RATE = 50
"""Requests a second of the agent that is measured."""
SLICE_S = 5
_DOWNLOADS = 200
"""More than a slice has time for."""
ADDED_BAR_MS = 5.0
_QUIET, _PAST, _THROUGH = "nothing beside it", "download past the proxy", "download through it"


def beside(plan: Plan) -> list[Section]:
    """Measure slices of requests with and without a download of 100 MB."""
    section = Section(
        f"{RATE} requests a second (2 KB) beside downloads of {MEGABYTES} MB, {LEARNED} secrets learned",
        ("beside", "p50 ms", "p99 ms", "downloads in a slice"),
        notes=[f"slices of {SLICE_S} s; medians over the rounds, and the least and the most"],
    )
    if not plan.with_playhead:
        return [section]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in (_QUIET, _PAST, _THROUGH)}
    with wire_upstream(plan.folder) as ports:
        for turn in range(plan.rounds):
            plan.say(f"beside, round {turn + 1} of {plan.rounds}")
            _round(plan, ports, found)
    for name, slices in found.items():
        columns = [[one[key] for one in slices] for key in ("p50_ms", "p99_ms", "downloads")]
        section.rows.append((name, *(spread(column, 1) for column in columns)))
    added = [
        one["p99_ms"] - quiet["p99_ms"]
        for one, quiet in zip(found[_THROUGH], found[_QUIET], strict=True)
    ]
    past = [
        one["p99_ms"] - quiet["p99_ms"]
        for one, quiet in zip(found[_PAST], found[_QUIET], strict=True)
    ]
    section.notes.append(
        f"added p99 ms: past the proxy {spread(past, 1)}, through it {spread(added, 1)}"
    )
    section.bars.append(
        Bar("p99 beside a download: added", ADDED_BAR_MS, statistics.median(added), "ms")
    )
    section.raw = found
    return [section]


def _round(plan: Plan, ports: WirePorts, found: dict[str, list[dict[str, float]]]) -> None:
    _, store = new_scratch(plan)
    with running([playhead("record", plan.folder, store, "bench")], plan.folder) as started:
        proxy = started[PLAYHEAD].port
        with blame(PLAYHEAD):
            _teach(plan, proxy)
            asking = Client(
                do="paced",
                proxy=proxy,
                upstream=plan.upstream,
                connections=4,
                workloads=["small-chat"],
                rate=RATE,
                slice_s=SLICE_S,
                first=1000,
            )
            try:
                asking.go()
                for name in plan.rng.sample(sorted(found), len(found)):
                    found[name].append(_slice(asking, ports, name, proxy))
            finally:
                asking.close()


def _teach(plan: Plan, proxy: int) -> None:
    """Have the run learn secrets: each request has a credential of its own."""
    client = Client(
        do="load",
        proxy=proxy,
        upstream=plan.upstream,
        connections=1,
        workload="small-chat",
        blocks=[list(range(LEARNED))],
        own_keys=True,
    )
    try:
        client.go()
    finally:
        client.close()


def _slice(asking: Client, ports: WirePorts, name: str, proxy: int) -> dict[str, float]:
    if name == _QUIET:
        return asking.go() | {"downloads": 0}
    client = WireClient(
        do="transfer",
        proxy=proxy if name == _THROUGH else None,
        upstream=ports.tls,
        sizes=[1_000_000] + [MEGABYTES * 1_000_000] * _DOWNLOADS,
        way="download",
        http="h1",
        announced=True,
        slow="",
    )
    try:
        client.go()
        asking.start()
        until = time.monotonic() + SLICE_S
        downloads = 0
        while time.monotonic() < until:
            client.go()
            downloads += 1
        return asking.result(200) | {"downloads": downloads}
    finally:
        client.close()
