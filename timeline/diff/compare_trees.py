"""Find where two values of JSON differ, but for ids and times that stand for each other: each side with its own place and value.

1. Lists are aligned: what one side alone has moves nothing that is behind it. So a value may have another place in each.
2. Of a model call, members do not count that say what is to be cached, or that prove a thought; and one value may be written in two
   ways, as a content that is a text or a list of one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...tape.canonical.canonical_request import MARKER
from ...tape.canonical.json import MAX_DEPTH, is_twice, show_json
from ...tape.dialects.common.untrusted_json import find_json
from ...tape.diff.divergence_types import ABSENT, MAX_SHOWN
from ...tape.diff.request_differences import json_step, same_json, show_difference
from ..steps.model_context import CACHE_MARKERS, plain_form, spell_out
from .align_lists import Pair, align_lists
from .made_anew import find_anew
from .stand_ins import StandIns

_LONG_ID = re.compile(r"[\w-]{16,}")
_PROOFS = frozenset(("thoughtSignature", "thought_signature", "encrypted_content"))
"""Made anew with each answer, and said by nobody."""
_THOUGHTS = frozenset(("thinking", "redacted_thinking"))
_WRITTEN_TWO_WAYS = frozenset(("content", "output", "input"))
_FREE = frozenset(("input", "args", "arguments", "properties", "response"))
"""Objects with members of any name: of a tool call, a result, a schema."""
_SEARCHED = 64 * 1024
"""Characters of an element by which it is found in the other list."""
_NOTHING = object()
"""Stands for a member that is not there."""

Both = tuple[str, str]
"""Of the first, and of the second."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place at which two acts differ."""

    place: str
    """In the first; in the second where the first has nothing there."""
    recorded: str
    """One line of the value in the first; `(absent)` where it has nothing there."""
    asked: str
    second_place: str = ""
    """In the second, where that is another one."""
    at: tuple[int, int] | None = None
    """Where in the two lines the first characters are that differ; None where that is to be seen."""
    stands_for: str = ""
    """The second run's id that the first's stands for, if both have the first's."""

    def name_in(self, second: str) -> str:
        """Give the place, and that in the second run by its name if it is another one."""
        return f"{self.place}, in {second} {self.second_place}" if self.second_place else self.place


def make_place(places: Both, texts: Both, at: tuple[int, int] | None = None) -> Place:
    """Make a place of two texts.

    at: where in each the first characters are that differ.
    """
    shown = show_difference(places[0], *texts, at=at)
    second = places[1] if places[1] != places[0] else ""
    if at is not None:
        at = _offset(texts[0], shown.recorded, at[0]), _offset(texts[1], shown.asked, at[1])
    return Place(shown.place, shown.recorded, shown.asked, second, at)


def _offset(text: str, shown: str, at: int) -> int:
    """Give the offset in a line of a place in its text."""
    is_cut = len(text) > MAX_SHOWN and shown.startswith("...") and not text.startswith("...")
    return min(at, 60 + 3) if is_cut else at


@dataclass(slots=True)
class TreeComparison:
    """Compares values of JSON."""

    ids: StandIns
    is_call: bool
    """Whether they are of a model call."""
    where: str = "body"
    """What is before a path."""

    def walk(
        self,
        old: Any,
        new: Any,
        paths: Both = ("$", "$"),
        *,
        name: str = "",
        is_prompt: bool = False,
        depth: int = 0,
        is_free: bool = False,
    ) -> Iterator[Place]:
        """Find where two values differ, in the order of the first.

        name: of the member that they are.
        is_prompt: whether dates and times of day do not count.
        is_free: whether they are in an object with members of any name.
        """
        if same_json(old, new):
            return
        if depth < MAX_DEPTH and isinstance(old, dict) and isinstance(new, dict):
            for one in dict.fromkeys((*old, *new)):
                if self.is_call and (
                    _is_no_content(one, old, new, name, is_free=is_free)
                    or (self.where == "body" and not is_free and _is_alike(one, old, new))
                ):
                    continue
                first, second = old.get(one, _NOTHING), new.get(one, _NOTHING)
                yield from self.pair(
                    [] if first is _NOTHING else [first],
                    [] if second is _NOTHING else [second],
                    (f"{paths[0]}{json_step(one)}", f"{paths[1]}{json_step(one)}"),
                    name=one.removeprefix(MARKER),
                    is_prompt=is_prompt,
                    depth=depth + 1,
                    is_free=is_free or (one in _FREE and isinstance(first, dict)),
                )
        elif depth < MAX_DEPTH and _is_list(old) and _is_list(new):
            for at, there in self.align(old, new, is_prompt=is_prompt, is_free=is_free):
                yield from self.pair(
                    [] if at is None else [old[at]],
                    [] if there is None else [new[there]],
                    (f"{paths[0]}[{at}]", f"{paths[1]}[{there}]"),
                    name=name,
                    is_prompt=is_prompt,
                    depth=depth + 1,
                    is_free=is_free,
                )
        else:
            yield from self._leaves(old, new, paths, name, is_prompt=is_prompt)

    def align(
        self, old: list[Any], new: list[Any], *, is_prompt: bool = False, is_free: bool = False
    ) -> Iterator[Pair]:
        """Say which element of one list is which of another."""
        return align_lists(
            old,
            new,
            lambda one, other: (
                next(self.walk(one, other, is_prompt=is_prompt, is_free=is_free), None) is None
            ),
            _form,
            _kind,
        )

    def pair(self, old: list[Any], new: list[Any], paths: Both, **more: Any) -> Iterator[Place]:
        """Compare what is at a place in each, as a list of one or, where there is nothing, of none."""
        if old and new:
            yield from self.walk(old[0], new[0], paths, **more)
            return
        path = paths[0] if old else paths[1]
        texts = [show_json(one[0]) if one else ABSENT for one in (old, new)]
        yield make_place((self._named(path),) * 2, (texts[0], texts[1]))

    def _leaves(
        self, old: Any, new: Any, paths: Both, name: str, *, is_prompt: bool
    ) -> Iterator[Place]:
        places = self._named(paths[0]), self._named(paths[1])
        if self.is_call and self._is_written_otherwise(old, new, name):
            return
        if _is_text(old) and _is_text(new):
            label = f'{name}: "' if name else '"'
            at = self.ids.first_difference(f'{old}"', f'{new}"', label, is_prompt=is_prompt)
            if at is None or (self.is_call and self._are_ids(old, new, name, label)):
                return
            # In the line there is a quote before, and some characters are two.
            at = len(show_json(old[: at[0]])) - 1, len(show_json(new[: at[1]])) - 1
            yield make_place(places, (show_json(old), show_json(new)), at)
            return
        texts = show_json(old), show_json(new)
        if isinstance(old, dict | list) or isinstance(new, dict | list):
            yield make_place(places, texts)
            return
        at = self.ids.first_difference(*texts, f"{name}: " if name else "")
        if at is not None or texts[0] == texts[1]:
            yield make_place(places, texts, at)

    def _named(self, path: str) -> str:
        return f"{self.where} {path}"

    def _are_ids(self, old: str, new: str, name: str, label: str) -> bool:
        """Say whether two texts are ids of a form that nothing is known of."""
        if name != "id" and not name.endswith("_id"):
            return False
        if not (_LONG_ID.fullmatch(old) and _LONG_ID.fullmatch(new)):
            return False
        tokens = [find_anew(f'{label}{one}"')[1] for one in (old, new)]
        return not all(tokens) and self.ids.may_be(old, new)

    def _is_written_otherwise(self, old: Any, new: Any, name: str) -> bool:
        """Say whether two values say the same to a model, though they are written in two ways."""
        if name in _WRITTEN_TWO_WAYS and isinstance(old, str) != isinstance(new, str):
            parts = _spell_out(old, name), _spell_out(new, name)
            return all(isinstance(one, list) for one in parts) and self._is_same(*parts)
        if name == "arguments" and isinstance(old, str) and isinstance(new, str):
            trees = [find_json(one.encode("utf-8", "surrogatepass")) for one in (old, new)]
            return all(isinstance(one, dict | list) for one in trees) and self._is_same(*trees)
        return False

    def _is_same(self, old: Any, new: Any) -> bool:
        return next(self.walk(old, new), None) is None


def _is_no_content(name: str, old: Any, new: Any, parent: str, *, is_free: bool) -> bool:
    """Say whether a member of a model call says nothing: what is to be cached, or what proves a thought."""
    if name in CACHE_MARKERS:
        return True
    if is_free:
        return False
    if name == "signature":
        kinds = {one.get("type") for one in (old, new) if isinstance(one.get("type"), str)}
        return parent == "reasoningText" or bool(kinds & _THOUGHTS)
    return name in _PROOFS


def _spell_out(value: Any, name: str) -> Any:
    if name == "input" and isinstance(value, str):
        return [{"role": "user", "content": value}]
    return spell_out(value)


def _is_alike(name: str, old: Any, new: Any) -> bool:
    """Say whether a member of two messages, or of parts of them, says the same in another form, or nothing to a model."""
    forms = plain_form(old), plain_form(new)
    first, second = (one.get(name, _NOTHING) for one in forms)
    return first is second or (isinstance(first, str) and first == second)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not is_twice(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith(MARKER)


def _form(value: Any) -> str:
    """Give a value with a constant for its ids and times."""
    text = show_json(value)
    return find_anew(text[:_SEARCHED])[0] + text[_SEARCHED:]


def _kind(value: Any) -> tuple[str, ...]:
    """Say of what kind an element is: of two messages, the role; of others, their type and name."""
    if not isinstance(value, dict):
        return (type(value).__name__,)
    return tuple(str(value.get(one))[:200] for one in ("role", "type", "name"))
