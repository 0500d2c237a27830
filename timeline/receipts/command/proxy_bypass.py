"""What the command of a run did past the proxy, in its receipt: attempts that came to nothing, and what tried to leave.

What a sandbox refused, what a capture let pass, sockets that led elsewhere, and programs of the command's own that it spoke to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....tape.counted import counted
from ....tape.records.events import Event, EventKind
from ..bounded_rows import BoundedRows, add_row, bound_rows, total_of
from ..safe_terminal_text import ROWS, TEXT, plain, titled_rows
from ..warnings_and_hints import Advice
from .bypass_remedies import InUse
from .command_end import CommandEnd
from .failed_attempts import (
    Findings,
    Side,
    find_attempts,
    find_blind_spots,
    find_bypassed,
    find_lost,
    find_passed,
)
from .nothing_recorded import NOTHING, explain_nothing, find_tried

_PROGRAMS = 5
"""Programs of the command's own that are shown."""


@dataclass(slots=True)
class PastProxy:
    """What clients did past the proxy in one run, or tried to."""

    attempts: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """Attempts of clients that came to nothing, by kind and place."""
    unrecorded: list[str] = field(default_factory=BoundedRows)
    """Of a recording: what was asked past it, or would have been, in words."""
    egress: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """What tried to leave, and was denied."""
    foreign: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """Sockets past the proxy."""
    own_programs: list[str] = field(default_factory=BoundedRows)
    """Ports of loopback at which programs of the command listened: what it said to them passed, and is on no tape."""
    capture: dict[str, Any] | None = None
    """Of a recording: what the filter of `connect` has taken to the proxy, and what it has left; None where there was none."""
    _own: Side = field(default_factory=Side, repr=False)
    _recorded: Side = field(default_factory=Side, repr=False)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        self._own.take(event)
        match event.kind:
            case EventKind.EGRESS:
                add_row(self.egress, dict(data))
            case EventKind.FOREIGN:
                for item in data["sockets"]:
                    add_row(self.foreign, dict(item))
            case EventKind.NOTED:
                self.capture = data.get("capture", self.capture)
                if "own_program" in data:
                    add_row(self.own_programs, data["own_program"])

    def take_recorded(self, event: Event) -> None:
        """Take in an event of the tape's log."""
        self._recorded.take(event)

    def close(self, in_use: InUse, *, playing: bool) -> Findings:
        """List what came to nothing, of a replay compared with its tape; give all that was found.

        in_use: what the run had already, which no advice names.
        """
        found = find_attempts(self._own, self._recorded if playing else None, in_use)
        for row in found.rows:
            add_row(self.attempts, row)
        for row in found.egress:
            add_row(self.egress, row)
        return found

    def find_unrecorded(
        self,
        found: Findings,
        requests: int,
        advice: Advice,
        in_use: InUse,
        command: CommandEnd,
        refused: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Say what a recording has missed, and what to do about it.

        found: given by `close`.
        requests: of the run.
        command: how it ended.
        refused: what the sandbox has refused on loopback.
        """
        bypassed = [
            *find_lost(self.capture),
            *find_bypassed(self.foreign, in_use),
            *find_passed(in_use),
        ]
        said = [text for text, _ in bypassed] + found.unrecorded
        if not requests and bypassed:
            said.insert(0, NOTHING)
        elif not requests and not found.unrecorded:  # else it came to the proxy, and left
            tried = find_tried(in_use, self.egress, refused)
            nothing, remedy = explain_nothing(command.child_exit, tried, in_use, command.command)
            said.insert(0, nothing)
            advice.warnings.insert(0, f"{nothing}. {remedy}")
        self.unrecorded = bound_rows(said)
        told = [f"{text}. {remedy}" for text, remedy in bypassed]
        for text in (*told, *found.warnings, *find_blind_spots(self.capture)):
            advice.warn(text)

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt, but for `own_programs`."""
        return {
            "attempts": self.attempts,
            "unrecorded": self.unrecorded,
            "egress": self.egress,
            "foreign": self.foreign,
            "capture": self.capture,
        }

    def passed(self) -> Iterator[str]:
        """Say what was let pass, and what was led to the proxy."""
        if self.own_programs:
            told = ", ".join(self.own_programs[:_PROGRAMS])
            more = " ..." if len(self.own_programs) > _PROGRAMS else ""
            yield f"passed, to programs of the command's own: {plain(told)}{more}"
        if self.capture is not None and self.capture["taken"]:
            taken = counted(self.capture["taken"], "connection")
            yield f"captured: {taken} led to the proxy, whatever its client ignores"

    def unrecorded_lines(self) -> list[str]:
        """Say what a recording has missed."""
        return [f"NOT RECORDED: {plain(text, TEXT)}" for text in self.unrecorded[:ROWS]]

    def lines(self) -> list[str]:
        """Show what came to nothing, and what tried to leave."""
        lines = titled_rows(
            "came to nothing",
            [_came_to_nothing(row) for row in self.attempts],
            total_of(self.attempts),
        )
        lines += titled_rows(
            "tried to leave, denied", [_tried(row) for row in self.egress], total_of(self.egress)
        )
        foreign = [
            f"{row['protocol']} {row['address']}:{row['port']} by {row['process']}"
            for row in self.foreign
        ]
        return lines + titled_rows("sockets past the proxy", foreign, total_of(self.foreign))


def _came_to_nothing(row: Mapping[str, Any]) -> str:
    """Say what came to nothing, and how often it did on the tape."""
    count = "" if row["count"] == 1 else f"{row['count']} times "
    by = f" by {row['process']}" if row["process"] else ""
    then = "" if row["recorded"] is None else f" ({row['recorded']} on the tape)"
    return f"{count}{row['kind']} to {row['target']}{by}: {row['detail']}{then}"


def _tried(row: Mapping[str, Any]) -> str:
    protocol = f"{row['protocol']} " if row.get("protocol") else ""
    process = f" by {row['process']}" if row.get("process") else ""
    count = f", {row['count']} times" if row.get("count", 1) > 1 else ""
    return f"{protocol}{row['target']}{process}{count}: {row['reason']}"
