"""Compute a tape's index under the current match rules from its raw bytes, and show the changes before writing it.

Nothing here writes; `store.index.replace` does.
"""

import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import compile_rules, rules_of
from ...tape.diff.divergence_types import Difference
from ...tape.diff.request_differences import differences
from ...tape.exchange import Exchange, Seq
from ...tape.matching.index import (
    Change,
    Index,
    answer_hash,
    compare,
    index_digest,
    index_entry,
    reclassify,
)
from ...tape.records.events import EventKind
from ...tape.redaction.redactor import Redactor
from ..receipts.safe_terminal_text import plain

_LISTED = 1000
"""Most groups of one list; the counts stay exact."""
_EXPLAINED = 100
"""Collisions whose requests are compared."""
_ROWS = 12


@dataclass(frozen=True, slots=True)
class Collision:
    """Requests that are not the same bytes, share a key, and were answered differently."""

    seqs: tuple[Seq, ...]
    differences: tuple[Difference, ...]
    """Between the first and the next that is not the same; under the shipped rules alone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A new index of a tape, and what it changes."""

    run: RunInfo
    index: Index
    change: Change
    collisions: tuple[Collision, ...]
    missing: tuple[Seq, ...] = ()
    """Exchanges that the log tells the end of, and the store does not hold."""

    def to_json(self, *, written: bool) -> dict[str, Any]:
        """Give the plan as JSON types; `docs/commands-rules.md` describes them."""
        change = self.change
        return {
            "run": self.run.id,
            "exchanges": len(self.index.entries),
            "canonical": {"before": self.run.canonical or None, "now": self.index.canonical},
            "changed": change.changed,
            "equal": [list(group) for group in change.equal[:_LISTED]],
            "apart": [list(group) for group in change.apart[:_LISTED]],
            "collisions": [
                {
                    "seqs": list(one.seqs),
                    "differences": [
                        {"place": found.place, "values": [found.recorded, found.asked]}
                        for found in one.differences
                    ],
                }
                for one in self.collisions
            ],
            "counts": {
                "equal": len(change.equal),
                "apart": len(change.apart),
                "collisions": len(change.collisions),
            },
            "missing": list(self.missing[:_LISTED]),
            "written": written,
        }


def plan(
    store: Store,
    run: RunInfo,
    config: Config,
    redactor: Redactor,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Plan:
    """Make a new index of a sealed recording. Blocking; reads all of it, some exchanges twice.

    config: whose rules, classes and places of secrets count.

    Raises: LogCorrupt.
    """
    rules = rules_of(config, time.thread_time)
    entries, answers = [], {}
    for recorded in store.exchanges.all(run):
        exchange = reclassify(recorded, config.classes)
        entries.append(index_entry(exchange, rules, redactor))
        answers[exchange.seq] = answer_hash(exchange)
        progress(exchange.seq, run.exchanges)
    index = Index(tuple(entries), index_digest(rules, config))
    change = compare(store.index.fingerprints(run), index, answers)
    raws = {entry.seq: entry.raw for entry in entries}
    collisions = []
    for number, seqs in enumerate(change.collisions[:_LISTED]):
        other = next(seq for seq in seqs if raws[seq] != raws[seqs[0]])
        found = (
            _differences(
                store.exchanges.find(run, seqs[0]), store.exchanges.find(run, other), redactor
            )
            if number < _EXPLAINED
            else ()
        )
        collisions.append(Collision(seqs, found))
    return Plan(run, index, change, tuple(collisions), _missing(store, run, raws))


def _missing(store: Store, run: RunInfo, held: Container[Seq]) -> tuple[Seq, ...]:
    ended = (EventKind.OUTCOME, EventKind.VERDICT)
    found = {one.seq for one in store.events.all(run) if one.kind in ended and one.seq not in held}
    return tuple(sorted(map(Seq, found)))


def _differences(
    one: Exchange | None, other: Exchange | None, redactor: Redactor
) -> tuple[Difference, ...]:
    if one is None or other is None:
        return ()
    secret = redactor.redacted_query(one.request) | redactor.redacted_query(other.request)
    kind = one.request_class
    first, second = redactor.recorded(one.request), redactor.recorded(other.request)
    return differences(first, second, compile_rules(), kind, secret)


def render_plan(made: Plan, *, written: bool) -> str:
    """Show what a new index changes, and whether it was written."""
    change = made.change
    name = plain(made.run.id, 60)
    count = len(made.index.entries)
    lines = [f"{name}: {change.changed} of {count} fingerprints change"]
    lines += _groups("became equal", change.equal)
    lines += _groups("became apart", change.apart)
    if made.missing:
        lines.append(f"missing ({len(made.missing)}): seqs {_seqs(made.missing)}")
        lines.append("  The log has them, but the store does not: record again, or restore it.")
    if made.collisions:
        lines.append(
            f"collisions ({len(change.collisions)}): the same key, other bytes, other answers"
        )
        for one in made.collisions[:_ROWS]:
            lines.append(f"  seqs {_seqs(one.seqs)}")
            lines += [
                f"    {plain(found.place, 80)}: {plain(found.recorded, 60)} and {plain(found.asked, 60)}"
                for found in one.differences[:3]
            ]
            if not one.differences:
                lines.append("    differ only in places that shipped rules leave out")
        if len(change.collisions) > _ROWS:
            lines.append(f"  … and {len(change.collisions) - _ROWS} more")
        lines.append(
            "  Such requests are answered in recorded order, one with another's answer perhaps."
        )
    else:
        lines.append("no collisions")
    lines.append("indexed anew" if written else "nothing was written (--dry-run)")
    return "\n".join(lines)


def _groups(title: str, groups: tuple[tuple[Seq, ...], ...]) -> list[str]:
    if not groups:
        return []
    lines = [f"{title} ({len(groups)}):"]
    lines += [f"  seqs {_seqs(group)}" for group in groups[:_ROWS]]
    return lines + ([f"  … and {len(groups) - _ROWS} more"] if len(groups) > _ROWS else [])


def _seqs(seqs: tuple[Seq, ...]) -> str:
    more = f" and {len(seqs) - _ROWS} more" if len(seqs) > _ROWS else ""
    return ", ".join(map(str, seqs[:_ROWS])) + more
