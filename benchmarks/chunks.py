"""What one piece of a stream costs: CPU a chunk, beside a mitmdump that lets streams pass.

A response has 1,000 pieces. Each is sent when the client has got the one before it, so that a proxy reads
and writes each on its own however slow the machine is; the time of a piece is thus a whole round.
"""

import statistics
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import cpu
from measure import PLAYHEAD, STREAM_OPTIONS, STREAMING, STREAMING_SAVING, Plan, blame, new_scratch
from proxies import Running, WireClient, WirePorts, mitmdump, playhead, running, wire_upstream
from report import Bar, Section, spread

PASSING = "playhead, passthrough"
CHUNKS = 1_000
"""Pieces of a response."""
CPU_BAR = 1.05
"""Most CPU a chunk, as a multiple of that of mitmdump."""
_BLOCKS = 5
"""Blocks that count, of each tool in each case of a round; one before them warms. A block is a response of
each stream, and the middle one is taken: other work on the machine makes some blocks dearer, none cheaper."""


@dataclass(frozen=True, slots=True)
class Case:
    """How the pieces are asked for."""

    http: str
    streams: int
    """At once: each on a connection of its own over HTTP/1.1, all on one over HTTP/2."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.http}, {self.streams} stream{'s' if self.streams > 1 else ''}"


CASES = (Case("h1", 1), Case("h1", 8), Case("h2", 1), Case("h2", 8))


@dataclass(frozen=True, slots=True)
class Sample:
    """What one tool did in a block."""

    pieces: int
    wall_s: float
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a piece."""
        return self.cpu_s * 1e6 / self.pieces


Samples = dict[str, list[Sample]]
"""By tool, the middle one of each round."""


def chunks(plan: Plan) -> list[Section]:
    """Measure the CPU of each chunk that passes a proxy which records it."""
    samples: dict[Case, Samples] = {case: {} for case in CASES}
    with wire_upstream(plan.folder) as ports:
        for turn in range(plan.rounds):
            flows, store = new_scratch(plan)
            keep = ("-w", str(flows), "--set", "store_streamed_bodies=true")
            tools = [
                mitmdump(STREAMING, plan.folder, *STREAM_OPTIONS),
                mitmdump(STREAMING_SAVING, plan.folder, *STREAM_OPTIONS, *keep),
            ]
            if plan.with_playhead:
                passing = store.with_name("passing")
                tools += [
                    playhead("record", plan.folder, store, "bench"),
                    playhead("passthrough", plan.folder, passing, "bench", name=PASSING),
                ]
            with running(tools, plan.folder) as started:
                for case in plan.rng.sample(CASES, len(CASES)):
                    plan.say(f"chunks, round {turn + 1} of {plan.rounds}: {case.name}")
                    for name, sample in _load(plan, case, ports, started).items():
                        samples[case].setdefault(name, []).append(sample)
    return [_section(case, found) for case, found in samples.items()]


def _load(plan: Plan, case: Case, ports: WirePorts, tools: dict[str, Running]) -> dict[str, Sample]:
    """Let blocks of streams pass some tools in turn."""
    results: dict[str, list[Sample]] = {name: [] for name in tools}
    with ExitStack() as stack:
        clients: dict[str, WireClient] = {}
        for at, (name, tool) in enumerate(tools.items()):
            with blame(name):
                clients[name] = WireClient(
                    do="pieces",
                    proxy=tool.port,
                    upstream=ports.tls,
                    next=ports.next,
                    http=case.http,
                    streams=case.streams,
                    count=CHUNKS,
                    first=at * 1_000_000,
                )
            stack.callback(clients[name].close)
        for block in range(1 + (2 if plan.quick else _BLOCKS)):
            for name in plan.rng.sample(sorted(tools), len(tools)):
                before = cpu.settled_cpu_s(tools[name].pid)
                with blame(name):
                    done = clients[name].go()
                used = cpu.settled_cpu_s(tools[name].pid) - before
                if block:
                    results[name].append(Sample(done["pieces"], done["wall_s"], used))
    return {name: _middle(some) for name, some in results.items()}


def _middle(blocks: list[Sample]) -> Sample:
    return sorted(blocks, key=lambda one: one.cpu_us)[(len(blocks) - 1) // 2]


def _section(case: Case, samples: Samples) -> Section:
    section = Section(
        f"Responses of {CHUNKS:,} chunks, {case.name}, each chunk after the one before has arrived",
        (
            *("tool", "chunks/s", "CPU us/chunk"),
            *(f"CPU x {name} (least..most)" for name in (STREAMING, PASSING)),
        ),
        raw={name: [asdict(one) for one in some] for name, some in samples.items()},
    )

    def ratios(name: str, reference: str) -> list[float]:
        pairs = zip(samples.get(name, []), samples.get(reference, []), strict=False)
        return [one.cpu_us / other.cpu_us for one, other in pairs]

    for name, some in samples.items():
        section.rows.append(
            (
                name,
                f"{statistics.median(one.pieces / one.wall_s for one in some):,.0f}",
                f"{statistics.median(one.cpu_us for one in some):.0f}",
                *(spread(ratios(name, reference), 3) for reference in (STREAMING, PASSING)),
            )
        )
    found = ratios(PLAYHEAD, STREAMING)
    value = statistics.median(found) if found else None
    section.bars.append(Bar(f"chunks, {case.name}: CPU x streaming mitmdump", CPU_BAR, value))
    return section
