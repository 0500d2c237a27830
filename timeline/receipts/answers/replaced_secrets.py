"""The secrets of answers, in a receipt: which were replaced before the agent saw them, and which were given as recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....tape.exchange import VerdictKind
from ....tape.records.events import Event, EventKind
from ..bounded_rows import SEQS, BoundedRows, add_row
from ..safe_terminal_text import ROWS


@dataclass(slots=True)
class ReplacedSecrets:
    """The answers of one run in which redaction has replaced a value; of a recording, those on its tape."""

    count: int = 0
    """The agent was given a placeholder, or the tape has one."""
    seqs: list[int] = field(default_factory=BoundedRows)
    """The first of their requests."""
    unloadable_keys: list[int] = field(default_factory=BoundedRows)
    """The first of those whose answer has the placeholder of a private key that no library loads."""
    other_digests: list[int] = field(default_factory=BoundedRows)
    """The first of those whose answer has a digest that was computed anew, or has one no more."""
    count_as_recorded: int = 0
    """The store also kept the value, and the agent was given it."""
    as_recorded: list[int] = field(default_factory=BoundedRows)
    """The first of their requests."""
    _with_placeholders: set[int] = field(default_factory=set, repr=False)
    _with_secrets: set[int] = field(default_factory=set, repr=False)

    def take(self, event: Event, *, playing: bool) -> None:
        """Take in an event of the run's log."""
        match event.kind:
            case EventKind.NOTED:
                self._take(event.data)
            case EventKind.VERDICT if event.data["verdict"] == VerdictKind.SERVED.value:
                self._take(event.data)
            case EventKind.OUTCOME if not playing:  # what was live came as it was
                self._take(event.data)

    def _take(self, data: Mapping[str, Any]) -> None:
        seq = data.get("seq", 0)
        if data.get("replaced") and seq not in self._with_placeholders:
            self._with_placeholders.add(seq)
            self.count += 1
            add_row(self.seqs, seq, SEQS)
            if data.get("unloadable_key"):
                add_row(self.unloadable_keys, seq)
            if data.get("other_digest"):
                add_row(self.other_digests, seq)
        if data.get("as_recorded") and seq not in self._with_secrets:
            self._with_secrets.add(seq)
            self.count_as_recorded += 1
            add_row(self.as_recorded, seq, SEQS)

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {
            "secrets_replaced": {
                "answers": self.count,
                "seqs": self.seqs,
                "unloadable_keys": self.unloadable_keys,
                "other_digests": self.other_digests,
            },
            "secrets_as_recorded": {"answers": self.count_as_recorded, "seqs": self.as_recorded},
        }

    def lines(self) -> list[str]:
        """Give them as text."""
        lines = []
        for what, count, found in (
            ("replaced", self.count, self.seqs),
            ("as recorded", self.count_as_recorded, self.as_recorded),
        ):
            if count:
                shown = found[:ROWS]
                seqs = ", ".join(map(str, shown)) + (", …" if count > len(shown) else "")
                lines.append(f"answers with secrets {what}: {count} (seq {seqs})")
        for what, found in (
            ("a private key that cannot be loaded any more", self.unloadable_keys),
            ("digests of the body computed anew, or left out", self.other_digests),
        ):
            if found:
                seqs = ", ".join(map(str, found[:ROWS]))
                lines.append(f"  with {what}: seq {seqs}")
        return lines
