"""Find what became of the prompt cache in each model call of a run: the lanes are followed, and each call is judged by the one before."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ...tape.dialects import Usage
from ...tape.dialects.common.untrusted_json import stable_hash
from ...tape.exchange import Exchange
from ...tape.policy.limits import NANO
from ..reading.call_cost import find_price
from ..state.calls_before import Exchanges
from ..steps.agent_lanes import ANSWER_IS_IN, Placed
from ..steps.model_call import ModelCall
from ..steps.step import Step, StepKind
from ..steps.tracer import Tracer
from .cache_relevant_settings import read_fields
from .judge_model_call import CacheCall, Sent, Verdict, judge

_KEYS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_MISSES = (Verdict.BROKE, Verdict.LIFETIME, Verdict.PROVIDER, Verdict.UNKNOWN)
_EARLIER = 64
"""Calls of a lane that one may go back to."""


@dataclass(slots=True)
class _Lane:
    last: Sent | None = None
    earlier: deque[Sent] = field(default_factory=lambda: deque(maxlen=_EARLIER))
    """The last calls before that."""
    since: dict[str, tuple[object, int]] = field(default_factory=dict)
    """Of the parts beside the messages: the value, and the first request with it."""


class _Watch:
    """Judges model calls as they are placed in their lanes."""

    def __init__(self) -> None:
        self.found: list[CacheCall] = []
        self._observed: list[tuple[ModelCall, Placed]] = []
        self._lanes: dict[int, _Lane] = {}
        self._stated: set[str] = set()
        """Dialects whose answers have stated a count."""
        self._hosts: dict[int, tuple[str, str, Exchange]] = {}
        self._used: dict[tuple[object, ...], list[tuple[int, int, int]]] = {}
        """By host, key, model, tools and system prompt: the lane, seq and time of the last calls of two lanes; a failed call is of lane 0."""

    def observe(self, call: ModelCall, placed: Placed) -> None:
        """Take the next model call; it is judged once its time is known."""
        self._observed.append((call, placed))

    def take(self, exchange: Exchange | None, steps: list[Step]) -> None:
        """Take the steps that were given for an exchange."""
        if exchange is not None and (exchange.websocket is not None or self._observed):
            self._hosts[exchange.seq] = _account(exchange)
        times = {
            (step.seq, step.part): step.timing
            for step in steps
            if step.kind is StepKind.MODEL_CALL and step.timing is not None
        }
        for call, placed in self._observed:
            lane = placed.state.lane.number
            timing = times.get((call.seq, call.part))
            host, key, asked = self._hosts.get(call.seq, ("", "", None))
            if timing is None or asked is None:
                continue
            ended = timing.started_ns + timing.took_us * 1000
            sent = Sent(call, lane, host, key, timing.started_ns, ended, read_fields(asked.request))
            self._judge(sent, asked)
            self._name_other(self.found[-1], placed)
        self._observed.clear()
        if exchange is not None and exchange.websocket is None:
            self._hosts.pop(exchange.seq, None)

    def _judge(self, sent: Sent, asked: Exchange) -> None:
        lane = self._lanes.setdefault(sent.lane, _Lane())
        dialect = sent.call.context.asked.dialect
        self._share(sent)
        made = judge(sent, lane.last, stated=dialect in self._stated, earlier=lane.earlier)
        if sent.read is not None:
            self._stated.add(dialect)
        if made.moved is not None and made.before is not None:
            made.was_since = _since(lane, made)
        if made.verdict in _MISSES and made.missed:
            made.cost_nano_usd = _price_miss(made, asked)
        self.found.append(made)
        if sent.call.answer is not None and not sent.call.failed:
            if lane.last is not None:
                lane.earlier.append(lane.last)
            lane.last = sent
        for name, value in _parts(sent.call).items():
            known = lane.since.get(name)
            if known is None or known[0] != value:
                lane.since[name] = value, sent.call.seq

    def _name_other(self, made: CacheCall, placed: Placed) -> None:
        """Say of a first call whose answer it has: an agent that goes on with another one's conversation has a prompt of its own."""
        edge = next((one for one in placed.edges if one.rule == ANSWER_IS_IN), None)
        if made.verdict is Verdict.FIRST and placed.is_new and edge is not None:
            made.reason += f"; it goes on from {edge.source}, of another lane"

    def _share(self, sent: Sent) -> None:
        """Note that a prompt is used, and who else used it last."""
        asked, context = sent.call.context.asked, sent.call.context
        head = sent.host, sent.key, asked.model, stable_hash(asked.raw_tools), context.system
        used = self._used.setdefault(head, [])
        failed = sent.call.answer is None or sent.call.failed
        others = [one for one in used if one[0] != sent.lane]
        _, sent.shared_seq, sent.shared_ns = max(others, key=lambda one: one[2], default=(0, 0, 0))
        own = 0 if failed else sent.lane
        used[:] = [one for one in used if one[0] != own][-1:]
        used.append((own, sent.call.seq, sent.ended_ns))


def _parts(call: ModelCall) -> dict[str, object]:
    asked, tree = call.context.asked, call.context.tree
    return {
        "model": asked.model,
        "tools": asked.raw_tools,
        "system": call.context.system,
        "thinking": tree.get("thinking"),
        "tool_choice": tree.get("tool_choice"),
    }


def _since(lane: _Lane, made: CacheCall) -> int:
    """Give the first request that had what moved as it was."""
    assert made.moved is not None
    assert made.before is not None
    if made.moved.part == "messages" and made.moved.item is not None:
        return made.before.call.context.items[made.moved.item].since
    known = lane.since.get(made.moved.part)
    return known[1] if known is not None else made.before.call.seq


def _account(exchange: Exchange) -> tuple[str, str, Exchange]:
    key = b" ".join(exchange.request.header(name) or b"" for name in _KEYS)
    return exchange.request.authority, key.decode("latin-1"), exchange


def _price_miss(made: CacheCall, asked: Exchange) -> int | None:
    """Give what a miss cost: the price of the call less that with the missed tokens read from the cache."""
    usage, call = made.sent.usage, made.sent.call
    if usage is None or call.answer is None:
        return None
    model = call.answer.model or call.context.asked.model
    prices = [
        find_price(asked.request, call.answer.dialect, model, one, made.sent.started_ns)
        for one in (usage, _had_it_been_read(usage, made.missed))
    ]
    if prices[0] is None or prices[1] is None:
        return None
    return round((prices[0] - prices[1]) * NANO)


def _had_it_been_read(usage: Usage, missed: int) -> Usage:
    written = usage.cached_write_tokens or 0
    input_ = usage.input_tokens or 0
    if not usage.cached_in_input:
        input_ -= max(0, missed - written)
    return replace(
        usage,
        input_tokens=max(0, input_),
        cached_read_tokens=(usage.cached_read_tokens or 0) + missed,
        cached_write_tokens=max(0, written - missed) if usage.cached_write_tokens else None,
        # What is kept for an hour stands before the rest of a prompt, and so it is missed first.
        cached_write_1h_tokens=max(0, usage.cached_write_1h_tokens - missed)
        if usage.cached_write_1h_tokens
        else None,
    )


def find_misses(
    exchanges: Exchanges, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> list[CacheCall]:
    """Judge each model call of a run, in order; calls beside the conversation are left out.

    Raises: LogCorrupt.
    """
    watch, seqs = _Watch(), exchanges.seqs
    tracer = Tracer(observe=watch.observe)
    for at, seq in enumerate(seqs, 1):
        exchange = exchanges.find(seq)
        if exchange is not None:
            messages = exchanges.messages(exchange) if exchange.websocket is not None else ()
            watch.take(exchange, tracer.add(exchange, messages))
        progress(at, len(seqs))
    watch.take(None, tracer.end())
    return watch.found
