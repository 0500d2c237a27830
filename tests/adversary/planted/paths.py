"""Places in JSON: `$.messages[2]['odd name']`, as RFC 9535 writes the path of one node."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]")


def member(key: str) -> str:
    """Write one step into an object."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        return f".{key}"
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Give each scalar, and each empty object or array, with its path, in order."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, path + member(key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def resolve(value: Any, path: str) -> Any:
    """Give what stands at a path; KeyError, IndexError or TypeError where nothing does."""
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise KeyError(path)
        key, index, quoted = step.groups()
        if index is not None:
            value = value[int(index)]
        else:
            value = value[key if key is not None else re.sub(r"\\(.)", r"\1", quoted)]
        at = step.end()
    return value


def is_same(one: Any, other: Any) -> bool:
    """Compare scalars as JSON does: 1, 1.0 and true are three values."""
    return type(one) is type(other) and bool(one == other)


def find(value: Any, needle: Any, last: bool = False) -> str:
    """Give the path of the first (or last) leaf that is the needle, or a text that contains it."""
    found = [
        path
        for path, leaf in leaves(value)
        if is_same(leaf, needle)
        or (isinstance(leaf, str) and isinstance(needle, str) and needle in leaf)
    ]
    if not found:
        raise LookupError(f"{needle!r} is nowhere")
    return found[-1 if last else 0]


def first_difference(one: Any, other: Any, path: str = "$", ordered: bool = False) -> str | None:
    """Give the path of the first difference in the order of `one`; None where there is none.

    A member that only one side has is named by its own path; so is an element. With `ordered` another order of keys is
    a difference, too, at the first key of `other` that is at another place.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if ordered and set(one) == set(other) and list(one) != list(other):
            return path + member(next(b for a, b in zip(one, other, strict=True) if a != b))
        for key in (*one, *(key for key in other if key not in one)):
            if key not in one or key not in other:
                return path + member(key)
            inner = first_difference(one[key], other[key], path + member(key), ordered)
            if inner is not None:
                return inner
        return None
    if isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            if index >= len(one) or index >= len(other):
                return f"{path}[{index}]"
            inner = first_difference(one[index], other[index], f"{path}[{index}]", ordered)
            if inner is not None:
                return inner
        return None
    return None if is_same(one, other) else path


def is_longer(body: Any, path: str, value: Any) -> bool:
    """Say whether the value is only a part of the text at its path."""
    leaf = resolve(body, path)
    return isinstance(leaf, str) and isinstance(value, str) and leaf != value


def written(value: Any) -> str:
    """Give a value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def decoded(body: Any) -> Iterator[Any]:
    """Give the scalars of a body, and those of JSON inside its texts."""
    for _, leaf in leaves(body):
        yield leaf
        for line in leaf.split("\n") if isinstance(leaf, str) else ():
            if line[:1] in ("{", "["):
                with suppress(ValueError):
                    yield from decoded(json.loads(line))
