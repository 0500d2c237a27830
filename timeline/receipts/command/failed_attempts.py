"""Attempts of clients that came to nothing, in receipts: listed, compared with the tape, and warned of after a recording.

What they are is said in `tape/records/failed_attempt.py`; the events are those that `addons/attempts/` notes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ....tape.diff.compare_failed_attempts import AttemptCounts, Compared, add, compare, summarize
from ....tape.diff.divergence_types import Divergence, DivergenceKind
from ....tape.exchange import RequestClass, Seq
from ....tape.records.events import Event, EventKind
from ....tape.records.failed_attempt import GREETED, NOTHING_SAID, Attempt, AttemptKind
from .bypass_remedies import (
    NOTHING_IN_USE,
    InUse,
    bypass_remedy,
    distrust_remedy,
    is_chromium,
    may_distrust_silently,
)

_CONNECT = "CONNECT"
_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}
_DNS = 53
_SHOWN = 5


@lru_cache(maxsize=4096)
def _origin(place: str) -> tuple[str, int]:
    """Give host and port of a URL; empty and 0 where it has none."""
    try:
        split = urlsplit(place)
        return (split.hostname or "").lower(), split.port or _PORTS.get(split.scheme, 0)
    except ValueError:
        return "", 0


def origin_of(url: str) -> tuple[str, int]:
    """Give host and port of a request's URL."""
    return _origin("/".join(url.split("/", 3)[:3]).partition("?")[0])


class Side:
    """What one run's log says of attempts, and of what else bears on them."""

    def __init__(self) -> None:
        """Begin before the first event."""
        self.attempts: AttemptCounts = {}
        self.cuts: Counter[tuple[str, str]] = Counter()
        """Requests that their clients cut, by method and URL."""
        self.asked: set[tuple[str, int]] = set()
        """Where something was asked that is no telemetry."""
        self.told: set[tuple[str, int]] = set()
        """Where telemetry was sent."""
        self.passed: list[Mapping[str, Any]] = []
        """What the capture of a recording has let pass as it was."""

    def take(self, event: Event) -> None:
        """Take in an event."""
        data = event.data
        match event.kind:
            case EventKind.NOTED:
                if "attempt" in data:
                    add(self.attempts, Attempt.from_event(data["attempt"]))
                elif "capture" in data:
                    self.passed = list(data["capture"].get("passed", ()))
                elif "cut" in data:
                    method, url = data["cut"]
                    self.cuts[method, url] += 1
            case EventKind.INTENT | EventKind.VERDICT:
                origin = origin_of(data["url"])
                telemetry = data["request_class"] == RequestClass.TELEMETRY.value
                (self.told if telemetry else self.asked).add(origin)


@dataclass(frozen=True, slots=True)
class Findings:
    """What becomes of the attempts of a run."""

    rows: list[dict[str, Any]]
    divergences: list[Mapping[str, Any]]
    egress: list[dict[str, Any]]
    warnings: list[str]
    unrecorded: list[str]
    """Of a recording: what its clients may have asked, and is not on the tape; in words."""


def find_attempts(own: Side, tape: Side | None, in_use: InUse = NOTHING_IN_USE) -> Findings:
    """Compare the attempts of a replay with those of its tape, or list those of a recording.

    in_use: what the run had already, which no advice names.
    """
    if tape is None:
        compared = summarize(own.attempts)
        rows = [_row(one) for one in compared] + list(_cut_rows(own.cuts, None))
        warnings, unrecorded = _warnings(compared, own, in_use)
        return Findings(rows, [], [], warnings, unrecorded)
    silent = (own.told | tape.told) - own.asked - tape.asked
    compared = compare(own.attempts, tape.attempts)
    silent |= {_place(one) for one in compared if _went_on(one)} & own.asked & tape.asked
    differing = [one for one in compared if one.differs and _place(one) not in silent]
    missed = tape.cuts - own.cuts
    return Findings(
        [_row(one, silent) for one in compared] + list(_cut_rows(own.cuts, tape.cuts)),
        [_divergence(one) for one in differing] + [_cut_missed(*one) for one in missed.items()],
        [row for one in differing for row in _egress(one, own)],
        [
            *_not_on_tape(tape.passed, own.asked | {_place(one) for one in differing}, in_use),
            *_distrusting(compared, own, in_use),
        ],
        [],
    )


def _distrusting(compared: Iterable[Compared], own: Side, in_use: InUse) -> Iterator[str]:
    """Yield what to do about clients of a replay that distrust the proxy's CA, and so asked nothing of a host."""
    for one in compared:
        if one.firm and one.count and _distrusts(one, own) and _place(one) not in own.asked:
            yield f"{_describe(one)}. {distrust_remedy(one.processes, in_use)}"


def _not_on_tape(
    passed: Iterable[Mapping[str, Any]], reached: set[tuple[str, int]], in_use: InUse
) -> Iterator[str]:
    """Yield why a tape has nothing of a host that a replay has come to: the recording let its client pass."""
    for row in passed:
        if row["why"] == "distrusts" and (row["host"], row["port"]) in reached:
            who, place = row["process"] or "a client", f"{row['host']}:{row['port']}"
            yield (
                f"{place} is not on the tape: {who} did not trust the proxy's CA while it was recorded, so its connections passed"
                f" untouched, and they lead to nobody now. {distrust_remedy([row['process']], in_use)}"
            )


def _went_on(one: Compared) -> bool:
    """Say whether a browser refused a certificate in both runs: where it asks on, it was told to ignore that.

    As often as it had connected until then, which is chance.
    """
    return one.first.distrusted and bool(one.count and one.recorded) and is_chromium(one.processes)


def _place(one: Compared) -> tuple[str, int]:
    return one.first.host, one.first.port


def _row(one: Compared, silent: Iterable[tuple[str, int]] = ()) -> dict[str, Any]:
    first = one.first
    return {
        "kind": first.kind.value,
        "target": first.place,
        "count": one.count,
        "recorded": one.recorded,
        "differs": one.differs and _place(one) not in silent,
        "process": ", ".join(one.processes),
        "detail": first.detail,
    }


def _cut_rows(
    present: Counter[tuple[str, str]], recorded: Counter[tuple[str, str]] | None
) -> Iterator[dict[str, Any]]:
    """Yield the requests that were cut; those of a replay that its tape does not have are divergences already."""
    for method, url in dict.fromkeys((*present, *(recorded or ()))):
        then = None if recorded is None else recorded[method, url]
        host, port = origin_of(url)
        yield {
            "kind": AttemptKind.CUT_REQUEST.value,
            "target": Attempt(AttemptKind.CUT_REQUEST, host, port).place,
            "count": present[method, url],
            "recorded": then,
            "differs": then is not None and then != present[method, url],
            "process": "",
            "detail": f"the client left before {method} {url} had ended",
        }


def _divergence(one: Compared) -> Mapping[str, Any]:
    """Say that an attempt is surplus, or missing."""
    first, kind = one.first, one.first.kind.value
    where = "at" if not first.host else "to"
    counts = f"{one.count} in this run, {one.recorded} on the tape"
    if one.surplus:
        word, text = DivergenceKind.UNEXPECTED, f"{kind} {where} {first.place}: {first.detail}"
        by = f", by {first.process}" if first.process else ""
        text = f"{text}{by}; {counts}"
    else:
        word = DivergenceKind.UNUSED
        text = f"{kind} {where} {first.place}: on the tape, and not made again; {counts}"
    return Divergence(
        word, Seq(first.after + 1), _CONNECT, f"https://{first.place}", None, (), text
    ).to_json()


def _cut_missed(key: tuple[str, str], count: int) -> Mapping[str, Any]:
    method, url = key
    text = f"cut request: on the tape, and not made again; {count} fewer than on the tape"
    return Divergence(DivergenceKind.UNUSED, Seq(1), method, url, None, (), text).to_json()


def _egress(one: Compared, own: Side) -> Iterator[dict[str, Any]]:
    """Yield what tried to leave of what the tape does not have."""
    left = [
        attempt
        for attempt in one.surplus
        if attempt.egress and not (attempt.spared and (attempt.host, attempt.port) in own.asked)
    ]
    for reason, count in Counter(attempt.egress for attempt in left).items():
        target = f"{one.first.host}:{one.first.port}"
        row = {"target": target, "by": "proxy", "reason": reason}
        yield {**row, "protocol": "tcp", "process": one.first.process, "count": count}


# ---- after a recording ---------------------------------------------------------------------------


def _warnings(compared: list[Compared], own: Side, in_use: InUse) -> tuple[list[str], list[str]]:
    """Give a sentence for each attempt, and which of them hide something from the tape."""
    told, unrecorded = [], []
    for one in compared:
        if not one.firm:
            continue  # of a pool, or made ahead
        distrusts = _distrusts(one, own)
        told.append(f"{_describe(one)}. {_remedy(one, distrusts, in_use)}")
        if distrusts:
            unrecorded.append(_describe(one))
    for (method, url), count in own.cuts.items():
        times = "" if count == 1 else f" ({count} times)"
        told.append(
            f"cut request: the client left before {method} {url} had ended{times}. It was not sent on, and is not on the tape"
        )
    return told, unrecorded


def _describe(one: Compared) -> str:
    first = one.first
    where = "at" if not first.host else "to"
    return f"{_count(one)} {where} {first.place}{_by(one)}: {first.detail}"


def _distrusts(one: Compared, own: Side) -> bool:
    """Say whether a client distrusts the proxy's CA, as it said or as it seems."""
    first = one.first
    return first.distrusted or (
        first.kind in (AttemptKind.EMPTY_TUNNEL, AttemptKind.FAILED_HANDSHAKE)
        and _place(one) not in own.asked | own.told
        and first.detail != NOTHING_SAID
        and may_distrust_silently(one.processes, greeted=first.detail == GREETED)
    )


def _count(one: Compared) -> str:
    kind = one.first.kind.value
    return kind if one.count == 1 else f"{one.count} times {kind}"


def _by(one: Compared) -> str:
    return f", by {', '.join(one.processes)}" if one.processes else ""


def _remedy(one: Compared, distrusts: bool, in_use: InUse) -> str:
    """Say what can be done about it."""
    if distrusts:
        return distrust_remedy(one.processes, in_use)
    match one.first.kind:
        case AttemptKind.MALFORMED_REQUEST:
            return (
                "Its requests are not on the tape. Only HTTP, WebSockets and gRPC are recorded: send other"
                " protocols past the proxy, or mend the client"
            )
        case AttemptKind.CUT_REQUEST:
            return "It was not sent on, and is not on the tape"
        case _:
            return "Nothing was asked on it; a replay is expected to do the same"


def find_bypassed(
    sockets: Iterable[Mapping[str, Any]], in_use: InUse = NOTHING_IN_USE
) -> Iterator[tuple[str, str]]:
    """Yield what went past the proxy while recording, in words, each with what to do about it.

    sockets: rows of `Receipt.foreign`. Questions to DNS are none of them: what is asked of an address that they gave is.
    in_use: what has not helped.
    """
    by_process: dict[str, list[str]] = {}
    ports: dict[str, list[int]] = {}
    for row in sockets:
        if row["port"] != _DNS:
            host = f"[{row['address']}]" if ":" in row["address"] else row["address"]
            by_process.setdefault(row["process"], []).append(
                f"{row['protocol']} {host}:{row['port']}"
            )
            if row["protocol"] == "tcp":
                ports.setdefault(row["process"], []).append(row["port"])
    for process, places in by_process.items():
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said = f"{process or 'a client'} went past the proxy, to {', '.join(places[:_SHOWN])}{more}"
        yield (
            said,
            f"Nothing of it is on the tape: {bypass_remedy([process], in_use, ports.get(process, ()))}",
        )


def find_passed(in_use: InUse) -> Iterator[tuple[str, str]]:
    """Yield what the capture of a recording has let pass as it was, in words, each with what to do about it.

    in_use: with its capture.
    """
    for row in (in_use.capture or {}).get("passed", ()):
        host = f"[{row['host']}]" if ":" in row["host"] else row["host"]
        who, place = row["process"] or "a client", f"{host}:{row['port']}"
        many = "once" if row["count"] == 1 else f"{row['count']} times"
        if row["why"] == "distrusts":
            said = f"{who} does not trust the proxy's CA: after its first try its connections to {place} passed untouched ({many})"
            yield said, distrust_remedy([row["process"]], in_use)
        else:
            said = f"{who} spoke no HTTP with {place}: that passed untouched ({many})"
            yield said, "Nothing of it is on the tape: only HTTP, WebSockets and gRPC are recorded"


def find_lost(capture: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield that the capture of a recording ended too early, in words, with what to do about it: nobody knows what went past since.

    capture: `Receipt.capture`.
    """
    if capture is not None and capture["lost"]:
        said = "the capture ended before the command did, so that from then on only clients that use the proxy variables were recorded"
        yield said, "Its watching process was killed: record once more"


def find_blind_spots(capture: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield why the capture of a recording may have missed something, and what it has changed.

    capture: `Receipt.capture`.
    """
    if capture is None:
        return
    if capture["no_new_privileges"]:
        yield (
            "sudo, and any other program that gains rights, had no effect in this recording: the kernel asks that of an ordinary user."
            " Run playhead as root, or record with --sandbox none"
        )
    if capture["blind"]:
        yield f"no connection was captured: the command cannot be looked into, {capture['blind']}. Only clients that use the proxy variables were recorded"
    for name, count in capture["unseen"].items():
        times = "" if count == 1 else f" ({count} times)"
        yield f"{name or 'a process'} cannot be looked into: where it connected to is not known{times}"
    for name in capture["rings"]:
        yield f"{name or 'a process'} uses io_uring: connections that it makes by that are not seen"
