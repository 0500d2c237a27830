"""The parts of a run's page below its steps: receipt, prompt cache, files, divergences and effects, as their commands give them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ...store import RunInfo, Store
from ...tape.diff.request_differences import common_prefix
from ...tape.folders.changes import find_changes, only_sure
from ...tape.folders.manifest import say_unlisted, show_path
from ...timeline import build, render_receipt
from ...timeline.cache.prompt_cache_misses import find_misses
from ...timeline.cache.render import miss_json
from ...timeline.show.run_tree import find_role
from ...timeline.state.calls_before import Exchanges
from .safe_text import safe_block, safe_short

ROWS = 200
_JOINTS = "_-.,"
"""Signs within a number or a name, where something is before or behind them."""
_WORD = 80
"""Most characters of a number or word."""
END = (1 << 32) - 1
"""Seq of the savepoint at the end of a run."""


@dataclass(frozen=True, slots=True)
class Split:
    """Two values, with what they have in common at both ends apart from what differs."""

    before: str
    first: str
    second: str
    behind: str


def split_values(one: str, other: str) -> Split:
    """Mark the difference of two values: of numbers and words the whole, for `4 1900` is no way to say 4900 and 1900."""
    same = common_prefix(one, other)
    same -= _rest_of_word(one, other, same)
    tail = common_prefix(one[same:][::-1], other[same:][::-1])
    tail -= _rest_of_word(one[::-1], other[::-1], tail)
    first, second = one[same : len(one) - tail], other[same : len(other) - tail]
    return Split(
        safe_block(one[:same][-200:]),
        safe_block(first[:400]),
        safe_block(second[:400]),
        safe_block(one[len(one) - tail :][:80] if tail else ""),
    )


def _rest_of_word(one: str, other: str, at: int) -> int:
    """Give how far back a number or word begins that a place is within; 0 for one longer than any, such as a body in base64."""
    for back in range(min(at, _WORD) + 1):
        if not (_is_within(one, at - back) or _is_within(other, at - back)):
            return back
    return 0


def _is_within(text: str, at: int) -> bool:
    """Say whether a place is between two characters of one number or word."""
    if not 0 < at < len(text):
        return False
    before, behind = text[at - 1], text[at]
    if before.isalnum() and behind.isalnum():
        return True
    # Of a number, as in 49.00 and -5; of a name, as in ch_1007.
    return (before in _JOINTS and behind.isalnum()) or (behind in _JOINTS and before.isalnum())


def view_receipt(store: Store, info: RunInfo) -> dict[str, Any]:
    """Give the receipt as its command prints it, and its divergences."""
    receipt = build(store, info)
    document = receipt.to_json()
    rows = [view_divergence(one) for one in document["divergences"][:ROWS]]
    return {
        "text": safe_block(render_receipt(receipt)),
        "divergences": rows,
        "count": receipt.divergence_count,
        "document": document,
    }


def view_divergence(one: Any) -> dict[str, Any]:
    """Give a divergence, as a receipt or the log has it, with what differs marked."""
    return {
        "kind": one["kind"],
        "seq": one["seq"],
        "nearest": one["nearest_seq"],
        "what": safe_short(f"{one['method']} {one['url']}", 300),
        "text": safe_short(one["text"], 400),
        "differences": [
            {
                "place": safe_short(said["place"], 200),
                "split": split_values(said["recorded"], said["asked"]),
            }
            for said in one["differences"][:20]
        ],
    }


def view_effects(store: Store, info: RunInfo, last: int) -> list[dict[str, Any]]:
    """Give the last effects of a run."""
    from ...timeline.receipts.effects import effects_of

    listed, _ = effects_of(store, info, last=last)
    return [
        {
            "seq": one.seq,
            "what": safe_short(f"{one.method} {one.url}", 300),
            "summary": safe_short(one.summary, 200),
            "answered_by": safe_short(one.answered_by, 120),
            "outcome": safe_short(one.outcome, 120),
            "note": safe_short(one.note, 160),
            "duplicate": one.is_duplicate,
        }
        for one in listed
    ]


def view_cache(store: Store, info: RunInfo) -> list[dict[str, Any]]:
    """Give what became of the prompt cache in each model call."""
    return [
        {
            **one,
            "reason": safe_short(one["reason"], 300),
            "name": f"{one['seq']}.{one['part']}" if one["part"] else str(one["seq"]),
        }
        for one in map(miss_json, find_misses(Exchanges(store, info)))
    ]


def view_files(store: Store, info: RunInfo) -> dict[str, Any] | None:
    """Give what became of the working folder at its savepoints; None where the run has no manifest."""
    before = store.folders.find(info)
    if before is None:
        return None
    rows: list[dict[str, Any]] = []
    start = before
    listed = [start]
    for step in store.folders.list_savepoints(info)[:ROWS]:
        after = step.apply(before)
        changes = only_sure(before, after, find_changes(before.entries, after.entries))
        counts = Counter(one.change.value for one in changes)
        rows.append(
            {
                "at": "end" if step.seq >= END else str(step.seq),
                "counts": [
                    (word, counts[word])
                    for word in ("created", "changed", "deleted")
                    if counts[word]
                ],
                "paths": [(one.change.value, safe_short(one.text, 200)) for one in changes[:50]],
                "more": max(0, len(changes) - 50),
            }
        )
        listed.append(after)
        before = after
    git = start.git
    return {
        "folder": safe_short(show_path(start.folder), 300),
        "files": start.file_count,
        "bytes": start.size,
        "head": git.head[:12] if git is not None and git.head else "",
        "branch": safe_short(git.branch or "", 80) if git is not None else "",
        "dirty": git.dirty_count if git is not None else 0,
        "cut": safe_short(say_unlisted(*listed), 300),
        "rows": rows,
    }


def find_role_of(store: Store, info: RunInfo) -> str:
    """Say what a run is to its parent; empty without one."""
    return find_role(store, info) if info.parent is not None else ""
