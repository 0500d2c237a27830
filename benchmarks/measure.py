"""The measurements of load, start and first bytes. Each round starts every tool fresh; ratios are taken inside a round.

1. Two tools are compared only within a round, on the same requests, in blocks that alternate in random
   order: the machine is shared, and what it does meanwhile hits all alike.
2. CPU is counted until a tool is at rest again after a block: work put off is work.
3. A wrong answer ends the measurement; no figure is made of wrong answers.
"""

import random
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import cpu
import tapes
from proxies import (
    HERE,
    Client,
    Running,
    Tool,
    ToolError,
    free_port,
    mitmdump,
    playhead,
    running,
    start,
)
from report import Bar, Section, spread

BARE = "mitmdump"
SAVING = "mitmdump -w"
STREAMING = "mitmdump, streaming"
STREAMING_SAVING = "mitmdump -w, streaming"
PLAYHEAD = "playhead"
DIRECT = "direct"
STREAM_OPTIONS = ("-s", str(HERE / "stream_addon.py"))
"""Let event streams pass mitmdump."""
CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run of the benchmarks may do and where."""

    folder: Path
    """Holds `upstream-ca.pem`, tapes, stores and logs."""
    upstream: int
    """Port of the fake provider."""
    rounds: int
    quick: bool
    rng: random.Random
    say: Callable[[str], None]
    with_playhead: bool
    large: str
    """How 100,000 exchanges get onto Playhead's tape: `fill`, `record`, or `skip`."""
    mitmdump_large: bool
    megabytes: int
    """Length of the bodies of `bodies`; 0 for the usual."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one tool did in one round of load."""

    requests: int
    wall_s: float
    cpu_s: float
    p50_ms: float
    p99_ms: float
    rss_anon_mb: float

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a request."""
        return self.cpu_s * 1000 / self.requests


Samples = dict[str, list[Sample]]
"""By tool, one for each round."""

Blocks = list[list[int]]
"""Numbers of requests; the first block only warms."""


# ---- load ------------------------------------------------------------------------------------------


def load(
    plan: Plan,
    workload: str,
    tools: dict[str, Running | None],
    blocks: dict[str, Blocks],
    ports: dict[str, int] | None = None,
) -> dict[str, Sample]:
    """Put blocks of requests to some tools in turn; None stands for no proxy at all.

    ports: by tool, the provider's port in the requests where it is not the one that runs.
    """
    results: dict[str, list[Sample]] = {name: [] for name in tools}
    with ExitStack() as stack:
        clients: dict[str, Client] = {}
        for name, tool in tools.items():
            with blame(name):
                clients[name] = Client(
                    do="load",
                    proxy=tool.port if tool else None,
                    upstream=(ports or {}).get(name, plan.upstream),
                    connections=CONNECTIONS,
                    workload=workload,
                    blocks=blocks[name],
                )
            stack.callback(clients[name].close)
        for at in range(max(len(some) for some in blocks.values())):
            for name in plan.rng.sample(sorted(tools), len(tools)):
                tool = tools[name]
                if at >= len(blocks[name]):
                    continue
                before = cpu.settled_cpu_s(tool.pid) if tool else 0.0
                with blame(name):
                    done = clients[name].go()
                used = cpu.settled_cpu_s(tool.pid) - before if tool else 0.0
                if at:
                    results[name].append(
                        Sample(
                            done["requests"],
                            done["wall_s"],
                            used,
                            done["p50_ms"],
                            done["p99_ms"],
                            cpu.rss_anon_mb(tool.pid) if tool else 0.0,
                        )
                    )
    return {name: _sum(some) for name, some in results.items()}


@contextmanager
def blame(name: str) -> Iterator[None]:
    """Put a tool's name before what went wrong with it."""
    try:
        yield
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from error


def _sum(blocks: list[Sample]) -> Sample:
    return Sample(
        sum(one.requests for one in blocks),
        sum(one.wall_s for one in blocks),
        sum(one.cpu_s for one in blocks),
        statistics.median(one.p50_ms for one in blocks),
        statistics.median(one.p99_ms for one in blocks),
        max(one.rss_anon_mb for one in blocks),
    )


def _cut(numbers: list[int], warm: int, blocks: int) -> Blocks:
    """Cut numbers into a block that warms and some equal blocks that count."""
    size = (len(numbers) - warm) // blocks
    starts = [warm + size * at for at in range(blocks)]
    return [numbers[:warm], *(numbers[at : at + size] for at in starts)]


_LOAD_HEAD = (
    *("tool", "req/s", "CPU ms/req", "p50 ms", "p99 ms", "RssAnon MB"),
    "CPU x reference (least..most)",
)


def _load_section(title: str, samples: Samples, reference: str) -> Section:
    section = Section(
        title, _LOAD_HEAD, raw={n: [asdict(one) for one in some] for n, some in samples.items()}
    )
    for name, some in samples.items():
        middle = statistics.median
        figures = [
            f"{middle(one.requests / one.wall_s for one in some):,.0f}",
            f"{middle(one.cpu_ms for one in some):.3f}",
            f"{middle(one.p50_ms for one in some):.2f}",
            f"{middle(one.p99_ms for one in some):.1f}",
            f"{middle(one.rss_anon_mb for one in some):.0f}",
            spread(_cpu_ratios(samples, name, reference)),
        ]
        if name == DIRECT:
            for at in (1, 4, 5):
                figures[at] = "-"
        section.rows.append((name, *figures))
    return section


def _cpu_ratios(samples: Samples, name: str, reference: str) -> list[float]:
    """Give the ratios of CPU a request to that of the reference, one for each round."""
    pairs = zip(samples.get(name, []), samples.get(reference, []), strict=False)
    return [one.cpu_ms / other.cpu_ms for one, other in pairs]


def new_scratch(plan: Plan) -> tuple[Path, Path]:
    """Give a new place for a file of flows and one for a store; what the last round wrote goes."""
    folder = plan.folder / "scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder / "saved.mitm", folder / "store"


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


# ---- 1: recording ----------------------------------------------------------------------------------

RECORD_BARS = {"small": 0.75, "small-chat": 0.75, "llm": 0.85, "llm-out": 0.85}


def record(plan: Plan) -> list[Section]:
    """Measure what recording costs beside a mitmdump that records nothing."""
    samples: dict[str, Samples] = {workload: {} for workload in RECORD_BARS}
    for turn in range(plan.rounds):
        flows, store = new_scratch(plan)
        tools = [
            mitmdump(BARE, plan.folder),
            mitmdump(SAVING, plan.folder, "-w", str(flows)),
        ]
        if plan.with_playhead:
            tools.append(playhead("record", plan.folder, store, "bench"))
        with running(tools, plan.folder) as started:
            for workload in plan.rng.sample(list(RECORD_BARS), len(RECORD_BARS)):
                plan.say(f"record, round {turn + 1} of {plan.rounds}: {workload}")
                count = 500 if plan.quick else 2000
                blocks = _cut(list(range(count + count // 4)), count // 4, 4)
                every: dict[str, Running | None] = {DIRECT: None, **started}
                done = load(plan, workload, every, dict.fromkeys(every, blocks))
                for name, sample in done.items():
                    samples[workload].setdefault(name, []).append(sample)
    sections = []
    for workload, limit in RECORD_BARS.items():
        section = _load_section(
            f"Recording, `{workload}`, {CONNECTIONS} connections", samples[workload], BARE
        )
        value = _median(_cpu_ratios(samples[workload], PLAYHEAD, BARE))
        section.bars.append(Bar(f"record {workload}: CPU x bare mitmdump", limit, value))
        sections.append(section)
    return sections


# ---- 2: playback -----------------------------------------------------------------------------------

SMALL_TAPE = 1_000
LARGE_TAPE = 100_000
_ASKED_OF_LARGE = 4_000


def playback(plan: Plan) -> list[Section]:
    """Measure what an answer from tape costs, at 1,000 and at 100,000 exchanges."""
    sections = [_playback_small(plan, "small", 0.55), _playback_small(plan, "llm", None)]
    large = _large_tape(plan)
    if large:
        sections.append(_playback_large(plan, large))
    else:
        sections[0].bars.append(Bar(f"playback of {LARGE_TAPE:,}: CPU", 0.55, None))
    return sections


def _playback_small(plan: Plan, workload: str, limit: float | None) -> Section:
    tape = _tape(plan, workload, SMALL_TAPE)
    replay = "mitmdump --server-replay"
    samples: Samples = {}
    for turn in range(plan.rounds):
        plan.say(f"playback of {tape.count:,} {workload}, round {turn + 1} of {plan.rounds}")
        numbers = plan.rng.sample(range(tape.count), tape.count)
        tools = [tape.mitmdump(replay, plan.folder)]
        if plan.with_playhead:
            tools.append(tape.playhead(plan.folder))
        with running(tools, plan.folder) as started:
            every: dict[str, Running | None] = dict(started)
            blocks = dict.fromkeys(every, _cut(numbers, tape.count // 5, 4))
            # So short a tape does not warm a process: an agent before this one has played it whole.
            ports = dict.fromkeys(every, tape.port)
            load(plan, workload, every, dict.fromkeys(every, _cut(numbers, 100, 1)), ports)
            done = load(plan, workload, every, blocks, ports)
        for name, sample in done.items():
            samples.setdefault(name, []).append(sample)
    title = f"Playback of {tape.count:,} exchanges, `{workload}`, {CONNECTIONS} connections"
    section = _load_section(title, samples, replay)
    if limit is not None:
        value = _median(_cpu_ratios(samples, PLAYHEAD, replay))
        name = f"playback of {tape.count:,} {workload}: CPU x mitmdump --server-replay"
        section.bars.append(Bar(name, limit, value))
    return section


def _playback_large(plan: Plan, tape: tapes.Tape) -> Section:
    """Compare with a mitmdump that holds 1,000, and with one that holds as many where asked for."""
    small = _tape(plan, tape.workload, SMALL_TAPE)
    name_small, name_large = "mitmdump, 1,000", f"mitmdump, {tape.count:,}"
    samples: Samples = {}
    for turn in range(plan.rounds):
        plan.say(f"playback of {tape.count:,}, round {turn + 1} of {plan.rounds}")
        drawn = plan.rng.sample(range(tape.count), min(tape.count, 2 * _ASKED_OF_LARGE))
        before, asked = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
        blocks = {
            name_small: _cut(plan.rng.sample(range(small.count), small.count), 200, 4),
            name_large: _cut(asked, len(asked) // 5, 4),
            PLAYHEAD: _cut(asked, len(asked) // 5, 4),
        }
        tools = [small.mitmdump(name_small, plan.folder)]
        if plan.with_playhead:
            tools.append(tape.playhead(plan.folder))
        if plan.mitmdump_large:
            tools.append(tape.mitmdump(name_large, plan.folder))
        ports = dict.fromkeys(blocks, tape.port) | {name_small: small.port}
        with running(tools, plan.folder, ready_s=240) as started:
            every: dict[str, Running | None] = dict(started)
            warming = dict.fromkeys(every, _cut(before, 100, 1))
            warming[name_small] = _cut(list(range(small.count)), 100, 1)
            load(plan, tape.workload, every, warming, ports)
            for name, sample in load(plan, tape.workload, every, blocks, ports).items():
                samples.setdefault(name, []).append(sample)
    reference = name_large if plan.mitmdump_large else name_small
    section = _load_section(f"Playback of {tape.count:,} exchanges", samples, reference)
    section.bars.append(
        Bar(
            f"playback of {tape.count:,}: CPU x {reference}",
            0.55,
            _median(_cpu_ratios(samples, PLAYHEAD, reference)),
        )
    )
    section.bars.append(_memory_bar(tape, [one.rss_anon_mb for one in samples.get(PLAYHEAD, [])]))
    return section


def _memory_bar(tape: tapes.Tape, found_mb: list[float]) -> Bar:
    value = max(found_mb, default=None)
    return Bar(f"playback of {tape.count:,}: RssAnon", 120, value, "MB")


def _tape(plan: Plan, workload: str, count: int) -> tapes.Tape:
    return tapes.open_tape(
        plan.folder, workload, count, plan.upstream, with_playhead=plan.with_playhead, fill=False
    )


def _large_tape(plan: Plan) -> tapes.Tape | None:
    """Give the large tape, or None where it was not asked for or cannot be made."""
    if plan.large == "skip" or not (plan.with_playhead or plan.mitmdump_large):
        return None
    plan.say(f"a tape of {LARGE_TAPE:,}: {plan.large}")
    return tapes.open_tape(
        plan.folder,
        "small",
        LARGE_TAPE,
        plan.upstream,
        with_playhead=plan.with_playhead,
        fill=plan.large == "fill",
    )


# ---- 3: start --------------------------------------------------------------------------------------


def start_up(plan: Plan) -> list[Section]:
    """Measure the time from the start of a process to its first right answer, and its memory then."""
    small, large = _tape(plan, "small", SMALL_TAPE), _large_tape(plan)
    replay = "mitmdump --server-replay"
    empty = "mitmdump, nothing loaded"
    cases: dict[str, tuple[Tool, int, int]] = {
        empty: (mitmdump(BARE, plan.folder), plan.upstream, 0),
        f"{replay}, {small.count:,}": _start_case(small, small.mitmdump(replay, plan.folder)),
    }
    for tape in (small, large) if plan.with_playhead else ():
        if tape:
            cases[f"playhead, {tape.count:,}"] = _start_case(tape, tape.playhead(plan.folder))
    slow: dict[str, tuple[Tool, int, int]] = {}
    if large and plan.mitmdump_large:
        tool = large.mitmdump(replay, plan.folder)
        slow[f"{replay}, {large.count:,}"] = _start_case(large, tool)

    took_s: dict[str, list[float]] = {name: [] for name in cases}
    memory_mb: dict[str, list[float]] = {name: [] for name in cases}
    # The first round fills the page cache and is not counted.
    for turn in range(plan.rounds + 1):
        plan.say(f"start, round {turn} of {plan.rounds}")
        for name in plan.rng.sample(sorted(cases), len(cases)):
            at_s, mb = _start_once(plan, *cases[name])
            if turn:
                took_s[name].append(at_s)
                memory_mb[name].append(mb)
    for name, case in slow.items():
        plan.say(f"start, once: {name}")
        at_s, mb = _start_once(plan, *case)
        took_s[name], memory_mb[name] = [at_s], [mb]
    return [_start_section(took_s, memory_mb, empty, small.count, LARGE_TAPE)]


def _start_case(tape: tapes.Tape, tool: Tool) -> tuple[Tool, int, int]:
    return tool, tape.port, tape.count - 1


def _start_once(plan: Plan, tool: Tool, port: int, number: int) -> tuple[float, float]:
    """Start a tool and ask for one request until the answer comes; seconds, and RssAnon in MB."""
    listen = free_port()
    client = Client(do="first", proxy=listen, upstream=port, workload="small", number=number)
    started = start(tool, plan.folder, listen)
    try:
        client.start()
        try:
            at = float(client.result(200)["at"])
        except ToolError as error:
            raise ToolError(f"{tool.name}: {error}: {started.log_tail()}") from error
        return at - started.started, cpu.rss_anon_mb(started.pid)
    finally:
        client.close()
        started.stop()


def _start_section(
    took_s: dict[str, list[float]],
    memory_mb: dict[str, list[float]],
    empty: str,
    small: int,
    large: int,
) -> Section:
    def ratios(name: str, reference: str) -> list[float]:
        pairs = zip(took_s.get(name, []), took_s.get(reference, []), strict=False)
        return [one / other for one, other in pairs]

    section = Section(
        "Start of the process to the first right answer, for the last exchange recorded",
        ("tool", "s", "x mitmdump with nothing (least..most)", "RssAnon MB"),
        raw={"took_s": took_s, "rss_anon_mb": memory_mb},
    )
    for name, some in took_s.items():
        memory = f"{max(memory_mb[name]):.0f}"
        section.rows.append((name, spread(some), spread(ratios(name, empty)), memory))
    one, other = f"playhead, {small:,}", f"playhead, {large:,}"
    for name in (one, other):
        value = _median(ratios(name, empty))
        section.bars.append(Bar(f"start, {name}: x mitmdump with nothing loaded", 1.5, value))
        memory_bar = max(memory_mb.get(name, []), default=None)
        section.bars.append(Bar(f"start, {name}: RssAnon", 120, memory_bar, "MB"))
    # "Flat" is given as a figure: a seventh is about what two equal starts differ by here.
    section.bars.append(
        Bar(f"start is flat: {large:,} x {small:,}", 1.15, _median(ratios(other, one)))
    )
    return section


# ---- 4: first byte of a stream ---------------------------------------------------------------------


def first_byte(plan: Plan) -> list[Section]:
    """Measure how much later the first byte of an event stream comes through a proxy that records."""
    streams = 15 if plan.quick else 60
    added: dict[str, list[float]] = {}
    took: dict[str, list[float]] = {}
    for turn in range(plan.rounds):
        plan.say(f"first byte, round {turn + 1} of {plan.rounds}")
        flows, store = new_scratch(plan)
        keep = ("-w", str(flows), "--set", "store_streamed_bodies=true")
        tools = [
            mitmdump(STREAMING, plan.folder, *STREAM_OPTIONS),
            mitmdump(STREAMING_SAVING, plan.folder, *STREAM_OPTIONS, *keep),
        ]
        if plan.with_playhead:
            tools.append(playhead("record", plan.folder, store, "bench"))
        with running(tools, plan.folder) as started:
            client = Client(
                do="ttfb",
                routes={DIRECT: None} | {name: one.port for name, one in started.items()},
                upstream=plan.upstream,
                streams=streams,
                warm=10,
                seed=plan.rng.randrange(1 << 30),
            )
            try:
                found: dict[str, list[float]] = client.go(400)["took_ms"]
            finally:
                client.close()
        middle = {name: statistics.median(some) for name, some in found.items()}
        for name, value in middle.items():
            took.setdefault(name, []).append(value)
            added.setdefault(name, []).append(value - middle[DIRECT])
    section = Section(
        "First byte of an event stream, one at a time, recorded",
        ("tool", "ms", "added ms (least..most)"),
        raw=took,
    )
    section.rows = [(name, spread(took[name]), spread(added[name])) for name in took]
    later_ms = _median(added.get(PLAYHEAD, []))
    section.bars.append(Bar("first byte of a stream: added", 2.0, later_ms, "ms"))
    return [section]


# ---- 5: an agent -----------------------------------------------------------------------------------


def agent(plan: Plan) -> list[Section]:
    """Measure an agent of 30 steps, 60 requests in sequence, 30 of them 300 ms: 9 s a run."""
    took: dict[str, list[float]] = {}
    for turn in range(plan.rounds):
        flows, store = new_scratch(plan)
        tools = [
            mitmdump(BARE, plan.folder),
            mitmdump(SAVING, plan.folder, "-w", str(flows)),
        ]
        if plan.with_playhead:
            tools.append(playhead("record", plan.folder, store, "bench"))
        with running(tools, plan.folder) as started:
            every: dict[str, Running | None] = {DIRECT: None, **started}
            for name in plan.rng.sample(sorted(every), len(every)):
                plan.say(f"agent, round {turn + 1} of {plan.rounds}: {name}")
                tool = every[name]
                client = Client(
                    do="agent",
                    proxy=tool.port if tool else None,
                    upstream=plan.upstream,
                    first=turn * 100,
                )
                try:
                    took.setdefault(name, []).append(client.go()["wall_s"])
                finally:
                    client.close()
    section = Section(
        "An agent of 30 steps: 60 requests in sequence, 30 of them 300 ms",
        ("tool", "run s", "added ms/request", "x direct (least..most)"),
        raw=took,
    )

    def ratios(name: str, reference: str) -> list[float]:
        return [
            one / other for one, other in zip(took.get(name, []), took[reference], strict=False)
        ]

    for name in (DIRECT, BARE, SAVING, PLAYHEAD):
        if name in took:
            added = [
                (one - other) * 1000 / 60
                for one, other in zip(took[name], took[DIRECT], strict=True)
            ]
            section.rows.append(
                (name, spread(took[name]), spread(added), spread(ratios(name, DIRECT), 3))
            )
    section.bars.append(Bar("agent of 30 steps: x direct", 1.03, _median(ratios(PLAYHEAD, DIRECT))))
    section.bars.append(
        Bar("agent of 30 steps: x mitmdump -w", 1.0, _median(ratios(PLAYHEAD, SAVING)))
    )
    return [section]
