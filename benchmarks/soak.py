"""Whether a proxy that records for a long time stays as it was: memory and latency under a steady load.

Bodies are an agent's: prompts that grow from 32 to 90 KB, and small calls of tools, which are effects. A round is a
minute.
"""

import statistics

import cpu
from measure import Plan, blame, new_scratch
from proxies import Client, playhead, running
from report import Bar, Section

RATE = 200
"""Exchanges a second."""
CONNECTIONS = 16
SLICE_S = 10
_SLICES_A_MINUTE = 60 // SLICE_S
_WARM = 1
"""Slices that are not compared: the first."""
GROWTH_BAR_MB = 20.0
"""Most that anonymous memory may grow, from the first third of the time to the last."""
LATENCY_BAR = 1.5
"""Most that the median latency may grow by, as a factor."""
_WORKLOADS = ("llm", "small")


def soak(plan: Plan) -> list[Section]:
    """Record at a steady rate; a row for each minute."""
    section = Section(
        f"{RATE} exchanges a second for {plan.rounds} minutes, every second a prompt of 32 to 90 KB",
        ("minute", "exchanges/s", "p50 ms", "p99 ms", "CPU ms", "anonymous MB", "file MB"),
        notes=["latency from when a request was due; CPU of each exchange; the worst slice of p99"],
    )
    if not plan.with_playhead:
        return [section]
    _, store = new_scratch(plan)
    tool = playhead("record", plan.folder, store, "soak")
    slices: list[dict[str, float]] = []
    with running([tool], plan.folder) as started, blame("soak"):
        one = started[tool.name]
        client = Client(
            do="paced",
            proxy=one.port,
            upstream=plan.upstream,
            connections=CONNECTIONS,
            workloads=_WORKLOADS,
            rate=RATE,
            slice_s=SLICE_S,
            first=0,
        )
        try:
            for minute in range(plan.rounds):
                plan.say(f"soak, minute {minute + 1} of {plan.rounds}")
                for _ in range(_SLICES_A_MINUTE):
                    before = cpu.cpu_s(one.pid)
                    found = client.go()
                    found["cpu_ms"] = (cpu.cpu_s(one.pid) - before) * 1000 / found["requests"]
                    found["anon_mb"] = cpu.rss_anon_mb(one.pid)
                    slices.append(found)
                file_mb = (store / "log.lmdb" / "data.mdb").stat().st_size / 1e6
                section.rows.append(_row(minute + 1, slices[-_SLICES_A_MINUTE:], file_mb))
        finally:
            client.close()
    section.raw = slices
    section.bars = _bars(slices)
    return [section]


def _row(minute: int, slices: list[dict[str, float]], file_mb: float) -> tuple[str, ...]:
    rate = sum(one["requests"] for one in slices) / sum(one["wall_s"] for one in slices)
    return (
        str(minute),
        f"{rate:.0f}",
        f"{_median(slices, 'p50_ms'):.1f}",
        f"{max(one['p99_ms'] for one in slices):.1f}",
        f"{_median(slices, 'cpu_ms'):.2f}",
        f"{slices[-1]['anon_mb']:.0f}",
        f"{file_mb:.0f}",
    )


def _bars(slices: list[dict[str, float]]) -> list[Bar]:
    counted = slices[_WARM:]
    third = len(counted) // 3
    early, late = counted[:third], counted[-third:]
    grown_mb = _median(late, "anon_mb") - _median(early, "anon_mb")
    slower = _median(late, "p50_ms") / _median(early, "p50_ms")
    behind_s = max(one["wall_s"] for one in slices) - SLICE_S
    return [
        Bar("soak: growth of anonymous memory", GROWTH_BAR_MB, grown_mb, "MB"),
        Bar("soak: median latency, late / early", LATENCY_BAR, slower),
        Bar("soak: the slowest slice is behind by", 1.0, behind_s, "s"),
    ]


def _median(slices: list[dict[str, float]], key: str) -> float:
    return statistics.median(one[key] for one in slices)
