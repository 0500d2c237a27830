"""How the answers to one model call spread: what was wanted how often, with an interval."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...tape.dialects import InferenceResponse
from ...timeline.show.fit import fit

_WIDTH = 80
_Z = 1.959963984540054
"""Of 95 %: the quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was answered."""

    text: str
    count: int
    low: float
    """The share with 95 % confidence: at least this, and ..."""
    high: float
    recorded: bool
    """Whether the tape has it, too."""


def describe(answer: InferenceResponse | None) -> str:
    """Say what an answer is, so that two that want the same read alike."""
    if answer is None:
        return "an answer that no dialect reads"
    if answer.error is not None:
        return f"error: {answer.error.message}"
    # The calls of one answer are made side by side: their order says nothing.
    calls = sorted(
        f"{call.name}({json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)})"
        for call in answer.tool_calls
    )
    return (
        "; ".join(calls) if calls else json.dumps(" ".join(answer.text.split()), ensure_ascii=False)
    )


def interval(count: int, total: int) -> tuple[float, float]:
    """Give the interval of Wilson's score of a share, with 95 % confidence.

    Source: E. B. Wilson, 1927; it holds for few repeats, too, and near 0 and 1.
    """
    if not total:
        return 0.0, 1.0
    share, square = count / total, _Z * _Z
    middle = share + square / (2 * total)
    half = _Z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def spread(recorded: str, answers: Sequence[str]) -> list[Row]:
    """Count answers, the most frequent first; of as many, in the order in which they came."""
    return [
        Row(text, count, *interval(count, len(answers)), text == recorded)
        for text, count in Counter(answers).most_common()
    ]


def render(rows: Iterable[Row], total: int, recorded: str) -> Iterator[str]:
    """Give the lines for a person."""
    listed = list(rows)
    for row in listed:
        share = f"{row.count} of {total}"
        sure = f"{row.low:.0%} to {row.high:.0%}"
        mark = "= " if row.recorded else "  "
        yield fit(f"{mark}{share:>9}  {sure:<12}  {row.text}", _WIDTH)
    if not any(row.recorded for row in listed):
        yield fit(f"=    never  {'':<12}  {recorded}", _WIDTH)
    yield "(=: as recorded; shares with 95 % confidence)"


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Give them as JSON types."""
    return [
        {
            "answer": row.text,
            "count": row.count,
            "low": round(row.low, 4),
            "high": round(row.high, 4),
            "recorded": row.recorded,
        }
        for row in rows
    ]
