"""What each fast path that the engine puts into mitmproxy saves: CPU a request without it, divided by that with all.

One Playhead records blocks of requests. Before each block it is told which of the fast paths to leave out; the order is random. The
ratio is taken inside a turn, to the block with all of them, and the table gives the median over the turns. `all again` has all of
them, too: how far its ratio is from 1 is what a ratio here can be wrong by.
"""

import socket
import statistics
from dataclasses import asdict

import cpu
from measure import Plan, Sample, new_scratch
from proxies import HERE, Client, Running, Tool, playhead, running
from report import Section

CASES = (("small-chat", 1), ("small-chat", 8), ("llm", 8))
"""Workloads, and connections at once: with 8 a proxy always has a request waiting."""
_ALL = "all"
_AGAIN = "all again"
_WARM, _BLOCK = 24, 96
_TURNS = 12


def patches(plan: Plan) -> list[Section]:
    """Measure each patch on its own, recording."""
    return [_measured(plan, *case) for case in CASES]


def _measured(plan: Plan, workload: str, connections: int) -> Section:
    import patched  # and with it mitmproxy, which no other part needs

    title = f"Left out, `{workload}`, {connections} connection{'s' * (connections > 1)}"
    head = ("without", "CPU ms/req", "CPU x all, median", "quartiles")
    section = Section(title, head, raw={})
    names = [_ALL, _AGAIN, *patched.PATCHES]
    turns = [
        turn
        for round_ in range(plan.rounds)
        for turn in _turns(plan, workload, connections, names, f"{title}: {round_ + 1}")
    ]
    for name in names[1:]:
        ratios = [turn[name].cpu_ms / turn[_ALL].cpu_ms for turn in turns]
        low, middle, high = statistics.quantiles(ratios)
        cpu_ms = statistics.median(turn[name].cpu_ms for turn in turns)
        section.rows.append((name, f"{cpu_ms:.3f}", f"{middle:.3f}", f"{low:.3f}..{high:.3f}"))
        section.raw[name] = [asdict(turn[name]) for turn in turns]
    return section


def _turns(
    plan: Plan, workload: str, connections: int, names: list[str], title: str
) -> list[dict[str, Sample]]:
    _, store = new_scratch(plan)
    place = store.parent / "told"
    python, _, _, *rest = playhead("record", plan.folder, store, "bench").argv
    tool = Tool("playhead", (python, str(HERE / "patched.py"), str(place), *rest), says_ready=True)
    count = 3 if plan.quick else _TURNS
    numbers = iter(range(10**9))
    blocks = [
        [next(numbers) for _ in range(size)] for size in (_WARM, _BLOCK) * (count * len(names))
    ]
    with running([tool], plan.folder) as started, socket.socket(socket.AF_UNIX) as told:
        told.connect(str(place))
        proxy = started["playhead"]
        client = Client(
            do="load",
            proxy=proxy.port,
            upstream=plan.upstream,
            connections=connections,
            workload=workload,
            blocks=blocks,
        )
        try:
            return [
                _turn(plan, proxy, client, told, names, f"{title}, turn {at + 1} of {count}")
                for at in range(count)
            ]
        finally:
            client.close()


def _turn(
    plan: Plan, proxy: Running, client: Client, told: socket.socket, names: list[str], title: str
) -> dict[str, Sample]:
    plan.say(title)
    found = {}
    for name in plan.rng.sample(names, len(names)):
        told.sendall(f"{name}\n".encode())
        assert told.recv(100).decode().strip() == name
        client.go()
        before = cpu.settled_cpu_s(proxy.pid)
        done = client.go()
        used = cpu.settled_cpu_s(proxy.pid) - before
        found[name] = Sample(
            done["requests"], done["wall_s"], used, done["p50_ms"], done["p99_ms"], 0.0
        )
    return found
