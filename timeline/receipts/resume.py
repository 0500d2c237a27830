"""The account of a run that resumes a crashed one, in its receipt: how far it came, and what became of effects without an outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tape.counted import counted
from ...tape.exchange import RequestClass, VerdictKind
from ...tape.records.events import Event, EventKind
from .safe_terminal_text import titled_rows

_WAITS = "not asked for"
_HELD = "held"


@dataclass(slots=True)
class ResumeAccount:
    """What a run resumed and did; empty of a run that resumes none."""

    of: str = ""
    """The run that crashed; empty of a run that resumes none."""
    reached: int | None = None
    """The request with which all of the prefix had been asked for; None where it never was."""
    served: int = 0
    """Answers from the tape."""
    executed: int = 0
    """Effects that were sent."""
    unknown: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    """Effects without an outcome, by run and seq, each with what became of it."""
    anew: frozenset[int] = frozenset()
    """Exchanges of the tape that nobody answered, but for these effects: they are asked anew."""
    _held: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By seq, which of them is at a gate."""

    def __bool__(self) -> bool:
        """Say whether the run resumes another."""
        return bool(self.of)

    def list_asked(self, run: str) -> list[int]:
        """List the effects of a run without an outcome that were asked for again, by their seq."""
        return [
            row["seq"]
            for row in self.unknown.values()
            if row["run"] == run and row["asked_as"] is not None
        ]

    def lines(self) -> list[str]:
        """Say how far it came, and what became of effects without an outcome."""
        if not self:
            return []
        came = "NEVER CAME TO THE CRASH POINT"
        if self.reached is not None:
            came = f"came to the crash point with seq {self.reached}"
        elif self.executed:
            came += ", and sent only what was approved at a gate"
        else:
            came += ", so nothing was sent"
        first = f"{came}: {self.served} from the tape, {counted(self.executed, 'effect')} executed"
        rows = [
            f"seq {row['seq']} of {row['run']}  {row['method']} {row['url']}: {row['became']}"
            + (f" as seq {row['asked_as']}" if row["asked_as"] is not None else "")
            for row in self.unknown.values()
        ]
        return [first, *titled_rows("without an outcome in the crashed run", rows)]

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        if event.kind is EventKind.NOTED:
            self._note(data)
        elif event.kind is EventKind.VERDICT and not data.get("again"):
            self.served += data["verdict"] == VerdictKind.SERVED.value
        elif event.kind is EventKind.INTENT:
            self.executed += data["request_class"] == RequestClass.EFFECT.value
        elif event.kind is EventKind.HELD and "unknown_effect" in data:
            self._held[event.seq] = row = tuple(data["unknown_effect"])
            self._become(row, _HELD, event.seq)
        elif event.kind is EventKind.RULED and event.seq in self._held:
            self._become(self._held.pop(event.seq), data["ruling"], event.seq)

    def _note(self, data: Mapping[str, Any]) -> None:
        if "resume" in data:
            self.of = data["resume"]["of"]
            unknown = {seq for run, seq, *_ in data["resume"]["unknown"] if run == self.of}
            self.anew = frozenset(data["resume"].get("unanswered", ())) - unknown
            for run, seq, method, url in data["resume"]["unknown"]:
                row = {"run": run, "seq": seq, "method": method, "url": url}
                self.unknown[run, seq] = {**row, "became": _WAITS, "asked_as": None}
        if "crash_point" in data:
            self.reached = data["crash_point"]

    def _become(self, which: tuple[str, int], what: str, seq: int) -> None:
        if which in self.unknown:
            self.unknown[which] |= {"became": what, "asked_as": seq}

    def to_json(self) -> dict[str, Any] | None:
        """Give it as JSON types; None of a run that resumes none."""
        if not self:
            return None
        return {
            "of": self.of,
            "reached": self.reached,
            "served": self.served,
            "effects_executed": self.executed,
            "unknown": list(self.unknown.values()),
        }
