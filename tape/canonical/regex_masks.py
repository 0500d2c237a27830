"""Masks of `ignore[].regex`: parts of texts, found by regular expressions, that do not count in matching.

A match, or where the pattern has a first group that took part in it, that group, is masked; what is empty is not.
What is left of a text is the list of its pieces, one more than were masked: so a masked place counts by being there,
and what a text says is never taken for one.

Patterns are searched as written, in texts as a person would read them, escapes and encodings undone; but in a path as
it is sent, where an encoded slash is none.

A *placed* pattern, of a client profile, looks at one place of a JSON body alone, and masks its group there. At such a place
a number is looked at by its text, and stays a number: `1` is never taken for `"1"`.

Bounded: one search takes time by the length of the text alone (RE2), but it may read on to the end of the text for
each thing it finds. A pattern that takes more than `LIMIT_S` of one request masks nothing in it, and nothing in the
rest of the run: requests then differ that would have been the same, and the run says why.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...config.parse_values import compile_regex
from .json import MAX_DEPTH, JsonPath, Parts, Swap, is_twice, number_of, text_of

LIMIT_S = 1.0
"""Longest that the patterns look at one request, in seconds of their thread: how busy the machine is does not count."""

Clock = Callable[[], float]
"""Seconds; `time.thread_time` where what is asked now is compared. Without one there is no limit."""


def _no_clock() -> float:
    return 0.0


class Pattern:
    """One pattern of a run."""

    __slots__ = ("_compiled", "clock", "ran_out", "text")

    def __init__(self, text: str, clock: Clock | None = None) -> None:
        """Compile it.

        Raises: ValueError for one that is none.
        """
        self._compiled: Any = compile_regex(text)
        self.text = text
        self.clock = clock or _no_clock
        self.ran_out = False
        """It took too long once, and masks nothing any more."""

    @classmethod
    def later(cls, text: str, clock: Clock | None = None) -> "Pattern":
        """Make one that is known to be sound, and compile it when it is first searched."""
        made = cls.__new__(cls)
        made._compiled, made.text, made.clock, made.ran_out = None, text, clock or _no_clock, False
        return made

    def find(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Give where its group, or the whole of it, is in a text, one after another."""
        if self._compiled is None:
            self._compiled = compile_regex(self.text)
        group = min(1, self._compiled.groups)
        return (found.span(group) for found in self._compiled.finditer(text))


Patterns = tuple[Pattern, ...]

ID_BYTES = 16
"""From this length on what a linked pattern finds is an id by itself; a shorter one, as a time, is one with the text around it."""


def find_ids(text: str, patterns: Iterable[Pattern]) -> tuple[bytes, ...]:
    """Give the ids that linked patterns find in a text, in their order, each once."""
    told = text.encode("utf-8", "surrogatepass")
    found = sorted({span for pattern in patterns for span in pattern.find(told)})
    ids = (told[start:end] if end - start >= ID_BYTES else told for start, end in found)
    return tuple(dict.fromkeys(ids))


class Placed(NamedTuple):
    """A pattern that looks at one place of a JSON body."""

    path: JsonPath
    pattern: Pattern
    text: str
    """The path as a profile has it."""
    linked: bool = False
    """Whether it counts which values of such places are the same."""
    tool: str = ""
    """Of which tool the place has to be: an object on the way to it has this `name`. Empty where it may be any."""


class PlacedText(NamedTuple):
    """A text or number of a JSON tree at which placed patterns look."""

    holder: Any
    key: Any
    value: str
    """The text, or how the number is written."""
    is_number: bool
    placed: tuple[Placed, ...]
    trail: tuple[str | int, ...]
    """Where it is: names and indices from the root."""


def slow(patterns: Patterns) -> list[str]:
    """Say for each pattern that ran out of time what that means; one line each."""
    return [
        f"the ignore pattern {one.text!r} took longer than {LIMIT_S:g} s of one request and masks nothing any more"
        for one in patterns
        if one.ran_out
    ]


MASK = "\x00*"
"""Stands for what was masked where a text is one; a NUL of the text itself stands twice then."""


def until(patterns: Patterns) -> float:
    """Give when the patterns have looked at one request for long enough, by their clock."""
    return patterns[0].clock() + LIMIT_S if patterns else 0.0


def what_is_left(text: str, patterns: Patterns, deadline: float | None = None) -> tuple[str, ...]:
    """Give the pieces of a text between its masked parts: the text alone where there is none.

    deadline: from `until`, where several texts are one request's.
    """
    if deadline is None:
        deadline = until(patterns)
    # Halves of surrogate pairs are no characters, so no pattern matches one, or a part of one.
    told = text.encode("utf-8", "surrogatepass")
    spans: list[tuple[int, int]] = []
    for pattern in patterns:
        if not pattern.ran_out:
            spans += _spans(told, pattern, deadline)
    if not spans:
        return (text,)
    spans.sort()
    pieces, at, masked = [], 0, 0
    for start, end in spans:
        if start >= masked:
            pieces.append(told[at:start])
        # Parts that overlap are one.
        at = masked = max(masked, end)
    pieces.append(told[at:])
    return tuple(piece.decode("utf-8", "surrogatepass") for piece in pieces)


def _spans(text: bytes, pattern: Pattern, deadline: float) -> list[tuple[int, int]]:
    spans = []
    for start, end in pattern.find(text):
        if start < end:
            spans.append((start, end))
        if pattern.clock() > deadline:
            pattern.ran_out = True
            return []
    return spans


def mask_text(text: str, patterns: Patterns, deadline: float | None = None) -> str:
    """Give a text with its masked parts as markers."""
    left = what_is_left(text, patterns, deadline)
    return MASK.join(piece.replace("\x00", "\x00\x00") for piece in left)


def mask_bytes(body: bytes, patterns: Patterns, deadline: float | None = None) -> bytes:
    """Give a body with its masked parts as markers; what is no UTF-8 in it matches no character that is."""
    masked = mask_text(body.decode("utf-8", "surrogateescape"), patterns, deadline)
    return masked.encode("utf-8", "surrogateescape")


def find_swaps(
    tree: Any,
    exact: bool,
    patterns: Patterns,
    before: Sequence[Swap],
    placed: Sequence[Placed] = (),
) -> tuple[Swap, ...]:
    """Give what is compared as something else in a JSON tree.

    before: what is swapped already; given again, with its parts masked too.
    Raises: RecursionError where the tree is nested too deep.
    """
    known = {(id(swap.holder), swap.key): swap.value for swap in before}
    found = dict(zip(known, before, strict=True))
    deadline = until((*patterns, *(one.pattern for one in placed)))
    left_out = frozenset(place for place, value in known.items() if value is None)
    names: dict[tuple[bytes, ...], int] = {}
    """Of linked values: they are told apart in the order in which they come first."""
    places = find_placed(tree, exact, placed, left_out)
    for one in sorted(places, key=_order) if any(each.linked for each in placed) else places:
        own = tuple([each.pattern for each in one.placed])
        own = own if one.is_number else (*patterns, *own)
        text = known.get((id(one.holder), one.key), one.value)
        left = what_is_left(text, own, deadline) if isinstance(text, str) else ()
        if len(left) > 1:
            ids = find_ids(one.value, [each.pattern for each in one.placed if each.linked])
            alone = what_is_left(one.value, patterns, deadline) if ids else ()
            if len(alone) > 1 and not one.is_number:
                ids = ()  # a rule of the configuration says that it does not count
            name = names.setdefault(ids, len(names) + 1) if ids else 0
            parts = Parts(left, one.is_number, name)
            found[id(one.holder), one.key] = Swap(one.holder, one.key, parts)
    for holder, key, value in _strings(tree, exact, left_out) if patterns else ():
        text = known.get((id(holder), key), value)
        if isinstance(text, str) and not _is_parts(found.get((id(holder), key))):
            left = what_is_left(text, patterns, deadline)
            if len(left) > 1:
                found[id(holder), key] = Swap(holder, key, Parts(left))
    return tuple(found.values())


def _order(one: PlacedText) -> tuple[tuple[bool, str, int], ...]:
    """Sort places by where they are, members of an object by their names."""
    return tuple(
        [(True, step, 0) if isinstance(step, str) else (False, "", step) for step in one.trail]
    )


def _is_parts(swap: Swap | None) -> bool:
    return swap is not None and isinstance(swap.value, Parts)


def find_placed(
    tree: Any,
    exact: bool,
    placed: Iterable[Placed],
    left_out: frozenset[tuple[int, Any]] = frozenset(),
) -> list[PlacedText]:
    """Give the texts and numbers of a JSON tree at which placed patterns look, each with all that do."""
    found: dict[tuple[int, Any], PlacedText] = {}
    for one in placed:
        for trail, holder, value in _at(tree, exact, one.path, left_out):
            if one.tool and not _is_of_tool(tree, exact, trail, one.tool):
                continue
            number = number_of(value, exact)
            text = text_of(value, exact) if number is None else number
            key = trail[-1]
            if text is not None:
                known = found.get((id(holder), key))
                more = (*known.placed, one) if known is not None else (one,)
                found[id(holder), key] = PlacedText(
                    holder, key, text, number is not None, more, trail
                )
    return list(found.values())


def _is_of_tool(tree: Any, exact: bool, trail: tuple[str | int, ...], tool: str) -> bool:
    """Say whether an object on the way to a place has the name of a tool."""
    value = tree
    for step in trail:
        if isinstance(value, dict) and text_of(value.get("name"), exact) == tool:
            return True
        value = value[step]
    return False


def _at(
    tree: Any, exact: bool, path: JsonPath, left_out: frozenset[tuple[int, Any]]
) -> list[tuple[tuple[str | int, ...], Any, Any]]:
    """Give what a path leads to: where that is, what holds it, and itself."""
    found: list[tuple[tuple[str | int, ...], Any, Any]] = [((), None, tree)]
    for step in path:
        found = [
            ((*trail, key), value, value[key])
            for trail, _, value in found
            for key in _steps(value, step, exact)
            if (id(value), key) not in left_out
        ]
    return found


def _steps(value: Any, step: str | int | None, exact: bool) -> Iterable[Any]:
    if exact and is_twice(value):
        return ()  # which of the values a server reads is not known: all of them count
    if isinstance(value, dict):
        return tuple(value) if step is None else (step,) if step in value else ()
    if isinstance(value, list):
        places = range(len(value))
        return places if step is None else (step,) if step in places else ()
    return ()


def _strings(
    tree: Any, exact: bool, left_out: frozenset[tuple[int, Any]]
) -> Iterator[tuple[Any, Any, str]]:
    """Give every string value with what holds it; none inside what is left out."""
    waiting: list[tuple[Any, Any, Any, int]] = [(None, None, tree, 0)]
    while waiting:
        holder, key, value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise RecursionError("nested too deep")
            members = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [
                (value, name, item, depth + 1)
                for name, item in members
                if (id(value), name) not in left_out
            ]
        else:
            text = text_of(value, exact)
            if text is not None:
                yield holder, key, text
