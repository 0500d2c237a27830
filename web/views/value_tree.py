"""A JSON value as lines, each scalar with its place, so that a page can ask where it came from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...timeline.blame.exchange_values import member_step
from ...timeline.reading.exact_body_values import DEEP, NAME, Number
from ...timeline.show.multiline_text import safe_line
from .safe_text import safe_block, safe_short

LINES = 400
_TEXT = 600
"""Characters of a text that are shown."""
_SHORT = 80
"""Characters of a name that is shown without quotes."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a value."""

    depth: int
    name: str
    """Of a member, or the number of an entry; empty for the value itself."""
    text: str
    """Of a scalar as it is shown; of an object or a list what it is."""
    place: str = ""
    """Of a scalar; empty for what has no single value."""
    kind: str = ""
    """`text`, `number`, `word` or empty."""
    left_out: int = 0
    """Characters of a text that are not shown."""
    more: int = 0
    """Lines that are left out behind this one."""


def list_value(value: Any, root: str = "$", most: int = LINES) -> list[Line]:
    """Give the lines of a value, the first `most` of them; the last one says how many more there are."""
    lines: list[Line] = []
    left = 0
    for line in _walk(value, root, "", 0):
        if len(lines) < most:
            lines.append(line)
        else:
            left += 1
            if left >= 100_000:
                break
    if left:
        lines.append(Line(0, "", "", more=left))
    return lines


def list_pairs(pairs: list[tuple[str, str]], root: str = "", most: int = LINES) -> list[Line]:
    """Give the lines of a form, the first `most` of them; the last one says how many more there are.

    root: before the place of each; empty where none has one.
    """
    lines = [
        scalar_line(value, f"{root}{name}" if root else "", show_name(name))
        for name, value in pairs[:most]
    ]
    more = len(pairs) - len(lines)
    return [*lines, *([Line(0, "", "", more=more)] if more > 0 else [])]


def show_name(name: str) -> str:
    """Give the name of a member, in quotes where it would look like another."""
    short = safe_short(name, _SHORT)
    return short if name and short == name else f'"{safe_line(name[:NAME])}"'


def _walk(value: Any, place: str, name: str, depth: int) -> Iterator[Line]:
    if isinstance(value, dict | list):
        count = len(value)
        sort = "member" if isinstance(value, dict) else "entry"
        plural = {"member": "members", "entry": "entries"}[sort]
        empty = "{}" if isinstance(value, dict) else "[]"
        told = f"{count} {sort if count == 1 else plural}" if count else empty
        if depth or not count:
            yield Line(depth, name, told)
        inner = depth + 1 if depth or name else depth
        if depth >= DEEP:
            return
        pairs = (
            (
                (show_name(str(key)), place + member_step(str(key)), one)
                for key, one in value.items()
            )
            if isinstance(value, dict)
            else ((str(at), f"{place}[{at}]", one) for at, one in enumerate(value))
        )
        for key, where, one in pairs:
            yield from _walk(one, where, key, max(inner, 1))
        return
    yield scalar_line(value, place, name, depth)


def scalar_line(value: Any, place: str, name: str, depth: int = 0) -> Line:
    """Give the line of a single value."""
    if isinstance(value, Number):
        return Line(depth, name, value[:_TEXT], place, "number", max(0, len(value) - _TEXT))
    if isinstance(value, str):
        shown = safe_block(value[:_TEXT])
        return Line(depth, name, shown, place, "text", max(0, len(value) - _TEXT))
    if isinstance(value, bool) or value is None:
        return Line(depth, name, {True: "true", False: "false", None: "null"}[value], place, "word")
    return Line(depth, name, str(value)[:_TEXT], place, "number")
