"""Find the agent that a model call is of: the lane.

A call goes on with the lane whose answer reappears in it, or whose messages it repeats. What begins anew belongs to the agent with
the same prompt and tools where that one was idle, and to a new one otherwise. Such a call begins a branch of its lane: if both it and
the call that it did not go on from are gone on with later, they were two agents, and the branch becomes a lane of its own. Each
decision is an edge with its evidence:

1. `recorded`: bytes of an answer, of an id or of the messages are in the request.
2. `inferred`: nothing but a rule ties the two; the edge names it.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from ...tape.dialects.common.untrusted_json import Json
from ...tape.exchange import Seq
from .model_call import (
    ModelCall,
    answer_in,
    argument_texts,
    find_results,
    is_drawn,
    keeps_role,
    same_agent,
    same_prompt,
    user_texts,
)
from .model_context import Context, Item, count_system
from .step import Edge, Evidence, Lane
from .tool_call_arrival import Arrival

CARRIED = 3
"""Weight of an answer that is in a request."""
ANSWER_IS_IN = "the answer is in the request"
SAME_CONVERSATION = "names the same conversation"
ONCE_MORE = "the same messages once more"
UNANSWERED = "its messages are in the request, its answer is not"
SOME = "some of its messages are in the request, its answer is not"
IDLE = "same system prompt and tools, one after the other"
_FORKS = (ONCE_MORE, UNANSWERED, SOME, IDLE)
"""Rules by which a call is of a lane although it has not the lane's last answer."""
MIN_TEXT = 12
"""Characters from which on a text that is in another is no coincidence."""
WARM = 64
"""Lanes that are looked at; of older ones nothing but their counts is kept."""
_LEFT = 4
"""Branches of a lane that are remembered, for as long as they may be gone on with."""
_LATE = 64
"""Calls of a lane after which a branch that was left is not gone on with any more."""
_IDS = 4096
_STARTS = 16
"""Places in an earlier conversation at which a later one that dropped its beginning may begin."""
_READ = 64 * 1024
"""Characters of an answer in which what it quotes is looked for."""
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)+"|\'(?:[^\'\\\n]|\\.)+\'')


class _Rank(NamedTuple):
    """How well a call goes on with an earlier one; the higher, the better."""

    weight: int
    is_retry: bool
    """Whether that one failed: what was answered is not asked for again while something else was not."""
    same: int
    """Items that both begin with."""
    is_own: bool
    """Whether both are of one process."""
    youth: int


class Made(NamedTuple):
    """An exchange that a tool call caused."""

    seq: Seq
    answer: str
    """Its text."""
    is_certain: bool
    """Whether no other tool call could have."""


@dataclass(slots=True)
class PendingCall:
    """A tool call whose result no request has had yet."""

    seq: Seq
    lane: int
    name: str
    id: str | None
    arguments: Json
    text: str
    """The arguments, as text."""
    number: int = 0
    """Among the tool calls of its exchange, from 1."""
    exchanges: list[Made] = field(default_factory=list)
    """What it caused."""
    processes: set[int] = field(default_factory=set)
    agents: int = 0
    """How many sub-agents it has asked for."""
    lanes: set[int] = field(default_factory=set)
    """Their lanes, as far as they are known."""
    arrival: Arrival | None = None
    """When its answer came; None where that is not known."""
    at: int = 0
    """Among the tool calls of its answer, from 0."""
    values: list[str] = field(init=False)
    """The strings and numbers in the arguments, which every request that may be the call's is compared with."""

    def __post_init__(self) -> None:
        self.values = argument_texts(self.arguments)

    def had_come(self, seq: Seq) -> bool:
        """Say whether the agent had it when a request was sent."""
        return self.arrival is None or self.arrival.had_come(self.at, seq)


@dataclass(slots=True)
class Branch:
    """Calls of a lane each of which has the answer of the one before."""

    last: ModelCall
    placed: "Placed | None" = None
    """Why its first call is in this lane."""
    calls: list[tuple[Seq, int]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """Of its answers."""
    begun: int = 0
    """Its number in the lane: a later one may be of another agent."""
    left: int = 0
    """How many calls the lane had when another branch began."""


@dataclass(slots=True)
class LaneState:
    """A lane, and its last model call."""

    lane: Lane
    last: ModelCall
    branch: Branch
    """The one that `last` is of."""
    left: list[Branch] = field(default_factory=list)
    """Branches whose last answer no later call has had."""
    placed: int = 0
    """How many calls it has had."""
    calls: "OrderedDict[str, str]" = field(default_factory=OrderedDict)
    """Names of the tools that its answers called, by the ids of the calls."""
    signatures: list[str] = field(default_factory=list)
    """Its last tool calls, for loops."""

    def heads(self) -> list[Branch]:
        """Give the branches that a call may go on with, the current one first."""
        return [self.branch, *reversed(self.left)]


@dataclass(slots=True)
class Split:
    """A branch that turned out to be of another agent."""

    old: Lane
    new: LaneState
    calls: frozenset[tuple[Seq, int]]
    placed: "Placed"


@dataclass(slots=True)
class Placed:
    """Where a call belongs, and why. What comes later may show that it begins a lane of its own: then this is changed."""

    state: LaneState
    edges: list[Edge]
    retry_of: Seq | None = None
    is_new: bool = False
    before: ModelCall | None = None
    """The call before it in its lane."""
    branch: Branch | None = None
    """The branch whose last answer the call has; None where it has none."""
    is_fork: bool = False
    """Whether it begins a branch, so that its lane may be found to be another."""
    split: Split | None = None
    """What the call shows of earlier ones."""
    asked: "_Asked | None" = None
    """Of one that begins a branch, the tool call that asked for it if it is a sub-agent: another may have been given the same."""


class Lanes:
    """The lanes of a run."""

    def __init__(self) -> None:
        self.all: list[Lane] = []
        self._warm: list[LaneState] = []
        """The most recent last."""
        self._ids: OrderedDict[str, LaneState] = OrderedDict()
        """Lanes by the ids of their answers."""
        self._answered: OrderedDict[str, Seq] = OrderedDict()
        """Calls by the ids of their answers."""
        self._asked: dict[int, Seq] = {}
        """By the number of a lane, the call that asked for it."""

    def candidates(self) -> list[Context]:
        """Give the contexts that a request may repeat, the most recent first."""
        states = list(reversed(self._warm))
        first = [state.last.context for state in states]
        return first + [one.last.context for state in states for one in reversed(state.left)]

    @property
    def warm(self) -> list[LaneState]:
        """The lanes that are looked at, the most recent last."""
        return self._warm

    @property
    def open_since(self) -> Seq | None:
        """The first call that may yet be found to be of another lane; None where there is none."""
        forks = (one for state in self._warm if state.left for one in state.heads())
        return min((one.calls[0][0] for one in forks if one.placed is not None), default=None)

    def place(self, call: ModelCall, pending: list[PendingCall]) -> Placed:
        """Find the lane of a call, or begin one; it is the lane's last call from then on."""
        placed = self._find(call, pending)
        if placed is None:
            placed = self._begin(call)
        state = placed.state
        if not placed.is_new:
            state = self._advance(call, placed)
            if placed.is_fork:
                placed.asked = _asked_by(call, pending, self._warm)
                if placed.asked is not None and not _has_answers(call.context.items):
                    placed.asked[0].agents += 1
            again = None if placed.is_fork else _asked_again(call, state.lane, pending)
            if again is not None:
                again[0].agents += 1
                again[0].lanes.add(state.lane.number)
                placed.edges.append(_asked_edge(again, call.seq))
            placed.edges += self._from_others(call, state)
        state.last = state.branch.last = call
        state.lane.last = call.seq
        state.placed += 1
        state.branch.calls.append((call.seq, call.part))
        if state in self._warm:
            self._warm.remove(state)
        self._warm.append(state)
        del self._warm[:-WARM]
        if call.answer is not None and call.answer.id:
            state.branch.ids.append(call.answer.id)
            self._ids[call.answer.id] = state
            self._answered[call.answer.id] = call.seq
            if len(self._ids) > _IDS:
                self._ids.popitem(last=False)
                self._answered.popitem(last=False)
        return placed

    def _advance(self, call: ModelCall, placed: Placed) -> LaneState:
        """Go on with the branch that a call belongs to, or begin one; give the lane, which is another where that shows two agents."""
        state = placed.state
        state.left = [one for one in state.left if state.placed - one.left < _LATE]
        current = state.branch
        placed.before = current.last
        if placed.branch is None:
            if current.last.failed or placed.retry_of is not None:
                return state  # nothing was answered that could be gone on with
            current.left = state.placed
            state.left = [*state.left, current][-_LEFT:]
            state.branch = Branch(call, placed, begun=state.placed)
            placed.is_fork = True
            return state
        resumed = placed.branch
        if resumed is current:
            return state
        placed.before = resumed.last
        state.left = [one for one in state.left if one is not resumed]
        if resumed.begun > current.begun:
            placed.split = self._split(state, resumed)
            placed.state = placed.split.new if placed.split is not None else state
            return placed.state
        state.branch = resumed
        began = current.placed
        apart = began is not None and any(one.rule == IDLE for one in began.edges)
        if apart or len(current.calls) > 1:
            placed.split = self._split(state, current)
        else:
            current.left = state.placed
            state.left = [*state.left, current][-_LEFT:]
        return state

    def _split(self, state: LaneState, branch: Branch) -> Split | None:
        """Make a branch a lane of its own: it and the one that it left were both gone on with, or share nothing but the prompt."""
        placed = branch.placed
        if placed is None:
            return None
        asked = placed.asked
        if asked is None:
            new = self._new(branch.last, 0, "")
        else:
            new = self._new(branch.last, asked[0].lane, _name_of(asked[0]), asked[0].seq)
            asked[0].lanes.add(new.lane.number)
        new.lane.first, new.branch, new.placed = branch.calls[0][0], branch, len(branch.calls)
        new.lane.client = state.lane.client
        new.calls = state.calls.copy()
        placed.edges = [one for one in placed.edges if one.rule not in _FORKS]
        if asked is not None:
            placed.edges.append(_asked_edge(asked, new.lane.first))
        placed.state, placed.before, placed.is_new, placed.retry_of = new, None, True, None
        # In its own lane it is what others branch off from, and is not moved again.
        branch.begun, branch.placed = 0, None
        new.lane.last = branch.last.seq
        for id in branch.ids:
            if id in self._ids:
                self._ids[id] = new
        seqs = {seq for seq, _ in branch.calls}
        for number, source in self._asked.items():
            if source in seqs:
                self.all[number - 1].parent = new.lane.number
        self._warm.append(new)
        del self._warm[:-WARM]
        return Split(state.lane, new, frozenset(branch.calls), placed)

    def _find(self, call: ModelCall, pending: list[PendingCall]) -> Placed | None:
        known = self._ids.get(call.context.previous or "")
        if known is not None:
            named = (one for one in known.heads() if _answers(one.last, call.context.previous))
            branch = next(named, None)  # who names an earlier answer begins a branch there
            source = self._answered.get(call.context.previous or "", known.branch.last.seq)
            edge = Edge(source, call.seq, Evidence.RECORDED, "names the answer's id")
            return Placed(known, [edge], branch=branch)
        kept = self._find_kept(call)
        if kept is not None:
            edge = Edge(kept.last.seq, call.seq, Evidence.RECORDED, SAME_CONVERSATION)
            return Placed(kept, [edge], branch=kept.branch)
        best: tuple[_Rank, LaneState, Branch, Edge, Seq | None] | None = None
        for age, state in enumerate(reversed(self._warm)):
            for branch in state.heads():
                found = goes_on(branch.last, call)
                if found is None or (found[0] < CARRIED and branch is not state.branch):
                    continue
                weight, same, edge, retry = found
                is_own = branch.last.process == call.process
                rank = _Rank(weight, retry is not None, same, is_own, -age)
                if best is None or rank > best[0]:
                    best = rank, state, branch, edge, retry
        if best is not None:
            rank, state, branch, edge, retry = best
            if self._begins_again(rank, call, branch.last):
                others = [one for one in pending if one.lane != state.lane.number]
                asked = _asked_by(call, others, self._warm, once=True)
                if asked is not None:
                    return self._begin_asked(call, asked)
            carried = branch if rank.weight == CARRIED else None
            if same_agent(branch.last, call, continued=True) or (
                carried is not None
                and keeps_role(branch.last, call)
                and find_repeated(branch.last.context, call.context) > 0
            ):
                return Placed(state, [edge], retry, branch=carried)
            back = self._same_agent(call, pending)
            if back is not None:
                return Placed(back, [edge], branch=_carried(back, call))
            return Placed(self._new(call, state.lane.number, "", edge.source), [edge], None, True)
        asked = _asked_by(call, pending, self._warm)
        if asked is not None:
            return self._begin_asked(call, asked)
        proven = self._find_proven(call)
        if proven is not None:
            return proven
        idle = self._find_idle(call, pending)
        if idle is not None:
            edge = Edge(idle.last.seq, call.seq, Evidence.INFERRED, IDLE)
            return Placed(idle, [edge])
        return None

    def _begin_asked(self, call: ModelCall, asked: "_Asked") -> Placed:
        """Begin the lane of a sub-agent that a tool call asked for."""
        one = asked[0]
        one.agents += 1
        new = self._new(call, one.lane, _name_of(one), one.seq)
        one.lanes.add(new.lane.number)
        return Placed(new, [_asked_edge(asked, call.seq)], None, True)

    def _begins_again(self, rank: "_Rank", call: ModelCall, last: ModelCall) -> bool:
        """Say whether a call has no more than what an earlier one began with, and that one was answered: a sub-agent may be asked twice."""
        items = call.context.items
        is_begin = rank.weight < CARRIED and rank.same == len(items)
        return is_begin and not (last.failed or last.is_cut) and not _has_answers(items)

    def _find_kept(self, call: ModelCall) -> LaneState | None:
        """Find the lane of an agent whose conversation the provider keeps under the id that a call names."""
        states = reversed(self._warm if call.context.conversation else [])
        return next((state for state in states if same_conversation(state.last, call)), None)

    def _find_proven(self, call: ModelCall) -> Placed | None:
        """Find the only lane of the same agent whose answers a call has that dropped or changed what it began with, and the last answer.

        Who asks for a summary begins with that, and is told it as a user says it.
        """
        given = user_texts(call.context.items)
        found = list[Placed]()
        for state in self._warm:
            last = state.last
            said = "" if last.calls else last.said.strip()
            is_told = len(said) >= MIN_TEXT and any(said in text for text in given)
            if last.seq in call.overlaps or not (
                is_told or has_answers_of(last.context, call.context, sure=True)
            ):
                continue
            if same_agent(last, call, continued=True):
                edge = Edge(last.seq, call.seq, Evidence.INFERRED, SOME)
                if is_told:
                    edge = Edge(last.seq, call.seq, Evidence.RECORDED, ANSWER_IS_IN)
                found.append(Placed(state, [edge]))
        return found[0] if len(found) == 1 else None

    def _find_idle(self, call: ModelCall, pending: list[PendingCall]) -> LaneState | None:
        """Find a lane with the same prompt that was not waiting for an answer when the call came.

        One that waits for the result of a tool may have compacted its context since that came, if there was something to compact; a
        sub-agent with its prompt is told apart once the lane goes on.
        """
        fitting = [
            state
            for state in reversed(self._warm)
            if state.last.seq not in call.overlaps
            and state.last.process == call.process
            and same_prompt(state.last, call)
        ]
        for state in fitting:
            if not any(one.seq == state.last.seq for one in pending):
                return state
        if not call.context.system:
            return None
        return next((state for state in fitting if _has_answers(state.last.context.items)), None)

    def _same_agent(self, call: ModelCall, pending: list[PendingCall]) -> LaneState | None:
        """Find a lane of the same agent that was idle when the call came."""
        lasts = {state.lane.number: state.last.seq for state in self._warm}
        busy = {one.lane for one in pending if one.seq == lasts.get(one.lane, one.seq)}
        for state in reversed(self._warm):
            idle = state.last.seq not in call.overlaps and state.lane.number not in busy
            if idle and state.last.process == call.process and same_agent(state.last, call):
                return state
        return None

    def _begin(self, call: ModelCall) -> Placed:
        writer = _written_by(call, self._warm)
        if writer is not None:
            rule = "the answer quotes its first message"
            edge = Edge(writer.last.seq, call.seq, Evidence.RECORDED, rule)
            new = self._new(call, writer.lane.number, "", writer.last.seq)
            return Placed(new, [edge], None, True)
        state = self._new(call, 0, "")
        edges = self._from_others(call, state)
        if edges:
            state.lane.parent = next(
                (
                    other.lane.number
                    for other in self._warm
                    if other.last.seq == edges[0].source and other is not state
                ),
                0,
            )
            self._asked[state.lane.number] = edges[0].source
        return Placed(state, edges, None, True)

    def _new(self, call: ModelCall, parent: int, name: str, asked: Seq | None = None) -> LaneState:
        lane = Lane(len(self.all) + 1, name or _agent_name(call), call.seq, call.seq, parent)
        self.all.append(lane)
        if asked is not None:
            self._asked[lane.number] = asked
        return LaneState(lane, call, Branch(call))

    def _from_others(self, call: ModelCall, own: LaneState) -> list[Edge]:
        """Find the last answers of other lanes in what is new in a call."""
        new = call.context.new()
        results = [one.text for one in find_results(new)]
        given = results + user_texts(new)
        if not given:
            return []
        edges = []
        own_last = own.last.seq if own.last is not call else 0
        for state in self._warm:
            said = state.last.said.strip()
            if state is own or not said or state.last.calls:
                continue
            if len(said) >= MIN_TEXT:
                told = any(said in text for text in given)
            else:  # so short a text says something as the whole result of a call that was made meanwhile
                told = state.last.seq > own_last and any(said == one.strip() for one in results)
            if told:
                edges.append(Edge(state.last.seq, call.seq, Evidence.RECORDED, ANSWER_IS_IN))
        return edges


def same_conversation(last: ModelCall, call: ModelCall) -> bool:
    """Say whether a call goes on with a conversation that the provider keeps under an id, as the same agent.

    Who is given no prompt any more, and no other tools, has no other role.
    """
    if last.context.conversation != call.context.conversation:
        return False
    if same_agent(last, call, continued=True):
        return True
    prompts = last.context.system, call.context.system
    return not all(prompts) and (last.tools <= call.tools or call.tools <= last.tools)


def goes_on(last: ModelCall, call: ModelCall) -> tuple[int, int, Edge, Seq | None] | None:
    """Say whether a call goes on with an earlier one: with a weight, how many items both begin with, the edge, and what it tries again.

    Where the two begin with nothing of the same, an answer without ids may be in both by chance: a short one, or that of another agent.
    """
    items = call.context.items
    same = count_same(last.context.items, call.context.items)
    spoken = same > 0 and any(item.system is None for item in items[:same])
    how = answer_in(last, call.context, same)
    ids = any(one.id for one in last.calls)
    if how is not None and not spoken and not ids:
        told = find_repeated(last.context, call.context)
        behind = answer_in(last, call.context, told) if told else None
        telling = len(last.said) >= MIN_TEXT or bool(last.calls)
        proven = has_answers_of(last.context, call.context)
        if behind is not None and (telling or keeps_role(last, call)):
            how = behind
        elif not (telling or proven) or not same_agent(last, call, continued=proven):
            how = None
    if how is not None:
        evidence = Evidence.INFERRED if how else Evidence.RECORDED
        rule = how or ANSWER_IS_IN
        return CARRIED, same, Edge(last.seq, call.seq, evidence, rule), None
    # Where the prompt is a message, and is another one, the conversation behind it counts.
    begun, was = (same, same) if spoken else count_behind_system(last.context, call.context)
    if not begun or last.seq in call.overlaps:
        return None
    apart = bool(last.process and call.process) and last.process != call.process
    apart = apart or not same_prompt(last, call)
    is_whole = was == len(last.context.items)
    if begun == len(items) and is_whole:
        if apart and not last.failed:
            return None  # another agent with the same task
        same_way = last.context.asked.streamed == call.context.asked.streamed
        retry = last.seq if (last.failed or last.is_cut) and same_way else None
        # What was answered was not asked for again: another agent may have been given the same.
        evidence = Evidence.RECORDED if retry and not apart else Evidence.INFERRED
        return 2, begun, Edge(last.seq, call.seq, evidence, ONCE_MORE), retry
    if apart and not _has_answers(items[:begun]):
        return None
    if not same_agent(last, call, continued=True):
        return None
    rule = UNANSWERED if is_whole else SOME
    return 1, begun, Edge(last.seq, call.seq, Evidence.INFERRED, rule), None


def _has_answers(items: list[Item]) -> bool:
    """Say whether a model has said some of the items."""
    return any(one.role == "assistant" for item in items for one in item.messages)


def _is_same(one: Item, other: Item) -> bool:
    """Say whether two items say the same; of one that both contexts have the key is not computed."""
    return one is other or one.key == other.key


def count_same(one: list[Item], other: list[Item]) -> int:
    """Count the items that two contexts, or two parts of them, begin with."""
    same = 0
    for old, new in zip(one, other, strict=False):
        if old is not new and old.key != new.key:
            break
        same += 1
    return same


def count_behind_system(one: Context, other: Context) -> tuple[int, int]:
    """Count what two contexts begin with behind their system prompts: the place in the later one, and in the earlier; 0 for nothing."""
    begins = [count_system(context.items) for context in (other, one)]
    same = 0
    for new, old in zip(other.items[begins[0] :], one.items[begins[1] :], strict=False):
        if not _is_same(new, old):
            break
        same += 1
    return (begins[0] + same, begins[1] + same) if same else (0, 0)


def has_answers_of(one: Context, other: Context, *, sure: bool = False) -> bool:
    """Say whether a later context has an answer that an earlier one had: two agents say the same once by chance, and seldom twice.

    sure: whether a tool call has to have an id that was drawn.
    """
    given = {item.key for item in one.items if _is_telling_answer(item, sure=sure)}
    return bool(given) and any(
        _is_telling_answer(item, sure=sure) and item.key in given for item in other.items
    )


def _is_telling_answer(item: Item, *, sure: bool) -> bool:
    if any(not sure or is_drawn(one.id or "") for one in item.calls):
        return True
    return any(
        len(message.text) >= MIN_TEXT for message in item.messages if message.role == "assistant"
    )


def find_repeated(one: Context, other: Context) -> int:
    """Find the conversation of an earlier context in a later one, whatever the system prompt of either is; give the place behind it.

    A later one may have dropped what came first. 0 where it is not there.
    """
    items, begin = other.items, count_system(other.items)
    earlier = one.items[count_system(one.items) :]
    if not earlier or begin == len(items):
        return 0
    starts = (at for at, item in enumerate(earlier) if _is_same(item, items[begin]))
    for start in islice(starts, _STARTS):
        end = begin + len(earlier) - start
        if end <= len(items) and all(map(_is_same, earlier[start:], items[begin:end])):
            return end
    return 0


def _answers(last: ModelCall, id: str | None) -> bool:
    return last.answer is not None and last.answer.id == id


def _carried(state: LaneState, call: ModelCall) -> Branch:
    """Give the branch of a lane whose last answer is in a call that was handed back; the current one where none is."""
    for branch in state.heads():
        same = count_same(branch.last.context.items, call.context.items)
        if answer_in(branch.last, call.context, same) is not None:
            return branch
    return state.branch


def _asked_by(
    call: ModelCall, pending: list[PendingCall], warm: list[LaneState], *, once: bool = False
) -> "_Asked | None":
    """Find the tool call that asked for a sub-agent: what it was given is in the sub-agent's first messages.

    once: one that has asked for a sub-agent before does not count.
    """
    texts = [one.strip() for one in user_texts(call.context.items[:4])]
    own = {state.lane.number for state in warm if same_prompt(state.last, call)}
    asked = _given_by(texts, pending, own)
    if asked is not None:
        return None if once and asked[0].agents else asked
    free = [one for one in pending if one.lane not in own and not one.agents]
    return _told_of(user_texts(call.context.items), free)


def _asked_again(call: ModelCall, lane: Lane, pending: list[PendingCall]) -> "_Asked | None":
    """Find the tool call by which an agent asks a sub-agent that remembers what it was asked before."""
    free = [one for one in pending if one.lane == lane.parent and not one.agents]
    texts = [one.strip() for one in user_texts(call.context.new())] if free else []
    if not texts:
        return None
    return _given_by(texts, free, set(), "new") or _told_of(texts, free)


def _given_by(
    texts: list[str], pending: list[PendingCall], own: set[int], which: str = "first"
) -> "_Asked | None":
    """Find the tool call that was given what is in these messages of a sub-agent.

    own: lanes whose prompt the sub-agent has.
    """
    whole, inside = list[_Asking](), list[_Asking]()
    for one in pending:
        given = {text.strip() for text in one.values}
        given = {text for text in given if len(text) >= MIN_TEXT}
        if given & set(texts):
            whole.append(_Asking(one, given & set(texts)))
        # An agent that tells itself again what its tool was given has compacted its context.
        told = one.lane in own and bool(one.exchanges)
        found = {short for short in given if not told and any(short in text for text in texts)}
        if found:
            inside.append(_Asking(one, found))
    for some, where in ((whole, "is its"), (inside, "is in its")):
        if not some:
            continue
        # What one was given may contain what another was given; of equal ones each asks for one agent in turn.
        best = max(some, key=lambda one: (one.size, -one.call.agents))
        rule = f"what {best.call.name} was given {where} {which} message"
        if all(one is best or best.has(one) for one in some):
            return best.call, Evidence.RECORDED, rule
        return best.call, Evidence.INFERRED, f"{rule}, as what another call was given"
    return None


def _told_of(texts: list[str], pending: list[PendingCall]) -> "_Asked | None":
    """Find the newest tool call that messages of a sub-agent tell of, with its name and all that it was given.

    Google ADK does so when it transfers a conversation.
    """
    for one in reversed(pending):
        given = [value for value in one.values if value]
        for text in texts:
            if given and len(one.name) >= MIN_TEXT and all(it in text for it in (one.name, *given)):
                return one, Evidence.INFERRED, f"its messages tell of {one.name}"
    return None


_Asked = tuple[PendingCall, Evidence, str]
"""A tool call that asked for a sub-agent, and on what that rests."""


def _asked_edge(asked: _Asked, seq: Seq) -> Edge:
    one, evidence, rule = asked
    return Edge(one.seq, seq, evidence, rule, one.id)


class _Asking(NamedTuple):
    """A tool call, and what it was given that is in the first messages of a sub-agent."""

    call: PendingCall
    found: set[str]

    @property
    def size(self) -> int:
        """Characters of what was found, but for what is a part of other text that was."""
        return sum(
            len(one) for one in self.found if not any(one in two for two in self.found - {one})
        )

    def has(self, other: "_Asking") -> bool:
        """Say whether it explains more, and all that the other explains."""
        return self.found != other.found and all(
            any(one in two for two in self.found) for one in other.found
        )


def _written_by(call: ModelCall, warm: list[LaneState]) -> LaneState | None:
    """Find the lane whose last answer asked for a sub-agent in words or in code: it quotes what that was given."""
    texts = user_texts(call.context.items[:4])
    for state in reversed(warm):
        if state.last.calls or not state.last.said:
            continue
        for found in _QUOTED.finditer(state.last.said[:_READ]):
            given = found[0][1:-1].strip()
            if len(given) >= MIN_TEXT and any(given in text for text in texts):
                return state
    return None


def _name_of(one: PendingCall) -> str:
    given = one.arguments if isinstance(one.arguments, dict) else {}
    for key in ("subagent_type", "agent", "agent_name", "name", "role", "coworker", "description"):
        word = given.get(key)
        if isinstance(word, str) and word.strip():
            return f"{one.name}: {word.strip()[:60]}"
    return one.name


def _agent_name(call: ModelCall) -> str:
    system = call.context.system[:_READ].strip()
    lines = [line.strip() for line in system.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("x-", "<", "#"))]
    return (telling or lines or [""])[0][:60]
