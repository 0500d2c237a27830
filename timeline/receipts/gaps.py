"""The gaps of a run: when not all could be written, and which effects were not reported to a sink."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from ...store import RunInfo, Store
from ...tape.records.events import Event, EventKind
from .bounded_rows import BoundedRows, add_row
from .safe_terminal_text import ROWS, WIDTH, plain, titled_rows


@dataclass(slots=True)
class GapRow:
    """A time in which not all could be written: the disk was full, or would not be written to."""

    since_ns: int
    until_ns: int | None
    """None where the log ends before: nobody knows what is missing."""
    reason: str
    exchanges: int | None = None
    """Whose outcome is missing."""
    effects: int | None = None
    """Sent on before their intent was written."""
    records: int | None = None
    """Rows of the log that are missing, of all kinds."""

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since_ns / 1e9))
        if self.until_ns is None:
            return f"GAP since {since}: the missing part is unknown: {self.reason}"
        lasted = (self.until_ns - self.since_ns) / 1e9
        what = f"{self.exchanges} exchanges and {self.records} rows of the log are missing"
        sent = f", {self.effects} effects were sent on unlogged" if self.effects else ""
        return f"GAP at {since} for {lasted:.1f} s: {what}{sent}: {self.reason}"


@dataclass(slots=True)
class Gaps:
    """What is missing in the log of one run, or was not reported."""

    rows: list[GapRow] = field(default_factory=BoundedRows)
    """In order."""
    sink_lost: dict[str, int] = field(default_factory=dict)
    """Effects that were not told to a sink, by its name."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        if event.kind is EventKind.LOST:
            self.sink_lost = dict(data["lost"])
        elif event.kind is EventKind.GAP:  # it began, or came to an end
            row = GapRow(data["since_ns"], data["until_ns"] or None, data["reason"])
            if row.until_ns is not None:
                row.exchanges, row.effects = data["exchanges"], data["effects"]
                row.records = data["records"]
            if self.rows and self.rows[-1].until_ns is None:
                self.rows[-1] = row
            else:
                add_row(self.rows, row)

    def rows_json(self) -> list[dict[str, Any]]:
        """Give the rows as JSON types."""
        return [asdict(row) for row in self.rows]

    def lines(self) -> list[str]:
        """Give the gaps as text."""
        return [plain(str(row), 2 * WIDTH) for row in self.rows[:ROWS]]

    def lines_of_sinks(self) -> list[str]:
        """Say what was not reported to sinks."""
        rows = [f"{count} to the {name}" for name, count in sorted(self.sink_lost.items())]
        return titled_rows("effects that were not sent to a sink", rows)


def read_gaps(store: Store, info: RunInfo) -> Gaps:
    """Read the gaps of a run. Blocking. Raises: LogCorrupt."""
    found = Gaps()
    for kind in (EventKind.GAP, EventKind.LOST):
        for event in store.events.of_kind(info, kind):
            found.take(event)
    return found
