"""What each fast path that the engine puts into mitmproxy saves: CPU a request without it, divided by that with all.

Playheads run side by side, each without one of them, and take turns at blocks of requests in random order. The ratio
is taken inside a turn, and the table gives the median over the turns. `all again` is a second Playhead with all: how
far its ratio is from 1 is what a ratio here can be wrong by.
"""

import statistics
from dataclasses import asdict

from measure import Plan, Sample, load_blocks, new_scratch
from proxies import HERE, Running, Tool, playhead, running
from report import Section, spread

CASES = (("small-chat", 1), ("small-chat", 8), ("llm", 8))
"""Workloads, and connections at once: with 8 a proxy always has a request waiting."""
_ALL = "all"
_AGAIN = "all again"
_TOGETHER = 4
"""Patches that are measured side by side."""
_BLOCK = 150


def _tool(plan: Plan, name: str) -> Tool:
    store = plan.folder / "scratch" / name.replace(" ", "-")
    tool = playhead("record", plan.folder, store, "bench", name=name)
    left_out = "none" if name in (_ALL, _AGAIN) else name
    python, _, _, *rest = tool.argv
    return Tool(name, (python, str(HERE / "patched.py"), left_out, *rest), says_ready=True)


def patches(plan: Plan) -> list[Section]:
    """Measure each patch on its own, recording."""
    return [_measured(plan, *case) for case in CASES]


def _measured(plan: Plan, workload: str, connections: int) -> Section:
    import patched  # and with it mitmproxy, which no other part needs

    title = f"Left out, `{workload}`, {connections} connection{'s' * (connections > 1)}"
    section = Section(title, ("without", "CPU ms/req", "CPU x all (least..most)"), raw={})
    names = [*patched.PATCHES, _AGAIN]
    turns = 3 if plan.quick else 8
    numbers = list(range(_BLOCK * (turns + 1)))
    blocks = [numbers[at : at + _BLOCK] for at in range(0, len(numbers), _BLOCK)]
    for first in range(0, len(names), _TOGETHER):
        some = (_ALL, *names[first : first + _TOGETHER])
        turn: dict[str, list[Sample]] = {name: [] for name in some}
        for round_ in range(plan.rounds):
            plan.say(f"{title}: {', '.join(some[1:])}: {round_ + 1} of {plan.rounds}")
            new_scratch(plan)
            with running([_tool(plan, name) for name in some], plan.folder) as started:
                every: dict[str, Running | None] = dict(started)
                done = load_blocks(
                    plan, workload, every, dict.fromkeys(every, blocks), connections=connections
                )
            for name, samples in done.items():
                turn[name] += samples
        for name in some[1:]:
            pairs = zip(turn[name], turn[_ALL], strict=True)
            ratios = [one.cpu_ms / other.cpu_ms for one, other in pairs]
            cpu_ms = statistics.median(one.cpu_ms for one in turn[name])
            section.rows.append((name, f"{cpu_ms:.3f}", spread(ratios, 3)))
            section.raw[name] = [asdict(one) for one in turn[name]]
    return section
