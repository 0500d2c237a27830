"""One fault of a schedule: what is done to a recorded answer, in words and numbers that stay the same."""

from enum import StrEnum
from typing import NamedTuple

from ..exchange import Seq

SHARES = 8
"""Parts of a body after which it is cut."""


class FaultWord(StrEnum):
    """What is done."""

    LATE = "late"
    """It was done in time and is answered late: a client with a shorter patience has given up."""
    SLOW = "slow"
    """The first byte comes slowly."""
    CUT = "cut"
    """The answer ends in the middle."""
    THROTTLE = "throttle"
    """429: nothing was done, and it may be asked again."""
    DUPLICATE = "duplicate"
    """A read is given what the same read was given before, and its own answer the next time."""
    REORDER = "reorder"
    """Of two answers that were under way at the same time the one that came first comes last."""


class ScheduledFault(NamedTuple):
    """A fault, and the exchange of the tape whose answer it meets."""

    seq: Seq
    word: FaultWord
    other: Seq | None = None
    """`duplicate`: whose answer is given; `reorder`: whose answer comes first."""
    share: int = 0
    """`cut`: after how many of `SHARES` parts of the body."""

    @property
    def text(self) -> str:
        """In a few words, printable ASCII."""
        match self.word:
            case FaultWord.CUT:
                return f"cut exchange {self.seq} after {self.share}/{SHARES} of its answer"
            case FaultWord.DUPLICATE:
                return f"duplicate the answer to exchange {self.other} at exchange {self.seq}"
            case FaultWord.REORDER:
                return f"answer exchange {self.seq} after exchange {self.other}"
            case FaultWord.THROTTLE:
                return f"throttle exchange {self.seq}: 429"
            case FaultWord.SLOW:
                return f"slow first byte of exchange {self.seq}"
            case _:
                return f"late answer to exchange {self.seq}"


Schedule = tuple[ScheduledFault, ...]
"""The faults of one run, by exchange; at most one each."""
