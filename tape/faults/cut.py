"""The answer ends after so many bytes."""

from collections.abc import Iterable, Iterator

from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault


class Cut(NoFault):
    """Play so many bytes and then the cut; an answer that is shorter ends as it does."""

    cuts = True

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Leave out what comes after the cut."""
        left = injection.rule.after_bytes
        for step in steps:
            if step.kind is StepKind.HEAD and not left:
                yield step
                yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
                return
            if step.kind is StepKind.DATA and len(step.data) >= left:
                yield step._replace(data=step.data[:left])
                yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
                return
            left -= len(step.data)
            yield step
