"""The answer begins later."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..exchange import Exchange
from ..playback.script import Step
from ..policy.faults import Injection
from .none import NoFault


class Delay(NoFault):
    """The request is sent later; in playback the answer begins later."""

    def delay_s(self, injection: Injection) -> float:
        """Say how much later the request is sent, while recording."""
        return injection.rule.delay_s

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Move every step."""
        delay_us = int(injection.rule.delay_s * 1e6)
        for step in steps:
            latest_us = step.latest_us + delay_us if step.latest_us else 0
            yield step._replace(at_us=step.at_us + delay_us, latest_us=latest_us)

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give it as it is."""
        return found
