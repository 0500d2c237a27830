"""The account of a branch, in its receipt: what it declared, whether it came to its point, and from where each answer came."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tape.exchange import VerdictKind
from ...tape.records.events import Event, EventKind
from .bounded_rows import BoundedRows, add_row, total_of
from .safe_terminal_text import titled_rows

_ASKED = ("seq", "method", "url")


@dataclass(slots=True)
class BranchAccount:
    """What a branch declared and did; empty of a run that is none."""

    declared: Mapping[str, Any] | None = None
    """None of a run that is no branch."""
    reached: int | None = None
    """The request with which it came to its point; None where it did not."""
    before: int = 0
    """Answers from the tape before that."""
    after: int = 0
    """Answers from the tape since then."""
    hypothetical: list[dict[str, Any]] = field(default_factory=BoundedRows)
    sandboxed: list[dict[str, Any]] = field(default_factory=BoundedRows)
    asked_otherwise: list[int] = field(default_factory=BoundedRows)
    replaced: set[int] = field(default_factory=set)
    """Exchanges of the tape whose answers hypothetical ones replaced."""

    def __bool__(self) -> bool:
        """Say whether the run is a branch."""
        return self.declared is not None

    @property
    def at(self) -> int:
        """The exchange of the tape that is its point."""
        return 0 if self.declared is None else int(self.declared["at"])

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        if event.kind is EventKind.NOTED:
            self.declared = data.get("branch", self.declared)
            if "branched" in data:
                self.reached, tape_seq = data["branched"]
                if self.declared is not None and self.declared["changes"]:
                    self.replaced.add(tape_seq)
        elif event.kind is EventKind.VERDICT and not data.get("again"):
            self._take_verdict(data)
        elif event.kind is EventKind.INTENT:
            self._take_intent(data)

    def _take_verdict(self, data: Mapping[str, Any]) -> None:
        if data["verdict"] == VerdictKind.SERVED.value:
            self.after += self.reached is not None
            self.before += self.reached is None
        elif data["verdict"] == VerdictKind.HYPOTHETICAL.value:
            if "in_place_of" in data:
                self.replaced.add(data["in_place_of"])
            row = {key: data[key] for key in _ASKED}
            add_row(self.hypothetical, {**row, "in_place_of": data.get("in_place_of")})

    def _take_intent(self, data: Mapping[str, Any]) -> None:
        if "sandbox_place" in data:
            row = {key: data[key] for key in (*_ASKED, "request_class", "sandbox_place")}
            add_row(self.sandboxed, {**row, "reason": data.get("reason", "")})
        if data.get("asked_otherwise"):
            add_row(self.asked_otherwise, data["seq"])

    def to_json(self) -> dict[str, Any] | None:
        """Give it as JSON types; None of a run that is no branch."""
        told = self.declared
        if told is None:
            return None
        return {
            "at": told["at"],
            "changes": list(told["changes"]),
            "declared": {
                "live": [
                    dict(zip(("request_class", "host", "reason"), row, strict=True))
                    for row in told["live"]
                ],
                "routes": [
                    dict(zip(("match", "sandbox_place", "reason"), row, strict=True))
                    for row in told["routes"]
                ],
                "answers": list(told["answers"]),
            },
            "spliced": told.get("spliced"),
            "faults": list(told.get("faults", ())),
            "reached": self.reached,
            "served_before": self.before,
            "served_after": self.after,
            "hypothetical": self.hypothetical,
            "sandboxed": self.sandboxed,
            "asked_otherwise": self.asked_otherwise,
        }

    def lines(self) -> list[str]:
        """Say from where the answers came, and what it declared."""
        told = self.declared
        if told is None:
            return []
        came = (
            f"came to its point with seq {self.reached}"
            if self.reached
            else "NEVER CAME TO ITS POINT"
        )
        counts = (
            (self.before, "from the tape before it"),
            (self.after, "from the tape since"),
            (total_of(self.hypothetical), "hypothetical"),
            (total_of(self.sandboxed), "sandboxed"),
            (total_of(self.asked_otherwise), "asked otherwise than the agent did"),
        )
        lines = [f"{came}: " + ", ".join(f"{count} {what}" for count, what in counts if count)]
        changed = ", ".join(map(str, told["changes"]))
        declared = [f"another {changed} at {self.at}"] if changed else []
        declared += [f"{row[0]} live at {row[1]} ({row[2]})" for row in told["live"]]
        if told.get("afresh"):
            declared.append("a model that goes live is asked also what the tape answers")
        declared += [f"{row[0]} to the sandbox {row[1]} ({row[2]})" for row in told["routes"]]
        declared += [f"a hypothetical answer to {text}" for text in told["answers"]]
        if "spliced" in told:
            name, count = told["spliced"]
            declared.append(f"{count} answers of {name}")
        declared += told.get("faults", ())
        return lines + titled_rows("declared", declared)

    def answer_lines(self, counts: Mapping[str, int]) -> list[str]:
        """List what was answered by a sandbox, and what by hypothetical answers.

        counts: of the receipt.
        """
        sandboxed = [
            f"seq {row['seq']}  {row['method']} {row['url']}: {row['reason']}"
            for row in self.sandboxed
        ]
        hypothetical = [
            f"seq {row['seq']}  {row['method']} {row['url']}"
            + (f" (in the place of tape seq {row['in_place_of']})" if row["in_place_of"] else "")
            for row in self.hypothetical
        ]
        return [
            *titled_rows("sandboxed", sandboxed, counts["sandboxed"]),
            *titled_rows("hypothetical", hypothetical, counts["hypothetical"]),
        ]
