"""Find the call before one in its lane, and where the parts of its context came from.

The lanes of a run are what `Tracer` says. Where a call has the answer of an earlier one, with all that that one had been asked, and no
other call has that answer, there is no other lane for it, and nothing but this is read. Else the exchanges around it are traced: those
before it, and behind it as long as they may show that it begins a lane of its own.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ..steps.agent_lanes import (
    CARRIED,
    IDLE,
    SAME_CONVERSATION,
    Placed,
    count_same,
    goes_on,
    same_conversation,
)
from ..steps.model_call import ModelCall, answer_in, same_agent, same_prompt
from ..steps.split_messages import find_marks
from ..steps.step import Edge, Evidence
from ..steps.tracer import Tracer
from .calls_before import HORIZON, Exchanges, calls_before
from .watch_contexts import Watch

_FEW = 16
"""Exchanges before a call beside the conversation that are looked at where nothing tells a likely one from others."""
_READ = 64
"""Most model calls that are read before a call is traced."""
_EMBEDDINGS = "openai-embeddings"
_RESPONSES = "openai-responses"
_KEPT = [b'"previous_response_id"', b'"conversation"']
"""In requests that need not repeat what was said."""


@dataclass(slots=True)
class LaneBefore:
    """What came before a call in its lane."""

    call: ModelCall | None
    """None where it begins a lane."""
    edge: Edge | None
    """Why it is of this lane."""
    watch: Watch | None = None
    """Who has seen the calls before, as far as they were read; None where all that is new is the answer and what the agent says to it."""


def find_before(exchanges: Exchanges, call: ModelCall) -> tuple[ModelCall, Edge] | None:
    """Find the call before one in its lane, and on what that rests; None where it begins a lane."""
    found = find_lane_before(exchanges, call)
    return (found.call, found.edge) if found.call is not None and found.edge is not None else None


def find_lane_before(exchanges: Exchanges, call: ModelCall) -> LaneBefore:
    """Find the call before one in its lane."""
    is_aside = bool(call.aside) or call.context.asked.dialect == _EMBEDDINGS
    found = None if is_aside else _find_plain(exchanges, call)
    if found is not None:
        return LaneBefore(*found)
    traced = _trace(exchanges, call)
    if is_aside:
        found = _find_beside(exchanges, call)
        traced.call, traced.edge = found if found is not None else (None, None)
    return traced


def _find_plain(exchanges: Exchanges, call: ModelCall) -> tuple[ModelCall, Edge] | None:
    """Find the call whose answer a call goes on from, where it is the only one and the conversation only grew; None elsewhere."""
    context = call.context
    split = context.split
    marks = find_marks(split) if split is not None and not context.is_kept else None
    if marks and context.asked.dialect == _RESPONSES:
        marks += _KEPT
    newer = list[ModelCall]()
    for found in islice(calls_before(exchanges, call, marks=marks or None), _READ):
        edge = _plain_edge(found, call)
        if edge is not None:
            is_gone_on_with = any(
                _has_answer(found, one) or _may_be_between(one, call) for one in newer
            )
            return None if is_gone_on_with else (found, edge)
        newer.append(found)
    return None


def _may_be_between(one: ModelCall, call: ModelCall) -> bool:
    """Say whether an earlier call may be of the lane of another, although what it shares with that is kept by the provider."""
    is_kept = bool(one.context.is_kept or call.context.conversation)
    if call.context.previous:  # a chain of ids is followed, whatever else came between
        is_kept = one.context.conversation is not None
    return is_kept and same_agent(one, call, continued=True)


def _plain_edge(found: ModelCall, call: ModelCall) -> Edge | None:
    """Give the edge between two calls where the later one has the answer of the earlier, and all that it was asked."""
    context = call.context
    if context.previous:
        named = found.answer is not None and found.answer.id == context.previous
        rule = "names the answer's id"
        return Edge(found.seq, call.seq, Evidence.RECORDED, rule) if named else None
    if context.conversation:
        same = same_conversation(found, call)
        return Edge(found.seq, call.seq, Evidence.RECORDED, SAME_CONVERSATION) if same else None
    if not same_agent(found, call, continued=True):
        return None
    told = goes_on(found, call)
    if told is None or told[0] < CARRIED or not found.context.items:
        return None
    whole = count_same(found.context.items, context.items) == len(found.context.items)
    return told[2] if whole and _adds_only_answer(found, call) else None


def _adds_only_answer(found: ModelCall, call: ModelCall) -> bool:
    """Say whether what is new in a call is the answer before, the results of its tool calls, and what was said to it."""
    message = found.answer.message if found.answer is not None else None
    told = "".join(message.text.split()) if message is not None else ""
    ids = {one.id for one in found.calls}
    for item in call.context.items[len(found.context.items) :]:
        if item.raw or item.system is not None:
            return False
        named = [*(one.id for one in item.calls), *(one.id for one in item.results)]
        if any(id not in ids for id in named):
            return False
        for one in item.messages:
            text = "".join(one.text.split())
            if one.role in ("assistant", "model") and text and text != told and text not in told:
                return False
    return True


def _has_answer(found: ModelCall, later: ModelCall) -> bool:
    """Say whether a later call goes on from the answer of an earlier one."""
    if later.context.previous:
        return found.answer is not None and found.answer.id == later.context.previous
    same = count_same(found.context.items, later.context.items)
    return answer_in(found, later.context, same) is not None


def _trace(exchanges: Exchanges, call: ModelCall) -> LaneBefore:
    """Place a call among those around it."""
    placed: Placed | None = None
    before: ModelCall | None = None
    watch = Watch(lambda _: False)

    def observe(one: ModelCall, place: Placed) -> None:
        nonlocal placed
        # What is behind it explains nothing in it.
        if placed is None:
            watch.observe(one, place)
            if (one.seq, one.part) == (call.seq, call.part):
                placed = place

    tracer, seqs = Tracer(observe=observe), exchanges.seqs
    first = max(0, bisect_left(seqs, call.seq) - HORIZON)
    last = exchanges.place_of(call.seq, call.part).after
    for seq in seqs[first : bisect_right(seqs, last) + HORIZON]:
        since = tracer.open_since
        is_settled = placed is not None and (since is None or since > call.seq)
        if seq > last and (is_settled or not (placed is None or placed.is_fork)):
            break
        if seq > last and placed is None and call.part == 0:
            break  # beside the conversation
        exchange = exchanges.find(seq)
        if exchange is not None:
            tracer.add(exchange, exchanges.messages(exchange) if exchange.websocket else ())
    if placed is None:
        tracer.end()
    if placed is None:
        return LaneBefore(None, None, watch)
    before = None if placed.is_new else placed.before
    edge = None
    if before is not None:
        idle = Edge(before.seq, call.seq, Evidence.INFERRED, IDLE)
        edge = next(iter(placed.edges), idle)
    return LaneBefore(before, edge, watch)


def _find_beside(exchanges: Exchanges, call: ModelCall) -> tuple[ModelCall, Edge] | None:
    """Find the call that one beside the conversation goes on from.

    Requests that have neither its prompt nor its first message byte for byte are looked at where no other fits, and then the last few alone.
    """
    split = call.context.split
    marks = find_marks(split) if split is not None else []
    if marks and not call.context.is_kept:
        found = _choose(call, calls_before(exchanges, call, marks=marks))
        if found is not None:
            return found
        return _choose(call, calls_before(exchanges, call, horizon=_FEW))
    return _choose(call, calls_before(exchanges, call))


def _choose(call: ModelCall, before: Iterator[ModelCall]) -> tuple[ModelCall, Edge] | None:
    best: tuple[tuple[int, int], ModelCall, Edge] | None = None
    alike: ModelCall | None = None
    previous = call.context.previous
    for found in islice(before, _READ):
        if previous and found.answer is not None and found.answer.id == previous:
            edge = Edge(found.seq, call.seq, Evidence.RECORDED, "names the answer's id")
            return found, edge
        if call.context.conversation and same_conversation(found, call):
            return found, Edge(found.seq, call.seq, Evidence.RECORDED, SAME_CONVERSATION)
        told = goes_on(found, call)
        if told is None:
            idle = found.seq not in call.overlaps and found.process == call.process
            if alike is None and idle and same_prompt(found, call):
                alike = found
            continue
        weight, same, edge, retry = told
        if (weight == CARRIED and same) or (weight == 2 and (found.failed or retry is not None)):
            return found, edge
        if best is None or (weight, same) > best[0]:
            best = (weight, same), found, edge
    if best is not None:
        return best[1], best[2]
    if alike is not None:
        return alike, Edge(alike.seq, call.seq, Evidence.INFERRED, IDLE)
    return None
