"""Figures as plain tables, and the bars they are held against."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bar:
    """A promise of the project: `value` is to be at most `limit`, or at least."""

    name: str
    limit: float
    value: float | None
    """None: it could not be measured."""
    unit: str = "x"
    least: bool = False
    """Whether `limit` is the least that `value` is to be."""

    @property
    def result(self) -> str:
        """Say `met`, `missed` or `not measured`."""
        if self.value is None:
            return "not measured"
        met = self.value >= self.limit if self.least else self.value <= self.limit
        return "met" if met else "MISSED"


@dataclass(slots=True)
class Section:
    """What one measurement found."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    """By traffic and what it is: the figures that one table of several sections holds."""
    remarks: list[str] = field(default_factory=list)
    """What stands below that table."""
    raw: Any = None
    """Every sample, for `--json`."""


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Give the median of some ratios and, in brackets, the least and the greatest."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def render(section: Section) -> str:
    """Give a section as a plain table."""
    lines = ["", section.title, *_columns([section.head, *section.rows])]
    lines += [f"  note: {note}" for note in section.notes]
    return "\n".join(lines)


def render_joint(sections: Sequence[Section], caption: str) -> str:
    """Give the facts of all sections as one Markdown table: a row for each traffic, a column for each thing."""
    rows: dict[str, dict[str, str]] = {}
    for section in sections:
        for traffic, facts in section.facts.items():
            rows.setdefault(traffic, {}).update(facts)
    head = list(dict.fromkeys(name for facts in rows.values() for name in facts))
    lines = [
        f"| traffic | {' | '.join(head)} |",
        f"|---|{'---:|' * len(head)}",
        *(
            f"| `{traffic}` | {' | '.join(facts.get(name, '') for name in head)} |"
            for traffic, facts in rows.items()
        ),
    ]
    remarks = [remark for section in sections for remark in section.remarks]
    return "\n".join(["", *lines, "", " ".join([*remarks, caption])])


def render_bars(bars: Sequence[Bar]) -> str:
    """Give all bars as a plain table."""
    rows = [
        (
            bar.name,
            f"{'>=' if bar.least else '<='} {bar.limit:g} {bar.unit}",
            "-" if bar.value is None else f"{bar.value:.4g} {bar.unit}",
            bar.result,
        )
        for bar in bars
    ]
    return "\n".join(["", "Bars", *_columns([("bar", "limit", "measured", "result"), *rows])])


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return lines
