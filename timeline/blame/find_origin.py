"""Find where a value of a request came from: the first earlier answer or request that had it, and how it went on from there.

1. An answer counts if it can have reached the agent: pieces that arrived after the request had been asked for did not, nor did those
   that came after the client had left. Telemetry does not count.
2. The origin is the place that had it first: of an answer counts when the piece with it had come, not when it was asked for. Where a
   request had the value before any answer, the agent brought it: its user, its prompt, a tool of its own. What an answer repeats then is
   told beside.
3. `recorded` says that the same characters are there, alone, and that they are telling: another place would have them by no chance.
   All else is `inferred`, with the rule. Where nothing has the whole value, its telling parts are looked for, each by itself.
4. What is but a piece of a longer value is no origin where another place has the value alone. It is told as a hint, and leaves a doubt;
   so does another answer with the same number, in another notation or unit too (cents, dollars), unless that is a long one, as ids are.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple

from ...store import StoreError
from ...tape.canonical.canonical_url import same_url
from ...tape.exchange import Exchange, RequestClass, Response, Seq
from ...tape.matching.dependence import seen_answer
from ..reading.exchange_json import is_without_times
from ..state.calls_before import Exchanges, Place
from ..steps.step import Evidence
from .distinctive_values import is_short_number, may_be_an_amount
from .exchange_values import (
    Leaf,
    NoPlace,
    Scalar,
    answered_leaves,
    asked_leaves,
    find_leaf,
    message_leaves,
)
from .new_bytes import Fresh, read_fresh
from .sought_value import JSON_FORMAT, NOTATION, Match, Wanted, find_parts, make_wanted
from .token_or_substring import Standing

_MOST = 16
"""Places with the value that are looked for: what is in so many is in everything."""
_UNTELLING = 8
"""The same of a value that says little."""
_READ = 500
"""Most exchanges that are unpacked since their bytes may have it."""
_CUT_UP = 256 * 1024
"""Bytes of an answer up to which the piece is looked for with which the value came."""
_EVER = 1 << 62
_COUNT = "a count"
_NAME = "the name of a member"
_IN = {_COUNT: "as a count"}
_SHOWN = 120
"""Characters of a hint's text."""
_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,2})?")


class Unit(NamedTuple):
    """A value in another unit."""

    wanted: Wanted
    name: str
    """What it is of the value."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A place that has a value."""

    seq: int
    side: str
    """`answer` or `request`."""
    place: str
    what: str
    """Of a part of a context who said it: `user`, `tool result` ..."""
    value: Scalar
    """All that is there."""
    rule: str
    """Empty for the same characters, else how the value is written there."""
    exchange: str
    """Method and URL."""
    whole: bool = True
    part: int = 0
    """Of a model call of a WebSocket its place among these; 0 elsewhere."""
    is_call: bool = False
    """Whether a model was asked."""
    at_ns: int = 0
    """When it had come, to the piece of an answer; 0 where only the order of the requests says so."""
    asked: tuple[int, ...] = ()
    """Where its request is in the order in which the run asked."""

    @property
    def step(self) -> str:
        """The name of its step."""
        return name_step(self.seq, self.part)


@dataclass(slots=True)
class Part:
    """A part of a value, and where it came from."""

    text: str
    sightings: list[Sighting]

    @property
    def origin(self) -> Sighting:
        """The first place."""
        return self.sightings[0]


@dataclass(slots=True)
class Blame:
    """Where a value came from."""

    seq: int
    place: str
    value: Scalar
    exchange: str
    telling: bool
    """Whether two places have the value by no chance."""
    sightings: list[Sighting] = field(default_factory=list)
    """The first in order, the origin at the beginning."""
    looked_until: int = 0
    """Seq behind which was not looked any more, since enough was found; 0 where all was looked at."""
    parts: list[Part] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """What may be meant and is no evidence."""
    unseen: list[Sighting] = field(default_factory=list)
    """Answers with it that the agent had not seen: they came after the client had left, or after the request was sent."""
    unread: list[int] = field(default_factory=list)
    """Earlier exchanges with a body that could not be looked at."""
    part: int = 0
    """Of a model call of a WebSocket; 0 elsewhere."""
    doubt: str = ""
    """Where else it may come from."""

    @property
    def step(self) -> str:
        """The name of the step that was asked about."""
        return name_step(self.seq, self.part)

    @property
    def origin(self) -> Sighting | None:
        """The first place that has it, or of its parts the longest."""
        if self.sightings:
            return self.sightings[0]
        return self.parts[0].origin if self.parts else None

    @property
    def evidence(self) -> Evidence | None:
        """On what the origin rests; None where there is none."""
        origin = self.origin
        if origin is None:
            return None
        same = bool(self.sightings) and not origin.rule and self.telling and not self.doubt
        return Evidence.RECORDED if same else Evidence.INFERRED

    @property
    def rule(self) -> str:
        """Why it is inferred, or what is in both."""
        origin = self.origin
        if origin is None:
            return ""
        if not self.sightings:
            return f"{self.parts[0].text!r} is a part of it"
        if origin.rule:
            return origin.rule
        if not self.telling:
            return "the same, but others may have it by chance"
        return f"the same, but {self.doubt}" if self.doubt else "the same characters"

    @property
    def answer(self) -> Sighting | None:
        """The first answer that has it."""
        return next((one for one in self.sightings if one.side == "answer"), None)


def find_blame(
    exchanges: Exchanges, seq: int, place: str, value: str | None = None, part: int = 0
) -> Blame:
    """Find where the value at a place of an exchange came from.

    place: as `exchange_values.py` writes it; `answer ` before it names the answer.
    value: a part of the text there, which is looked for in its stead.
    part: of a model call of a WebSocket; 0 for the exchange itself.
    Raises: StoreError, for a seq, a part or a place that is not there, naming the nearest; LogCorrupt.
    """
    exchange = exchanges.get(seq)
    asked = exchanges.get_part(exchange, part) if part else exchange
    try:
        leaf = find_leaf(asked, place)
    except NoPlace as error:
        raise StoreError(
            f"exchange {name_step(seq, part)} of run {exchanges.info.id!r}: {error}",
            error.hint if asked.websocket is None else _name_parts(exchanges, exchange, error.hint),
        ) from None
    sought = _choose(leaf, value, seq)
    found = Blame(seq, place, sought, describe(asked), False, part=part)
    wanted = make_wanted(sought)
    found.telling = wanted.telling
    parts = [make_wanted(one) for one in find_parts(wanted.text)] if isinstance(sought, str) else []
    units = _units(sought)
    by_tape = exchanges.info.parent is not None
    has_times = not by_tape and not is_without_times(asked)
    until_ns = asked.started_ns if part and has_times else _EVER
    asked_at = exchanges.place_of(seq, part)
    behind = asked_at.after + 1 if part else seq
    seen = _Search(found, wanted, parts, units, asked_at, until_ns, has_times=has_times)
    # What a tape answered to a playback arrived in the order of the tape's seqs.
    until = _EVER if by_tape else behind
    for fresh in read_fresh(exchanges, behind) if wanted.text else ():
        if fresh.seq == seq:
            continue  # the WebSocket itself: its earlier calls are below
        seen.look(fresh, exchanges, until)
        if seen.has_enough:
            found.looked_until = fresh.seq
            break
    for number, made in exchanges.asked(exchange) if part else ():
        if number < part:
            seen.look_at_call(made, exchanges.place_of(seq, number), _EVER)
    if place.strip().startswith("answer "):
        seen.look_at(asked, 0, None, seq + 1, asked_only=True, part=part)
    seen.finish()
    _doubt_order(found, exchanges)
    _doubt_times(found, exchanges, asked)
    return found


def _doubt_times(found: Blame, exchanges: Exchanges, asked: Exchange) -> None:
    """Doubt an answer of an import that does not say when it came: it may have come after the request was sent."""
    origin = found.sightings[0] if found.sightings else None
    if origin is None or origin.side != "answer" or found.doubt:
        return
    if any(map(is_without_times, (asked, exchanges.find(origin.seq)))):
        found.doubt = "the imported lines do not say when it came"


def _doubt_order(found: Blame, exchanges: Exchanges) -> None:
    """Doubt an answer beside which another one with the value was under way, if no times say which came first."""
    origin = found.sightings[0] if found.sightings else None
    if origin is None or origin.side != "answer" or origin.at_ns or found.doubt:
        return
    for one in found.sightings[1:]:
        other = exchanges.find(one.seq) if one.side == "answer" and not one.at_ns else None
        if other is None or other.lane is None or origin.seq not in other.lane.overlaps:
            continue
        found.doubt = f"{_name_place(one)} may have come before"
        return


def _name_place(one: Sighting) -> str:
    return f"{one.step} {one.side} {one.place}"


def name_step(seq: int, part: int) -> str:
    """Write the name of a step, as it is read on the command line."""
    return f"{seq}.{part}" if part else str(seq)


def _name_parts(exchanges: Exchanges, exchange: Exchange, otherwise: str) -> str:
    """Say what may be meant of a WebSocket, which has its bodies in its messages."""
    calls, seq = len(exchanges.asked(exchange)), exchange.seq
    return f"name one of its model calls: {seq}.1 to {seq}.{calls}" if calls else otherwise


def _choose(leaf: Leaf, value: str | None, seq: int) -> Scalar:
    if value is None:
        return leaf.value
    told = leaf.value if isinstance(leaf.value, str) else str(leaf.value)
    if value not in told:
        raise StoreError(
            f"exchange {seq} has no {value[:80]!r} at {leaf.place[:80]}",
            f"there is {told[:160]!r}",
        )
    return value


def describe(exchange: Exchange) -> str:
    """Name an exchange: its method and URL."""
    return f"{exchange.request.method} {exchange.request.url}"


class _Search:
    """Notes the places that have a value as exchanges are looked at in order."""

    def __init__(
        self,
        blame: Blame,
        wanted: Wanted,
        parts: list[Wanted],
        units: list[Unit],
        asked: Place,
        until_ns: int,
        *,
        has_times: bool,
    ) -> None:
        self._blame = blame
        self._asked = asked
        """Where the request is that is asked about."""
        self._until_ns = until_ns
        """When it was sent, where the order of arrival does not tell which pieces of answers had come."""
        self._has_times = has_times
        """Whether times say what came first, not only the order of the requests."""
        self._wanted = wanted
        self._parts = parts
        self._units = units
        self._is_short = is_short_number(wanted.text)
        self._pieces: list[tuple[Sighting, Standing]] = []
        self._of_parts: dict[str, list[Sighting]] = {}
        self._in_units: list[tuple[Sighting, str]] = []
        """Places that have the value in another unit, each with which."""
        self._known: set[tuple[str, str]] = set()
        """Places beside the conversation that were seen: prompts and tools repeat."""
        self._read = 0

    def look(self, fresh: Fresh, exchanges: Exchanges, until: int) -> None:
        """Look at the next exchange."""
        if fresh.is_apart:
            self._blame.unread.append(fresh.seq)
        text = fresh.text
        may = self._wanted.may_be_in(text)
        wanted = may
        if not may:
            wanted = any(one.may_be_in(text) for one in self._others())
        is_websocket = fresh.is_websocket
        if not wanted and not is_websocket:
            return
        exchange = fresh.exchange()
        self._read += may
        self.look_at(exchange, fresh.after, exchanges if is_websocket else None, until)

    @property
    def has_enough(self) -> bool:
        """Whether more places would tell nothing new."""
        most = _MOST if self._blame.telling else _UNTELLING
        return len(self._blame.sightings) >= most or self._read >= _READ

    def _others(self) -> Iterator[Wanted]:
        """Give what else is still looked for."""
        if len(self._in_units) < _MOST:
            yield from (one.wanted for one in self._units)
        if not self._blame.sightings:
            yield from (one for one in self._parts if one.text not in self._of_parts)

    def look_at(
        self,
        exchange: Exchange,
        after: int,
        messages: Exchanges | None,
        until: int,
        *,
        asked_only: bool = False,
        part: int = 0,
    ) -> None:
        """Look at an exchange that may have the value.

        after: byte of the body of its request before which nothing is new.
        until: seq of the request that is asked about.
        """
        self._note(
            exchange,
            "request",
            asked_leaves(exchange, self._may_be_in, after, self._wanted.tree),
            part,
        )
        seen = None if asked_only else self._seen(exchange, until)
        found = False
        if seen is not None and seen.spilled is None:
            found = self._note_answer(exchange, seen)
        if not found and not asked_only and seen is not exchange.response:
            self._note_unseen(exchange)
        if messages is not None:
            self._look_at_messages(exchange, messages, until)

    def _may_be_in(self, data: bytes) -> bool:
        return any(one.may_be_in(data) for one in (self._wanted, *self._others()))

    def _look_at_messages(self, exchange: Exchange, exchanges: Exchanges, until: int) -> None:
        """Look at the messages of a WebSocket; those of a model call as what they add up to."""
        calls = exchanges.asked(exchange)
        for part, made in calls:
            place = exchanges.place_of(exchange.seq, part)
            if place < self._asked:
                self.look_at_call(made, place, until)
        for message in exchanges.messages(exchange) if not calls else ():
            if message.after < until:
                side = "request" if message.from_client else "answer"
                leaves = message_leaves(message, self._wanted.tree)
                self._note(exchange, side, leaves, at_us=message.at_us)

    def look_at_call(self, made: Exchange, place: Place, until: int) -> None:
        """Look at a model call of a WebSocket."""
        noted = len(self._blame.sightings)
        leaves = asked_leaves(made, self._may_be_in, tree=self._wanted.tree)
        self._note(made, "request", leaves, place.part)
        seen = self._seen(made, until)
        if seen is not None:
            self._note_answer(made, seen, place.part)
        new = self._blame.sightings[noted:]
        self._blame.sightings[noted:] = [replace(one, asked=place) for one in new]

    def _seen(self, exchange: Exchange, until: int) -> Response | None:
        """Give what an agent can have seen of an answer when the request was sent."""
        response = exchange.response
        since_us = (self._until_ns - exchange.started_ns) // 1000
        if response is None or exchange.end_us <= since_us:
            return seen_answer(exchange, Seq(until))
        chunks = tuple(
            one if one.at_us <= since_us else one._replace(after=until) for one in response.chunks
        )
        if chunks == response.chunks:
            return seen_answer(exchange, Seq(until)) if chunks else None
        return seen_answer(replace(exchange, response=replace(response, chunks=chunks)), Seq(until))

    def _note_unseen(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None or exchange.request_class is RequestClass.TELEMETRY:
            return
        for leaf in answered_leaves(exchange, response, self._wanted.tree):
            found = self._match(leaf)
            if found is not None and len(self._blame.unseen) < _MOST:
                self._blame.unseen.append(_sight(exchange, "answer", leaf, found))
                return

    def _note_answer(self, exchange: Exchange, seen: Response, part: int = 0) -> bool:
        """Note what an agent has seen of an answer; say whether it has the value."""
        leaves = answered_leaves(exchange, seen, self._wanted.tree)
        noted = len(self._blame.sightings)
        found = self._note(exchange, "answer", leaves, part, at_us=exchange.end_us)
        if len(self._blame.sightings) > noted and self._has_times:
            sighting = self._blame.sightings[-1]
            at_us = self._find_piece(exchange)
            self._blame.sightings[-1] = replace(sighting, at_ns=exchange.started_ns + at_us * 1000)
        return found

    def _find_piece(self, exchange: Exchange) -> int:
        """Find when the piece of an answer came with which it has the value alone."""
        response = exchange.response
        chunks = response.chunks if response is not None else ()
        if response is None or len(chunks) < 2 or len(response.body) > _CUT_UP:
            return chunks[-1].at_us if chunks else exchange.end_us
        ends = list(accumulate(chunk.size for chunk in chunks))

        def has_it(count: int) -> bool:
            part = replace(response, body=response.body[: ends[count]], chunks=())
            leaves = answered_leaves(exchange, part, self._wanted.tree)
            found = (self._match(leaf) for leaf in leaves)
            return any(one is not None and one.standing is Standing.ALONE for one in found)

        at = bisect_left(range(len(chunks) - 1), True, key=has_it)
        return chunks[at].at_us

    def _note(
        self,
        exchange: Exchange,
        side: str,
        leaves: Iterable[Leaf],
        part: int = 0,
        *,
        at_us: int = 0,
    ) -> bool:
        """Note the best of some places with the value; say whether there is one.

        at_us: when they had come, since the exchange began.
        """
        at_ns = exchange.started_ns + at_us * 1000 if self._has_times else 0
        whole: list[tuple[Sighting, Standing]] = []
        for leaf in leaves:
            repeats = leaf.what in ("system prompt", "tools")
            if repeats and (leaf.place, str(leaf.value)) in self._known:
                continue
            found = self._match(leaf)
            if found is not None and self._is_by_chance(leaf, found):
                continue
            if found is not None:
                found = self._weigh(exchange, side, leaf, found)
                whole.append((_sight(exchange, side, leaf, found, part, at_ns), found.standing))
                if repeats:
                    self._known.add((leaf.place, str(leaf.value)))
                continue
            for one in self._parts:
                told = one.match(leaf.value) if one.text not in self._of_parts else None
                if told is not None and not told.rule:
                    self._of_parts[one.text] = [_sight(exchange, side, leaf, told, part, at_ns)]
            if len(self._in_units) < _MOST and (side == "answer" or not self._blame.sightings):
                self._note_unit(exchange, side, leaf, part, at_ns)
        if whole:
            best, standing = min(whole, key=_rank)
            if standing is Standing.ALONE:
                self._blame.sightings.append(best)
            elif len(self._pieces) < _MOST:
                self._pieces.append((best, standing))
        return bool(whole)

    def _match(self, leaf: Leaf) -> Match | None:
        """Say how a place has the value. A name that says little is no place of its own: `user` and `id` are in everything."""
        if leaf.is_tree:
            return Match(JSON_FORMAT, True)
        found = self._wanted.match(leaf.value)
        if found is not None and leaf.is_name and not self._blame.telling:
            return Match(_NAME, found.whole, Standing.PIECE)
        return found

    def _note_unit(self, exchange: Exchange, side: str, leaf: Leaf, part: int, at_ns: int) -> None:
        for unit in self._units:
            told = unit.wanted.match(leaf.value)
            if told is None or told.standing is not Standing.ALONE:
                continue
            if self._weigh(exchange, side, leaf, told).rule != _COUNT:
                sighting = _sight(exchange, side, leaf, told, part, at_ns)
                self._in_units.append((sighting, unit.name))

    def _is_by_chance(self, leaf: Leaf, found: Match) -> bool:
        """Say whether a short number is but digits of a header field, of its version or its date."""
        in_field = leaf.place.startswith("header ")
        return self._is_short and in_field and found.standing is not Standing.ALONE

    def _weigh(self, exchange: Exchange, side: str, leaf: Leaf, found: Match) -> Match:
        """Count as a piece what has a short number for a reason of its own: a field of an answer, tokens."""
        if not self._is_short or side == "request" or not found.whole:
            return found
        is_usage = "usage" in leaf.place and exchange.request_class is RequestClass.INFERENCE
        if leaf.place.startswith("header ") or is_usage:
            return Match(_COUNT, True, Standing.PIECE)
        return found

    def finish(self) -> None:
        """Say what is left where nothing has the whole value."""
        blame = self._blame
        blame.sightings.sort(key=_order)
        self._pieces.sort(key=lambda one: _order(one[0]))
        if not blame.sightings:
            blame.sightings = [one for one, _ in self._pieces]
        else:
            self._doubt(blame.sightings[0])
        first = next(iter(self._in_units), None)
        if first is not None and all(_order(first[0]) < _order(one) for one in blame.sightings):
            self._hint(*first)
        if blame.sightings:
            return
        if not blame.telling:
            return
        for part in self._parts:
            found = self._of_parts.get(part.text)
            if found and not any(part.text in other.text for other in blame.parts):
                blame.parts.append(Part(part.text, found))

    def _doubt(self, origin: Sighting) -> None:
        """Note where else the value may come from: a piece before, or another answer with the same number."""
        blame = self._blame
        before = [one for one in self._pieces if _order(one[0]) < _order(origin)]
        for one, standing in before:
            if one.rule == _NAME:
                continue
            told = f"{_name_place(one)} has it {_IN.get(one.rule, one.rule)}"
            if standing is not Standing.FOREIGN:
                blame.doubt = blame.doubt or told
                blame.hints.append(f"{told}: {_shorten(one.value)}")
        if not may_be_an_amount(self._wanted.text) or not blame.telling:
            return
        asked = {(one.seq, one.part) for one in blame.sightings if one.side == "request"}
        first_asked = min(
            (_asked(one) for one in blame.sightings if one.side == "request"), default=(_EVER,)
        )
        known = {(one.seq, one.part) for one in blame.sightings}
        units = [one for one in self._in_units if (one[0].seq, one[0].part) not in known]
        others = [(one, "") for one in blame.sightings[1:] if one.rule in ("", NOTATION)]
        for one, unit in [*others, *units]:
            is_brought = one.side == "request" and bool(unit) and _order(one) < _order(origin)
            is_apart = one.side == "answer" and (one.seq, one.part) not in asked
            # A model that has been told it says it again.
            is_told = one.is_call and first_asked < _asked(one)
            is_same = _same_read(one, origin)
            if is_told or is_same or _same_field(one, origin) or not (is_brought or is_apart):
                continue
            told = f"{_name_place(one)} has it, too"
            blame.doubt = blame.doubt or (_say_unit(one, unit) if unit else told)
            if unit:
                self._hint(one, unit)

    def _hint(self, one: Sighting, unit: str) -> None:
        """Note, once, a place that has the value in another unit."""
        told = f"{_say_unit(one, unit)}: {_shorten(one.value)}"
        if told not in self._blame.hints:
            self._blame.hints.append(told)


def _say_unit(one: Sighting, unit: str) -> str:
    return f"{_name_place(one)} has {unit} of it"


def _same_read(one: Sighting, other: Sighting) -> bool:
    """Say whether two exchanges read one resource."""
    (method, _, url), (as_well, _, also) = (
        one.exchange.partition(" "),
        other.exchange.partition(" "),
    )
    return method == as_well and method in ("GET", "HEAD") and same_url(url, also)


def _same_field(one: Sighting, other: Sighting) -> bool:
    """Say whether two places are the same field of the same sort of thing: its own name, and that of what it is in."""
    fields = [re.findall(r"[^.\[\]$\d][^.\[\]]*", place) for place in (one.place, other.place)]
    return len(fields[0]) > 1 and fields[0][-2:] == fields[1][-2:]


def _asked(one: Sighting) -> tuple[int, ...]:
    return one.asked or Place(one.seq, -1, one.seq, 0)


def _order(one: Sighting) -> tuple[int, tuple[int, ...], bool]:
    """Put first what had come first, and a request before its answer."""
    return one.at_ns, _asked(one), one.side == "answer"


def _rank(found: tuple[Sighting, Standing]) -> tuple[int, bool, bool]:
    """Prefer a value alone to a piece, the same characters to another writing, and a whole value to a part of a text."""
    one, standing = found
    return -standing, bool(one.rule), not one.whole


def _shorten(value: Scalar) -> str:
    told = str(value)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _sight(
    exchange: Exchange, side: str, leaf: Leaf, match: Match, part: int = 0, at_ns: int = 0
) -> Sighting:
    return Sighting(
        exchange.seq,
        side,
        leaf.place,
        leaf.what,
        leaf.value,
        match.rule,
        describe(exchange),
        match.whole,
        part,
        exchange.request_class is RequestClass.INFERENCE,
        at_ns,
    )


def _units(value: Scalar) -> list[Unit]:
    """Prepare the hundredth of a whole number, and what an amount with a fraction of two digits is in cents."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return []
    text = value if isinstance(value, str) else json.dumps(value)
    if _AMOUNT.fullmatch(text) is None:
        return []
    number = Decimal(text)
    if "." in text:
        return [Unit(make_wanted(int(number * 100)), "a hundredfold")]
    return [Unit(make_wanted(f"{number / 100:.2f}"), "a hundredth")] if number >= 100 else []
