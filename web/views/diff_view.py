"""Two runs side by side, for a page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import Rules
from ...timeline.diff.acts import Act, read_acts, says
from ...timeline.diff.compare import Compared, compare_acts
from ...timeline.diff.compare_trees import Place
from ...timeline.diff.diff_json import PLACED, diff_json, row_json
from ...timeline.diff.differing_json_paths import Places, find_places
from ...timeline.diff.render import Names
from ...timeline.diff.row import Change, Row
from ...timeline.state.calls_before import Exchanges
from .run_page_sections import split_values
from .safe_text import safe_short

_SAYS = 300


@dataclass(slots=True)
class DiffView:
    """A comparison that was made."""

    names: Names
    compared: Compared
    find: Callable[[Row], Places]

    def to_json(self, begin: int, limit: int) -> dict[str, Any]:
        """Give it as `diff --json`, with a window of its differences."""
        rows = [row for row in self.compared.rows if row.change is not Change.SAME]
        window = rows[begin : begin + limit]
        whole = diff_json(self.names, self.compared, lambda _: Places([]))
        return {
            **whole,
            "total": len(rows),
            "differences": [
                row_json(row, self.find if at < PLACED else None)
                for at, row in enumerate(window, begin)
            ],
        }

    @property
    def first(self) -> dict[str, Any] | None:
        """Give the first divergence for a page; None where there is none."""
        divergence = self.compared.divergence
        if divergence is None:
            return None
        places = self.find(divergence.row)
        return {
            "change": divergence.row.change.value,
            "sides": [_side(divergence.first), _side(divergence.second)],
            "places": [
                {
                    "place": safe_short(self._name(one)),
                    "split": split_values(one.recorded, one.asked),
                }
                for one in places.listed[:20]
            ],
            "more": places.more + max(0, len(places.listed) - 20),
        }

    def _name(self, place: Place) -> str:
        name, second = place.name_in(self.names.second), self.names.second
        return f"{name}: it stands for {place.stands_for} in {second}" if place.stands_for else name

    def rows(self, begin: int, limit: int, *, everything: bool) -> tuple[list[dict[str, Any]], int]:
        """Give rows for a page, runs of what is the same folded into one; and how many there are in all."""
        folded = list(self._fold(everything=everything))
        return folded[begin : begin + limit], len(folded)

    def _fold(self, *, everything: bool) -> Iterator[dict[str, Any]]:
        same: list[Row] = []
        for row in self.compared.rows:
            if row.change is Change.SAME and not everything:
                same.append(row)
                continue
            yield from _folded(same)
            same = []
            yield _row(row)
        yield from _folded(same)


def compare_runs(store: Store, runs: tuple[RunInfo, RunInfo], rules: Rules) -> DiffView:
    """Compare two runs. Blocking.

    Raises: LogCorrupt.
    """
    one, other = (Exchanges(store, run) for run in runs)
    compared = compare_acts(read_acts(one, rules), read_acts(other, rules))
    return DiffView(
        Names(runs[0].id, runs[1].id), compared, lambda row: find_places(row, one, other, rules)
    )


def _folded(rows: list[Row]) -> list[dict[str, Any]]:
    if len(rows) < 3:
        return [_row(one) for one in rows]
    first, last = rows[0], rows[-1]
    return [
        {
            "change": "same",
            "root": False,
            "count": len(rows),
            "sides": [
                {"place": f"{_place(first.first)} to {_place(last.first)}", "says": ""},
                {"place": f"{_place(first.second)} to {_place(last.second)}", "says": ""},
            ],
            "cause": None,
        }
    ]


def _row(row: Row) -> dict[str, Any]:
    cause = row.cause
    return {
        "change": row.change.value,
        "root": row.is_root,
        "count": 1,
        "sides": [_side(row.first), _side(row.second)],
        "cause": None
        if cause is None
        else {
            "first": cause.first,
            "second": cause.second,
            "evidence": cause.evidence.value,
            "rule": safe_short(cause.rule),
        },
    }


def _side(act: Act | None) -> dict[str, str] | None:
    if act is None:
        return None
    return {"place": act.place, "says": safe_short(says(act), _SAYS)}


def _place(act: Act | None) -> str:
    return act.place if act is not None else ""
