"""What a branch may cost, by what its tape has from the point on; and what one has cost."""

from collections.abc import Container
from decimal import Decimal
from typing import NamedTuple

from ...store import RunInfo, Store
from ...tape.exchange import RequestClass
from ...timeline.cost.ledger import Fate, read_entry, read_ledger
from ...timeline.cost.render import show_money
from ...timeline.cost.sums import Sum
from ...timeline.state.calls_before import Exchanges


class Price(NamedTuple):
    """Calls of one run, and what they cost."""

    total: Sum
    """Of model calls."""
    calls: int
    """Of all that leave."""

    def show(self, times: int = 1) -> str:
        """Say it in a few words.

        times: how often it is paid.
        """
        calls = f"{self.calls:,} call{'s' * (self.calls != 1)}"
        if not self.total.requests:
            return f"{calls}, none to a model"
        text = f"{calls}, {show_money(self.total)} USD"
        if times > 1:
            text += f"; {times} times: {show_money(self.total.times(times))} USD"
        return text + show_unpriced(self.total.unpriced)


def find_price(
    store: Store,
    tape: RunInfo,
    at: int,
    declared: Container[tuple[str, str]],
    until: int | None = None,
) -> Price:
    """Give what the tape has from an exchange on, of what is declared live. Blocking.

    declared: pairs of class and host.
    until: the last exchange; None for all.
    Raises: LogCorrupt.
    """
    exchanges, total, calls = Exchanges(store, tape), Sum(), 0
    for seq in exchanges.seqs:
        wanted = seq >= at and (until is None or seq <= until)
        exchange = exchanges.find(seq) if wanted else None
        if exchange is None:
            continue
        if (exchange.request_class.value, exchange.request.host.lower()) not in declared:
            continue
        calls += 1
        if exchange.request_class is not RequestClass.INFERENCE:
            continue
        for part, made in exchanges.asked(exchange):
            entry = read_entry(made, part, Fate.SENT)
            if entry.is_call:
                total.add(entry)
    return Price(total, calls)


def find_spent(store: Store, run: RunInfo) -> Price:
    """Give what a run has sent, and what of it cost. Blocking. Raises: LogCorrupt."""
    total, calls = Sum(), 0
    for entry in read_ledger(Exchanges(store, run), lanes=False):
        calls += entry.fate is Fate.SENT
        if entry.fate is Fate.SENT and entry.is_call:
            total.add(entry)
    return Price(total, calls)


def show_unpriced(calls: int) -> str:
    """Say of how many calls the price is not known; nothing where that are none."""
    return f" ({calls} of unknown price)" if calls else ""


def left_of(cap: Decimal | None, spent: Decimal) -> Decimal | None:
    """Give what is left of a cap; None without one."""
    return None if cap is None else max(Decimal(0), cap - spent)
