"""A row of a comparison: an act of one run beside its partner in the other, and what it follows from."""

from dataclasses import dataclass, field
from enum import StrEnum

from ..steps.step import Evidence
from .acts import Act
from .renaming import Renaming


class Change(StrEnum):
    """How an act of one run is in the other."""

    SAME = "same"
    ASKED = "asked otherwise"
    ANSWERED = "answered otherwise"
    MOVED = "moved"
    ONLY_FIRST = "only in the first"
    ONLY_SECOND = "only in the second"


@dataclass(slots=True)
class Cause:
    """The earlier difference that one follows from."""

    first: str
    """Place in the first run, or empty."""
    second: str
    evidence: Evidence
    rule: str


@dataclass(slots=True)
class Row:
    """An act of one run beside its partner in the other."""

    first: Act | None
    second: Act | None
    change: Change = Change.SAME
    cause: Cause | None = None
    """None of a root, and of what is the same."""
    converges: bool = False
    """Whether it asks and is answered the same again, after what was said before differed."""
    agreed: set[tuple[str, str]] = field(default_factory=set)
    """Ids of the two acts that stand for each other, of what is not the same."""
    at_odds: set[tuple[str, str]] = field(default_factory=set)
    """Ids and times at one place of which one does not stand for the other."""
    renaming: Renaming | None = None
    """Of the runs, if the two acts are not the same."""
    known: int = 0
    """How many ids had a partner when they were asked."""

    @property
    def is_root(self) -> bool:
        """Whether it differs by itself."""
        return self.change is not Change.SAME and self.cause is None
