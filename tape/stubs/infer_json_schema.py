"""Infer a JSON Schema from example values: all of them are valid against it, and little else is.

Rules:

1. Types are those that were seen; a member is required where every object had it, and none is allowed that none had.
2. Values themselves do not count: a schema of amounts says that there is a whole number, not which.
3. Bounded: beyond `MAX_DEPTH` and `MAX_NODES` anything is allowed.

Source: JSON Schema 2020-12, of which `type`, `properties`, `required`, `additionalProperties` and `items` are used.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Schema = dict[str, Any]

MAX_DEPTH = 32
MAX_NODES = 20_000
"""Values looked at for one schema."""

_NUMBERS = ("integer", "number")


def infer(values: Sequence[Any]) -> Schema:
    """Infer the schema of some values of JSON; each of them is valid against it."""
    return _infer(values, 0, [MAX_NODES])


def _infer(values: Sequence[Any], depth: int, left: list[int]) -> Schema:
    left[0] -= len(values)
    if depth > MAX_DEPTH or left[0] < 0:
        return {}
    kinds = sorted({type_of(value) for value in values})
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")  # every whole number is a number
    schema: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        names = list(dict.fromkeys(name for one in objects for name in one))
        schema["properties"] = {
            name: _infer([one[name] for one in objects if name in one], depth + 1, left)
            for name in names
        }
        schema["required"] = [name for name in names if all(name in one for one in objects)]
        schema["additionalProperties"] = False
    items = [item for value in values if isinstance(value, list) for item in value]
    if items:
        schema["items"] = _infer(items, depth + 1, left)
    return schema


def type_of(value: object) -> str:
    """Name the type of a value of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case dict():
            return "object"
    return "array"


def is_valid(value: Any, schema: Schema) -> bool:
    """Say whether a value is valid against a schema of `infer`."""
    told = schema.get("type")
    if told is None:
        return True
    kinds = [told] if isinstance(told, str) else told
    kind = type_of(value)
    if kind not in kinds and not (kind in _NUMBERS and "number" in kinds):
        return False
    if isinstance(value, dict):
        members = schema["properties"]
        return all(name in value for name in schema["required"]) and all(
            name in members and is_valid(item, members[name]) for name, item in value.items()
        )
    if isinstance(value, list):
        return "items" not in schema or _all_valid(value, schema["items"])
    return True


def member(schema: Schema, step: str | int) -> Schema:
    """Give the schema of what stands one step inside."""
    if isinstance(step, int):
        found = schema.get("items", {})
    else:
        found = schema.get("properties", {}).get(step, {})
    return dict(found)


def _all_valid(values: Iterable[Any], schema: Schema) -> bool:
    return all(is_valid(value, schema) for value in values)
