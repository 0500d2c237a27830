"""Nothing is ever answered."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..exchange import Exchange
from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault, give_nothing


class Timeout(NoFault):
    """The client waits until it gives up."""

    replaces = True

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Hang in the place of the answer."""
        yield Step(0, StepKind.HANG)

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give it without an answer."""
        return give_nothing(found)
