"""Ask the model call at the point of a branch otherwise: another system prompt, or a JSON merge patch (RFC 7396).

A request that is signed over its body, as those to Bedrock, is refused by its server once it is changed.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ..contracts.check import show_path
from ..dialects import Dialect, InferenceRequest, Places, find_dialect
from ..dialects.common.untrusted_json import Json, find_json
from ..exchange import HttpRequest
from ..policy.branch import RequestChange
from ..records.content_coding import read_codings
from .find_json_error import find_unreadable


def read_system(request: HttpRequest) -> str | None:
    """Give the system prompt of a model call; None where it has none, or nobody can read it."""
    dialect, tree = _open(request)
    asked = None if dialect is None else dialect.read_request(tree, request)
    return asked.system if asked is not None else None


def change_request(request: HttpRequest, change: RequestChange) -> bytes:
    """Give the body of a model call that is asked otherwise.

    Raises: ValueError, whose text begins with the JSON path at which that cannot be done or be read.
    """
    dialect, tree = _open(request)
    if read_codings(request.headers):
        raise ValueError(
            "$: the body of the request is coded (content-encoding), and is not changed"
        )
    if dialect is None or not isinstance(tree, dict):
        raise ValueError("$: no dialect can read the request; expected a call of a model")
    now: Any = deepcopy(tree if change.whole is None else dict(change.whole))
    if change.system is not None:
        _put_system(now, dialect.find_places(now), change.system)
    if change.patch is not None:
        now = merge(now, change.patch)

    def weigh(body: Json) -> int:
        return _weigh(dialect.read_request(body, request))

    found = find_unreadable(tree, now, weigh)
    if found is not None:
        raise ValueError(f"{show_path(found[0])}: {found[1]}")
    return json.dumps(now, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def merge(tree: Json, patch: Json | Mapping[str, Any]) -> Json:
    """Lay a JSON merge patch over a value. Source: RFC 7396 section 2."""
    if not isinstance(patch, Mapping):
        return patch
    made: dict[str, Any] = dict(tree) if isinstance(tree, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merge(made.get(name), value)
    return made


def _open(request: HttpRequest) -> tuple[Dialect | None, Json]:
    dialect = find_dialect(request)
    return dialect, find_json(request.body) if dialect is not None else None


def _weigh(asked: InferenceRequest | None) -> int:
    """Say how much of a request can be read."""
    if asked is None or not asked.messages:
        return -1
    parts = sum(len(message.parts) for message in asked.messages)
    return parts + len(asked.tools) + (asked.model is not None) + (asked.system is not None)


def _put_system(tree: Any, places: Places, text: str) -> None:
    """Put a text in the place of the system prompt. Raises: ValueError."""
    put = False
    for place in places.system:
        *way, name = place.split(".")
        holder = _find_object(tree, way)
        if holder is not None and name in holder:
            holder[name] = _as_before(holder[name], text)
            text, put = ("" if put else text), True
    for place in places.leading:
        *way, name = place.split(".")
        holder = _find_object(tree, way)
        listed = holder.get(name) if holder is not None else None
        if isinstance(listed, list):
            put = _put_leading(listed, places.roles, text, also=put) or put
    if not put:
        expected = [*places.system, *(f"{place}[0]" for place in places.leading)]
        where = f"$.{expected[0]}" if expected else "$"
        raise ValueError(f"{where}: the call has no system prompt that could be replaced")


def _find_object(tree: Any, way: list[str]) -> dict[str, Any] | None:
    for step in way:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else None


def _as_before(was: Any, text: str) -> Any:
    """Give a text in the form that a system prompt had: a text, a list of blocks, or an object with parts."""
    if isinstance(was, list):
        first = next((one for one in was if isinstance(one, dict) and "text" in one), {})
        return [{**first, "text": text}]
    if isinstance(was, dict):
        return {**was, "parts": [{"text": text}]}
    return text


def _put_leading(listed: list[Any], roles: frozenset[str], text: str, *, also: bool) -> bool:
    """Put a text in the place of the messages that a conversation begins with; say whether there were any.

    also: the prompt has been put elsewhere, so that these go.
    """
    count = 0
    while (
        count < len(listed)
        and isinstance(listed[count], dict)
        and listed[count].get("role") in roles
    ):
        count += 1
    if not count:
        return False
    first = listed[0]
    content = first.get("content")
    listed[:count] = [] if also else [{**first, "content": _as_before(content, text)}]
    return True
