"""The table of a sweep: how the runs of each variant ended, with the interval of the share of good ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...timeline.cost.render import show_usd
from ...timeline.show.fit import fit
from ..run_again.branch import Spent, spent_json
from ..run_again.spread import interval

_NAME, _WHY = 24, 40
"""Characters of a name, and of a reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant."""

    name: str
    good: int
    bad: int
    unknown: int
    """Runs that tell nothing."""
    spent: Spent
    runs: tuple[str, ...]
    why: str
    """Of most of its runs."""
    is_sampled: bool = True
    """Whether its runs asked anything that may answer otherwise another time; if not, their number tells nothing."""

    @property
    def share(self) -> tuple[float, float]:
        """The interval of the share of good runs among those that tell something, with 95 % confidence."""
        return interval(self.good, self.good + self.bad)


def render_table(rows: Sequence[Row], judged_by: str) -> Iterator[str]:
    """Give the lines for a person."""
    width = min(_NAME, max([7, *(len(row.name) for row in rows)]))
    yield f"{'variant':<{width}} {'good':>9}  {'95 %':<12} {'no result':>9} {'calls':>6} {'USD':>8}  most often"
    for row in rows:
        of = f"{row.good} of {row.good + row.bad}"
        low, high = row.share
        sure = f"{low:.0%} to {high:.0%}" if row.is_sampled else "not sampled"
        sure = sure if row.good + row.bad else "-"
        money = row.spent.show_usd()
        name, why = fit(row.name, width), fit(row.why, _WHY)
        told = (
            f"{name:<{width}} {of:>9}  {sure:<12} {row.unknown:>9} {row.spent.calls:>6} {money:>8}"
        )
        yield f"{told}  {why}"
    yield f"(judged by {judged_by}; shares of good runs with 95 % confidence)"
    yield from _explain_marks([row.spent for row in rows])
    if any(not row.is_sampled and row.good + row.bad for row in rows):
        yield "(not sampled: no run of it sent a request, so that all were answered alike)"


def _explain_marks(spent: Sequence[Spent]) -> Iterator[str]:
    marks = {one.mark for one in spent}
    if marks & {"≥", "?"}:
        yield "(≥: more may have been billed; ?: no price is known)"
    estimated = sum((one.estimated for one in spent), Decimal(0))
    if estimated:
        yield f"({show_usd(estimated)} USD are estimated or reserved, for calls and stopped runs whose price is not known)"


def to_json(run: str, at: int, rows: Sequence[Row], left: int, spent: Spent) -> dict[str, Any]:
    """Give it as JSON types."""
    return {
        "run": run,
        "at": at,
        "variants": [
            {
                "name": row.name,
                "good": row.good,
                "bad": row.bad,
                "unknown": row.unknown,
                "low": round(row.share[0], 4) if row.is_sampled else None,
                "high": round(row.share[1], 4) if row.is_sampled else None,
                "calls": row.spent.calls,
                **spent_json(row.spent),
                "runs": list(row.runs),
            }
            for row in rows
        ],
        "left": left,
        "calls": spent.calls,
        **spent_json(spent),
    }
