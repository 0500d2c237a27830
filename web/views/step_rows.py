"""A line of the list of steps: what one exchange was to the agent, folded from its steps."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...timeline.show.listing import show_arguments
from ...timeline.steps.step import StepKind
from ...timeline.steps.steps_from_log import RUN_STOPPED, WAITS
from .safe_text import safe_short

Row = dict[str, Any]

_TOOL = StepKind.TOOL_CALL.value
_ASKED = (StepKind.MODEL_CALL.value, StepKind.RETRIEVAL.value)
_NOTES = (StepKind.DECISION.value, StepKind.POLICY.value, StepKind.SNAPSHOT.value)
_MOST_NOTES = 8


def fold_steps(seq: int, steps: Sequence[dict[str, Any]]) -> Row:
    """Give the line of an exchange.

    steps: its steps, as `show --json` has them.
    """
    row: Row = {
        "seq": seq,
        "kind": "",
        "lane": 0,
        "title": "",
        "more": 0,
        "outcome": "",
        "tokens": None,
        "usd": None,
        "marks": [],
        "notes": [],
        "ruling": None,
        "error": "",
        "aside": "",
        "cause": None,
        "effect": False,
        "failed": False,
        "results": 0,
        "calls": 0,
    }
    said: list[str] = []
    for step in steps:
        _take(row, step, said)
    if said:
        row["title"], row["more"] = said[0], len(said) - 1
    row["said"] = _say(row)
    return row


def _say(row: Row) -> str:
    """Give what a line says behind its title: what went wrong, is marked or was decided, the first of it."""
    if row["error"]:
        return f"! {row['error']}"
    marked = row["marks"] or row["notes"]
    said = [f"[{safe_short(marked[0])}]"] if marked and row["ruling"] is None else []
    if row["ruling"] is not None:  # how its waiting ended says more than that it waited
        said = [f"[{safe_short(one)}]" for one in (*row["marks"][:1], f"held: {row['ruling']}")]
    return " ".join(said)


def _take(row: Row, step: dict[str, Any], said: list[str]) -> None:
    kind, text = step["kind"], step["text"]
    row["lane"] = row["lane"] or step["lane"] or 0
    row["marks"] += step["marks"]
    row["effect"] |= step["effect"]
    row["cause"] = row["cause"] or step["cause"]
    if kind in _ASKED:
        row["kind"] = row["kind"] or kind
        row["calls"] += 1
        row["aside"] = step["aside"] or ""
        row["model"] = safe_short(step["name"], 60)
        row["tokens"] = _add_tokens(row["tokens"], step)
        row["usd"] = step["usd"]
        row["outcome"] = step["finish"] or ""
        if step["aside"]:
            row["title"] = safe_short(f"({step['aside']}) {text}")
        else:
            row["title"] = row["title"] or row["model"]
    elif kind == _TOOL:
        said.append(safe_short(f"{step['name']} {show_arguments(text)}"))
    elif kind == StepKind.OUTPUT.value:
        said.append("= " + safe_short(text))
    elif kind == StepKind.TOOL_RESULT.value:
        row["results"] += 1
        row["failed"] |= step["failed"]
    elif kind in (StepKind.HTTP.value, StepKind.MCP.value):
        row["kind"] = row["kind"] or kind
        row["title"] = row["title"] or safe_short(step["name"])
        row["outcome"] = safe_short(text, 60)
        row["failed"] |= step["failed"]
    elif kind == StepKind.ERROR.value:
        row["failed"] = True
        row["error"] = safe_short(text)
    elif kind in _NOTES and len(row["notes"]) < _MOST_NOTES:
        if kind == StepKind.DECISION.value:
            row["ruling"] = None if text.startswith(WAITS) else safe_short(text)
        # What a policy or a person decided says so itself.
        told = f"{kind}: {text}" if kind == StepKind.SNAPSHOT.value else text
        row["notes"].append(safe_short(told))
        is_own = kind == StepKind.POLICY.value and not text.startswith(RUN_STOPPED)
        row["failed"] |= step["failed"] and is_own


def _add_tokens(before: list[int] | None, step: dict[str, Any]) -> list[int] | None:
    usage = step["usage"]
    if usage is None:
        return before
    asked, said = step["input_tokens"] or 0, step["output_tokens"] or 0
    if step["at_least"] and not asked and not said:
        return before  # nothing is stated, which is not nothing
    one = [asked, said, usage["cached_read_tokens"] or 0]
    return one if before is None else [a + b for a, b in zip(before, one, strict=True)]


def pack(rows: Iterable[object]) -> bytes:
    """Give JSON without blanks."""
    return json.dumps(list(rows), separators=(",", ":")).encode()
