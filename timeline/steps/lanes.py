"""Find the agent that a model call is of: the lane.

A call goes on with the lane whose answer reappears in it, or whose messages it repeats. What begins anew belongs to the agent with
the same prompt and tools where that one was idle, and to a new one otherwise. Each decision is an edge with its evidence:

1. `recorded`: bytes of an answer, of an id or of the messages are in the request.
2. `inferred`: nothing but a rule ties the two; the edge names it.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from ...tape.exchange import Seq
from .call import ModelCall, answer_in, argument_texts, find_results, same_agent, user_texts
from .context import Context
from .step import Edge, Evidence, Lane

MIN_TEXT = 12
"""Characters from which on a text that is in another is no coincidence."""
WARM = 64
"""Lanes that are looked at; of older ones nothing but their counts is kept."""
_IDS = 4096
_READ = 64 * 1024
"""Characters of an answer in which what it quotes is looked for."""
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)+"|\'(?:[^\'\\\n]|\\.)+\'')


@dataclass(slots=True)
class PendingCall:
    """A tool call whose result no request has had yet."""

    seq: Seq
    lane: int
    name: str
    id: str | None
    arguments: object
    text: str
    """The arguments, as text."""
    exchanges: list[tuple[Seq, str]] = field(default_factory=list)
    """What it caused: seq, and the text of the answer."""
    processes: set[int] = field(default_factory=set)


@dataclass(slots=True)
class LaneState:
    """A lane, and its last model call."""

    lane: Lane
    last: ModelCall
    calls: "OrderedDict[str, str]" = field(default_factory=OrderedDict)
    """Names of the tools that its answers called, by the ids of the calls."""
    signatures: list[str] = field(default_factory=list)
    """Its last tool calls, for loops."""


@dataclass(slots=True)
class Placed:
    """Where a call belongs, and why."""

    state: LaneState
    edges: list[Edge]
    retry_of: Seq | None = None
    is_new: bool = False
    before: ModelCall | None = None
    """The call before it in its lane."""


class Lanes:
    """The lanes of a run."""

    def __init__(self) -> None:
        self.all: list[Lane] = []
        self._warm: list[LaneState] = []
        """The most recent last."""
        self._ids: OrderedDict[str, LaneState] = OrderedDict()
        """Lanes by the ids of their answers."""

    def candidates(self) -> list[Context]:
        """Give the contexts that a request may repeat, the most recent first."""
        return [state.last.context for state in reversed(self._warm)]

    @property
    def warm(self) -> list[LaneState]:
        """The lanes that are looked at, the most recent last."""
        return self._warm

    def place(self, call: ModelCall, pending: list[PendingCall]) -> Placed:
        """Find the lane of a call, or begin one; it is the lane's last call from then on."""
        placed = self._find(call, pending)
        if placed is None:
            placed = self._begin(call, pending)
        state = placed.state
        if not placed.is_new:
            placed.before = state.last
            placed.edges += self._from_others(call, state)
        state.last = call
        state.lane.last = call.seq
        if state in self._warm:
            self._warm.remove(state)
        self._warm.append(state)
        del self._warm[:-WARM]
        if call.answer is not None and call.answer.id:
            self._ids[call.answer.id] = state
            if len(self._ids) > _IDS:
                self._ids.popitem(last=False)
        return placed

    def _find(self, call: ModelCall, pending: list[PendingCall]) -> Placed | None:
        known = self._ids.get(call.context.previous or "")
        if known is not None:
            rule = "names the answer's id"
            edge = Edge(known.last.seq, call.seq, Evidence.RECORDED, rule)
            return Placed(known, [edge])
        best: tuple[tuple[int, int, int], LaneState, Edge, Seq | None] | None = None
        for age, state in enumerate(reversed(self._warm)):
            found = goes_on(state.last, call)
            if found is None:
                continue
            weight, same, edge, retry = found
            if best is None or (weight, same, -age) > best[0]:
                best = (weight, same, -age), state, edge, retry
        if best is not None:
            _, state, edge, retry = best
            if same_agent(state.last, call, continued=True):
                return Placed(state, [edge], retry)
            back = self._same_agent(call, pending)
            if back is not None:
                return Placed(back, [edge])
            return Placed(self._new(call, state.lane.number, ""), [edge], None, True)
        asked = _asked_by(call, pending)
        if asked is not None:
            one, evidence, rule = asked
            edge = Edge(one.seq, call.seq, evidence, rule, one.id)
            name = _name_of(one)
            return Placed(self._new(call, one.lane, name), [edge], None, True)
        idle = self._same_agent(call, pending)
        if idle is not None:
            edge = Edge(
                idle.last.seq,
                call.seq,
                Evidence.INFERRED,
                "same system prompt and tools, one after the other",
            )
            return Placed(idle, [edge])
        return None

    def _same_agent(self, call: ModelCall, pending: list[PendingCall]) -> LaneState | None:
        """Find a lane of the same agent that was idle when the call came."""
        busy = {one.lane for one in pending}
        for state in reversed(self._warm):
            idle = state.last.seq not in call.overlaps and state.lane.number not in busy
            if idle and state.last.process == call.process and same_agent(state.last, call):
                return state
        return None

    def _begin(self, call: ModelCall, pending: list[PendingCall]) -> Placed:
        writer = _written_by(call, self._warm)
        if writer is not None:
            rule = "what the answer quotes is its first message"
            edge = Edge(writer.last.seq, call.seq, Evidence.RECORDED, rule)
            return Placed(self._new(call, writer.lane.number, ""), [edge], None, True)
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
        return Placed(state, edges, None, True)

    def _new(self, call: ModelCall, parent: int, name: str) -> LaneState:
        lane = Lane(len(self.all) + 1, name or _agent_name(call), call.seq, call.seq, parent)
        self.all.append(lane)
        return LaneState(lane, call)

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
                rule = "the answer is in the request"
                edges.append(Edge(state.last.seq, call.seq, Evidence.RECORDED, rule))
        return edges


def goes_on(last: ModelCall, call: ModelCall) -> tuple[int, int, Edge, Seq | None] | None:
    """Say whether a call goes on with an earlier one: with a weight, how many items both begin with, the edge, and what it tries again.

    Where the two begin with nothing of the same, an answer without ids may be in both by chance: a short one, or that of another agent.
    """
    items = call.context.items
    same = count_same(last.context, call.context)
    rest = items[same:]
    spoken = same > 0 and any(item.system is None for item in items[:same])
    how = answer_in(last, call.context, same)
    ids = any(one.id for one in last.calls)
    if how is not None and not spoken and not ids:
        telling = len(last.said) >= MIN_TEXT or bool(last.calls)
        how = how if telling and same_agent(last, call) else None
    if how is not None:
        evidence = Evidence.INFERRED if how else Evidence.RECORDED
        rule = how or "the answer is in the request"
        return 3, same, Edge(last.seq, call.seq, evidence, rule), None
    if not spoken or last.seq in call.overlaps:
        return None
    if not rest and same == len(last.context.items):
        retry = last.seq if last.failed else None
        rule = "the same messages once more"
        return 2, same, Edge(last.seq, call.seq, Evidence.RECORDED, rule), retry
    if not same_agent(last, call, continued=True):
        return None
    rule = "its messages are in the request, its answer is not"
    if same < len(last.context.items):
        rule = "some of its messages are in the request, its answer is not"
    return 1, same, Edge(last.seq, call.seq, Evidence.INFERRED, rule), None


def count_same(one: Context, other: Context) -> int:
    """Count the items that two contexts begin with."""
    most = min(len(one.items), len(other.items))
    same = 0
    if one.items[:most] is not other.items:
        while same < most and (
            one.items[same] is other.items[same] or one.items[same].key == other.items[same].key
        ):
            same += 1
    return same


def _asked_by(
    call: ModelCall, pending: list[PendingCall]
) -> tuple[PendingCall, Evidence, str] | None:
    """Find the tool call that asked for a sub-agent: what it was given is in the sub-agent's first messages."""
    texts = user_texts(call.context.items[:4])
    for one in reversed(pending):
        for given in argument_texts(one.arguments):  # type: ignore[arg-type]
            short = given.strip()
            if len(short) < MIN_TEXT:
                continue
            if any(short == text.strip() for text in texts):
                return one, Evidence.RECORDED, f"what {one.name} was given is its first message"
            if any(short in text for text in texts):
                return one, Evidence.RECORDED, f"what {one.name} was given is in its first message"
    return None


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
