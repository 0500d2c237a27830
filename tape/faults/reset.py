"""The connection ends before any answer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..exchange import Ending, Exchange, Fault, FaultKind, Phase, RedactedText
from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault, give_nothing


class Reset(NoFault):
    """The connection ends at once, as the rule says."""

    resets = True
    replaces = True

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Fail in the place of the answer."""
        yield Step(0, StepKind.FAIL, ending=injection.ending)

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give it with the end of the connection in the place of an answer."""
        ending = Ending(told.get("ending", Ending.RST.value))
        fault = Fault(FaultKind.RESET, Phase.HEAD, RedactedText(name), 0, ending)
        return replace(give_nothing(found), fault=fault, end_us=0)
