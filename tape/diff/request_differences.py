"""Find where two requests differ, place by place.

Rules:

1. A difference is named by its place in the canonical form (`canonical/canonical_request.py`), first what comes first in the
   request: method, scheme, host, path, query, header fields, body. In JSON the order is the recorded text's.
2. Values are shown as one line of at most 200 characters around the first character that differs. Both
   requests are redacted already.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from blake3 import blake3

from ..canonical.azure_block_names import without_block_names
from ..canonical.canonical_request import (
    MARKER,
    TRAILER,
    BodyKind,
    Canonical,
    Rules,
    body_tree,
    canonical,
    compared,
    form_pairs,
    open_body,
    query_pairs,
)
from ..canonical.json import MAX_DEPTH, is_twice, show_json
from ..canonical.multipart_delimiters import BOUNDARY
from ..canonical.random_boundaries import INNER
from ..exchange import Request, RequestClass
from .divergence_types import ABSENT, MAX_SHOWN, Difference, one_line

_BEFORE = 60
"""Characters shown before the first that differs."""
_JSON_MARKER = "\\u0000"
_WORDS = re.compile(rf"(?:{MARKER}|\\u0000)\((?=[a-z]+\))")
_BOUNDARIES = re.compile(rf"(?:{BOUNDARY.decode()}|{INNER.decode()}\d)")
_NOTHING = object()
"""Stands for a member that is not there."""
_SHIFT = 32
"""Items that may have been put in or left out before what follows is no longer seen as moved."""


def differences(
    recorded: Request,
    asked: Request,
    rules: Rules,
    request_class: RequestClass = RequestClass.EFFECT,
    redacted_query: frozenset[str] = frozenset(),
    limit: int = 8,
) -> tuple[Difference, ...]:
    """Find where two requests differ, in the order of the request; empty where they are the same question.

    request_class: of both.
    redacted_query: names of query keys that count by their kind, of either request.
    limit: most differences returned.
    """
    recorded, asked = (without_block_names(compared(one)) for one in (recorded, asked))
    old = canonical(recorded, request_class, rules, redacted_query)
    new = canonical(asked, request_class, rules, redacted_query)
    found: list[Difference] = []
    for one in _differences(recorded, asked, old, new, rules, request_class, redacted_query):
        if len(found) >= limit:
            break
        found.append(one)
    if not found and old != new and limit > 0:
        # The same bytes, read in two ways.
        found.append(Difference("body", f"(as {old.kind})", f"(as {new.kind})"))
    # What counts on one side alone does so because of another difference: that one is told first.
    found.sort(key=lambda one: (one.recorded == _MASKED) is not (one.asked == _MASKED))
    return tuple(found)


_MASKED = "(masked)"
"""How a masked place is shown; a JSON string would stand in quotes."""


def _differences(
    recorded: Request,
    asked: Request,
    old: Canonical,
    new: Canonical,
    rules: Rules,
    request_class: RequestClass,
    redacted_query: frozenset[str],
) -> Iterator[Difference]:
    for place, one, other in (
        ("method", old.method, new.method),
        ("scheme", old.scheme, new.scheme),
        ("host", old.authority, new.authority),
        ("names", *_show_hosts(old, new)),
        ("path", _unmarked(old.path), _unmarked(new.path)),
    ):
        if one != other:
            yield show_difference(place, one, other)
    if old.query != new.query:
        yield from _named(
            "query",
            query_pairs(recorded.target, rules.of(recorded).masks, redacted_query),
            query_pairs(asked.target, rules.of(asked).masks, redacted_query),
        )
    if old.headers != new.headers:
        (fields, trailers), (new_fields, new_trailers) = _header_pairs(old), _header_pairs(new)
        if fields != new_fields:
            # What asks for a WebSocket is the cause of the fields that go with it.
            pairs = (sorted(found, key=_is_no_upgrade) for found in (fields, new_fields))
            yield from _named("header", *pairs)
        if trailers != new_trailers:
            yield from _named("trailer", trailers, new_trailers)
    if old.body != new.body or old.kind != new.kind:
        yield from _body_differences(recorded, asked, old, new, rules, request_class)


def _show_hosts(old: Canonical, new: Canonical) -> tuple[str, str]:
    """Show the names that do not agree with the host of each."""
    old_names, new_names = (", ".join(form.names) or ABSENT for form in (old, new))
    return old_names, new_names


def show_difference(
    place: str, recorded: str, asked: str, *, at: tuple[int, int] | None = None
) -> Difference:
    """Give a difference between two texts, each shown from a little before the first character that differs.

    at: where in each that is, if characters before it do not count.
    """
    recorded, asked = _without_marks(recorded), _without_marks(asked)
    same = common_prefix(recorded, asked) if at is None else 0
    starts = [max(0, begin - _BEFORE) for begin in at or (same, same)]
    return Difference(one_line(place), _window(recorded, starts[0]), _window(asked, starts[1]))


def _without_marks(text: str) -> str:
    """Put words in the place of marks of the canonical form, which no reader knows."""
    if MARKER not in text and _JSON_MARKER not in text:
        return text
    return _BOUNDARIES.sub("(boundary)", _WORDS.sub("(", text))


def _window(text: str, start: int) -> str:
    if text == ABSENT:
        return text
    if start and len(text) > MAX_SHOWN:
        return one_line("..." + text[start : start + 4 * MAX_SHOWN])
    return one_line(text)


def common_prefix(one: Any, other: Any) -> int:
    """Count what two texts or bodies have in common at their start, by halving: slices are compared in C."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


_PLAIN_NAME = re.compile(r"[\w-]+")

_Pairs = list[tuple[str, str | None]]


def _header_pairs(form: Canonical) -> tuple[_Pairs, _Pairs]:
    """Give header fields and trailers."""
    fields: _Pairs = []
    trailers: _Pairs = []
    for name, value in form.headers:
        found = trailers if name.startswith(TRAILER) else fields
        found.append((name.removeprefix(TRAILER).decode("latin-1"), value.decode("latin-1")))
    return fields, trailers


def _is_no_upgrade(pair: tuple[str, str | None]) -> bool:
    return pair[0] != "upgrade"


def _named(what: str, old: _Pairs, new: _Pairs) -> Iterator[Difference]:
    """Compare pairs by name, the values of one name in order."""
    values: dict[str, tuple[list[str | None], list[str | None]]] = {}
    for side, pairs in enumerate((old, new)):
        for name, value in pairs:
            values.setdefault(name, ([], []))[side].append(value)
    told = False
    for name, (one, other) in values.items():
        for first, second in _apart(one, other):
            told = True
            yield show_difference(f"{what} {name}", _show_value(first), _show_value(second))
    if not told:
        # The same values of the same names, in another order of the names.
        yield show_difference(what, _show_names(old), _show_names(new))


def _apart(old: list[str | None], new: list[str | None]) -> Iterator[tuple[str | None, str | None]]:
    """Pair the values between a common beginning and a common end: what was put in or left out moves no other."""
    start = common_prefix(old, new)
    rest = min(len(old), len(new)) - start
    end = common_prefix(old[::-1][:rest], new[::-1][:rest])
    pairs = zip_longest(old[start : len(old) - end], new[start : len(new) - end], fillvalue=ABSENT)
    return ((one, other) for one, other in pairs if one != other)


def _show_value(value: str | None) -> str:
    if value is None:
        return "(no value)"
    value = _unmarked(value)
    return f"({value[1:]})" if value.startswith(MARKER) else value


def _unmarked(text: str) -> str:
    """Put a word in the place of what is masked."""
    return text.replace(f"{MARKER}*", "(masked)").replace("%00(", "(")


def _show_names(pairs: _Pairs) -> str:
    return "&".join(name for name, _ in pairs)


def _body_differences(
    recorded: Request,
    asked: Request,
    old: Canonical,
    new: Canonical,
    rules: Rules,
    request_class: RequestClass,
) -> Iterator[Difference]:
    if old.kind is new.kind is BodyKind.JSON:
        try:
            first, second = (body_tree(one, rules, request_class) for one in (recorded, asked))
            yield from _tree_differences(first, second, "$", 0)
        except (ValueError, RecursionError):
            # Deeper than the exact reader goes: the canonical texts are all there is.
            yield from _byte_difference(old.body, new.body, "body byte ")
    elif old.kind is new.kind is BodyKind.FORM:
        yield from _named(
            "form",
            form_pairs(open_body(recorded)[0], rules.of(recorded).masks),
            form_pairs(open_body(asked)[0], rules.of(asked).masks),
        )
    elif old.kind is new.kind is BodyKind.MULTIPART:
        at = common_prefix(old.body, new.body)
        # Either side's count serves: up to here they are the same.
        part = max(1, old.body.count(b"--" + BOUNDARY, 0, at))
        yield _at_byte(f"body part {part}", old.body, new.body, at)
    elif old.kind is new.kind is BodyKind.TEXT:
        yield from _byte_difference(old.body, new.body, "body byte ")
    elif recorded.spilled is not None or asked.spilled is not None:
        # Neither is at hand; told is what says that they are two.
        yield Difference("body", _show_whole(recorded, old), _show_whole(asked, new))
    elif old.kind is new.kind is BodyKind.BYTES:
        yield from _byte_difference(old.body, new.body, "body byte ")
    else:
        first, second = open_body(recorded)[0], open_body(asked)[0]
        if not first or not second:
            yield Difference("body", _show_body(first), _show_body(second))
        elif first != second:
            yield from _byte_difference(first, second, "body byte ")


def _byte_difference(old: bytes, new: bytes, place: str) -> Iterator[Difference]:
    at = common_prefix(old, new)
    yield _at_byte(f"{place}{at}", old, new, at)


def _at_byte(place: str, old: bytes, new: bytes, at: int) -> Difference:
    start = max(0, at - _BEFORE)
    shown = [
        ("..." if start else "")
        + body[start : start + 2 * MAX_SHOWN].decode("utf-8", "backslashreplace")
        for body in (old, new)
    ]
    first, second = map(_without_marks, shown)
    return Difference(place, one_line(first), one_line(second))


def _show_whole(request: Request, form: Canonical) -> str:
    """Show a body by its size and the beginning of a hash of what is compared."""
    if not form.body:
        return ABSENT
    match = request.spilled.match if request.spilled is not None else blake3(form.body).digest()
    return f"({request.body_bytes} bytes, BLAKE3 {match.hex()[:16]})"


def _show_body(body: bytes) -> str:
    return one_line(body[: 2 * MAX_SHOWN].decode("utf-8", "backslashreplace")) or ABSENT


def tree_differences(old: Any, new: Any, path: str = "$") -> Iterator[Difference]:
    """Find where two JSON values differ, in the order of the first; places are `body JSONPATH`."""
    return _tree_differences(old, new, path, 0)


def _tree_differences(old: Any, new: Any, path: str, depth: int) -> Iterator[Difference]:
    if same_json(old, new):
        return
    if depth < MAX_DEPTH and isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            one, other = old.get(name, _NOTHING), new.get(name, _NOTHING)
            if same_json(one, other):
                continue  # before its path is written, which may be long
            place = f"{path}{json_step(name)}"
            if other is _NOTHING:
                yield show_difference(f"body {place}", show_json(one), ABSENT)
            elif one is _NOTHING:
                yield show_difference(f"body {place}", ABSENT, show_json(other))
            else:
                yield from _tree_differences(one, other, place, depth + 1)
    elif (
        depth < MAX_DEPTH
        and isinstance(old, list)
        and isinstance(new, list)
        and not is_twice(old)
        and not is_twice(new)
    ):
        yield from _list_differences(old, new, path, depth)
    else:
        yield show_difference(f"body {path}", show_json(old), show_json(new))


def _list_differences(
    old: list[Any], new: list[Any], path: str, depth: int
) -> Iterator[Difference]:
    """Compare item by item; what was put in or left out is a difference, what it moved is not."""
    at, other = 0, 0
    while at < len(old) or other < len(new):
        if at < len(old) and other < len(new) and same_json(old[at], new[other]):
            at, other = at + 1, other + 1
            continue
        place = f"{path}[{at if at < len(old) else other}]"
        surplus = (len(new) - other) - (len(old) - at)
        if at == len(old) or (surplus > 0 and _is_among(old[at], _ahead(new, other, surplus))):
            yield show_difference(f"body {place}", ABSENT, show_json(new[other]))
            other += 1
        elif other == len(new) or (
            surplus < 0 and _is_among(new[other], _ahead(old, at, -surplus))
        ):
            yield show_difference(f"body {place}", show_json(old[at]), ABSENT)
            at += 1
        else:
            yield from _tree_differences(old[at], new[other], place, depth + 1)
            at, other = at + 1, other + 1


def _ahead(items: list[Any], at: int, surplus: int) -> list[Any]:
    return items[at + 1 : at + 1 + min(surplus, _SHIFT)]


def same_json(one: Any, other: Any) -> bool:
    """Say whether two values are one as they are written in JSON: `1` is neither `true` nor `1.0`."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        return all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(same_json, one, other))
    return type(one) is type(other) or not isinstance(one, int | float)


def _is_among(one: Any, others: list[Any]) -> bool:
    return any(same_json(one, other) for other in others)


def json_step(name: str) -> str:
    """Give the step of a JSON path to a member of an object, by its name in a tree."""
    name = name[2:] if name.startswith(MARKER) else name
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{name}']"
