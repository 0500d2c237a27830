"""JSON Schema, compiled once and safe to run on what strangers send.

1. Nothing is fetched: a schema refers to places in itself, by `#…`, and to nothing else.
2. Patterns are of the kind whose time grows with the length of a text alone; looking ahead and going back to a
   group are not known.
3. Work is bounded before it is done. Alternatives that refer to alternatives double at each step, so it is
   counted how many schemas one value may meet, and what each compares it with (`effort`), and whoever checks multiplies that by the values there are.

The draft is the one that `$schema` names, else 2020-12; whether `format` counts is up to the draft.
Source: JSON Schema 2020-12, "Core" sections 8 and 10; measurements of jsonschema-rs 0.60, 2026-11: 30 ns for
what is looked at, 18 us for each error that is described.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema_rs

MAX_SCHEMA = 256 * 1024
"""Bytes of a schema as JSON."""
MAX_SCHEMA_DEPTH = 100
MAX_EFFORT = 100_000
"""Schemas that one value may meet; beyond that it is not counted further."""
_NOMINAL_DEPTH = 8
"""Levels of a value at which a schema has to be within `MAX_EFFORT`."""
_MAX_SAID = 200
"""Characters of what the library says: it quotes values of any length."""
MAX_PATTERNS = 100
_WORDS_AT_ONCE = 8
"""Words of an `enum` that are told in the time of one schema; whether one is among them is looked up."""
_SIZE = 1 << 20
"""Bytes of a compiled pattern; one of that size takes 20 ms to compile."""

_IN_PLACE = (
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
)
"""What is applied to the same value ..."""
_BELOW = (
    *(
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
    ),
    *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "contentSchema"),
)
"""... and to values inside of it."""
_DEFINED = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MAPS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", *_DEFINED}
)


class BadSchema(ValueError):
    """What is no schema, or none that is read here; says what is wrong and where in it."""

    def __init__(self, text: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(text)
        self.path = path


class Schema:
    """A schema that has been compiled. Any thread."""

    def __init__(self, tree: Any, validator: "jsonschema_rs.Validator", patterns: int) -> None:
        self.tree = tree
        self.patterns = patterns
        """How many of them it holds."""
        self.validator = validator
        self._efforts: list[int] = []
        """By levels of a value; the last one holds for all further ones once it has come twice."""
        self._levels: list[dict[int, int]] = []

    def effort(self, depth: int) -> int:
        """Give how many schemas one value of so many levels may meet, at most; `MAX_EFFORT` + 1 for more."""
        efforts = self._efforts
        while len(efforts) <= depth:
            if len(efforts) > 1 and efforts[-1] in (efforts[-2], MAX_EFFORT + 1):
                return efforts[-1]
            self._levels.append({})
            try:
                efforts.append(self._count(self.tree, len(efforts)))
            except RecursionError:
                efforts.append(MAX_EFFORT + 1)
        return efforts[depth]

    def _count(self, tree: Any, level: int) -> int:
        """Count what a value of so many levels may meet; level 0 has nothing inside."""
        if not isinstance(tree, dict):
            return 1
        known = self._levels[level]
        key = id(tree)
        if key in known:
            return known[key]
        known[key] = 0  # one that refers to itself in place is looked at once
        count = 1 + _own_effort(tree)
        for name in _IN_PLACE:
            count += sum(self._count(one, level) for one in _applied(tree, name))
        for name in _REFERENCES:
            if isinstance(tree.get(name), str):
                count += self._count(find_place(self.tree, tree[name]), level)
        if level:
            for name in _BELOW:
                count += sum(self._count(one, level - 1) for one in _applied(tree, name))
        known[key] = min(count, MAX_EFFORT + 1)
        return known[key]


def _own_effort(tree: dict[str, Any]) -> int:
    """Count what a schema itself compares a value with, in schemas that take as long."""
    count = 0
    for name in ("enum", "const"):
        value = tree.get(name)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            count += len(value) // _WORDS_AT_ONCE
        elif isinstance(value, dict | list):
            count += _size(value)
    required = tree.get("required")
    count += len(required) if isinstance(required, list) else 0
    for name in ("dependentRequired", "dependencies"):
        count += sum(len(one) for one in _entries(tree, name).values() if isinstance(one, list))
    return count


def _size(value: Any) -> int:
    """Count the values in a value of bounded depth, with itself."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _entries(tree: dict[str, Any], name: str) -> dict[str, Any]:
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def _applied(tree: dict[str, Any], name: str) -> Iterator[Any]:
    """Give the schemas that stand under a keyword."""
    value = tree.get(name)
    if isinstance(value, dict):
        if name in _MAPS:
            yield from (one for one in value.values() if isinstance(one, dict))
        else:
            yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def find_place(tree: Any, reference: str) -> Any:
    """Find what a reference inside of a schema means; None where it cannot be found."""
    name = reference.removeprefix("#")
    if not name:
        return tree
    if not name.startswith("/"):
        return next((one for one in _schemas(tree) if name in _anchors(one)), None)
    for step in name[1:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, list):
            tree = tree[int(step)] if step.isdecimal() and int(step) < len(tree) else None
        else:
            tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _anchors(tree: dict[str, Any]) -> tuple[Any, Any]:
    return tree.get("$anchor"), tree.get("$dynamicAnchor")


def _schemas(tree: Any) -> Iterator[dict[str, Any]]:
    """Give a schema and all that stand in it, in a tree of bounded depth; values that are no schemas are not."""
    if not isinstance(tree, dict):
        return
    yield tree
    for name in (*_IN_PLACE, *_BELOW, *_DEFINED):
        for one in _applied(tree, name):
            yield from _schemas(one)


@contextmanager
def unpanicked() -> Iterator[None]:
    """Have what goes wrong inside of the library raise ValueError: its panics are no Exception, and would end a thread."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ValueError(f"the library failed: {error}") from error


@lru_cache(maxsize=128)
def compile_schema(text: str) -> Schema:
    """Compile a schema, given as JSON; the same text is compiled once.

    Raises: BadSchema.
    """
    import jsonschema_rs  # for those who have such rules: not for a start

    if len(text) > MAX_SCHEMA:
        raise BadSchema(f"longer than {MAX_SCHEMA} characters, which is more than a schema may be")
    tree = _parse(text)
    patterns = 0
    for one in _schemas(tree):
        patterns += isinstance(one.get("pattern"), str) + len(_entries(one, "patternProperties"))
        for name in _REFERENCES:
            target = one.get(name)
            if isinstance(target, str) and not target.startswith("#"):
                shown = repr(target[:100])
                raise BadSchema(
                    f"{name} {shown} leads out of the schema, and nothing is fetched; put what it means under"
                    " $defs, and refer to it by '#/$defs/NAME'"
                )
    if patterns > MAX_PATTERNS:
        raise BadSchema(f"{patterns} patterns, which are more than {MAX_PATTERNS}")
    options = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
    try:
        with unpanicked():
            validator = jsonschema_rs.validator_for(tree, pattern_options=options, offline=True)
    except jsonschema_rs.ValidationError as error:
        path = tuple(error.instance_path)
        if path[-1:] == ("type",):
            expected = f"expected {', '.join(_TYPES)}, or a list of them"
            raise BadSchema(f"no type; {expected}", path) from None
        raise BadSchema(_said(error.message), path) from None
    except (ValueError, RecursionError) as error:
        raise BadSchema(_said(str(error))) from None
    made = Schema(tree, validator, patterns)
    if made.effort(_NOMINAL_DEPTH) > MAX_EFFORT:
        raise BadSchema(
            f"unfolds into more than {MAX_EFFORT} schemas for one value; its references multiply each other"
        )
    return made


def _said(text: str) -> str:
    """Give what the library says on one line."""
    said = " ".join(text.split())[:_MAX_SAID]
    if not said.endswith('is not a "regex"'):
        return said
    return f"{said} of the kind that is read here, which neither looks ahead or behind nor goes back to a group"


def _parse(text: str) -> Any:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSchema(f"no JSON: {error}") from None
    if not isinstance(tree, dict | bool):
        raise BadSchema(f"expected a schema, which is a mapping, found {type(tree).__name__}")
    level: list[dict[Any, Any] | list[Any]] = [tree] if isinstance(tree, dict) else []
    for _ in range(MAX_SCHEMA_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return tree
    raise BadSchema(f"nested deeper than {MAX_SCHEMA_DEPTH}")
