"""The connection ends before any answer."""

from collections.abc import Iterable, Iterator

from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault


class Reset(NoFault):
    """The connection ends at once, as the rule says."""

    resets = True

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Fail in the place of the answer."""
        yield Step(0, StepKind.FAIL, ending=injection.ending)
