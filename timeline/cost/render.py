"""A bill for a person, in 80 columns, and as JSON types."""

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ...tape.counted import counted
from ..show.fit import columns, fit
from .sums import Bill, Sum

WIDTH = 80
_NAME = 30
_ROWS = 40
_CENT = Decimal("0.01")
_FINE = Decimal("0.0001")


def render_bill(bill: Bill, *, everything: bool = False) -> Iterator[str]:
    """Give the lines of a bill.

    everything: every row; else the dearest.
    """
    yield fit(_heading(bill), WIDTH)
    head = f"{'':<{_NAME}} {'CALLS':>6} {'INPUT':>8} {'CACHED':>8} {'OUTPUT':>7}"
    yield f"{head} {'USD':>11}"
    rows = list(bill.rows.items())
    if bill.by not in ("day", "lane"):
        rows.sort(key=lambda row: (-row[1].usd, -row[1].tokens.input, row[0]))
    shown = rows if everything else rows[:_ROWS]
    for name, total in shown:
        yield _line(name, total)
    if len(rows) > len(shown):
        yield f"… and {len(rows) - len(shown)} more: --all"
    yield _line("spent", bill.spent)
    if bill.replays or bill.saved_requests:
        yield _line(f"saved by {counted(bill.replays, 'replay', grouped=True)}", bill.saved)
    yield from _notes(bill)


def _heading(bill: Bill) -> str:
    runs = bill.runs[0] if len(bill.runs) == 1 else f"{len(bill.runs)} runs"
    return f"{runs}, by {bill.by}: {counted(bill.sent, 'request', grouped=True)} on the wire"


def _line(name: str, total: Sum) -> str:
    shown = fit(name, _NAME)
    left = shown + " " * (_NAME - columns(shown))
    tokens = total.tokens
    counts = f"{total.requests:>6} {_number(tokens.input):>8} {_number(tokens.read):>8}"
    return f"{left} {counts} {_number(tokens.output):>7} {show_money(total):>11}"


def show_money(total: Sum) -> str:
    """Give a sum in dollars: `≥` where more may have been billed, `?` where nothing is known."""
    if total.unpriced and total.unpriced == total.requests - total.failed:
        return "?"
    sign = "≥ " if total.at_least or total.unpriced or total.cut_runs else ""
    return f"{sign}{show_usd(total.usd)}"


def say_money(total: Sum) -> str:
    """Give a sum as a sentence has it: `$0.12`, `≥ $0.12`, or `?`; nothing that may have been billed is shown as free."""
    shown = show_money(total)
    return (
        shown if shown == "?" else f"{shown.replace(show_usd(total.usd), '')}${show_usd(total.usd)}"
    )


def show_usd(amount: Decimal, rounding: str = ROUND_HALF_UP) -> str:
    """Give an amount to the cent; one below ten cents finer."""
    unit = _FINE if Decimal(0) < amount < Decimal("0.1") else _CENT
    return f"{amount.quantize(unit, rounding):,}"


def _notes(bill: Bill) -> Iterator[str]:
    spent = bill.spent
    notes = (
        (spent.failed, "call", "answered with an error or a redirect, at no cost"),
        (spent.at_least, "call", "perhaps dearer: cut, or without a count of tokens"),
        (spent.unpriced, "call", "without a known price, in no sum of money"),
        (spent.cut_runs, "run", "cut by a crash, so that last calls may be missing"),
        (bill.refused, "request", "refused, stubbed or hypothetical, and not sent"),
        (bill.unreached, "request", "that came to no connection"),
        (bill.saved_requests, "request", "answered from a tape"),
    )
    for count, what, text in notes:
        if count:
            yield fit(f"{counted(count, what, grouped=True)} {text}", WIDTH)
    if spent.tokens.written:
        yield f"{_number(spent.tokens.written)} tokens written into caches"


def _number(value: int) -> str:
    if value < 1_000_000:
        return str(value)
    return f"{value / 1e6:.2f}M" if value < 1_000_000_000 else f"{value / 1e9:.2f}G"


def bill_json(bill: Bill) -> dict[str, Any]:
    """Give a bill; `docs/cost.md` describes it."""
    return {
        "runs": bill.runs,
        "by": bill.by,
        "sent": bill.sent,
        "refused": bill.refused,
        "unreached": bill.unreached,
        "answered_from_tape": bill.saved_requests,
        "spent": _sum_json(bill.spent),
        "saved": _sum_json(bill.saved) | {"replays": bill.replays},
        "rows": [{bill.by: name, **_sum_json(total)} for name, total in bill.rows.items()],
    }


def _sum_json(total: Sum) -> dict[str, Any]:
    tokens = total.tokens
    return {
        "calls": total.requests,
        "failed": total.failed,
        "at_least": total.at_least,
        "cut_runs": total.cut_runs,
        "unpriced": total.unpriced,
        "input_tokens": tokens.input,
        "cache_read_tokens": tokens.read,
        "cache_write_tokens": tokens.written,
        "output_tokens": tokens.output,
        "reasoning_tokens": tokens.thought,
        "usd": f"{total.usd:f}",
    }
