"""What a large body costs: growth of memory while it passes, and bytes a second.

Each case starts every tool fresh and warms it with a body of 1 MB. Memory is looked at every 10 ms; growth
is the most during the transfer less what there was before. MB are 10^6 bytes.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import cpu
from measure import DIRECT, PLAYHEAD, Plan, new_scratch
from proxies import (
    Tool,
    ToolError,
    WireClient,
    WirePorts,
    mitmdump,
    playhead,
    running,
    wire_upstream,
)
from report import Bar, Section

STREAMING = "mitmdump, streaming"
MEGABYTES = 300
"""Length of a body."""
QUICK_MEGABYTES = 60
GROWTH_BAR_MB = 30.0
_WARM_BYTES = 1_000_000
_TRANSFER_S = 650.0
"""Longest time of one transfer; the client gives up before."""


@dataclass(frozen=True, slots=True)
class Case:
    """How a body travels."""

    way: str
    """`download` or `upload`."""
    http: str
    announced: bool
    """Whether its length stands in the head."""
    slow: str = ""
    """Who takes it slowly: `client`, `upstream`, or nobody. A slow client over HTTP/2 has narrow windows."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        length = "length" if self.announced else "no length" if self.http == "h2" else "chunked"
        slow = f", slow {self.slow}" if self.slow else ""
        return f"{self.way}, {self.http}, {length}{slow}"


CASES = (
    *(Case("download", http, announced) for http in ("h1", "h2") for announced in (True, False)),
    Case("download", "h1", announced=True, slow="client"),
    Case("download", "h2", announced=False, slow="client"),
    *(Case("upload", http, announced) for http in ("h1", "h2") for announced in (True, False)),
    Case("upload", "h1", announced=False, slow="upstream"),
    Case("upload", "h2", announced=True, slow="upstream"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of one transfer."""

    mb_s: float = math.nan
    growth_mb: float = math.inf
    fault: str = ""


def bodies(plan: Plan) -> list[Section]:
    """Measure downloads and uploads of 300 MB, recorded and played."""
    megabytes = plan.megabytes or (QUICK_MEGABYTES if plan.quick else MEGABYTES)
    found: dict[Case, dict[str, list[Sample]]] = {case: {} for case in CASES}
    with wire_upstream(plan.folder) as ports:
        for turn in range(plan.rounds):
            for case in plan.rng.sample(CASES, len(CASES)):
                plan.say(f"bodies, round {turn + 1} of {plan.rounds}: {case.name}")
                for name, sample in _case(plan, case, ports, megabytes * 1_000_000):
                    found[case].setdefault(name, []).append(sample)
                    if sample.fault:
                        plan.say(f"{name}, {case.name}: {sample.fault}")
    return [_section(found, megabytes)]


def _case(plan: Plan, case: Case, ports: WirePorts, size: int) -> Iterator[tuple[str, Sample]]:
    _, store = new_scratch(plan)
    yield DIRECT, _transfer(plan, case, ports, size, None)
    streaming = mitmdump(STREAMING, plan.folder, "--set", "stream_large_bodies=1")
    yield STREAMING, _transfer(plan, case, ports, size, streaming)
    if plan.with_playhead:
        for mode in ("record", "playback"):
            tool = playhead(mode, plan.folder, store, "bench")
            yield f"{PLAYHEAD}, {mode}", _transfer(plan, case, ports, size, tool)


def _transfer(plan: Plan, case: Case, ports: WirePorts, size: int, tool: Tool | None) -> Sample:
    try:
        with _started(plan, tool) as (proxy, pid):
            client = WireClient(
                do="transfer",
                proxy=proxy,
                upstream=ports.tls,
                sizes=[_WARM_BYTES, size],
                **asdict(case),
            )
            try:
                client.go()
                if pid is None:
                    return Sample(size / 1e6 / client.go(_TRANSFER_S)["wall_s"], 0.0)
                cpu.settled_cpu_s(pid)
                with cpu.MemoryWatch(pid) as watch:
                    took_s = client.go(_TRANSFER_S)["wall_s"]
                return Sample(size / 1e6 / took_s, watch.most_mb - watch.before_mb)
            finally:
                client.close()
    except ToolError as error:
        return Sample(fault=str(error))


@contextmanager
def _started(plan: Plan, tool: Tool | None) -> Iterator[tuple[int | None, int | None]]:
    """Give the port and the process id of a proxy, or nothing and nothing where there is none."""
    if tool is None:
        yield None, None
        return
    with running([tool], plan.folder) as started:
        yield started[tool.name].port, started[tool.name].pid


def _section(found: dict[Case, dict[str, list[Sample]]], megabytes: int) -> Section:
    tools = list(dict.fromkeys(name for by_tool in found.values() for name in by_tool))
    section = Section(
        f"Bodies of {megabytes} MB: MB/s, best of the rounds, and growth of RssAnon in MB, worst",
        ("body", *tools),
        raw={
            case.name: {name: [asdict(one) for one in some] for name, some in by_tool.items()}
            for case, by_tool in found.items()
        },
    )
    worst: dict[tuple[str, str], float] = {}
    faults: dict[str, str] = {}
    for case, by_tool in found.items():
        cells = []
        for name in tools:
            growth_mb = max(one.growth_mb for one in by_tool[name])
            worst[case.way, name] = max(worst.get((case.way, name), 0.0), growth_mb)
            fault = next((one.fault for one in by_tool[name] if one.fault), "")
            if fault:
                faults[f"{name}, {case.name}"] = fault
                cells.append("failed")
            else:
                mb_s = max(one.mb_s for one in by_tool[name])
                cells.append(f"{mb_s:.0f}" if name == DIRECT else f"{mb_s:.0f}, +{growth_mb:.0f}")
        section.rows.append((case.name, *cells))
    section.notes = [f"{where}: {fault[:200]}" for where, fault in faults.items()]
    for way in ("download", "upload"):
        for mode in ("record", "playback"):
            value = worst.get((way, f"{PLAYHEAD}, {mode}"))
            name = f"{way} of {megabytes} MB, {mode}: growth of RssAnon"
            section.bars.append(Bar(name, GROWTH_BAR_MB, value, "MB"))
    return section
