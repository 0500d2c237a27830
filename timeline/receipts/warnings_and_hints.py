"""The warnings of a receipt, and its hints at rules of the configuration that did nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tape.exchange import Exchange, RequestClass, VerdictKind
from ...tape.records.events import Event, EventKind
from .bounded_rows import BoundedRows, add_row, bound_rows, total_of
from .idle_rules.unmatched_rules import Hints
from .safe_terminal_text import titled_rows

_WARNING = 1000
"""Characters of a warning: what was seen, and what to do about it."""
_WAITS = "kept waiting as recorded: its client gave up, and no pace shortens that"


@dataclass(slots=True)
class Advice:
    """What a person should look at after a run."""

    warnings: list[str] = field(default_factory=BoundedRows)
    hints: list[dict[str, str]] = field(default_factory=BoundedRows)
    """Rules of the configuration that no request matched, and places in them that none had."""
    _unmatched: Hints = field(default_factory=Hints, repr=False)
    _held: dict[int, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """By seq, what a gate holds, of which the log says no more so far."""

    def warn(self, text: str) -> None:
        """Add a warning."""
        add_row(self.warnings, text)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            self._held.pop(event.seq, None)
        match event.kind:
            case EventKind.HELD:
                self._held[event.seq] = data
            case EventKind.INTENT:
                self._unmatched.request(data)
            case EventKind.VERDICT:
                self._unmatched.request(data)
                served = data["verdict"] == VerdictKind.SERVED.value
                telemetry = data["request_class"] == RequestClass.TELEMETRY.value
                if served and data.get("waits") and not telemetry:
                    self.warn(f"seq {data['seq']}: {_WAITS}")
            case EventKind.OUTCOME:
                for text in data.get("warnings", ()):
                    self.warn(f"seq {data['seq']}: {text}")
            case EventKind.NOTED:
                self._unmatched.rules(
                    data.get("rules", {}), data.get("ignored", ()), data.get("redacted", ())
                )
                if "text" in data:
                    self.warn(data["text"])

    def find_hints(self, find: Callable[[Mapping[str, Any]], Exchange | None]) -> None:
        """Find the rules that did nothing.

        find: reads the exchange of an intent or a verdict.
        """
        for data in self._held.values():
            self._unmatched.held(data)
        self.hints = bound_rows(self._unmatched.to_json(find))

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {"warnings": self.warnings, "hints": self.hints}

    def lines(self) -> list[str]:
        """Give it as text."""
        return [
            *titled_rows("warnings", self.warnings, total_of(self.warnings), limit=_WARNING),
            *titled_rows("hints", [row["text"] for row in self.hints], total_of(self.hints)),
        ]
