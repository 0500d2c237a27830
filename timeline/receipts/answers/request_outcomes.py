"""The requests of a run, in its receipt: how many there were, what became of each, and those that a person should see."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ....tape.canonical.target_overrides import SILENT
from ....tape.counted import counted
from ....tape.exchange import FaultKind, RequestClass, VerdictKind
from ....tape.records.events import Event, EventKind
from ..bounded_rows import LISTED, BoundedRows, add_row, total_of
from ..safe_terminal_text import TEXT, titled_rows
from ..warnings_and_hints import Advice

_COUNTED = (
    *("recorded", "served", "stubbed", "live", "sandboxed", "hypothetical", "refused"),
    "unused",
)
_BECAME = ("recorded", "served", "live", "discarded", "refused")
"""What becomes of telemetry."""
_TELEMETRY_WORDS = (
    ("served", "from the tape"),
    ("live", "live"),
    ("discarded", "discarded"),
    ("refused", "refused"),
)
_NAMED = ("seq", "method", "url")
_UNTRUSTED = ("issuer certificate", "self-signed certificate", "self signed certificate")
"""What OpenSSL says of a certificate whose root it does not have."""
_TRUST_UPSTREAM = "the upstream's certificate is signed by nobody whom the proxy trusts; `--upstream-ca FILE` (`upstream_ca`) adds its root"


_NOBODY = dict.fromkeys(
    (FaultKind.REFUSED.value, FaultKind.DNS.value),
    "; is the address right, and its server up? Then record again",
)
"""What is said of a fault where nobody was there to be asked."""


@dataclass(slots=True)
class Requests:
    """What was asked in one run."""

    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """By what became of them, and what was `unused` on the tape."""
    telemetry: Counter[str] = field(default_factory=Counter)
    """What programs sent on their own account, by what became of it."""
    live: list[dict[str, Any]] = field(default_factory=BoundedRows)
    claims: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """Requests whose heads say more than one thing of host, method or path."""
    refused: list[dict[str, Any]] = field(default_factory=BoundedRows)
    faults: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """Those that failed below HTTP."""
    late: list[int] = field(default_factory=BoundedRows)
    """Requests that were served what their recorded selves had left before it came; the first of them."""
    unfinished: list[int] = field(default_factory=list)
    """Those that had no outcome when the run ended."""
    live_classes: set[str] = field(default_factory=set)
    """The classes of what was asked live."""
    asked: deque[int] = field(default_factory=lambda: deque(maxlen=LISTED), repr=False)
    """The last requests that are no telemetry."""
    _open: dict[int, str] = field(default_factory=dict, repr=False)
    """What was let go, and has no outcome: its host and port."""
    _hosts: dict[int, str] = field(default_factory=dict, repr=False)
    """The same of what failed."""
    _silent: set[int] = field(default_factory=set, repr=False)
    """Telemetry whose outcome has not come."""
    _served: set[int] = field(default_factory=set, repr=False)
    """A WebSocket is chosen anew by its first message; it counts once."""

    def take(self, event: Event, advice: Advice, *, playing: bool) -> None:
        """Take in an event of the run's log."""
        data = event.data
        match event.kind:
            case EventKind.INTENT:
                self._claims(data)
                self._intent(data, playing=playing)
            case EventKind.VERDICT:
                self._claims(data)
                self._verdict(data)
            case EventKind.OUTCOME:
                self._outcome(data, advice)
            case EventKind.SEALED:
                self.unfinished = list(data.get("unfinished", ()))
            case EventKind.RECOVERED:
                self.unfinished = list(data.get("unknown", ()))

    def _claims(self, data: Mapping[str, Any]) -> None:
        """Take in what a request's head says of its host, method or path beside."""
        if "claims" in data and not data.get("again"):
            said = [pair for pair in data["claims"] if pair[0] not in SILENT]
            told = [{"kind": kind, "text": text} for kind, text in said]
            if told:
                row = {key: data[key] for key in _NAMED}
                add_row(self.claims, {**row, "claims": told})

    def _intent(self, data: Mapping[str, Any], *, playing: bool) -> None:
        self.total += 1
        self.asked.append(data["seq"])
        self._open[data["seq"]] = urlsplit(data["url"]).netloc
        sandboxed = "sandbox_place" in data
        became = "sandboxed" if sandboxed else "live" if playing else "recorded"
        self.counts[became] += 1
        if data["request_class"] == RequestClass.TELEMETRY.value:
            self.telemetry[became] += 1
            self._silent.add(data["seq"])
        if playing and not sandboxed:
            row = {key: data[key] for key in (*_NAMED, "request_class")}
            row["reason"] = data.get("reason", "")
            self.live_classes.add(data["request_class"])
            add_row(self.live, row)

    def _verdict(self, data: Mapping[str, Any]) -> None:
        first = not data.get("again")
        self.total += first
        self.counts[data["verdict"]] += 1
        telemetry = data["request_class"] == RequestClass.TELEMETRY.value
        if telemetry:
            self.telemetry[data["verdict"]] += first
            self._silent.add(data["seq"])
        elif first:
            self.asked.append(data["seq"])
        if data["verdict"] == VerdictKind.SERVED.value:
            if data["seq"] in self._served:  # another one in its place
                self.counts[data["verdict"]] -= 1
            self._served.add(data["seq"])
        elif data["verdict"] == VerdictKind.REFUSED.value and not telemetry:
            row = {key: data[key] for key in (*_NAMED, "reason")}
            add_row(self.refused, {**row, "repeats": 0})

    def _outcome(self, data: Mapping[str, Any], advice: Advice) -> None:
        host = self._open.pop(data["seq"], "")
        if data["seq"] in self._silent:
            self._silent.discard(data["seq"])
            return
        if data.get("late"):
            add_row(self.late, data["seq"])
        if "fault" in data:
            kind, phase, text = data["fault"]
            add_row(self.faults, {"seq": data["seq"], "kind": kind, "phase": phase, "text": text})
            self._hosts[data["seq"]] = host
            if kind == FaultKind.TLS.value and any(word in text for word in _UNTRUSTED):
                advice.warn(f"seq {data['seq']}: {_TRUST_UPSTREAM}")

    def fold_retries(self, retries: Mapping[int, int]) -> None:
        """Count refused requests that repeat another with that one.

        retries: given by `Divergences.find_root`.
        """
        repeats = Counter(retries.values())
        self.refused[:] = [
            {**row, "repeats": repeats[row["seq"]]}
            for row in self.refused
            if row["seq"] not in retries
        ]

    def to_json(self) -> dict[str, Any]:
        """Give the counts, as a receipt has them."""
        return {"requests": self.total, "counts": {name: self.counts[name] for name in _COUNTED}}

    def telemetry_json(self) -> dict[str, int]:
        """Give what programs sent on their own account."""
        told = {name: self.telemetry[name] for name in _BECAME}
        return {"requests": self.telemetry.total(), **told}

    def rows_json(self) -> dict[str, Any]:
        """Give the lists, as a receipt has them."""
        return {
            "live": self.live,
            "claims": self.claims,
            "refused": self.refused,
            "faults": self.faults,
            "unfinished": self.unfinished,
        }

    def recorded_line(self, status: str) -> str:
        """Say how much a recording has, and how much of that has no outcome: its proxy died, or still waits."""
        text = f"{status}: {counted(self.counts['recorded'], 'exchange')} recorded"
        return f"{text}, {len(self._open)} of them without an outcome" if self._open else text

    def telemetry_lines(self) -> list[str]:
        """Say how much programs sent on their own account."""
        counts, total = self.telemetry, self.telemetry.total()
        if not total:
            return []
        told = [f"{counts[key]} {word}" for key, word in _TELEMETRY_WORDS if counts.get(key)]
        more = f" ({', '.join(told)})" if told else ""
        return [f"telemetry: {counted(total, 'request')}{more}"]

    def refused_lines(self) -> list[str]:
        """List what was refused, each with the reason."""
        return titled_rows(
            "refused",
            [_with_reason(row) for row in self.refused],
            total_of(self.refused),
            limit=TEXT,
        )

    def live_lines(self, services: Sequence[str]) -> list[str]:
        """List what was live, with the local services that the command was let reach."""
        return titled_rows(
            "live",
            [*map(_with_reason, self.live), *services],
            total_of(self.live) + len(services),
            limit=TEXT,
        )

    def lines(self) -> list[str]:
        """List what failed, was named in more than one way, or had not ended."""
        faults = [
            f"seq {row['seq']}  {row['kind']} in {row['phase']}{_of(self._hosts.get(row['seq'], ''))}:"
            f" {row['text']}{_NOBODY.get(row['kind'], '')}"
            for row in self.faults
        ]
        return [
            *titled_rows("failed below HTTP", faults, total_of(self.faults)),
            *titled_rows(
                "named or spelled in more than one way",
                list(map(_claim, self.claims)),
                total_of(self.claims),
            ),
            *titled_rows("unfinished at the end", [f"seq {seq}" for seq in self.unfinished]),
        ]


def _with_reason(row: Mapping[str, Any]) -> str:
    return f"seq {row['seq']}  {row['method']} {row['url']}: {row['reason']}"


def _claim(row: Mapping[str, Any]) -> str:
    said = ", ".join(f"{one['kind']} {one['text']}".strip() for one in row["claims"])
    return f"seq {row['seq']}  {row['method']} {row['url']}: {said}"


def _of(host: str) -> str:
    return f" to {host}" if host else ""
