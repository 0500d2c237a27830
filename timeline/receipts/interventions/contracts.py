"""The contracts of a run, in its receipt: messages that violated theirs, and answers that were refused for it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ....tape.records.events import Event, EventKind
from ...reading.contract_row import ContractRow
from ..bounded_rows import BoundedRows, add_row, total_of
from ..safe_terminal_text import titled_rows


@dataclass(slots=True)
class ContractViolations:
    """What of one run violated a contract."""

    rows: list[ContractRow] = field(default_factory=BoundedRows)
    """Messages that violated their contract, the first; `count` counts all violations."""
    count: int = 0
    refused_by: dict[str, None] = field(default_factory=dict)
    """Rules for which the client of a playback was refused an answer that it had been given on the tape."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is not EventKind.CONTRACT:
            return
        row = ContractRow.from_event(event.data)
        add_row(self.rows, row)
        self.count += row.count
        # A request that is refused has a verdict that says so.
        if row.refused and not row.recorded and row.of != "request":
            self.refused_by[row.rule] = None

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {
            "contracts": [asdict(row) for row in self.rows],
            "contract_violations": self.count,
        }

    def lines(self) -> list[str]:
        """Give them as text."""
        rows = [f"seq {row.seq}  {row.text}" for row in self.rows]
        return titled_rows("contract violations", rows, total_of(self.rows))
