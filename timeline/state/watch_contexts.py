"""Watch the model calls of a run as they are placed in their lanes: what was said where, and what a request lost or nothing explains in it.

Whoever looks back at a request asks here: the state at a step, and what a context lost, have the same call before and the same origins.

1. What is lost is found by comparing the contexts of the two calls. A result that was shortened is no orphan, one that was replaced is.
2. An orphan is what a model seems to have said and no recorded answer has; a result of a call that no recorded answer asked for; and
   what stands among what had been sent before, and had not been sent. What the agent adds behind that is its own to say, and what is
   left of a message whose other parts are gone is what it was.
3. An id alone explains nothing: a call has to have the arguments that the answer gave it, and a result the text that it was first sent
   with, or a part of that.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ...tape.dialects import InferenceResponse
from ...tape.exchange import Exchange, Seq
from ..steps.agent_lanes import ANSWER_IS_IN, Placed, count_same
from ..steps.model_call import SAME_BUT_SPACE, ModelCall, is_drawn
from ..steps.model_context import Item
from ..steps.tool_call_arrival import read_late_answer
from .compare_contexts import Lost, find_change, find_difference, find_dropping
from .context_parts import (
    ContextPart,
    is_cut_from,
    is_note,
    is_rest_of,
    short,
    split_items,
    squeezed,
)
from .provider_conversation import Provider

_SAID = ("assistant", "model", "thought")
_WRITTEN = ("user", "system", "developer")
_TAKEN = (ANSWER_IS_IN, SAME_BUT_SPACE)
"""Rules by which a lane begins with what a model answered to another."""


@dataclass(slots=True)
class Looked:
    """What was found in the request of a model call."""

    seq: int
    call_part: int
    lane: int
    before: int
    """Seq of the call before of the same lane, or 0."""
    lost: list[Lost] = field(default_factory=list)
    orphans: list[ContextPart] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    """Tools that are not offered any more."""
    system: list[str] = field(default_factory=list)
    """Lines that are gone from the system prompt."""
    unsure: list[Lost] = field(default_factory=list)
    """What the request does not have, and the provider may or may not keep."""
    unknown: list[str] = field(default_factory=list)
    """Why it is not known whether more is gone."""
    conversation: str = ""
    """Id of the conversation with which the provider keeps what is not in the request: that is not lost."""
    dropping: list[str] = field(default_factory=list)
    """Settings by which the provider itself may have dropped something."""
    taken_from: int = 0
    """Of a call that begins a lane with the conversation of another, the call that it goes on from; else 0."""


class Watch:
    """Notes what was said where, and looks at each model call as it is placed."""

    def __init__(self, wanted: Callable[[int], bool]) -> None:
        """Begin.

        wanted: says whether the call of a seq is to be looked at.
        """
        self.found: list[Looked] = []
        self._placed: list[Placed] = []
        """Of each that was found; what comes later may change it."""
        self._wanted = wanted
        self._calls: dict[str, Seq] = {}
        """Answers by the tool calls that they asked for."""
        self._names: dict[str, str] = {}
        """Of tools, by the ids of their calls: the last, where an id comes again."""
        self._asked: dict[str, list[ContextPart]] = {}
        """Tool calls of answers, by their ids."""
        self._given: dict[str, str] = {}
        """Results as they were first sent, by the ids of their calls."""
        self._said: dict[str, Seq] = {}
        self._first: dict[str, Seq] = {}
        self._provider = Provider()

    def see(self, exchange: Exchange) -> None:
        """Take the next exchange, behind the model calls that it is or that came before."""
        self._provider.see(exchange)
        late = read_late_answer(exchange)
        if late is not None:
            self._note(exchange.seq, late[1])

    def note_aside(self, call: ModelCall) -> None:
        """Take a model call beside the conversation: the provider may keep it."""
        self._provider.note(call)

    def observe(self, call: ModelCall, placed: Placed) -> None:
        """Take the next model call."""
        before = placed.before
        self._provider.note(call)
        for item in call.context.new():
            for part in split_items([item]):
                self._first.setdefault(part.key, call.seq)
                if part.what == "tool result" and part.call:
                    self._given.setdefault(part.call, squeezed("", part.text))
        if self._wanted(call.seq):
            number = placed.state.lane.number
            looked = Looked(call.seq, call.part, number, before.seq if before is not None else 0)
            looked.conversation = call.context.conversation or ""
            looked.dropping = find_dropping(call.context)
            looked.taken_from = self._provider.shared_with(call)
            self._look(call, before, looked)
            self.found.append(looked)
            self._placed.append(placed)
        self._note(call.seq, call.answer)

    @property
    def is_open(self) -> bool:
        """Whether later calls may show that one that was looked at is of another lane."""
        return any(one.is_fork for one in self._placed)

    def end(self) -> None:
        """Take back what was said of a call that turned out to begin a lane of its own: it had nothing to drop."""
        for looked, placed in zip(self.found, self._placed, strict=True):
            looked.lane = placed.state.lane.number
            if placed.is_new:
                edge = next(iter(placed.edges), None)
                is_taken = edge is not None and edge.rule in _TAKEN
                looked.before = 0
                looked.taken_from = edge.source if edge and is_taken else looked.taken_from
                looked.lost, looked.tools, looked.system = [], [], []
                looked.unsure, looked.unknown = [], []
            else:
                looked.taken_from = 0

    def _note(self, seq: Seq, answer: InferenceResponse | None) -> None:
        message = answer.message if answer is not None else None
        if message is None:
            return
        for part in split_items([Item((message,), seq)]):
            self._said.setdefault(short(part), seq)
            if part.call:
                self._calls.setdefault(_called(part), seq)
                self._names[part.call] = part.name
                self._asked.setdefault(part.call, []).append(part)
        self._said.setdefault(squeezed("assistant", message.text), seq)

    def _look(self, call: ModelCall, before: ModelCall | None, looked: Looked) -> None:
        names = dict(self._names)
        now = split_items(call.context.items, names)
        same = 0
        if before is not None:
            same = count_same(before.context.items, call.context.items)
            change = find_change(self._provider, before, call, names)
            found = find_difference(change, self.origin, self._given)
            looked.lost, looked.unsure, looked.unknown = found.lost, found.unsure, found.unknown
            looked.tools, looked.system = found.tools, found.system
        looked.orphans = [one for one in now if self._is_orphan(one)]
        looked.orphans += self._inserted(call, before, now, same)
        looked.orphans.sort(key=now.index)

    def origin(self, part: ContextPart) -> int:
        """Give the answer, or of what the agent wrote the request, that first had a part."""
        called = self._calls.get(_called(part)) if part.what == "tool call" else None
        if called is not None:
            return called
        said = self._said.get(short(part)) if part.what in (*_SAID, "tool call") else None
        if said is not None:
            return said
        return self._first.get(part.key) or part.since

    def _is_orphan(self, part: ContextPart) -> bool:
        if part.what == "tool result":
            return part.call is not None and not self._is_result(part, part.call)
        if part.what == "tool call":
            asked = self._asked.get(part.call or "", [])
            known = self._calls if part.call else self._said
            return _called(part) not in known or (bool(asked) and not _is_among(part, asked))
        if part.what in _SAID and part.text.strip():
            return short(part) not in self._said
        return False

    def _is_result(self, part: ContextPart, call: str) -> bool:
        asked = self._asked.get(call, [])
        if not asked or call not in self._names:
            return False
        if not is_drawn(call) and len(asked) > 1:
            return True  # which of them it is the result of is not known
        first = self._given.get(call)
        return first is None or is_rest_of(part.text, first)

    def _inserted(
        self,
        call: ModelCall,
        before: ModelCall | None,
        now: list[ContextPart],
        same: int,
    ) -> list[ContextPart]:
        """Find what the agent put among what had been sent, and had not sent before."""
        if before is None:
            return []
        known = {one.key for one in before.context.items}
        last = max(
            (at for at, one in enumerate(call.context.items) if one.key in known), default=-1
        )
        answered = {one.id for one in before.calls if one.id}
        for one in now:
            is_answer = (one.call in answered) if one.call else False
            said = one.what in _SAID and self._said.get(short(one)) == before.seq
            if one.what in ("tool call", *_SAID) and (is_answer or said):
                last = max(last, one.item)
                break
        if last < len(before.context.items) - 1:
            return []  # the context was made anew: what is new in it stands for what is gone
        fresh = [one for one in now if same <= one.item < last]
        is_known = [call.context.items[one.item].key in known for one in fresh]
        had = split_items(before.context.items[same:])
        left = Counter(one.key for one in had)
        left.subtract(one.key for one, is_old in zip(fresh, is_known, strict=True) if is_old)
        told = {_told(item) for item in before.context.items[same:]}
        inserted = []
        for one, is_old in zip(fresh, is_known, strict=True):
            if is_old or one.what in (*_SAID, "tool call", "tool result"):
                continue
            left[one.key] -= 1
            is_text = one.what in _WRITTEN
            if left[one.key] >= 0 or (is_text and _told(call.context.items[one.item]) in told):
                continue  # other parts of its message are gone, or it is in other parts now
            if not is_note(one.text) and not _is_cut_from_any(one, had):
                inserted.append(one)
        return inserted


def _told(item: Item) -> tuple[str, ...]:
    """Give what the texts of a message say, however they are divided."""
    return tuple(squeezed(one.role or "", one.text) for one in item.messages)


def _is_cut_from_any(part: ContextPart, had: list[ContextPart]) -> bool:
    return any(one.what == part.what and is_cut_from(part.text, one.text) for one in had)


def _called(part: ContextPart) -> str:
    """Give what tells a tool call from others: its id, and where that may come again, what it asked for."""
    if part.call and is_drawn(part.call):
        return part.call
    return f"{part.call} {short(part)}" if part.call else short(part)


def _is_among(part: ContextPart, asked: list[ContextPart]) -> bool:
    """Say whether a tool call is one that an answer asked for: the tool, and the arguments as JSON."""
    given = _arguments(part)
    return any(part.name == one.name and given == _arguments(one) for one in asked)


def _arguments(part: ContextPart) -> object:
    try:
        given = json.loads(part.text)
    except (ValueError, RecursionError):
        return "".join(part.text.split())
    # None at all are sent as an empty object, too.
    return {} if given in (None, "") else given
