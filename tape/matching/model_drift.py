"""Model drift: a model call that differs from a recorded one only in fields that a person allowed to differ.

Rules:

1. The fields are those of `InferenceRequest.drift`: model, temperature, top_p, seed, tool schemas, system
   prompt. Where they stand is for the dialect to say; a model counts in the path, too.
2. Everything else is equal in canonical form, under the same rules as without drift. One other change, and
   it is no drift; without a dialect it is none either.
3. A field that one side does not have has drifted; so has an object that holds nothing but such fields.
4. A system prompt has drifted where its text differs. Then all that states it may differ (roles, blocks);
   else nothing of it may. What rules and profiles leave out of a field differs in nothing.
5. What is let through is named by models, as RECORDED=NEW. Each place that names a model needs to be named;
   where a call names none, nothing is let through.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import unquote

from blake3 import blake3

from ...config import ModelDrift
from ...config.parse_values import MAX_MODEL_NAME
from ..canonical.canonical_request import (
    MARKER,
    BodyKind,
    Rules,
    body_tree,
    canonical,
    compared,
    fingerprint,
    open_body,
)
from ..canonical.json import MAX_DEPTH, encode_tree, is_twice, json_tree, show_json
from ..dialects import FIELDS, InferenceRequest, Places, read_places
from ..diff.divergence_types import ABSENT, Difference
from ..diff.request_differences import json_step, show_difference
from ..exchange import Request, RequestClass, Seq

NAMES = {"tools": "tool schemas", "system": "system prompt"}
"""Fields by the words for people; the others are called what they are."""

_PATH = "path"


class Drift(NamedTuple):
    """How a request differs from a recorded one in nothing but what may drift."""

    fields: tuple[str, ...]
    """In the order of `FIELDS`; at least one."""
    models: tuple[ModelDrift, ...]
    """What has to be allowed for the recorded answer to be served; empty where no model is named."""

    def allowed_by(self, given: Iterable[ModelDrift]) -> bool:
        """Say whether all of it is allowed."""
        return bool(self.models) and {str(one) for one in self.models} <= {
            str(one) for one in given
        }


@dataclass(frozen=True, slots=True)
class Apart:
    """A model call taken apart: a hash of what has to be equal, and what may differ; some hundred bytes."""

    rest: bytes
    values: Mapping[str, Mapping[str, bytes]]
    """By field and place, a hash of what stands there."""
    names: Mapping[str, str]
    """Models by the places that name them."""
    model: str | None
    """Which model was asked: the path says so, or else the body."""
    system: str | None
    """Hash of the system prompt's text."""
    blank: frozenset[str]
    """Objects that held nothing to begin with, of those that hold what may drift."""
    emptied: frozenset[str]
    """Objects that held nothing else."""


def take_apart(
    request: Request,
    request_class: RequestClass,
    rules: Rules,
    redacted_query: frozenset[str] = frozenset(),
) -> Apart | None:
    """Take a request apart, or give None where nothing may drift: no dialect, or a body that is no JSON.

    Parses the body several times: to be kept off the event loop, and to be kept.
    """
    request = compared(request)
    pieces = _find_pieces(request, request_class, rules)
    if pieces is None:
        return None
    for place in pieces.blank | pieces.emptied:
        _pop(pieces.tree, place)
    # Written as JSON once more, and compared as any request is.
    body = show_json(pieces.tree).encode("utf-8", "surrogatepass")
    headers = tuple(pair for pair in request.headers if pair[0].lower() != b"content-encoding")
    form = canonical(
        replace(request, body=body, headers=headers), request_class, rules, redacted_query
    )
    if form.kind is not BodyKind.JSON:
        return None
    if pieces.places.in_path is not None:
        form = form._replace(path=pieces.places.in_path.sub(f"{MARKER}model", form.path, count=1))
    return Apart(
        rest=fingerprint(form),
        values={
            field: {place: _digest(value) for place, value in found.items()}
            for field, found in pieces.found.items()
        },
        names=pieces.names,
        model=pieces.names.get(_PATH, pieces.asked.model),
        system=pieces.asked.system_hash,
        blank=pieces.blank,
        emptied=pieces.emptied,
    )


def find_drift(recorded: Apart, asked: Apart) -> Drift | None:
    """Say how two requests differ in what may drift alone; None where in something else, or not at all."""
    if recorded.rest != asked.rest:
        return None
    if (recorded.blank ^ asked.blank) - (recorded.emptied | asked.emptied):
        return None  # an empty object is not none at all, unless the other side's has become one
    fields = tuple(
        field for field in FIELDS if recorded.values.get(field) != asked.values.get(field)
    )
    if not fields or ("system" in fields and recorded.system == asked.system):
        return None
    return Drift(fields, _models(recorded, asked))


def _models(recorded: Apart, asked: Apart) -> tuple[ModelDrift, ...]:
    old, new = recorded.values.get("model", {}), asked.values.get("model", {})
    places = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    pairs = [
        (recorded.names.get(place, recorded.model), asked.names.get(place, asked.model))
        for place in places
    ] or [(recorded.model, asked.model)]
    found = [ModelDrift(one, other) for one, other in pairs if is_name(one) and is_name(other)]
    return tuple(dict.fromkeys(found)) if len(found) == len(pairs) else ()


def is_name(text: str | None) -> TypeGuard[str]:
    """Say whether a model's name can be typed where it is to be allowed."""
    return (
        text is not None
        and 0 < len(text) <= MAX_MODEL_NAME
        and text == text.strip()
        and text.isprintable()
    )


def describe(drift: Drift, seq: Seq) -> str:
    """Say what drifted, in one short line.

    seq: of the recorded exchange.
    """
    return f"drifted from exchange {seq} in {name_fields(drift.fields)} alone"


def describe_allowed(drift: Drift, seq: Seq) -> str:
    """Say what drifted where it was allowed, in one line."""
    names = ", ".join(map(str, drift.models))
    return f"on tape as exchange {seq} but for {name_fields(drift.fields)}; allowed: {names}"


def advise(drift: Drift) -> str:
    """Say how to allow it; as long as the models' names are, since a flag that is cut allows something else.

    Proposed only where the model differs: another prompt or temperature for the same model is another question.
    """
    if "model" not in drift.fields:
        return f"the model is the same and {name_fields(drift.fields)} changed: undo that, or record again"
    if not drift.models:
        return "no model is named on both sides, so it cannot be allowed"
    flags = " ".join(f"--allow-model-drift {shlex.quote(str(one))}" for one in drift.models)
    return f"allow it with {flags}"


def name_fields(fields: Iterable[str]) -> str:
    """Name the fields, as people do."""
    *first, last = (NAMES.get(field, field) for field in fields)
    return f"{', '.join(first)} and {last}" if first else last


def drift_differences(
    recorded: Request,
    asked: Request,
    rules: Rules,
    request_class: RequestClass = RequestClass.INFERENCE,
) -> tuple[Difference, ...]:
    """Give, for each field that differs, the first place in it that does.

    rules: what they leave out is no difference.
    Both are redacted. Empty where either cannot be taken apart.
    """
    old, new = (_find_pieces(compared(one), request_class, rules) for one in (recorded, asked))
    if old is None or new is None:
        return ()
    found = []
    for field in FIELDS:
        one, other = old.found.get(field, {}), new.found.get(field, {})
        for place in {**one, **other}:
            first, second = one.get(place, _NOTHING), other.get(place, _NOTHING)
            if place == _PATH:
                if first != second:
                    found.append(show_difference(_PATH, recorded.path, asked.path))
            elif not _equal(first, second):
                found.append(_first(first, second, f"$.{place}", 0))
    return tuple(found)


# ---- taking apart ------------------------------------------------------------------------------------


class _Nothing:
    """Stands for what is not there."""


_NOTHING = _Nothing()


class _Pieces(NamedTuple):
    tree: Any
    """What is left of the body."""
    places: Places
    asked: InferenceRequest
    found: dict[str, dict[str, Any]]
    """By field and place what stood there, as it is compared."""
    names: dict[str, str]
    blank: frozenset[str]
    emptied: frozenset[str]


def _find_pieces(request: Request, request_class: RequestClass, rules: Rules) -> _Pieces | None:
    told = None if request.spilled is not None else read_places(request)
    if told is None:
        return None
    asked, places = told
    try:
        tree: Any = json_tree(open_body(request)[0].decode())
        masked: Any = body_tree(request, rules, request_class)
    except (ValueError, RecursionError):
        return None
    holders = {place.rpartition(".")[0] for _, place in places} - {""}
    blank = frozenset(place for place in holders if _get(tree, place) == {})
    found: dict[str, dict[str, Any]] = {}
    names = {}
    for field, place in places:
        value = _pop(tree, place)
        if value is _NOTHING:
            continue
        found.setdefault(field, {})[place] = _get(masked, place)
        if field == "model" and isinstance(value, str) and value[:1] != MARKER:
            names[place] = value
    for place in places.leading:
        messages = _take_leading(_get(tree, place), places.roles)
        if messages:
            found.setdefault("system", {})[place] = _get(masked, place)[: len(messages)]
    named = places.in_path and places.in_path.search(request.path)
    if named:
        names[_PATH] = unquote(named[0])
        found.setdefault("model", {})[_PATH] = names[_PATH]
    emptied = frozenset(place for place in holders - blank if _get(tree, place) == {})
    return _Pieces(tree, places, asked, found, names, blank, emptied)


def _get(tree: Any, place: str) -> Any:
    for name in place.split("."):
        tree = tree.get(name, _NOTHING) if isinstance(tree, dict) else _NOTHING
    return tree


def _pop(tree: Any, place: str) -> Any:
    """Take out what stands at a place; what stands in a key that is there twice is not touched."""
    outer, _, name = place.rpartition(".")
    holder = _get(tree, outer) if outer else tree
    return holder.pop(name, _NOTHING) if isinstance(holder, dict) else _NOTHING


def _take_leading(messages: Any, roles: frozenset[str]) -> list[Any]:
    """Take out the messages that a conversation's system prompt is made of."""
    if not isinstance(messages, list) or is_twice(messages):
        return []
    count = next(
        (at for at, one in enumerate(messages) if not _is_system(one, roles)), len(messages)
    )
    taken = messages[:count]
    del messages[:count]
    return taken


def _is_system(message: Any, roles: frozenset[str]) -> bool:
    role = message.get("role") if isinstance(message, dict) else None
    return isinstance(role, str) and role in roles


def _digest(value: Any) -> bytes:
    return blake3(encode_tree(value).encode("utf-8", "surrogatepass")).digest(16)


# ---- differences -------------------------------------------------------------------------------------


def _first(old: Any, new: Any, path: str, depth: int) -> Difference:
    """Find the first place in two values that differs; there is one."""
    if depth < MAX_DEPTH and isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            one, other = old.get(name, _NOTHING), new.get(name, _NOTHING)
            if not _equal(one, other):
                return _first(one, other, f"{path}{json_step(name)}", depth + 1)
    elif depth < MAX_DEPTH and _is_list(old) and _is_list(new):
        for at, (one, other) in enumerate(zip_longest(old, new, fillvalue=_NOTHING)):
            if not _equal(one, other):
                return _first(one, other, f"{path}[{at}]", depth + 1)
    return show_difference(f"body {path}", _show(old), _show(new))


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not is_twice(value)


def _show(value: Any) -> str:
    return ABSENT if value is _NOTHING else show_json(value)
