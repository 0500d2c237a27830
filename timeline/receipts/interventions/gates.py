"""The gates of a run, in its receipt: each request that was held, and how that ended."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ....tape.policy.approval_decision import Ruling
from ....tape.records.events import Event, EventKind
from ..bounded_rows import BoundedRows, add_row, total_of
from ..safe_terminal_text import titled_rows


@dataclass(slots=True)
class GateRow:
    """A request that a gate held, and how that ended."""

    seq: int
    method: str
    url: str
    digest: str
    reason: str
    """Why it was held."""
    ruling: str = ""
    """`approved`, `denied`, `expired`, `left` or `ended`; empty while it waits, and where the log ends before."""
    by: str = ""
    via: str = ""
    why: str = ""
    """What whoever ruled gave as the reason."""
    waited_s: float = 0.0

    def __str__(self) -> str:
        if not self.ruling:
            return f"seq {self.seq}  no decision in the log: {self.method} {self.url}"
        who = f" by {self.by}" if self.by else ""
        why = f" ({self.why})" if self.why else ""
        waited = f"after {self.waited_s:.1f} s"
        if self.ruling == Ruling.LEFT.value:
            return (
                f"seq {self.seq}  left: {self.method} {self.url}: its client waited {self.waited_s:.1f} s, too short for a ruling"
                " (raise the agent's timeout, or rule sooner with: playhead gates)"
            )
        return f"seq {self.seq}  {self.ruling}{who} {waited}{why}: {self.method} {self.url}"


@dataclass(slots=True)
class Gates:
    """The requests of one run that were held, by seq of their arrival."""

    rows: list[GateRow] = field(default_factory=BoundedRows)
    seqs: set[int] = field(default_factory=set)
    """Of all that were held, listed or not."""
    _held: dict[int, tuple[GateRow, int]] = field(default_factory=dict, repr=False)
    """What waits, with the time since when, in nanoseconds."""

    @property
    def waiting(self) -> int:
        """How many have no decision in the log."""
        return len(self._held)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        if event.kind is EventKind.HELD:
            row = GateRow(data["seq"], data["method"], data["url"], data["digest"], data["reason"])
            add_row(self.rows, row)
            self.seqs.add(row.seq)
            self._held[row.seq] = row, event.at_ns
        elif event.kind is EventKind.RULED:
            known = self._held.pop(data["seq"], None)
            if known is not None:
                row, since_ns = known
                row.ruling, row.by, row.via = data["ruling"], data["by"], data["via"]
                row.why, row.waited_s = data["reason"], round((event.at_ns - since_ns) / 1e9, 3)

    def to_json(self) -> list[dict[str, Any]]:
        """Give the rows as JSON types."""
        return [asdict(row) for row in self.rows]

    def lines(self) -> list[str]:
        """Give them as text."""
        return titled_rows("held by gates", [str(row) for row in self.rows], total_of(self.rows))
