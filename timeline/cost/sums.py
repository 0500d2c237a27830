"""Sums over ledgers: by model, lane, step or day, with what is not known beside what is."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from ...store import RunInfo, Store
from ..reading.request_fate import Fate
from ..state.calls_before import Exchanges
from .ledger import Entry, Tokens, may_lack_calls, read_ledger

BY = ("model", "lane", "step", "day", "run")


@dataclass(slots=True)
class Sum:
    """What several requests to models took together."""

    requests: int = 0
    failed: int = 0
    """Of these, answered with an error or a redirect."""
    at_least: int = 0
    """Of these, more may have been billed than is stated."""
    unpriced: int = 0
    """Of these, without a known price."""
    cut_runs: int = 0
    """Runs whose process died: what they asked last may be missing."""
    tokens: Tokens = field(default_factory=Tokens)
    usd: Decimal = Decimal(0)
    """Of those whose price is known."""

    def add(self, entry: Entry) -> None:
        """Add a request."""
        self.requests += 1
        self.failed += entry.failed
        self.at_least += entry.at_least
        self.unpriced += entry.usd is None
        self.tokens += entry.tokens
        self.usd += entry.usd or 0

    def times(self, count: int) -> "Sum":
        """Give what the same requests cost so often; tokens are left out."""
        return Sum(
            count * self.requests,
            count * self.failed,
            count * self.at_least,
            count * self.unpriced,
            usd=self.usd * count,
        )


@dataclass(slots=True)
class Bill:
    """What some runs cost, and what replays saved."""

    by: str
    runs: list[str] = field(default_factory=list)
    sent: int = 0
    """Requests on the wire, those to models among them."""
    refused: int = 0
    unreached: int = 0
    saved_requests: int = 0
    """Answered from a tape, those to models among them."""
    spent: Sum = field(default_factory=Sum)
    saved: Sum = field(default_factory=Sum)
    replays: int = 0
    """How many runs `saved` is of."""
    rows: dict[str, Sum] = field(default_factory=dict)
    """What was spent, by what was asked for."""

    def add(self, run: str, entries: Iterable[Entry], *, is_cut: bool = False) -> None:
        """Add what a run spent, and what it saved where it is a playback.

        is_cut: whether its last requests may be missing, so that it has spent this at least.
        """
        self.runs.append(run)
        self.spent.cut_runs += is_cut
        if is_cut and self.by == "run":
            self.rows.setdefault(run, Sum()).cut_runs += 1
        key = _key(self.by, run)
        saved = False
        for entry in entries:
            saved |= entry.fate is Fate.SAVED
            self._count(entry)
            if entry.fate is Fate.SENT and entry.is_call:
                self.spent.add(entry)
                self.rows.setdefault(key(entry), Sum()).add(entry)
        self.replays += saved

    def add_saved(self, entries: Iterable[Entry]) -> None:
        """Add what a replay saved of a run that is in the bill."""
        self.replays += 1
        for entry in entries:
            if entry.fate is Fate.SAVED:
                self._count(entry)

    def _count(self, entry: Entry) -> None:
        self.sent += entry.fate is Fate.SENT
        self.refused += entry.fate is Fate.REFUSED
        self.unreached += entry.fate is Fate.UNREACHED
        if entry.fate is Fate.SAVED:
            self.saved_requests += 1
            if entry.is_call:
                self.saved.add(entry)


def read_bill(store: Store, info: RunInfo) -> Bill:
    """Add up what a run spent, and what it saved.

    Raises: LogCorrupt.
    """
    bill = Bill("model")
    exchanges = Exchanges(store, info)
    bill.add(info.id, read_ledger(exchanges, lanes=False), is_cut=may_lack_calls(exchanges))
    return bill


def _key(by: str, run: str) -> Callable[[Entry], str]:
    if by == "run":
        return lambda _: run
    if by == "lane":
        return lambda entry: f"{run} lane {entry.lane}" if entry.lane else f"{run} no lane"
    if by == "step":
        return lambda entry: f"{run} {entry.seq}{f'.{entry.part}' if entry.part else ''}"
    if by == "day":
        return lambda entry: time.strftime("%Y-%m-%d", time.localtime(entry.at_ns / 1e9))
    return lambda entry: entry.model
