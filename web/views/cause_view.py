"""Where a value came from, for a page."""

import json
from typing import Any
from urllib.parse import quote

from ...timeline.blame.find_origin import Blame, Sighting
from .addresses import run_path
from .safe_text import safe_short, safe_word


def view_cause(found: Blame, run: str) -> dict[str, Any]:
    """Give the origin of a value for a page."""
    evidence = found.evidence
    return {
        "place": safe_short(found.place),
        "value": safe_short(_scalar(found.value), 400),
        "step": found.step,
        "evidence": evidence.value if evidence is not None else "",
        "rule": safe_short(found.rule or ""),
        "origin": _view_sighting(found.origin, run),
        "answer": _view_sighting(found.answer, run),
        "way": [_view_sighting(one, run) for one in found.sightings[1:9]],
        "more": max(0, len(found.sightings) - 9),
        "unseen": [_view_sighting(one, run) for one in found.unseen[:8]],
        "parts": [
            {"text": safe_short(part.text), "origin": _view_sighting(part.origin, run)}
            for part in found.parts[1:9]
        ],
        "hints": [safe_short(one, 300) for one in found.hints],
        "unread": found.unread[:10],
        "command": f"playhead blame {safe_word(run)} {found.step} {safe_word(found.place)}",
    }


def _view_sighting(one: Sighting | None, run: str) -> dict[str, Any] | None:
    if one is None:
        return None
    what = f" ({one.what})" if one.what and one.what not in one.place else ""
    side = f"&side={one.side}&path={quote(one.place, safe='')}"
    return {
        "step": one.step,
        "seq": one.seq,
        "name": safe_short(f"{one.step} {one.side} {one.place}{what}", 240),
        "rule": safe_short(one.rule),
        "evidence": "inferred" if one.rule else "recorded",
        "exchange": safe_short(one.exchange, 300),
        "value": safe_short(_scalar(one.value), 300),
        "href": f"{run_path(run)}?seq={one.step}{side if one.side == 'answer' else ''}",
    }


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
