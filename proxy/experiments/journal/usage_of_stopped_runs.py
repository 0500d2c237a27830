"""What a run has used whose sweep was stopped or killed before it had a result."""

from decimal import Decimal
from typing import Any

from ....store import LogCorrupt, RunInfo, RunStatus, Store
from ...run_again.branch import Caps, Spent
from ...run_again.branch_price import Price, find_spent


def describe_start(store: Store, process: int, part: Caps) -> dict[str, Any]:
    """Give what a run can be found by later, and what it reserves.

    process: the id of the process that is going to write it.
    """
    return {
        "process": process,
        "next_run": store.runs.next_number(),
        "reserved_calls": part.calls,
        "reserved_usd": None if part.usd is None else f"{part.usd:f}",
    }


def find_used(store: Store, begun: dict[str, Any], known: set[str]) -> dict[str, Any]:  # fmt: skip
    """Give what a stopped run has used, as fields of its row: what its run in the store has, else all that it reserved.

    begun: the row of its start.
    known: names of runs that are counted already.
    """
    since = [run for run in store.runs.all() if run.number >= begun["next_run"]]
    made = [
        run
        for run in since
        if run.owner is not None and run.owner.pid == begun["process"] and run.id not in known
    ]
    prices = [_read(store, run) for run in made]
    # Where a run was deleted since, it may have been this one.
    is_whole = bool(made) or len(since) == store.runs.next_number() - begun["next_run"]
    found = [price for price in prices if price is not None]
    spent = Spent()
    for price in found:
        spent.add(price)
    calls, usd = spent.calls, spent.usd
    is_known = is_whole and len(found) == len(prices)
    reserved_calls, reserved_usd = begun.get("reserved_calls"), begun.get("reserved_usd")
    if not is_known and reserved_calls is not None:
        calls = max(calls, int(reserved_calls))
    at_least = spent.at_least if is_known else max(1, spent.at_least, calls - spent.calls)
    priced = is_known and not any(one.total.unpriced or one.total.at_least for one in found)
    if not priced and reserved_usd is not None:
        usd, at_least = max(usd, Decimal(reserved_usd)), 0
    why = "it was stopped"
    if not is_known:
        why += "; its requests are unknown, and count with all that they may have cost"
    elif not priced and reserved_usd is not None:
        why += (
            " during a call whose price is not known, and counts with all that it might have cost"
        )
    return {
        "run": made[0].id if made else None,
        "why": why,
        "calls": calls,
        "usd": f"{usd:f}",
        "unpriced": spent.unpriced,
        "at_least": at_least,
        "billed": spent.billed,
        "estimated": f"{spent.estimated + usd - spent.usd:f}",
    }


def _read(store: Store, run: RunInfo) -> Price | None:
    try:
        if run.status is not RunStatus.SEALED or run.is_only_in_archive:
            return None  # its process was killed: what it sent last may not have been written
        return find_spent(store, run)
    except LogCorrupt:
        return None
