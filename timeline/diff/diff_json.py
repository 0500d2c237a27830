"""A comparison of two runs as JSON types."""

from typing import Any

from .acts import Act, says
from .compare import Compared
from .differing_json_paths import Places
from .render import FindPlaces, Names
from .row import Change, Row

_TEXT = 500
PLACED = 500
"""Rows whose places are looked for."""


def diff_json(names: Names, compared: Compared, find: FindPlaces) -> dict[str, Any]:
    """Give a comparison; `docs/diff.md` describes it."""
    divergence = compared.divergence
    differing = [row for row in compared.rows if row.change is not Change.SAME]
    return {
        "first": names.first,
        "second": names.second,
        "same": len(compared.rows) - len(differing),
        "repeats": sum(row.converges for row in compared.rows),
        "reordered": compared.reordered,
        "divergence": None
        if divergence is None
        else {
            "change": divergence.row.change.value,
            "first": _act_json(divergence.first),
            "second": _act_json(divergence.second),
        },
        "differences": [
            row_json(row, find if at < PLACED else None) for at, row in enumerate(differing)
        ],
    }


def row_json(row: Row, find: FindPlaces | None) -> dict[str, Any]:
    """Give a row of a comparison.

    find: says where its acts differ; None where that is not looked for.
    """
    places = find(row) if find is not None else Places([])
    cause = row.cause
    return {
        "change": row.change.value,
        "root": row.is_root,
        "first": _act_json(row.first),
        "second": _act_json(row.second),
        "follows": None
        if cause is None
        else {
            "first": cause.first or None,
            "second": cause.second or None,
            "evidence": cause.evidence.value,
            "rule": cause.rule,
        },
        "places": [
            {
                "place": one.place,
                "place_in_second": one.second_place or None,
                "first": one.recorded,
                "second": one.asked,
                "stands_for": one.stands_for or None,
            }
            for one in places.listed
        ],
        "places_left_out": places.more if find is not None else None,
    }


def _act_json(act: Act | None) -> dict[str, Any] | None:
    if act is None:
        return None
    return {
        "seq": act.seq,
        "part": act.part or None,
        "kind": act.kind.value,
        "name": act.name[:_TEXT],
        "lane": act.lane or None,
        "made": act.target.made or None,
        "says": says(act)[:_TEXT],
    }
