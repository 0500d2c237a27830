"""The tape of a playback, in its receipt: whether it is there, whole and as it was recorded."""

from dataclasses import dataclass, field
from typing import Any

from ...store import RunInfo, RunStatus
from ...tape.records.events import Event, EventKind
from .command.command_end import CommandEnd
from .gaps import Gaps
from .safe_terminal_text import plain

_IMPORTED = "imported"
_REWRITTEN = "rewritten"


@dataclass(slots=True)
class TapeAccount:
    """What is known of the tape of one playback; empty of a recording."""

    gone: bool = False
    """Whether it is not in the store any more, so that nobody knows what was unused."""
    gap: bool = False
    """Whether exchanges are missing on it, so that nobody knows what was to be asked."""
    standing: str = ""
    """What it is: `sealed`, `recovered` (its process ended abruptly), `imported`, or `rewritten` after it was sealed; empty of a recording."""
    rewritten: dict[str, None] = field(default_factory=dict)
    """Names of the rules by which it had been rewritten before the run began, in order."""
    _gaps: Gaps = field(default_factory=Gaps, repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether it is whole and as it was recorded; true of a recording, which has none."""
        return self.standing in ("", "sealed")

    def take(self, event: Event, before_ns: int) -> None:
        """Take in an event of the tape's log.

        before_ns: when the run began.
        """
        self._gaps.take(event)
        if event.kind is EventKind.REWRITTEN and event.at_ns < before_ns:
            self.rewritten.update(dict.fromkeys(event.data["rules"]))

    def close(self, tape: RunInfo) -> None:
        """Say what it is, once its log has been read."""
        self.gap = any(row.exchanges != 0 for row in self._gaps.rows)
        if tape.end == _IMPORTED:
            self.standing = _IMPORTED
        elif tape.status is RunStatus.RECOVERED:
            self.standing = "recovered"
        else:
            self.standing = _REWRITTEN if self.rewritten else "sealed"

    def to_json(self, recorded: CommandEnd) -> dict[str, Any] | None:
        """Give it as JSON types; None of a recording.

        recorded: how the command ended while it was recorded.
        """
        if not self.standing:
            return None
        return {
            "standing": self.standing,
            "rewritten": list(self.rewritten),
            **recorded.to_json(),
        }

    def qualify(self) -> str:
        """Say to what tape a run is faithful, as the end of a headline; empty where that is a plain one."""
        if self.is_plain:
            return ""
        is_both = self.rewritten and self.standing != _REWRITTEN
        standing = f"{self.standing}, {_REWRITTEN}" if is_both else self.standing
        article = "AN" if standing[0] in "aeiou" else "A"
        return f" TO {article} {standing.upper()} TAPE"

    def __str__(self) -> str:
        told = [self.standing] if self.standing not in ("", _REWRITTEN) else []
        if self.rewritten:
            told.append(f"{_REWRITTEN} by {', '.join(map(plain, self.rewritten))}")
        return f" ({', '.join(told)})" if told else ""
