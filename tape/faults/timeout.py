"""Nothing is ever answered."""

from collections.abc import Iterable, Iterator

from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault


class Timeout(NoFault):
    """The client waits until it gives up."""

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Hang in the place of the answer."""
        yield Step(0, StepKind.HANG)
