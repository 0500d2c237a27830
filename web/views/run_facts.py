"""What a table says of a run beside its row in the list: verdict, cost, effects and divergences."""

from dataclasses import asdict, dataclass
from typing import Any

from ...store import RunInfo, RunStatus, Store
from ...tape.exchange import Seq
from ...tape.exit_codes import ExitCode
from ...timeline import build, exit_code
from ...timeline.cost.render import say_money
from ...timeline.cost.sums import read_bill
from ...timeline.outcomes.outcome import read_outcome
from ...timeline.receipts.bounded_rows import total_of
from .safe_text import safe_short, show_clock, show_time

_SOON = 1000
"""Exchanges of a run whose facts are computed while somebody waits."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is computed from the log and the exchanges of a run."""

    verdict: str
    """`recorded`, `faithful`, `diverged` …"""
    is_bad: bool
    effects: int
    duplicates: int
    divergences: int
    requests: int
    usd: str
    """With `≥` where more may have been billed, `?` where nothing is known, empty where no model was asked, as far as is known."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    calls: int
    """That were sent, as in `cost`; so are the tokens."""
    at_least: int
    """Of these, for how many more tokens may have been billed than are stated."""
    unpriced: int
    """Of these, how many have no known price: they are in no sum of money."""
    served_calls: int
    """That a tape answered."""
    outcome: str
    told: str
    """Who says so, and in which words."""
    counts: dict[str, int]
    """Requests by what became of them: `recorded`, `served`, `refused` … and recorded ones that are `unused`, as in the receipt."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return asdict(self)


def is_quick(info: RunInfo) -> bool:
    """Say whether the facts of a run are there at once."""
    return info.exchanges <= _SOON


def read_facts(store: Store, info: RunInfo) -> RunFacts:
    """Compute the facts of a run. Blocking.

    Raises: LogCorrupt.
    """
    receipt = build(store, info)
    bill = read_bill(store, info)
    spent = bill.spent
    code = exit_code(receipt)
    if info.is_explored:
        verdict = "explored, never sent"
    elif receipt.mode == "record":
        verdict = "recording" if info.status is RunStatus.OPEN else "recorded"
    elif info.status is RunStatus.OPEN:
        verdict = "playing"
    elif receipt.faithful is not None and not code:
        verdict = f"faithful{receipt.parts.tape.qualify().lower()}"
        if receipt.faithful_but_for:
            verdict += f" but for {', '.join(receipt.faithful_but_for)}"
    elif code:
        verdict = ExitCode(code).word
    else:
        verdict = "branch" if receipt.branch else "resumed" if receipt.resume else "not faithful"
    tokens = spent.tokens
    return RunFacts(
        safe_short(verdict, 80),
        bool(code),
        total_of(receipt.effects),
        receipt.parts.duplicates,
        receipt.divergence_count,
        receipt.requests,
        say_money(spent) if spent.requests or spent.cut_runs else "",
        tokens.input,
        tokens.output,
        tokens.read,
        spent.requests,
        spent.at_least,
        spent.unpriced,
        bill.saved.requests,
        *_read_outcome(store, info),
        receipt.to_json()["counts"],
    )


def _read_outcome(store: Store, info: RunInfo) -> tuple[str, str]:
    outcome = read_outcome(store, info)
    told = safe_short(" ".join(filter(None, (outcome.by, outcome.text))), 80)
    return outcome.verdict.value, told


def run_json(store: Store, info: RunInfo, facts: RunFacts | None) -> dict[str, Any]:
    """Give a row of the table of runs: the keys of `runs --json`, and the facts where they are known."""
    from ...timeline.outcomes.outcome import outcome_json

    where = info.archived
    return {
        "id": info.id,
        "mode": info.mode,
        "status": info.status.value,
        "parent": info.parent,
        "exchanges": info.exchanges,
        "created_ns": info.created_ns,
        "sealed_ns": info.sealed_ns,
        "agent": info.agent,
        "outcome": outcome_json(read_outcome(store, info)),
        "labels": list(info.labels),
        "pinned": info.pinned,
        "archived": None
        if where is None
        else {
            "place": where.place,
            "go": where.batch,
            "id": where.id,
            "recalled": not info.is_only_in_archive,
        },
        "end": info.end,
        "facts": facts.to_json() if facts is not None else None,
    }


def _find_end(store: Store, info: RunInfo, now_ns: int) -> int:
    """Give when a run ended; of one whose process died, its last sign of life, since it was found dead only later."""
    if info.status is RunStatus.OPEN:
        return now_ns
    if info.status is RunStatus.SEALED or info.is_only_in_archive:
        return info.sealed_ns
    last = store.exchanges.find(info, Seq(info.exchanges)) if info.exchanges else None
    return info.created_ns if last is None else last.started_ns + 1000 * last.end_us


def _show_duration(info: RunInfo, lasted_ns: int) -> str:
    """Show how long a run lasted, with `≥` where nobody saw its end."""
    if lasted_ns <= 0:
        return ""
    sign = "≥ " if info.status is RunStatus.RECOVERED else ""
    return f"{sign}{show_time(lasted_ns / 1000)}"


def run_row(store: Store, info: RunInfo, facts: RunFacts | None, now_ns: int) -> dict[str, Any]:
    """Give a row for the table of a page."""
    if facts is not None:
        outcome, told = facts.outcome, facts.told
    elif is_quick(info) or info.is_only_in_archive:
        outcome, told = _read_outcome(store, info)
    else:  # the whole log would have to be read first
        outcome, told = "…", ""
    lasted = _find_end(store, info, now_ns) - info.created_ns
    return {
        "id": info.id,
        "name": safe_short(info.id, 120),
        "status": "archived" if info.is_only_in_archive else info.status.value,
        "outcome": outcome,
        "told": told,
        "began": show_clock(info.created_ns),
        "duration": _show_duration(info, lasted),
        "exchanges": info.exchanges,
        "labels": [safe_short(one, 40) for one in info.labels[:8]],
        "pinned": info.pinned,
        "parent": info.parent,
        "parent_name": safe_short(info.parent, 80) if info.parent else "",
        "agent": safe_short(info.agent, 120),
        "facts": facts,
        "depth": 0,
        "role": "",
    }
