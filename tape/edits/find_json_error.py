"""Find the place in an edited JSON body that its reader cannot read, by what the body was before.

A reader gives what it can read and says nothing of the rest. So each place where the types differ, or where something is missing,
is put back in turn: where the reader then reads more, that place was at fault.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from ..dialects.common.untrusted_json import Json
from ..stubs.infer_json_schema import type_of

Path = tuple[str | int, ...]
Weigh = Callable[[Json], int]
"""Says how much can be read of a body."""
_MOST = 64
"""Places that are tried."""
_NUMBERS = frozenset(("integer", "number"))
_DEEP = 40
_WIDE = 20_000


def find_unreadable(was: Json, now: Json, weigh: Weigh) -> tuple[Path, str] | None:
    """Find the first place of `now` that cannot be read, with what was expected there and what was found; None where there is none.

    was: the body before it was edited, which can be read.
    """
    weight = weigh(now)
    nothing = weight <= 0 < weigh(was)
    for tried, (path, value) in enumerate(_differences(was, now, (), missing=nothing)):
        if tried == _MOST:
            break
        if weigh(_put(now, path, value)) > weight:
            return path, _describe(value, now, path)
    return ((), "the whole of it cannot be read") if nothing else None


def parse_json(data: bytes, what: str) -> Json:
    """Parse JSON that a person gave.

    what: the name of it, as `the answer`.
    Raises: ValueError, which says where it is none.
    """
    try:
        parsed: Json = json.loads(data)
    except UnicodeDecodeError as error:
        raise ValueError(f"$: {what} is no JSON: byte {error.start} is no UTF-8") from None
    except RecursionError:
        raise ValueError(f"$: {what} is nested too deep") from None
    except ValueError as error:
        where = (
            f"line {error.lineno}, column {error.colno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        raise ValueError(f"$: {what} is no JSON: {where}") from None
    return parsed


def find_text(tree: Json, text: str, path: Path = ()) -> Path | None:
    """Find the place of a text in a tree; None where it has none."""
    if tree == text:
        return path
    for step, value in _members(tree):
        found = find_text(value, text, (*path, step)) if len(path) < _DEEP else None
        if found is not None:
            return found
    return None


def _members(tree: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, list):
        yield from enumerate(tree)


def _differences(was: Json, now: Json, path: Path, *, missing: bool) -> Iterator[tuple[Path, Json]]:
    """Give the places where the types differ, and where `now` lacks a member if that may matter; with what was there."""
    before, after = type_of(was), type_of(now)
    if before != after and not {before, after} <= _NUMBERS:
        if missing or after != "null":  # which stands for nothing, where that may be
            yield path, was
        return
    if len(path) >= _DEEP:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for name, value in list(was.items())[:_WIDE]:
            if name in now:
                yield from _differences(value, now[name], (*path, name), missing=missing)
            elif missing:
                yield (*path, name), value
    elif isinstance(was, list) and isinstance(now, list):
        for at, (one, other) in enumerate(zip(was, now, strict=False)):
            yield from _differences(one, other, (*path, at), missing=missing)
        if missing and was and not now:
            yield (*path, 0), was[0]


def _put(tree: Json, path: Path, value: Json) -> Json:
    """Give a copy of a tree with another value at a place."""
    if not path:
        return value
    made: Any = deepcopy(tree)
    at = made
    for step in path[:-1]:
        at = at[step]
    if isinstance(at, list) and path[-1] == len(at):
        at.append(value)
    else:
        at[path[-1]] = value
    return made  # type: ignore[no-any-return]  # JSON, as the tree was


def _describe(was: Json, now: Json, path: Path) -> str:
    at: Any = now
    for step in path:
        try:
            at = at[step]
        except (KeyError, IndexError):
            return f"expected {_article(type_of(was))}, found nothing"
    return f"expected {_article(type_of(was))}, found {_article(type_of(at))}"


def _article(kind: str) -> str:
    if kind == "null":
        return "null"
    return f"{'an' if kind[0] in 'aio' else 'a'} {kind}"
