"""The faults that were injected into a run on purpose, in its receipt."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ....tape.records.events import Event, EventKind
from ..bounded_rows import BoundedRows, add_row, omitted_of, total_of
from ..safe_terminal_text import titled_rows


@dataclass(slots=True)
class InjectedRow:
    """A fault on purpose, and the request that it hit."""

    seq: int
    rule: str
    """Its name."""
    inject: str
    """What: `delay`, `status`, `cut`, `reset`, `timeout`, `timeout_after_success`."""
    nth: int
    """Which of the requests that match the rule."""
    seed: int

    def __str__(self) -> str:
        named = "" if self.rule.startswith(self.inject) else f" ({self.inject})"
        return f"seq {self.seq}  {self.rule}{named}, request {self.nth} that matches it"


@dataclass(slots=True)
class InjectedFaults:
    """The faults of one run."""

    rows: list[InjectedRow] = field(default_factory=BoundedRows)
    rules: dict[str, None] = field(default_factory=dict)
    """Names of the rules of all of them, in order."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is EventKind.INJECTED:
            data = event.data
            row = InjectedRow(*(data[key] for key in ("seq", "rule", "inject", "nth", "seed")))
            add_row(self.rows, row)
            self.rules[row.rule] = None

    def find_last(self, seq: int | None) -> InjectedRow | None:
        """Find the last one that hit a request up to a seq, or any where that is None; None too where it is not listed."""
        if omitted_of(self.rows) and (seq is None or seq > self.rows[-1].seq):
            return None
        return next((row for row in reversed(self.rows) if seq is None or row.seq <= seq), None)

    def to_json(self) -> list[dict[str, Any]]:
        """Give the rows as JSON types."""
        return [asdict(row) for row in self.rows]

    def lines(self) -> list[str]:
        """Give them as text."""
        return titled_rows(
            "injected on purpose", [str(row) for row in self.rows], total_of(self.rows)
        )
