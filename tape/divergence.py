"""What a run did that its tape does not hold, said so that a person can act on it.

Rules:

1. A difference is named by its place in what is compared (`canonical.py`), first what comes first in the
   request: method, scheme, host, path, query, header fields, body. In JSON the order is the recorded text's.
2. Values are shown as one line of at most 200 characters around the first character that differs, with
   nothing that a terminal would act on. Both requests are redacted already.
3. Nearness ranks recorded requests for a person. It never decides what is served.
4. Work is bounded whatever the requests hold: a cheap look at every candidate, a close one at a few.
"""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from .canonical import (
    BOUNDARY,
    MARK,
    BodyKind,
    Canonical,
    ContentType,
    Rules,
    body_tree,
    canonical,
    form_pairs,
    open_body,
    query_pairs,
)
from .json_form import MASKED, MAX_DEPTH, is_number, is_twice, light_tree, show_json
from .model import Request, RequestClass, Seq

MAX_SHOWN = 200
"""Characters of a value that are shown."""
ABSENT = "(absent)"
"""Shown for a place that one side does not have; a JSON string would stand in quotes."""

_BEFORE = 60
"""Characters shown before the first that differs."""
_NEAR = 8
"""Candidates looked at closely."""
_SHIFT = 32
"""Items that may have been put in or left out before what follows is no longer seen as moved."""
_CLOSE_BODY = 1024 * 1024
"""Bytes of a body that are compared closely when candidates are ranked."""


class DivergenceKind(StrEnum):
    """How a run left its tape."""

    CHANGED = "changed"
    """Not on the tape, but something near it is."""
    UNEXPECTED = "unexpected"
    """Not on the tape, nor is anything near it."""
    EXHAUSTED = "exhausted"
    """On the tape, and served as often as it was recorded."""
    REORDERED = "reordered"
    """On the tape, but before what it depends on."""
    UNUSED = "unused"
    """On the tape, and never asked for."""
    DRIFTED = "drifted"
    """Only fields changed that may be allowed to."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two requests differ."""

    place: str
    """`method`, `scheme`, `host`, `path`, `query NAME`, `header NAME`, `form NAME`, `body JSONPATH`,
    `body part N` or `body byte N`; parts count from 1, bytes and list items from 0."""
    recorded: str
    """One line, `(absent)` where the tape has nothing there."""
    asked: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, asked {self.asked}"


@dataclass(frozen=True, slots=True)
class Divergence:
    """One thing a playback run did that its tape does not hold."""

    kind: DivergenceKind
    seq: Seq
    """In the playback run; of an unused exchange, its place on the tape."""
    method: str
    url: str
    nearest_seq: Seq | None = None
    """On the tape."""
    differences: tuple[Difference, ...] = ()
    text: str = ""
    """For people: one line."""

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types."""
        return {
            "kind": self.kind.value,
            "seq": self.seq,
            "method": self.method,
            "url": self.url,
            "nearest_seq": self.nearest_seq,
            "differences": [
                {"place": one.place, "recorded": one.recorded, "asked": one.asked}
                for one in self.differences
            ],
            "text": self.text,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Divergence":
        """Read what `to_json` wrote; unknown keys are passed over.

        Raises: ValueError where a key is missing or of another kind.
        """
        try:
            nearest_seq = data["nearest_seq"]
            return cls(
                DivergenceKind(data["kind"]),
                Seq(int(data["seq"])),
                str(data["method"]),
                str(data["url"]),
                None if nearest_seq is None else Seq(int(nearest_seq)),
                tuple(
                    Difference(str(one["place"]), str(one["recorded"]), str(one["asked"]))
                    for one in data["differences"]
                ),
                str(data["text"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no divergence: {error!r} in {one_line(repr(data))}") from error


def explain(
    kind: DivergenceKind,
    seq: Seq,
    request: Request,
    nearest_seq: Seq | None = None,
    found: tuple[Difference, ...] = (),
) -> Divergence:
    """Give a divergence with its text; `request` is redacted."""
    what = one_line(f"{request.method} {request.url}")
    match kind:
        case DivergenceKind.EXHAUSTED:
            text = f"{what} was asked more often than it was recorded"
        case DivergenceKind.UNUSED:
            text = f"{what} is on the tape and was never asked for"
        case DivergenceKind.REORDERED:
            text = f"{what} was asked before what it depends on"
        case DivergenceKind.DRIFTED:
            text = f"{what} differs in what may be allowed to drift"
        case _:
            text = f"{what} is not on the tape"
    if nearest_seq is not None:
        text += f"; nearest is exchange {nearest_seq}"
        if found:
            text += f", which differs at {found[0]}"
            if len(found) > 1:
                text += f", and at {len(found) - 1} further place{'s' * (len(found) > 2)}"
    return Divergence(kind, seq, request.method, request.url, nearest_seq, found, text)


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
    old = canonical(recorded, request_class, rules, redacted_query)
    new = canonical(asked, request_class, rules, redacted_query)
    found: list[Difference] = []
    for one in _differences(recorded, asked, old, new, rules, redacted_query):
        if len(found) >= limit:
            break
        found.append(one)
    if not found and old != new and limit > 0:
        # The same bytes, read in two ways.
        found.append(Difference("body", f"(as {old.kind})", f"(as {new.kind})"))
    return tuple(found)


def _differences(
    recorded: Request,
    asked: Request,
    old: Canonical,
    new: Canonical,
    rules: Rules,
    redacted_query: frozenset[str],
) -> Iterator[Difference]:
    for place, one, other in (
        ("method", old.method, new.method),
        ("scheme", old.scheme, new.scheme),
        ("host", old.authority, new.authority),
        ("path", _unmarked(old.path), _unmarked(new.path)),
    ):
        if one != other:
            yield _difference(place, one, other)
    if old.query != new.query:
        yield from _named(
            "query",
            query_pairs(recorded.target, rules.of(recorded).masks, redacted_query),
            query_pairs(asked.target, rules.of(asked).masks, redacted_query),
        )
    if old.headers != new.headers:
        yield from _named("header", _header_pairs(old), _header_pairs(new))
    if old.body != new.body or old.kind != new.kind:
        yield from _body_differences(recorded, asked, old, new, rules)


def _difference(place: str, recorded: str, asked: str) -> Difference:
    start = max(0, _common_prefix(recorded, asked) - _BEFORE)
    return Difference(one_line(place), _window(recorded, start), _window(asked, start))


def _window(text: str, start: int) -> str:
    if text == ABSENT:
        return text
    if start and len(text) > MAX_SHOWN:
        return one_line("..." + text[start : start + 4 * MAX_SHOWN])
    return one_line(text)


def one_line(text: str) -> str:
    """Render a text on one line of at most 200 characters, without anything a terminal would act on."""
    cut = text[: MAX_SHOWN + 1]
    if not cut.isprintable():
        cut = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
        )
    return cut if len(cut) <= MAX_SHOWN else cut[: MAX_SHOWN - 3] + "..."


def _common_prefix(one: Any, other: Any) -> int:
    """Count what two texts or bodies begin with alike, by halving: slices are compared in C."""
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


def _header_pairs(form: Canonical) -> _Pairs:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in form.headers]


def _named(what: str, old: _Pairs, new: _Pairs) -> Iterator[Difference]:
    """Compare pairs by name: the values of a name are sorted for a query, in order for the rest."""
    names = dict.fromkeys([name for name, _ in old] + [name for name, _ in new])
    told = False
    for name in names:
        one = [value for key, value in old if key == name]
        other = [value for key, value in new if key == name]
        if what == "query":
            one.sort(key=_sortable)
            other.sort(key=_sortable)
        for first, second in zip_longest(one, other, fillvalue=ABSENT):
            if first != second:
                told = True
                yield _difference(f"{what} {name}", _show_value(first), _show_value(second))
    if not told:
        # The same values of the same names, in another order of the names.
        yield _difference(what, _show_names(old), _show_names(new))


def _sortable(value: str | None) -> tuple[bool, str]:
    return value is not None, value or ""


def _show_value(value: str | None) -> str:
    if value is None:
        return "(no value)"
    value = _unmarked(value)
    return f"({value[1:]})" if value.startswith(MARK) else value


def _unmarked(text: str) -> str:
    """Put a word in the place of what is masked."""
    return text.replace(f"{MARK}*", "(masked)")


def _show_names(pairs: _Pairs) -> str:
    return "&".join(name for name, _ in pairs)


def _body_differences(
    recorded: Request, asked: Request, old: Canonical, new: Canonical, rules: Rules
) -> Iterator[Difference]:
    if old.kind is new.kind is BodyKind.JSON:
        try:
            first, second = (body_tree(one, rules) for one in (recorded, asked))
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
        at = _common_prefix(old.body, new.body)
        # Either side's count serves: up to here they are the same.
        part = max(1, old.body.count(b"--" + BOUNDARY, 0, at))
        yield _at_byte(f"body part {part}", old.body, new.body, at)
    elif old.kind is new.kind is BodyKind.TEXT:
        yield from _byte_difference(old.body, new.body, "body byte ")
    else:
        first, second = open_body(recorded)[0], open_body(asked)[0]
        if not first or not second:
            yield Difference("body", _show_body(first), _show_body(second))
        elif first != second:
            yield from _byte_difference(first, second, "body byte ")


def _byte_difference(old: bytes, new: bytes, place: str) -> Iterator[Difference]:
    at = _common_prefix(old, new)
    yield _at_byte(f"{place}{at}", old, new, at)


def _at_byte(place: str, old: bytes, new: bytes, at: int) -> Difference:
    start = max(0, at - _BEFORE)
    shown = [
        ("..." if start else "")
        + body[start : start + 2 * MAX_SHOWN].decode("utf-8", "backslashreplace")
        for body in (old, new)
    ]
    return Difference(place, one_line(shown[0]), one_line(shown[1]))


def _show_body(body: bytes) -> str:
    return one_line(body[: 2 * MAX_SHOWN].decode("utf-8", "backslashreplace")) or ABSENT


def _tree_differences(old: Any, new: Any, path: str, depth: int) -> Iterator[Difference]:
    if old == new:
        return
    if depth < MAX_DEPTH and isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            place = f"{path}{_step(name)}"
            if name not in new:
                yield _difference(f"body {place}", show_json(old[name]), ABSENT)
            elif name not in old:
                yield _difference(f"body {place}", ABSENT, show_json(new[name]))
            else:
                yield from _tree_differences(old[name], new[name], place, depth + 1)
    elif (
        depth < MAX_DEPTH
        and isinstance(old, list)
        and isinstance(new, list)
        and not is_twice(old)
        and not is_twice(new)
    ):
        yield from _list_differences(old, new, path, depth)
    else:
        yield _difference(f"body {path}", show_json(old), show_json(new))


def _list_differences(
    old: list[Any], new: list[Any], path: str, depth: int
) -> Iterator[Difference]:
    """Compare item by item; what was put in or left out is a difference, what it moved is not."""
    at, other = 0, 0
    while at < len(old) or other < len(new):
        place = f"{path}[{at if at < len(old) else other}]"
        surplus = (len(new) - other) - (len(old) - at)
        if old[at : at + 1] == new[other : other + 1]:
            at, other = at + 1, other + 1
        elif at == len(old) or (surplus > 0 and old[at] in _ahead(new, other, surplus)):
            yield _difference(f"body {place}", ABSENT, show_json(new[other]))
            other += 1
        elif other == len(new) or (surplus < 0 and new[other] in _ahead(old, at, -surplus)):
            yield _difference(f"body {place}", show_json(old[at]), ABSENT)
            at += 1
        else:
            yield from _tree_differences(old[at], new[other], place, depth + 1)
            at, other = at + 1, other + 1


def _ahead(items: list[Any], at: int, surplus: int) -> list[Any]:
    return items[at + 1 : at + 1 + min(surplus, _SHIFT)]


def _step(name: str) -> str:
    name = name[2:] if name.startswith(MARK) else name
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{name}']"


def distance(recorded: Request, asked: Request) -> float:
    """Say how far two requests are apart: 0 for the same, about 20 for nothing in common.

    Method, host and path weigh more than everything else together; a shared beginning of a list, as of a
    conversation, counts for each of its items.
    """
    return _endpoint_distance(recorded, asked) + _content_distance(recorded, asked)


def _endpoint_distance(recorded: Request, asked: Request) -> float:
    far = 4.0 * (recorded.method != asked.method)
    far += 4.0 * (recorded.host.lower() != asked.host.lower())
    far += 1.0 * (recorded.port != asked.port or recorded.scheme != asked.scheme)
    old, new = recorded.path, asked.path
    if old != new:
        far += 4.0 * (_shape(old) != _shape(new))
        one, other = old.split("/"), new.split("/")
        same = sum(a == b for a, b in zip(one, other, strict=False))
        far += 2.0 * (1 - same / max(len(one), len(other)))
    return far


def _shape(path: str) -> str:
    """Give a path with its ids left out: segments with a digit that are no version."""
    return "/".join(_shape_of(part) for part in path.split("/"))


def _shape_of(part: str) -> str:
    if not any(char.isdigit() for char in part):
        return part
    if part[0] == "v" and part[1:2].isdigit() and len(part) <= 8:
        return part
    # Google puts the name of the call behind the id: `models/gemini-3:generateContent`.
    _, colon, verb = part.rpartition(":")
    return f"*:{verb}" if colon and verb.isalpha() else "*"


def _content_distance(recorded: Request, asked: Request) -> float:
    far = 0.0
    old, new = recorded.target.partition("?")[2], asked.target.partition("?")[2]
    if old != new:
        one, other = set(old.split("&")), set(new.split("&"))
        far += len(one ^ other) / max(1, len(one | other))
    if recorded.body != asked.body:
        far += 2.0 * _body_distance(recorded, asked)
    for name in (b"range", b"x-amz-target", b"soapaction", b"accept", b"content-type"):
        first, second = recorded.header(name), asked.header(name)
        if first != second and (name != b"content-type" or _media(first) != _media(second)):
            far += 0.25
    return far


def _media(value: bytes | None) -> bytes:
    return (value or b"").partition(b";")[0].strip().lower()


def _body_distance(recorded: Request, asked: Request) -> float:
    (old, old_type), (new, new_type) = open_body(recorded), open_body(asked)
    if _is_close_json(old, old_type) and _is_close_json(new, new_type):
        try:
            return _tree_distance(light_tree(old.decode()), light_tree(new.decode()), 0)
        except (ValueError, RecursionError):
            # Broken, or nested too deep: as bytes.
            pass
    return _text_distance(old, new)


def _is_close_json(body: bytes, content: ContentType | None) -> bool:
    return content is not None and content.kind is BodyKind.JSON and len(body) <= _CLOSE_BODY


def _text_distance(old: Any, new: Any) -> float:
    """Give the share of the longer text that is neither in a common beginning nor in a common end."""
    if old == new:
        return 0.0
    size = max(len(old), len(new))
    prefix = _common_prefix(old, new)
    rest = min(len(old), len(new)) - prefix
    suffix = 0
    if rest:
        suffix = _common_prefix(old[-rest:][::-1], new[-rest:][::-1])
    # Never zero: different is different.
    return max(0.02, 1 - (prefix + suffix) / size)


_CLOSE_DEPTH = 6
_HEAVY = 100
"""Members beyond which a value weighs no more."""


def _tree_distance(old: Any, new: Any, depth: int) -> float:
    """Give 0 for equal values to 1 for nothing in common."""
    if old == new:
        return 0.0
    if isinstance(old, dict) and isinstance(new, dict) and depth < _CLOSE_DEPTH:
        total, far = 0.0, 0.0
        for name in dict.fromkeys([*old, *new]):
            one, other = old.get(name, MASKED), new.get(name, MASKED)
            # What holds more weighs more: one setting is less than a conversation.
            weight = 1.0 + max(_size(one), _size(other))
            total += weight
            far += weight * _tree_distance(one, other, depth + 1)
        return far / total
    if isinstance(old, list) and isinstance(new, list) and depth < _CLOSE_DEPTH:
        size = max(len(old), len(new))
        short = min(len(old), len(new))
        prefix = _count(old, new, range(short))
        suffix = _count(old, new, range(-1, prefix - short - 1, -1))
        far = float(size - short)
        for at in range(prefix, short - suffix):
            far += _tree_distance(old[at], new[at], depth + 1)
        return far / size
    if isinstance(old, str) and isinstance(new, str) and not is_number(old) and not is_number(new):
        return _text_distance(old, new)
    return 1.0


def _size(value: Any) -> int:
    return min(len(value), _HEAVY) if isinstance(value, dict | list) else 0


def _count(old: list[Any], new: list[Any], indexes: range) -> int:
    count = 0
    for at in indexes:
        if old[at] != new[at]:
            break
        count += 1
    return count


def nearest(
    asked: Request, candidates: Iterable[tuple[Seq, Request]]
) -> tuple[Seq, Request] | None:
    """Find the recorded request a person would say was meant; of equals, the first.

    Those of the same endpoint go before those of the same host and shape of path, then those of the same
    path elsewhere, then those of the same host. Another host *and* another shape of path is not near.
    Looks at every candidate once, briefly, and closely at eight.
    """
    tiers: list[list[tuple[int, int, int, Seq, Request]]] = [[], [], [], []]
    tier_of = _tier_finder(asked)
    alike = _alikeness(asked.body)
    own = len(asked.body)
    order = 0
    for seq, request in candidates:
        tier = tier_of(request)
        if tier is None:
            continue
        order -= 1
        item = (alike(request.body), -abs(len(request.body) - own), order, seq, request)
        kept = tiers[tier]
        if len(kept) < _NEAR:
            heapq.heappush(kept, item)
        elif item[:3] > kept[0][:3]:
            heapq.heapreplace(kept, item)
    for kept in tiers:
        if kept:
            found = min(kept, key=lambda item: (distance(item[4], asked), -item[2]))
            return found[3], found[4]
    return None


def _tier_finder(asked: Request) -> Callable[[Request], int | None]:
    """Give a function that says how near a request's endpoint is: 0 the same, 3 the same host, else None."""
    host, path = asked.host.lower(), asked.path
    shape = _shape(path)
    known: dict[tuple[str, str, str], int | None] = {}

    def tier_of(request: Request) -> int | None:
        key = (request.method, request.host, request.target.partition("?")[0])
        if key in known:
            return known[key]
        same_host, its_path = request.host.lower() == host, key[2]
        tier: int | None
        if same_host and its_path == path and request.method == asked.method:
            tier = 0
        elif same_host and (its_path == path or _shape(its_path) == shape):
            tier = 1
        elif its_path == path or _shape(its_path) == shape:
            tier = 2
        else:
            tier = 3 if same_host else None
        known[key] = tier
        return tier

    return tier_of


def _alikeness(asked: bytes) -> Callable[[bytes], int]:
    """Give a function that counts how much of its beginning and end a body shares, in powers of four."""
    sizes = [4**power * 16 for power in range(10) if 4**power * 16 < len(asked)] + [len(asked)]
    starts = [asked[:size] for size in sizes]
    ends = [asked[-size:] for size in sizes] if asked else [b""]

    def alike(body: bytes) -> int:
        count = 0
        for start in starts:
            if not body.startswith(start):
                break
            count += 1
        for end in ends:
            if not body.endswith(end):
                break
            count += 1
        return count

    return alike
