"""Metrics in Prometheus' text format.

Labels come from closed sets alone (modes, classes, verdicts, kinds of faults), never from names of runs, hosts or
people: a process may open any number of runs, and who scrapes keeps a series for each.

A row of `METRICS` is a measure; a new one is a row and a function.
Source: Prometheus, "Exposition formats", text format 0.0.4.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .... import __version__
from ..http.route import TEXT, Answer, Call, ProxyState

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, and the measure."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One measure."""

    name: str
    kind: str
    """`counter` or `gauge`."""
    about: str
    labels: tuple[str, ...]
    read: Callable[[ProxyState], Samples]


def _info(_: ProxyState) -> Samples:
    yield (__version__,), 1


def _requests(proxy_state: ProxyState) -> Samples:
    yield from proxy_state.registry.counters.requests.items()


def _faults(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.faults)


def _contracts(proxy_state: ProxyState) -> Samples:
    for of, count in proxy_state.registry.counters.contracts.items():
        yield (of,), count


def _runs(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.runs)


def _by_one(counts: Mapping[str, int]) -> Samples:
    for label, count in counts.items():
        yield (label,), count


def _open(proxy_state: ProxyState) -> Samples:
    counts = Counter(open_run.mode.value for open_run in proxy_state.registry.open)
    yield from _by_one(counts)


def _in_flight(proxy_state: ProxyState) -> Samples:
    counts: Counter[str] = Counter()
    for open_run in proxy_state.registry.open:
        counts[open_run.mode.value] += len(open_run.on_the_way.pending_exchanges)
    yield from _by_one(counts)


def _stopped(proxy_state: ProxyState) -> Samples:
    yield (), proxy_state.registry.counters.stopped


def _denied(proxy_state: ProxyState) -> Samples:
    yield (), proxy_state.engine.denied.total()


def _pending(proxy_state: ProxyState) -> Samples:
    yield (), len(proxy_state.registry.approvals)


def _approval_decisions(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.approval_decisions)


def _limited(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.limited)


def _injected(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.injected)


def _lost(proxy_state: ProxyState) -> Samples:
    yield from _by_one(proxy_state.registry.counters.lost)


def _queue(proxy_state: ProxyState) -> Samples:
    yield (), proxy_state.store.writer.waiting


def _failed(proxy_state: ProxyState) -> Samples:
    yield (), proxy_state.store.writer.failed is not None


METRICS = (
    Metric("playhead_info", "gauge", "Always 1.", ("version",), _info),
    Metric(
        "playhead_requests_total",
        "counter",
        "Requests that have ended, by verdict.",
        ("mode", "class", "verdict"),
        _requests,
    ),
    Metric(
        "playhead_faults_total",
        "counter",
        "Exchanges that failed below HTTP.",
        ("kind",),
        _faults,
    ),
    Metric(
        "playhead_contract_violations_total",
        "counter",
        "Contract violations found in messages.",
        ("of",),
        _contracts,
    ),
    Metric("playhead_runs_total", "counter", "Runs that were opened.", ("mode",), _runs),
    Metric("playhead_runs_open", "gauge", "Runs that are open.", ("mode",), _open),
    Metric("playhead_runs_stopped_total", "counter", "Runs that somebody stopped.", (), _stopped),
    Metric("playhead_requests_in_flight", "gauge", "Requests under way.", ("mode",), _in_flight),
    Metric(
        "playhead_egress_denied_total", "counter", "Connections that were not allowed.", (), _denied
    ),
    Metric("playhead_gates_held", "gauge", "Requests that gates hold.", (), _pending),
    Metric(
        "playhead_gates_total",
        "counter",
        "Requests that gates held, by ruling.",
        ("ruling",),
        _approval_decisions,
    ),
    Metric(
        "playhead_limited_total",
        "counter",
        "Requests that were refused because a limit was exhausted.",
        ("limit",),
        _limited,
    ),
    Metric(
        "playhead_injected_total", "counter", "Faults on purpose, by kind.", ("inject",), _injected
    ),
    Metric("playhead_sink_lost_total", "counter", "Effects that a sink lacks.", ("sink",), _lost),
    Metric("playhead_store_queue", "gauge", "Writes handed over and not begun.", (), _queue),
    Metric(
        "playhead_store_failed", "gauge", "1 once the store takes no writes any more.", (), _failed
    ),
)


async def metrics(call: Call) -> Answer:
    """Give all measures."""
    return Answer("".join(_lines(metric, call.proxy_state) for metric in METRICS), kind=TEXT)


def _lines(metric: Metric, proxy_state: ProxyState) -> str:
    lines = [f"# HELP {metric.name} {metric.about}", f"# TYPE {metric.name} {metric.kind}"]
    for values, measure in sorted(metric.read(proxy_state)):
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)
        lines.append(f"{metric.name}{f'{{{labels}}}' if labels else ''} {int(measure)}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
