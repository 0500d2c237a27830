"""What is never to happen in a run, whatever faults it meets: an effect that is done twice, a contract that is broken, or what your check says."""

import json
from typing import Any

from ...store import RunInfo, Store
from ...tape.exchange import RepeatKind
from ...timeline.receipts.effects import Effect, effects_of
from .workers import Files

_NOT_DONE = ("injected", "refused")
"""What answered an effect that did not happen: a status of ours, or a refusal."""


def find_broken(store: Store, run: RunInfo, files: Files) -> list[dict[str, Any]]:
    """Give what a run has done that it never is to do, as JSON types. Blocking. Raises: LogCorrupt."""
    found = [_row("duplicate effect", seq, text) for seq, text in _find_duplicates(store, run)]
    receipt = json.loads(files.receipt.read_text("utf-8"))
    for row in receipt.get("contracts", ()):
        found.append(_row("contract", int(row.get("seq", 0)), str(row.get("rule", ""))))
    return found


def _row(invariant: str, seq: int, text: str) -> dict[str, Any]:
    return {"invariant": invariant, "seq": seq, "text": text}


def _find_duplicates(store: Store, run: RunInfo) -> list[tuple[int, str]]:
    effects, _ = effects_of(store, run)
    known: dict[int, Effect] = {}
    found: list[tuple[int, str]] = []
    for effect in effects:
        known[effect.seq] = effect
        repeat = effect.repeat or {}
        if repeat.get("kind") != RepeatKind.POSSIBLE_DUPLICATE.value or effect.by in _NOT_DONE:
            continue
        first = known.get(int(repeat["of"]))
        if first is None or first.by not in _NOT_DONE:
            found.append((effect.seq, f"{effect.method} {effect.url}, {effect.note}"))
    return found
