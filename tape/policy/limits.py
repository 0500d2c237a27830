"""Limits of a run: its usage so far, and the first request that would exceed a limit.

1. Only what leaves counts, telemetry aside; what the tape answers costs nothing.
2. A limit refuses what would use more of it: `calls` everything, `tokens` and `usd` model calls, `repeats` the
   request that is repeated.
3. What is not known is counted as unknown, never as zero: model calls whose answer states no tokens, and those
   whose model has no price.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from ...config import Limits
from ...config.targets.host_interpretations import normal_host
from ...config.targets.path_interpretations import normal_path, without_trailing
from ..counted import counted
from ..exchange import RequestClass
from .alike_effects import list_ways

if TYPE_CHECKING:
    from .decide import Facts

NANO = 1_000_000_000
"""Money is counted in billionths of a dollar, so that no sum depends on its order."""

_MOST_WAYS = 64
"""Ways of one request beyond which its own endpoint alone is remembered."""
_MOST_ENDPOINTS = 10_000
"""Endpoints whose last request is remembered, about 5 MB; those asked longest ago go first."""


@dataclass(frozen=True, slots=True)
class CountedUsage:
    """What one model call has used, as its answer states it."""

    stated: bool = False
    """Whether it states its tokens; the rest is unknown where it does not."""
    input_tokens: int = 0
    """With those that were cached."""
    output_tokens: int = 0
    """With those that were thought."""
    cached_tokens: int = 0
    """Of the input, those that were read from a cache."""
    nano_usd: int | None = None
    """None where it was not looked for, or is not known."""
    is_whole: bool = field(default=False, compare=False)
    """Whether the answer came to its end, so that it states all of it."""
    estimated: int = 0
    """What it can have cost beyond that, in billionths of a dollar, where a cap counts it."""

    def to_row(self) -> list[int | None]:
        """Give it as it stands in an event; nothing where nothing is stated."""
        if not self.stated:
            return []
        return [self.input_tokens, self.output_tokens, self.cached_tokens, self.nano_usd]

    @classmethod
    def from_row(cls, row: Sequence[int | None], estimated: int = 0) -> "CountedUsage":
        """Read it from an event."""
        if not row:
            return cls(estimated=estimated)
        asked, said, cached, nano_usd = row
        return cls(True, asked or 0, said or 0, cached or 0, nano_usd, estimated=estimated)


@dataclass(slots=True)
class Used:
    """What a run has used so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    nano_usd: int = 0
    estimated: int = 0
    """What calls can have cost beyond that, in billionths of a dollar, where a cap counts it."""
    unstated: int = 0
    """Model calls whose answers stated no tokens."""
    unpriced: int = 0
    """Model calls whose price is not known, those among them."""

    def add(self, counted: CountedUsage, times: int = 1) -> None:
        """Add a model call; with `times` -1 take it off again."""
        self.input_tokens += times * counted.input_tokens
        self.output_tokens += times * counted.output_tokens
        self.cached_tokens += times * counted.cached_tokens
        self.nano_usd += times * (counted.nano_usd or 0)
        self.estimated += times * counted.estimated
        self.unstated += times * (not counted.stated)
        self.unpriced += times * (counted.nano_usd is None)

    @property
    def tokens(self) -> int:
        """Asked and answered."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> Decimal:
        """What is known to have been spent."""
        return Decimal(self.nano_usd) / NANO


class Spent(NamedTuple):
    """A limit that is exhausted."""

    limit: str
    """Its key."""
    text: str
    """One line for people."""


def find_spent(
    limits: Limits,
    used: Used,
    kind: RequestClass,
    times: int,
    *,
    needed: int = 0,
    reserved: int = 0,
    unreadable: str = "",
) -> Spent | None:
    """Find the limit that one more request would pass.

    times: how often the same request has come in a row, this one among them; 0 where nobody counts.
    needed: what it can cost, in billionths of a dollar; 0 where nobody estimates.
    reserved: the same of all that are on their way.
    unreadable: why nobody can estimate it, where its body cannot be read.
    """
    if kind is RequestClass.TELEMETRY:
        return None
    if limits.calls is not None and used.calls >= limits.calls:
        return Spent("calls", f"the run's limit of {counted(limits.calls, 'call')} is exhausted")
    if kind is RequestClass.INFERENCE:
        if limits.tokens is not None and used.tokens >= limits.tokens:
            text = (
                f"the run's limit of {counted(limits.tokens, 'token')} is exhausted: {used.tokens}"
            )
            return Spent("tokens", text + _unknown(used.unstated, "that stated none"))
        if limits.usd is not None and used.usd >= limits.usd:
            text = f"the run's limit of {limits.usd} USD is exhausted: {show_usd(used.usd)} USD"
            return Spent("usd", text + _unknown(used.unpriced, "of unknown price"))
        if unreadable and limits.usd is not None:
            text = f"what the call can cost is not known, for {unreadable}, and the run's limit is {limits.usd} USD"
            return Spent("usd", text)
        sum_so_far = used.nano_usd + used.estimated + reserved
        if needed and limits.usd is not None and sum_so_far + needed > limits.usd * NANO:
            return Spent("usd", _too_dear(limits.usd, used, needed, reserved))
    if limits.repeats is not None and times > limits.repeats:
        often = counted(limits.repeats, "time")
        return Spent("repeats", f"the same request has come more than {often} in a row")
    return None


def _too_dear(limit: Decimal, used: Used, needed: int, reserved: int) -> str:
    text = f"the call can cost {_round(needed)} USD, and the run's limit is {limit} USD: {show_usd(used.usd)} USD are used"
    if used.estimated:
        text += f", {_round(used.estimated)} USD estimated for calls that stated no usage"
    if reserved:
        text += f", {_round(reserved)} USD reserved for calls on their way"
    return text


def _round(nano_usd: int) -> str:
    """Show an estimate, of which the first digits mean something."""
    return show_usd(Decimal(f"{Decimal(nano_usd) / NANO:.2g}"))


def show_usd(amount: Decimal) -> str:
    """Give an amount with at least two digits behind the point, and no more than it needs."""
    exact = amount.quantize(Decimal("0.01"))
    return str(exact) if exact == amount else f"{amount.normalize():f}"


def _unknown(count: int, what: str) -> str:
    return f", and {counted(count, 'call')} {what}" if count else ""


Forms = frozenset[bytes]
"""All that one request can be taken for: two requests that share one are the same."""
Place = tuple[str, str, str, int, str]


@dataclass(slots=True)
class _Last:
    """What was asked last at an endpoint."""

    forms: Forms
    times: int = 0
    """In a row."""
    answer: bytes | None = None
    """Of the last that was answered, its hash."""


@dataclass(slots=True)
class Row:
    """How often the same request came in a row at its endpoint: method, origin and path, however these are spelled."""

    _last: "OrderedDict[Place, _Last]" = field(default_factory=OrderedDict)

    def note(self, facts: "Facts", forms: Forms) -> int:
        """Note a request; give how often it has come, this time among them."""
        places = _places(facts)
        found = self._find(places, forms)
        last = max(found, key=lambda one: one.times, default=_Last(forms))
        last.times += 1
        last.forms = forms
        for place in places:
            self._last[place] = last
            self._last.move_to_end(place)
        while len(self._last) > _MOST_ENDPOINTS:
            self._last.popitem(last=False)
        return last.times

    def heard(self, facts: "Facts", forms: Forms, answer: bytes) -> None:
        """Note what a read was answered: something new begins the row anew, since who polls makes no loop."""
        for last in self._find(_places(facts), forms):
            if last.answer not in (None, answer):
                last.times = 1
            last.answer = answer

    def _find(self, places: list[Place], forms: Forms) -> list[_Last]:
        found = {id(last): last for place in places if (last := self._last.get(place))}
        return [last for last in found.values() if not last.forms.isdisjoint(forms)]


def _places(facts: "Facts") -> list[Place]:
    """Give the endpoint of a request, once for each way in which it can be taken if these can be listed."""
    ways = facts.ways
    found = list_ways(ways)
    if found is None or len(found) * len(ways.places) > _MOST_WAYS:
        path = without_trailing(normal_path(facts.target.partition("?")[0]))
        return [(facts.method, facts.scheme, normal_host(facts.host), facts.port, path.lower())]
    every = [
        (method, facts.scheme, host, port, path)
        for method, path, _ in found
        for host, port in ways.places
    ]
    return list(dict.fromkeys(every))
