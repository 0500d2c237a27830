"""Find the values at a place of a request, as a rule that names the place would."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote_plus

from ...config.parse_values import parse_json_path
from ...tape.canonical.canonical_request import open_body
from ...tape.canonical.json import json_tree, show_json
from ...tape.diff.classify_differing_values import decode_shown
from ...tape.exchange import Request

Step = str | int | None


def find_steps(place: str) -> tuple[Step, ...] | None:
    """Parse the JSON path of a place; None where it is none that a rule could name."""
    if not place.startswith("body $"):
        return None
    try:
        return parse_json_path(place.removeprefix("body "))
    except ValueError:
        return None


def values_at(request: Request, steps: Sequence[Step]) -> Iterator[object]:
    """Give each value of a JSON body to which a path leads."""
    try:
        tree = json_tree(open_body(request)[0].decode())
    except (ValueError, RecursionError):
        return
    found: list[Any] = [tree]
    for step in steps:
        found = [inner for value in found for inner in _inside(value, step)]
    yield from found


def texts_at(request: Request, place: str) -> Iterator[str]:
    """Give each value at a place as a difference shows it, not shortened."""
    what, _, name = place.partition(" ")
    if what == "body":
        yield from map(show_json, values_at(request, find_steps(place) or ()))
    elif what == "header":
        wanted = name.lower().encode("latin-1", "replace")
        yield from (
            value.decode("latin-1")
            for one, value in (*request.headers, *request.trailers)
            if one.lower() == wanted
        )
    elif what in ("query", "form"):
        said = request.target.partition("?")[2]
        if what == "form":
            said = open_body(request)[0].decode("utf-8", "replace")
        pairs = (pair.partition("=") for pair in said.split("&"))
        yield from (
            decode_shown(place, value)
            for one, _, value in pairs
            if unquote_plus(one) == unquote_plus(name)
        )


def _inside(value: Any, step: Step) -> Iterable[Any]:
    if isinstance(value, dict):
        if step is None:
            return list(value.values())
        return [value[step]] if step in value else []
    if isinstance(value, list):
        if step is None:
            return value
        return [value[step]] if isinstance(step, int) and step < len(value) else []
    return []
