"""What a branch may cost, by what its tape has from the point on; and what one has cost."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from ...store import RunInfo, Store
from ...tape.counted import counted
from ...tape.exchange import RequestClass, Seq
from ...tape.policy.branch import Branch, ModelUse
from ...tape.policy.limits import NANO
from ...tape.records.events import EventKind
from ...timeline.cost.ledger import read_entry, read_ledger
from ...timeline.cost.render import show_money
from ...timeline.cost.sums import Sum
from ...timeline.reading.estimate_cost import estimate_cost
from ...timeline.reading.request_fate import Fate
from ...timeline.state.calls_before import Exchanges


class Price(NamedTuple):
    """Calls of one run, and what they cost."""

    total: Sum
    """Of model calls."""
    calls: int
    """Of all that leave."""
    estimated: Decimal = Decimal(0)
    """What calls can have cost beyond what they state, where a cap counted it."""
    known_use: Mapping[str, ModelUse] = MappingProxyType({})
    """The most that calls of each model have used, by the name that was asked for."""
    dearest: Decimal = Decimal(0)
    """What one more call can cost."""
    at_least: int = 0
    """Model calls of which more may have been billed than is counted, since nothing was estimated for them."""

    @property
    def counted(self) -> Decimal:
        """What counts for a cap, in US dollars."""
        return self.total.usd + self.estimated

    def show(self, times: int = 1) -> str:
        """Say it in a few words.

        times: how often it is paid.
        """
        calls = counted(self.calls, "call", grouped=True)
        if not self.total.requests:
            return f"{calls}, none to a model"
        text = f"{calls}, {show_money(self.total)} USD"
        if times > 1:
            text += f"; {times} times: {show_money(self.total.times(times))} USD"
        return text + show_unpriced(self.total.unpriced)


def find_price(store: Store, tape: RunInfo, declared: Branch, only: Seq | None = None) -> Price:
    """Give what the tape has from the point of a branch on, of what may leave there. Blocking.

    only: the one exchange that counts; None for all.
    Raises: LogCorrupt.
    """
    exchanges, total, calls = Exchanges(store, tape), Sum(), 0
    known_use, dearest = dict[str, ModelUse](), 0
    for seq in exchanges.seqs:
        wanted = seq >= declared.at if only is None else seq == only
        exchange = exchanges.find(seq) if wanted else None
        if exchange is None or not declared.declares_way_out(exchange):
            continue
        calls += 1
        if exchange.request_class is not RequestClass.INFERENCE:
            continue
        for part, made in exchanges.asked(exchange):
            entry = read_entry(made, part, Fate.SENT)
            if not entry.is_call:
                continue
            total.add(entry)
            guess = estimate_cost(made.request, made.started_ns, known_use)
            if guess is not None:
                nano_usd = None if entry.usd is None else round(entry.usd * NANO)
                seen = known_use.get(guess.model, ModelUse())
                known_use[guess.model] = seen.widen(nano_usd, entry.tokens.output)
                guess = estimate_cost(made.request, made.started_ns, known_use) or guess
                dearest = max(dearest, guess.nano_usd)
    return Price(total, calls, known_use=known_use, dearest=Decimal(dearest) / NANO)


def find_spent(store: Store, run: RunInfo) -> Price:
    """Give what a run has sent, and what of it cost. Blocking. Raises: LogCorrupt."""
    total, calls, at_least, exchanges = Sum(), 0, 0, Exchanges(store, run)
    estimated = {
        event.seq: event.data["estimated"]
        for event in exchanges.events()
        if event.kind is EventKind.OUTCOME and event.data.get("estimated")
    }
    for entry in read_ledger(exchanges, lanes=False):
        calls += entry.fate is Fate.SENT
        if entry.fate is Fate.SENT and entry.is_call:
            total.add(entry)
            at_least += entry.at_least and entry.seq not in estimated
    whole = Decimal(sum(estimated.values())) / NANO
    return Price(total, calls, whole, at_least=at_least)


def show_unpriced(calls: int) -> str:
    """Say of how many calls the price is not known; nothing where that are none."""
    return f" ({calls} of unknown price)" if calls else ""


def left_of(cap: Decimal | None, spent: Decimal) -> Decimal | None:
    """Give what is left of a cap; None without one."""
    return None if cap is None else max(Decimal(0), cap - spent)
