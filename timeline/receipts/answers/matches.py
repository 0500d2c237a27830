"""How the served requests of a playback matched its tape, in its receipt, and what differed and did not count."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ....tape.diff.divergence_types import DivergenceKind
from ....tape.exchange import VerdictKind
from ....tape.records.events import Event, EventKind
from ..bounded_rows import SEQS, BoundedRows, add_row, total_of
from ..safe_terminal_text import ROWS, plain, titled_rows
from .profile_rows import ProfileRows


@dataclass(slots=True)
class OptIn:
    """Model drift that a person has allowed, as RECORDED=NEW, and what it let through."""

    allowed: str
    served: int = 0
    seqs: list[int] = field(default_factory=BoundedRows)
    """The first hundred."""

    def __str__(self) -> str:
        if not self.served:
            return f"{self.allowed}: nothing needed it"
        seqs = ", ".join(map(str, self.seqs[:ROWS])) + (" …" if self.served > ROWS else "")
        return f"{self.allowed}: served {self.served}, seq {seqs}"


@dataclass(slots=True)
class Matches:
    """How the requests of one playback matched."""

    matched: Counter[str] = field(default_factory=Counter)
    """Served answers by how they matched: `exact`, `canonical`, `profile`, `unconditional`, `drifted`, `repeated`."""
    profiles: ProfileRows = field(default_factory=ProfileRows)
    """What was served by profiles of clients, and which clients have none."""
    model_drift: list[OptIn] = field(default_factory=BoundedRows)
    drifted: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """Requests that were served although an idempotency key differs from the tape's by being there or by which share it, or
    a linked value stands for another than before."""
    ignored_content: list[int] = field(default_factory=BoundedRows)
    """Requests that were served although what they are about differs from the tape: a rule has that ignored. The first of them."""
    reordered_results: int = 0
    """Served model calls that list the results of tools that ran side by side in another order."""
    headers_differ: Counter[str] = field(default_factory=Counter)
    """Served requests by the reported header fields that differed from the recorded ones."""
    protocols_differ: Counter[str] = field(default_factory=Counter)
    """Versions of HTTP on the tape and now, as `HTTP/2.0 -> HTTP/1.1`: how many were served over another."""
    credentials_merged: Counter[str] = field(default_factory=Counter)
    """Served requests by the place of a credential that stands for several recorded ones, where no answer depended on it."""
    served_as: dict[int, int] = field(default_factory=dict, repr=False)
    """By seq, what of the tape was served last for it: a WebSocket is chosen anew by its first message."""
    _kind_alone: set[int] = field(default_factory=set, repr=False)
    _opt_ins: dict[str, OptIn] = field(default_factory=dict, repr=False)

    @property
    def kind_alone(self) -> int:
        """Served requests that rest on what a replaced value is and not on the value: the tape is of another store."""
        return len(self._kind_alone)

    @property
    def drift_allowed(self) -> list[str]:
        """The model drift without which something would not have been served."""
        return [one.allowed for one in self.model_drift if one.served]

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is EventKind.VERDICT:
            self.profiles.verdict(event.data)
            if event.data["verdict"] == VerdictKind.SERVED.value:
                self._served(event.data)
        elif event.kind is EventKind.NOTED:
            self._noted(event.data)

    def _served(self, data: Mapping[str, Any]) -> None:
        if data["seq"] not in self.served_as:
            self.matched[data["match"]] += 1
        self.served_as[data["seq"]] = data["tape_seq"]
        for allowed in data.get("allowed", ()):
            opt_in = self._opt_in(allowed)
            opt_in.served += 1
            add_row(opt_in.seqs, data["seq"], SEQS)
        self._differs(data)
        self.reordered_results += bool(data.get("reordered_results"))
        self.headers_differ.update(data.get("headers", ()))
        if "protocols" in data:
            self.protocols_differ[" -> ".join(data["protocols"])] += 1
        self.credentials_merged.update(data.get("merged", ()))
        if "drifted" in data:
            row = {"seq": data["seq"], "tape_seq": data["tape_seq"], "what": data["drifted"]}
            add_row(self.drifted, {"kind": DivergenceKind.DRIFTED.value, **row})

    def _noted(self, data: Mapping[str, Any]) -> None:
        """Take in an option of the run, or what is known of a WebSocket once its messages were compared."""
        if "allow_model_drift" in data:
            self._opt_in("=".join(data["allow_model_drift"]))
        if (was := self.profiles.noted(data)) and self.matched[was]:
            self.matched[was] -= 1
            self.matched["profile"] += 1
        self._differs(data)
        if "rematched" in data:
            before, now = data["rematched"]
            if now:  # else it was another request after all
                self.matched[now] += 1
            self.matched[before] -= 1
            self.matched += Counter()

    def _differs(self, data: Mapping[str, Any]) -> None:
        if data.get("kind_alone"):
            self._kind_alone.add(data["seq"])
        if data.get("ignored_content"):
            add_row(self.ignored_content, data["seq"])

    def _opt_in(self, allowed: str) -> OptIn:
        found = self._opt_ins.get(allowed)
        if found is None:
            found = self._opt_ins[allowed] = OptIn(allowed)
            add_row(self.model_drift, found)
        return found

    def to_json(self) -> dict[str, Any]:
        """Give how requests matched, as a receipt has it."""
        return {
            "matched": dict(+self.matched),
            "model_drift": [
                {"allowed": one.allowed, "served": one.served, "seqs": one.seqs}
                for one in self.model_drift
            ],
            "drifted": self.drifted,
        }

    def profiles_json(self) -> dict[str, Any]:
        """Give what was owed to profiles."""
        return {
            "profiles": [asdict(row) for row in self.profiles.rows.values()],
            "unprofiled": list(self.profiles.unprofiled),
        }

    def differing_json(self) -> dict[str, Any]:
        """Give what differed and did not count."""
        return {
            "reordered_results": self.reordered_results,
            "headers_differ": dict(sorted(self.headers_differ.items())),
            "protocols_differ": dict(sorted(self.protocols_differ.items())),
            "credentials_merged": dict(sorted(self.credentials_merged.items())),
        }

    def summary(self) -> str:
        """Say how many matched in which way, in one line; empty where nothing was served."""
        matched = sorted((+self.matched).items())
        return plain(", ".join(f"{count} {_how(count, name)}" for name, count in matched))

    def drift_lines(self) -> list[str]:
        """Say what model drift was allowed, and what needed it."""
        return titled_rows(
            "model drift allowed",
            [str(one) for one in self.model_drift],
            total_of(self.model_drift),
        )

    def lines(self) -> list[str]:
        """Say what differed and did not count."""
        lines = self.profiles.lines()
        if self.reordered_results:
            lines.append(f"reordered results: {self.reordered_results}")
        if self.ignored_content:
            seqs = ", ".join(str(seq) for seq in self.ignored_content[:ROWS])
            more = total_of(self.ignored_content) - ROWS
            rest = f" and {more} more" if more > 0 else ""
            lines.append(
                f"ignored content: seq {seqs}{rest} differ from the tape where rules or profiles of yours ignore it"
            )
        if self.headers_differ:
            lines.append(f"headers differ: {_listed(self.headers_differ)}")
        if self.protocols_differ:
            lines.append(f"protocols differ: {_listed(self.protocols_differ)}")
        if self.kind_alone:
            lines.append(
                f"replaced values: {self.kind_alone} served by their kind alone; the tape is of another store, whose values cannot be compared"
            )
        if self.credentials_merged:
            told = _listed(self.credentials_merged)
            lines.append(
                f"credentials merged: {told}; one represents several on the tape, and no answer depended on it"
            )
        return lines


def _how(count: int, match: str) -> str:
    """Name a way in which answers matched."""
    if match == "profile":
        return "by profile"
    return f"unconditional answer{'s' * (count != 1)}" if match == "unconditional" else match


def _listed(counts: Mapping[str, int]) -> str:
    return plain(", ".join(f"{name} ({count})" for name, count in sorted(counts.items())))
