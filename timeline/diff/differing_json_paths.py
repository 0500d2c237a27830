"""Name the places at which two acts differ: JSON paths in requests and answers, with both values.

A place is the one that it has in the body, and the value is what that body has there, whatever an earlier call of its lane was.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile, zip_longest
from typing import Any
from urllib.parse import parse_qsl

from ...tape.canonical.canonical_request import Rules, body_tree, compared
from ...tape.canonical.json import show_json
from ...tape.dialects import Finish
from ...tape.dialects.common.untrusted_json import Json, JsonObject, find_json
from ...tape.diff.divergence_types import ABSENT, MAX_SHOWN, Difference
from ...tape.diff.request_differences import differences, json_step
from ...tape.exchange import Exchange, Request
from ...tape.records.content_coding import read_codings, undo_coding
from ..state.calls_before import Exchanges
from ..steps.split_messages import PROMPTS, Split, split_body
from ..steps.websocket_calls import find_call
from .acts import Act, Said
from .align_lists import Pair, align_lists
from .compare_trees import Place, TreeComparison, make_place
from .fields_beyond_dialect import MAY_VARY, counted_parts
from .made_anew import find_spans
from .renaming import Renaming
from .row import Change, Row
from .stand_ins import StandIns

_MOST = 64 * 1024 * 1024
_USAGE = re.compile(r"answer body \$\.usage(Metadata)?\b")
"""Counts of tokens: they differ as soon as anything does, and say nothing more."""
_FINISH = re.compile(r"[._](finish_?reason|stop_?reason|done_reason|status|reason)$", re.IGNORECASE)
"""Places in an answer that say how it ends."""
_NOT_COMPARED = ("header ", "trailer ")
"""Places of a request that count for its fingerprint, and not between two runs."""
_WHOLES = {"form": "body"}
_TEXT_BODY = re.compile(r"body byte [0-9]+$")
_ID = re.compile(r"[\w.:-]+")
"""What may be an id, of any form."""
_PREFIX = re.compile(r"(?<![\w-])(?:[A-Za-z]+[_-])+\Z")
"""Words before what was drawn of an id, as in `ord_8f2a91bc44`: both runs have them."""
_LOOKED_AT = 400
"""Differences of one pair that are looked at."""


@dataclass(slots=True)
class Places:
    """The places at which the acts of a row differ."""

    listed: list[Place]
    more: int = 0
    """How many are not listed, as far as was looked."""


def find_places(
    row: Row, first: Exchanges, second: Exchanges, rules: Rules, most: int = 20
) -> Places:
    """Find where the acts of a row differ; nothing where one of them has no partner.

    Raises: LogCorrupt.
    """
    one, other = row.first, row.second
    if one is None or other is None or row.change in (Change.SAME, Change.MOVED):
        return Places([])
    sides = _read(one, first), _read(other, second)
    if sides[0] is None or sides[1] is None:
        return Places([])
    finder = _Finder(row, one, other, sides[0], sides[1], rules)
    listed = finder.find()
    if not listed and one.drops == other.drops:
        # An id or a time differs that does not stand for the other one, for a reason that is not in these two acts.
        listed = replace(finder, is_exact=True).find() or list(finder.stale_ids())
    return Places(listed[:most], max(0, len(listed) - most))


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two exchanges."""

    exchange: Exchange
    root: str
    """JSON path of the body: a model call of a WebSocket may be a member of its message."""


def _read(act: Act, exchanges: Exchanges) -> _Side | None:
    found = exchanges.find(act.seq)
    if found is None:
        return None
    if not act.part:
        return _Side(found, "$")
    call = find_call(found, exchanges.messages(found), act.part)
    return _Side(*call) if call is not None else None


@dataclass(slots=True)
class _Finder:
    row: Row
    one: Act
    other: Act
    old: _Side
    new: _Side
    rules: Rules
    is_exact: bool = False
    """Whether no id stands for another."""

    def find(self) -> list[Place]:
        """Find the places, those of the request first."""
        asked = list(islice(self._asked(), _LOOKED_AT)) if self.row.change is Change.ASKED else []
        return asked + list(islice(self._answered(), _LOOKED_AT))

    def stale_ids(self) -> Iterator[Place]:
        """Find the ids that both have, where one of the second run stands for that of the first."""
        renaming, request = self.row.renaming, self.old.exchange.request
        if renaming is None:
            return
        texts = {"path": request.target}
        tree = find_json(_plain_body(request))
        texts |= {f"body {path}": text for path, text in _leaves(tree, self.old.root)}
        for place, text in texts.items():
            other = _find_other(renaming, text)
            if other:
                yield replace(make_place((place, place), (text, text)), stands_for=other)

    def _ids(self, *, is_proof: bool = False) -> StandIns:
        return StandIns(self.row, is_proof=is_proof, is_exact=self.is_exact)

    def _asked(self) -> Iterator[Place]:
        requests = self.old.exchange.request, self.new.exchange.request
        if not (self.one.is_call and self.other.is_call):
            yield from self._request(TreeComparison(self._ids(is_proof=True), is_call=False))
            return
        trees = TreeComparison(self._ids(), is_call=True)
        if _model_of(self.one) != _model_of(self.other) and requests[0].path != requests[1].path:
            # Some APIs have the model there.
            yield make_place(("path", "path"), (requests[0].path, requests[1].path))
        splits = _split(requests[0]), _split(requests[1])
        if splits[0] is not None and splits[1] is not None and splits[0].key == splits[1].key:
            lists = _Lists(self, trees, _Listed(self.old, splits[0]), _Listed(self.new, splits[1]))
            yield from lists.find()
            return
        bodies = [find_json(_plain_body(one)) for one in requests]
        if all(isinstance(one, dict) for one in bodies):
            yield from self.members(trees, bodies[0], bodies[1])
        else:
            yield from self._request(trees)

    def members(self, trees: TreeComparison, old: Any, new: Any) -> Iterator[Place]:
        """Compare what model calls have beside a list of messages."""
        first, _ = self.counted(self.one, self.old, old)
        second, _ = self.counted(self.other, self.new, new)
        for name in dict.fromkeys((*first, *second)):
            if name in MAY_VARY:
                continue
            sides = [{name: one[name]} if name in one else {} for one in (first, second)]
            roots = self.old.root, self.new.root
            yield from trees.walk(sides[0], sides[1], roots, is_prompt=name in PROMPTS)

    def counted(
        self,
        act: Act,
        side: _Side,
        around: JsonObject,
        key: str = "",
        elements: dict[int, Any] | None = None,
    ) -> tuple[JsonObject, dict[int, Any]]:
        """Give parts of a request, but for what the rules leave out."""
        if act.part:
            return around, elements or {}
        return counted_parts(side.exchange, self.rules, around, key, elements or {})

    def _request(self, trees: TreeComparison) -> Iterator[Place]:
        """Compare two requests of any kind."""
        old, new = self.old.exchange, self.new.exchange
        found = differences(
            old.request, new.request, self.rules, old.request_class, limit=_LOOKED_AT
        )
        is_json = any(said.place.startswith("body $") for said in found)
        for said in found:
            if said.place.startswith(_NOT_COMPARED) or (
                is_json and said.place.startswith("body $")
            ):
                continue
            yield from self._told(trees.ids, said)
        if is_json:
            bodies = (
                body_tree(compared(one.request), self.rules, old.request_class)
                for one in (old, new)
            )
            yield from trees.walk(next(bodies), next(bodies))

    def _told(self, ids: StandIns, said: Difference) -> Iterator[Place]:
        """Give a difference that is no JSON path, if more than ids differ."""
        place, texts = said.place, (said.recorded, said.asked)
        what, _, name = place.partition(" ")
        parts = [
            next((one.text for one in act.asked if one.what == _WHOLES.get(what, what)), "")
            for act in (self.one, self.other)
        ]
        if _TEXT_BODY.match(place) and all(parts):
            at = ids.first_difference(*parts)
            if at is not None:
                sizes = [
                    len(text[:end].encode("utf-8", "surrogateescape"))
                    for text, end in zip(parts, at, strict=True)
                ]
                places = f"{what} byte {sizes[0]}", f"{what} byte {sizes[1]}"
                yield make_place(places, (parts[0], parts[1]), at)
            return
        at = ids.first_difference(*texts, f"{name}: ")
        if at is not None:
            yield Place(place, *texts, at=at)
            return
        if max(map(len, texts)) < MAX_SHOWN:
            return
        # A line shows a part of a value: what differs may be behind it.
        values = [
            [value for key, value in parse_qsl(one, keep_blank_values=True) if key == name]
            for one in parts
        ]
        for one, other in zip_longest(*values, fillvalue=ABSENT):
            at = ids.first_difference(one, other, f"{name}: ")
            if at is not None:
                yield make_place((place, place), (one, other), at)

    def _answered(self) -> Iterator[Place]:
        found = list(islice(self._answer_parts(), _LOOKED_AT))
        ends = list(self._ends())
        if not (self.one.is_call and self._is_plain_end):
            yield from ends
            yield from found
            return
        yield from found
        if not any(_FINISH.search(said.place) for said in found):
            yield from ends

    @property
    def _is_plain_end(self) -> bool:
        """Whether a model ended both: then a body of JSON has how. It does not have how the answer arrived."""
        ends = (one.outcome.partition(" (")[0] for one in (self.one, self.other))
        return _ENDS.issuperset(ends)

    def _ends(self) -> Iterator[Place]:
        texts = self.one.outcome or ABSENT, self.other.outcome or ABSENT
        at = self._ids().first_difference(*texts)
        if at is not None:
            place = "answer ends" if self.one.is_call else "answer status"
            yield make_place((place, place), texts, at)

    def _answer_parts(self) -> Iterator[Place]:
        is_call = self.one.is_call and self.other.is_call
        trees = [_answer_tree(self.one, self.old), _answer_tree(self.other, self.new)]
        if all(isinstance(tree, dict | list) for tree in trees):
            is_named = False
            comparison = TreeComparison(self._ids(), is_call, "answer body")
            for said in comparison.walk(trees[0], trees[1]):
                if not (is_call and _USAGE.match(said.place)):
                    is_named = True
                    yield said
            if is_named:
                return
        yield from self._said()

    def _said(self) -> Iterator[Place]:
        old, new = _numbered(self.one.answered), _numbered(self.other.answered)

        def same(one: _Numbered, other: _Numbered) -> bool:
            return next(self._part(one, other), None) is None

        pairs = align_lists(
            old,
            new,
            same,
            lambda one: one.said.key,
            lambda one: one.said.what,
        )
        for at, there in pairs:
            first = old[at] if at is not None else None
            second = new[there] if there is not None else None
            if first is not None and second is not None and first.said.what == second.said.what:
                yield from self._part(first, second)
                continue
            for part, shown in ((first, 0), (second, 1)):
                if part is not None:
                    texts = (
                        (_shown(part.said), ABSENT) if not shown else (ABSENT, _shown(part.said))
                    )
                    yield make_place((part.place, part.place), texts)

    def _part(self, one: "_Numbered", other: "_Numbered") -> Iterator[Place]:
        places = one.place, other.place
        if one.said.what != other.said.what:
            yield make_place(places, (_shown(one.said), _shown(other.said)))
            return
        if one.said.name != other.said.name:
            yield make_place((one.place,) * 2, (_shown(one.said), _shown(other.said)))
            return
        texts = one.said.text, other.said.text
        if texts[0] == texts[1]:
            return
        trees = [_tree(text) for text in texts]
        if all(tree is not None for tree in trees):
            walk = TreeComparison(self._ids(), is_call=False, where="").walk(trees[0], trees[1])
            is_named = False
            for said in islice(walk, _LOOKED_AT):
                is_named = True
                second = said.second_place or said.place
                named = f"{places[0]}{said.place}", f"{places[1]}{second}"
                yield replace(
                    said, place=named[0], second_place=named[1] if named[0] != named[1] else ""
                )
            if is_named:
                return  # else they differ as texts alone: a key that is there twice, or how a number is written
        at = self._ids().first_difference(*texts)
        if at is not None:
            yield make_place(places, texts, at)


_ENDS = frozenset(("", *(one.value for one in Finish)))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A request with a list of messages."""

    side: _Side
    split: Split


class _Lists:
    """Compares two model calls whose messages are a list."""

    def __init__(self, finder: _Finder, trees: TreeComparison, old: _Listed, new: _Listed) -> None:
        """Begin."""
        self._finder = finder
        self._trees = trees
        self._sides = (finder.one, old), (finder.other, new)
        self._firsts = [min(act.first_item, len(one.split.places)) for act, one in self._sides]
        roots = [f"{one.side.root}{json_step(one.split.key)}" for one in (old, new)]
        self._roots = roots[0], roots[1]
        self._elements: tuple[dict[int, Any], dict[int, Any]] = {}, {}
        """Messages that were read, by their places."""

    def find(self) -> Iterator[Place]:
        """Compare what is beside the messages, then these: from where the call before of each lane ended, else all."""
        is_named = False
        for said in self._find_new():
            is_named = True
            yield said
        if not is_named:
            yield from self._walk(self._pairs((0, 0)))

    def _find_new(self) -> Iterator[Place]:
        arounds = [{**one.split.head, **one.split.tail} for _, one in self._sides]
        yield from self._finder.members(self._trees, *arounds)
        first, second = self._firsts
        is_whole = first != second and (
            not min(first, second) or any(act.drops for act, _ in self._sides)
        )
        # What is gone from a conversation, or that it begins anew, is in messages that an earlier call had.
        begins = (0, 0) if is_whole else (first, second)
        yield from self._prompts(begins)
        pairs = self._pairs(begins)
        if first != second and not is_whole and any(None in pair for pair in pairs):
            # One goes on from more messages than the other: the same message may be new in one alone.
            pairs = [pair for pair in self._pairs((0, 0)) if self._is_new(pair)]
        yield from self._walk(pairs)

    def _prompts(self, begins: tuple[int, int]) -> Iterator[Place]:
        """Compare the messages of the system prompt before those that are new."""
        prompts = [
            list(takewhile(_is_prompt, map(one.split.element, range(begin))))
            for begin, (_, one) in zip(begins, self._sides, strict=True)
        ]
        yield from self._trees.walk(prompts[0], prompts[1], self._roots, is_prompt=True)

    def _pairs(self, begins: tuple[int, int]) -> list[Pair]:
        """Say which message of one is which of the other, from a place in each on."""
        first, second = begins
        splits = [one.split for _, one in self._sides]
        most = min(len(splits[0].places) - first, len(splits[1].places) - second)
        same = 0
        while same < most and splits[0].slice(first + same) == splits[1].slice(second + same):
            same += 1
        lists = self._read(0, first + same), self._read(1, second + same)
        return [
            (
                first + same + at if at is not None else None,
                second + same + there if there is not None else None,
            )
            for at, there in self._trees.align(*lists)
        ]

    def _is_new(self, pair: Pair) -> bool:
        """Say whether either call is the first of its lane to have a message."""
        places = zip(pair, self._firsts, strict=True)
        return any(at is not None and at >= first for at, first in places)

    def _walk(self, pairs: list[Pair]) -> Iterator[Place]:
        for at, there in pairs:
            old = [self._elements[0][at]] if at is not None else []
            new = [self._elements[1][there]] if there is not None else []
            inner = f"{self._roots[0]}[{at}]", f"{self._roots[1]}[{there}]"
            is_prompt = all(map(_is_prompt, (*old, *new)))
            yield from self._trees.pair(old, new, inner, is_prompt=is_prompt)

    def _read(self, side: int, begin: int) -> list[Any]:
        """Read the messages from a place on, but for what the rules leave out."""
        act, one = self._sides[side]
        split = one.split
        elements = {number: split.element(number) for number in range(begin, len(split.places))}
        around = {**split.head, **split.tail}
        counted = self._finder.counted(act, one.side, around, split.key, elements)
        self._elements[side].update(counted[1])
        return list(counted[1].values())


def _find_other(renaming: Renaming, text: str) -> str:
    """Find the id of the second run that one in a text stands for, with its prefix; empty where none is known."""
    for begin, _, made in find_spans(text):
        other = renaming.find_other(made.text)
        if other:
            prefix = _PREFIX.search(text[:begin])
            return f"{prefix[0] if prefix is not None else ''}{other}"
    return next(filter(None, map(renaming.find_other, _ID.findall(text))), "")


def _is_prompt(element: Any) -> bool:
    return isinstance(element, dict) and element.get("role") in ("system", "developer")


def _model_of(act: Act) -> str | None:
    return act.settings.model if act.settings is not None else None


def _split(request: Request) -> Split | None:
    return split_body(_plain_body(request))


def _plain_body(request: Request) -> bytes:
    coding = read_codings(request.headers)
    plain = undo_coding(request.body, coding, _MOST) if coding else None
    return request.body if plain is None else plain


def _answer_tree(act: Act, side: _Side) -> Json:
    """Give the JSON of an answer; None for a stream, for what is none, and for one of a WebSocket."""
    response = side.exchange.response
    if response is None or response.is_events or act.part or response.spilled is not None:
        return None
    coding = read_codings(response.headers)
    body = undo_coding(response.body, coding, _MOST) if coding else response.body
    return find_json(body) if body and body.lstrip()[:1] in (b"{", b"[") else None


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A part of an answer that no body of JSON has, with the name of its place."""

    said: Said
    place: str


def _numbered(parts: list[Said]) -> list[_Numbered]:
    counts, made = Counter[str](), list[_Numbered]()
    for said in parts:
        counts[said.what] += 1
        number = counts[said.what]
        is_call = said.what == "tool call"
        shown = f" {number}" if is_call or number > 1 else ""
        made.append(
            _Numbered(said, f"answer {said.what}{shown}{f' {said.name}' if is_call else ''}")
        )
    return made


def _leaves(tree: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _leaves(value, f"{path}{json_step(name)}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(value, f"{path}[{number}]")
    else:
        yield path, show_json(tree)


def _tree(text: str) -> Json:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    return find_json(text.encode("utf-8", "surrogatepass"))


def _shown(said: Said) -> str:
    name = f"{said.name} " if said.name else ""
    return f"{name}{said.text}" if said.text else name or json.dumps("")
