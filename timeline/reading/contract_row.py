"""A contract violation, as receipts and listings show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...tape.exchange import Seq

if TYPE_CHECKING:
    from ...tape.contracts.check import Checked


@dataclass(slots=True)
class ContractRow:
    """A message that is not what its contract says, or that could not be checked."""

    seq: int
    of: str
    """What: `request`, `response`, or a `model`'s answer."""
    rule: str
    """Pattern of the contract; `model_contracts` where the request itself declared it."""
    refused: bool
    """Whether the client was sent a refusal for it."""
    recorded: bool
    """Whether it was sent one on the tape, too."""
    count: int
    """Of violations."""
    violations: list[dict[str, str]]
    """The first."""
    unchecked: list[str]
    """What could not be checked, and why."""

    @classmethod
    def from_event(cls, data: Mapping[str, Any]) -> "ContractRow":
        """Read it from an event."""
        names = ("what", "place", "expected", "found")
        return cls(
            **{key: data[key] for key in ("seq", "of", "rule", "refused", "recorded", "count")},
            violations=[dict(zip(names, one, strict=True)) for one in data["violations"]],
            unchecked=list(data["unchecked"]),
        )

    @classmethod
    def of_check(cls, seq: Seq, of: str, rule: str, checked: "Checked") -> "ContractRow":
        """Give what a check of now has found."""
        told = [one._asdict() for one in checked.violations]
        return cls(seq, of, rule, False, False, checked.count, told, list(checked.unchecked))

    @property
    def text(self) -> str:
        """The first violation in one line, and how many more there are."""
        head = f"{self.of}{', refused' if self.refused else ''}"
        if not self.violations:
            return f"{head}, not checked: {'; '.join(self.unchecked)}"
        first = self.violations[0]
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return (
            f"{head}: {first['place']}: expected {first['expected']}, found {first['found']}{more}"
        )
