"""What runs at the same time may use up: each is given a part of what is left of the caps, which no other has meanwhile."""

from dataclasses import dataclass, field
from decimal import Decimal

from ..run_again.branch import Caps, Spent
from .run_command_once import Ran


@dataclass(slots=True)
class Budget:
    """Caps over all runs, and what has been spent of them."""

    caps: Caps
    at_once: int
    """How many runs there are at most at the same time."""
    expected: int
    """Requests that one run may make where others wait for the rest."""
    expected_usd: Decimal = Decimal(0)
    """Dollars that one run may use where others wait for the rest."""
    one_call_usd: Decimal = Decimal(0)
    """What one call can cost: with less than that no run is begun."""
    spent: Spent = field(default_factory=Spent)
    _given: dict[int, Caps] = field(default_factory=dict)

    def give(self, name: int) -> Caps | None:
        """Give a run its part; None while nothing is left that no other has."""
        calls, usd = self._left_calls(), self._left_usd()
        parts = max(1, self.at_once - len(self._given))
        if calls is not None:
            calls = max(min(calls, self.expected), calls // parts)
        if usd is not None:
            usd = max(min(usd, self.expected_usd), usd / parts)
        if self.is_used_up:
            return None
        part = Caps(usd, calls)
        self._given[name] = part
        return part

    def take(self, name: int, ran: Ran) -> None:
        """Take back what a run has not used."""
        self._given.pop(name, None)
        ran.add_to(self.spent)

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left that no run has."""
        usd = self._left_usd()
        return self._left_calls() == 0 or (
            usd is not None and (usd <= 0 or usd < self.one_call_usd)
        )

    @property
    def waits(self) -> bool:
        """Whether something may be left once a run has ended."""
        return bool(self._given)

    def _left_calls(self) -> int | None:
        if self.caps.calls is None:
            return None
        given = sum(one.calls or 0 for one in self._given.values())
        return max(0, self.caps.calls - self.spent.calls - given)

    def _left_usd(self) -> Decimal | None:
        if self.caps.usd is None:
            return None
        given = sum((one.usd or Decimal(0) for one in self._given.values()), Decimal(0))
        return max(Decimal(0), self.caps.usd - self.spent.usd - given)

    def show(self) -> str:
        """Say what was spent and what is left."""
        return f"spent {self.spent.show()}{self.caps.show_left(self.spent)}"
