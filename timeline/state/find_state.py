"""Find the state of an agent at a step: the context as it was sent, and how it differs from the call before."""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

from ...store import StoreError
from ...tape.dialects import Usage
from ...tape.exchange import Exchange, Seq
from ...tape.shell_words import shell_word
from ..lookup.missing_exchange_error import no_exchange
from ..steps.model_call import ModelCall, read_call
from ..steps.model_context import Item, read_context
from ..steps.step import Edge
from .calls_before import Exchanges, Place, asked_before, read_answer
from .compare_contexts import find_change
from .context_parts import ContextPart, short, split_items, squeezed
from .lane_before import LaneBefore, find_lane_before
from .provider_conversation import Provider
from .read_provider import read_provider
from .snapshots import Snapshot, find_snapshots

_SAID = ("assistant", "thought", "tool call", "model")
"""What a model says."""


@dataclass(slots=True)
class Origin:
    """A part of a context, and where it came from."""

    seq: int
    """The answer that first had it; of what the agent itself wrote the first request."""
    part: ContextPart


@dataclass(slots=True)
class State:
    """The state of an agent."""

    asked_seq: int
    """What was asked for."""
    call: ModelCall
    exchange: Exchange
    before: ModelCall | None
    edge: Edge | None
    """Why `before` is the call before of the same lane."""
    parts: list[ContextPart]
    entered: list[Origin]
    left: list[Origin]
    pending: list[ContextPart]
    """Tool calls in the context that have no result in it."""
    unsure: list[Origin] = field(default_factory=list)
    """What the request does not have any more, and the provider may or may not keep."""
    unknown: list[str] = field(default_factory=list)
    """Why it is not known whether more has left."""
    held: list[tuple[Seq, list[ContextPart]]] = field(default_factory=list)
    """What the provider keeps of the conversation, rebuilt from recorded calls, the oldest first."""
    unplaced: list[Seq] = field(default_factory=list)
    """Requests of the run that deleted something of it which no exchange has by its id: it may still be in `held`."""
    doubtful: list[Seq] = field(default_factory=list)
    """Calls of which the provider may keep more than `held` has, or another answer: theirs had no end, or an incomplete one."""
    deleted: dict[Seq, Seq] = field(default_factory=dict)
    """Of `held`: what the run itself had deleted before, and the requests that did."""
    broken: int = 0
    """An answer that the provider keeps and the run does not have, or 0."""
    snapshots: list[Snapshot] = field(default_factory=list)
    """What the agent had kept of its state since the call before."""
    asked_part: int = 0
    """The model call of a WebSocket that was asked for; 0 for the last one, and elsewhere."""

    @property
    def usage(self) -> Usage | None:
        """Tokens, as the answer states them."""
        return self.call.answer.usage if self.call.answer is not None else None


def find_state(exchanges: Exchanges, seq: int, part: int = 0) -> State:
    """Find the state at a seq: of the model call there, or of the last one before it.

    part: of a model call of a WebSocket; 0 for the last one.
    Raises: StoreError, naming the range and the nearest model call; LogCorrupt.
    """
    if part:
        exchanges.get_part(exchanges.get(seq), part)
    call, exchange = _find_call(exchanges, seq, part)
    found = find_lane_before(exchanges, call)
    before, edge = found.call, found.edge
    names = {one.id: one.name for one in (before.calls if before is not None else ()) if one.id}
    parts = split_items(call.context.items, names)
    pending = find_pending(parts)
    state = State(seq, call, exchange, before, edge, parts, [], [], pending, asked_part=part)
    provider = read_provider(exchanges, call, before)
    _compare(state, found, provider, names)
    held = provider.held(call)
    state.held, state.broken = held.turns, held.broken
    state.doubtful, state.unplaced, state.deleted = held.doubtful, held.unplaced, held.deleted
    state.snapshots = find_snapshots(exchanges, before.seq if before is not None else 0, call.seq)
    return state


def _find_call(exchanges: Exchanges, seq: int, part: int) -> tuple[ModelCall, Exchange]:
    seqs = exchanges.seqs
    at = bisect_right(seqs, seq)
    if not at or seqs[at - 1] != seq:
        raise no_exchange(exchanges.info.id, seq, seqs)
    own = [one for one in exchanges.parts if one.seq == seq]
    place = exchanges.place_of(seq, part or (own[-1].part if own else 0))
    # Itself counts, too.
    for number, made in asked_before(exchanges, place._replace(part=place.part + 1), len(seqs)):
        context = read_context(made.request, made.seq)
        if context is not None and not context.asked.rpc:
            exchange = exchanges.get(made.seq)
            return read_call(made, context, read_answer(made), number), exchange
    nearest = next((one for one in seqs[at:] if _is_call(exchanges, one)), None)
    hint = (
        f"the first model call is {nearest}"
        if nearest
        else "no request of this run is a model call that a dialect reads"
    )
    raise StoreError(f"run {exchanges.info.id!r} has no model call at {seq} or before it", hint)


def _is_call(exchanges: Exchanges, seq: int) -> bool:
    exchange = exchanges.find(seq)
    return exchange is not None and any(
        read_context(made.request, made.seq) is not None for _, made in exchanges.asked(exchange)
    )


def find_pending(parts: list[ContextPart]) -> list[ContextPart]:
    """Find the tool calls of a context that have no result in it."""
    pending: list[ContextPart] = []
    early = list[ContextPart]()  # a dialect may put a result before its call
    for one in parts:
        if one.what == "tool call":
            found = next((given for given in early if _is_result_of(given, one)), None)
            if found is not None:
                early.remove(found)
            else:
                pending.append(one)
        elif one.what == "tool result":
            # Ids may come again, and so may names: the oldest call that waits is the one.
            call = next((called for called in pending if _is_result_of(one, called)), None)
            if call is not None:
                pending.remove(call)
            else:
                early.append(one)
    return pending


def _is_result_of(result: ContextPart, call: ContextPart) -> bool:
    return result.call == call.call and (bool(call.call) or result.name == call.name)


def _compare(state: State, found: LaneBefore, provider: Provider, names: dict[str, str]) -> None:
    """Find what entered and left between two calls of a lane, and where it came from."""
    before, watch, seq = found.call, found.watch, state.call.seq
    if before is None:
        # Who begins with what a model has said took a conversation over, and who does not begins one.
        is_taken = watch is not None and any(one.what in _SAID for one in state.parts)
        state.entered = [
            Origin(watch.origin(one) if watch is not None and is_taken else seq, one)
            for one in state.parts
        ]
        return
    change = find_change(provider, before, state.call, dict(names))
    later = [one for one in state.parts if one.item >= change.same]
    had = Counter(one.key for one in change.had)
    # What the provider keeps of what was there is no reason to say it again.
    had.subtract(one.key for one in change.kept if had[one.key] > 0)
    known = {one.key for one in split_items(before.context.items)}
    ids = {one.id for one in before.calls if one.id}
    message = before.answer.message if before.answer is not None else None
    answer = {short(one) for one in split_items([Item((message,), 0)])} if message else set()
    answer |= {squeezed("assistant", before.said)} if before.said else set()
    for one in later:
        if had[one.key] > 0:
            had[one.key] -= 1
            continue
        is_answer = one.what in _SAID and (one.call in ids if one.call else short(one) in answer)
        origin: int = before.seq if is_answer else seq
        # What the call before has once and this one twice was said once more.
        if watch is not None and not is_answer and one.key not in known:
            origin = watch.origin(one)
        state.entered.append(Origin(origin, one))
    first = watch.origin if watch is not None else _since
    state.unknown = change.unknown
    kept = Counter(one.key for one in (*change.kept, *later))
    for one in change.had:
        if kept[one.key] > 0:
            kept[one.key] -= 1
        else:
            (state.unsure if change.is_unsure(one) else state.left).append(Origin(first(one), one))


def _since(part: ContextPart) -> int:
    return part.since


def find_step_at(exchanges: Exchanges, at_ns: int) -> Place:
    """Find the last request that had been made at a time: an exchange, or a model call of a WebSocket.

    Raises: StoreError, naming when the run began and ended.
    """
    begun = exchanges.find_begun(at_ns)
    if not begun:
        raise StoreError(
            f"run {exchanges.info.id!r} had not begun at that time",
            f"`playhead show {shell_word(exchanges.info.id)}` lists what it holds",
        )
    parts = [one for one in exchanges.parts if one.started_ns <= at_ns and one.after <= begun]
    # The handshake of a WebSocket asks nothing, and as a step it stands for the last of its calls.
    sockets = {one.seq for one in exchanges.parts}
    plain = [seq for seq in exchanges.seqs if seq <= begun and seq not in sockets]
    places = [*map(exchanges.place_of, plain[-1:]), *parts[-1:]]
    if not places:
        first = exchanges.parts[0]
        raise StoreError(
            f"run {exchanges.info.id!r} had asked no model at that time",
            f"the first model call is {first.seq}.{first.part}",
        )
    return max(places)
