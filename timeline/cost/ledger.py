"""The ledger of a run: each request once, whether it was sent, and what a model call took.

1. Sent is what went to an upstream, answered or not: retries, failures and cut streams too. What the tape answered, what was refused
   here, and what no connection was made for was not.
2. Tokens are as the answer states them. Of a stream that was cut, or that states none or a part, more may have been billed: `at_least`.
   So it is where the answer says that it cost more than usual, as in a fast mode. So it is
   with a model call that no dialect reads; only what is known to be free is free.
   So it is with a request that has no outcome, because the proxy died or still waits: it was let go, and may be billed.
   Only the intent of an effect is waited for, so that of a run whose process died the last model calls may be missing (`may_lack_calls`).
3. An answer of an error cost nothing. A model without a price is unknown, never free.
   So is what `playhead explore` was answered: the tape that it keeps has it once more, and does not count.
4. What a tape answered was saved: it would have cost what its answer states.
5. What a branch has sent elsewhere (`--route`) costs what its service does: nobody knows whether a gateway or a mock is there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from ...config import Inject, Mode
from ...store import RunStatus
from ...tape.dialects import InferenceResponse, Usage, read_request
from ...tape.exchange import Exchange, RequestClass, Seq
from ...tape.records.events import EventKind
from ..reading.call_cost import find_price
from ..reading.request_fate import Fate, find_fate, is_refusal
from ..reading.stated_usage import find_stated_model, find_stated_usage, is_free
from ..state.calls_before import NO_OUTCOME, Exchanges, read_answer
from ..steps.step import Step, StepKind
from ..steps.tracer import Tracer

_CALLS = (StepKind.MODEL_CALL, StepKind.RETRIEVAL)
NOT_STATED = "not stated"
"""Model of a call that names none."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one call, or of several."""

    input: int = 0
    """With those that were cached."""
    read: int = 0
    """Of the input, those read from a cache."""
    written: int = 0
    """Of the input, those written into one."""
    output: int = 0
    """With those that were thought."""
    thought: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        """Add two counts."""
        return Tokens(
            self.input + other.input,
            self.read + other.read,
            self.written + other.written,
            self.output + other.output,
            self.thought + other.thought,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One request."""

    seq: Seq
    part: int
    at_ns: int
    fate: Fate
    model: str = ""
    """As served, else as asked for; empty where no model was asked."""
    lane: int = 0
    tokens: Tokens = Tokens()
    usd: Decimal | None = _ZERO
    """None where its price is not known."""
    at_least: bool = False
    failed: bool = False
    """Whether the answer was an error."""

    @property
    def is_call(self) -> bool:
        """Whether a model was asked."""
        return bool(self.model)


def read_ledger(
    exchanges: Exchanges,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    *,
    lanes: bool = True,
) -> Iterator[Entry]:
    """Give an entry for each request, in order; none of a tape that exploring kept, for which nothing was sent.

    lanes: whether to find the lane of each call; takes five times as long.
    Raises: LogCorrupt.
    """
    if exchanges.info.is_explored:
        return
    if not lanes:
        yield from (entry for entry, _ in _read_entries(exchanges, progress, None))
        return
    # A later call may show that an earlier one is of another lane.
    for entry, step in list(_read_entries(exchanges, progress, Tracer())):
        is_call = step is not None and entry.lane and step.lane != entry.lane
        yield replace(entry, lane=step.lane) if is_call and step is not None else entry


def _read_entries(
    exchanges: Exchanges, progress: Callable[[int, int], None], tracer: Tracer | None
) -> Iterator[tuple[Entry, Step | None]]:
    """Give an entry for each request, with the step of a call that a lane was found for."""
    short = _short_circuits(exchanges)
    waiting: dict[tuple[int, int], tuple[Exchange, Fate]] = {}
    seqs = exchanges.seqs
    for done, seq in enumerate(seqs, 1):
        exchange = exchanges.find(seq)
        progress(done, len(seqs))
        if exchange is None:
            continue
        fate = Fate.REFUSED if seq in short else find_fate(exchange)
        asked = exchanges.asked(exchange)
        if exchange.websocket is not None or not asked:
            yield _entry_beside(exchange, fate, is_read=bool(asked)), None
        if fate is Fate.SAVED:
            asked = exchanges.answered(exchange)
        waiting |= {(seq, part): (made, fate) for part, made in asked}
        if tracer is None:
            for part, made in asked:
                yield read_entry(made, part, fate), None
            waiting.clear()
            continue
        messages = exchanges.messages(exchange) if exchange.websocket is not None else ()
        steps = tracer.add(exchange, messages)
        for step in steps:
            found = waiting.pop((step.seq, step.part), None) if step.kind in _CALLS else None
            if found is not None:
                yield read_entry(found[0], step.part, found[1], step.lane), step
        for (number, part), (made, how) in list(waiting.items()):
            if number == seq and not part:
                del waiting[number, part]
                yield read_entry(made, part, how), None
    for step in tracer.end() if tracer is not None else ():
        found = waiting.pop((step.seq, step.part), None)
        if found is not None:
            yield read_entry(found[0], step.part, found[1], step.lane), step
    for (_, part), (made, how) in waiting.items():
        yield read_entry(made, part, how), None
    for entry in _without_outcome(exchanges):
        yield entry, None


def may_lack_calls(exchanges: Exchanges) -> bool:
    """Say whether a run may have asked a model last without any trace: its process died, and it could send something."""
    if exchanges.info.status is not RunStatus.RECOVERED:
        return False
    return exchanges.info.mode != Mode.PLAYBACK.value or any(
        event.kind is EventKind.INTENT or (event.kind is EventKind.NOTED and _sends(event.data))
        for event in exchanges.events()
    )


def _sends(noted: Mapping[str, Any]) -> bool:
    """Say whether what a playback noted lets anything leave."""
    branch, rules = noted.get("branch") or {}, noted.get("rules") or {}
    return bool(
        noted.get("resume") or branch.get("live") or branch.get("routes") or rules.get("live")
    )


def _without_outcome(exchanges: Exchanges) -> Iterator[Entry]:
    """Give an entry for each request that was let go and has no outcome."""
    for event in exchanges.under_way():
        is_call = event.data["request_class"] == RequestClass.INFERENCE.value
        model = NO_OUTCOME if is_call else ""  # nothing is known of it
        yield Entry(event.seq, 0, event.at_ns, Fate.SENT, model, at_least=is_call)


def _entry_beside(exchange: Exchange, fate: Fate, *, is_read: bool) -> Entry:
    """Give the entry of a WebSocket, and of a request that is no model call or whose body is a file.

    is_read: whether its model calls have entries of their own.
    """
    websocket = exchange.websocket
    if websocket is None:
        return read_entry(exchange, 0, fate)
    entry = Entry(exchange.seq, 0, exchange.started_ns, fate)
    if is_read or not websocket.messages or not _is_billed(exchange, fate):
        return entry
    return replace(entry, model=_unread_model(exchange), at_least=True)


def _is_billed(exchange: Exchange, fate: Fate) -> bool:
    """Say whether a request asks a model, so that it is billed unless an error says that it is not."""
    asks = exchange.request_class is RequestClass.INFERENCE
    can_be = exchange.websocket is not None or exchange.request.method.upper() == "POST"
    if not asks or not can_be:
        return False
    return fate in (Fate.SENT, Fate.SAVED) and not is_free(exchange.request)


def _unread_model(exchange: Exchange) -> str:
    return find_stated_model(exchange.request, exchange.response) or NOT_STATED


def read_entry(exchange: Exchange, part: int, fate: Fate, lane: int = 0) -> Entry:
    """Read what a request to a model took."""
    entry = Entry(exchange.seq, part, exchange.started_ns, fate)
    if exchange.request_class is not RequestClass.INFERENCE:
        return entry
    asked = read_request(exchange.request)
    if asked is not None and asked.rpc:
        return entry
    answer = read_answer(exchange) if asked is not None else None
    model = _model(answer, asked.model if asked is not None else None)
    response = exchange.response
    failed = is_refusal(exchange, answer)
    usage = answer.usage if answer is not None else None
    if answer is None and response is not None:
        usage = find_stated_usage(response)
    stated = usage is not None and usage.count().is_stated
    if not stated and not _is_billed(exchange, Fate.SENT):
        return entry
    entry = replace(entry, model=model or _unread_model(exchange), lane=lane, failed=failed)
    if failed or fate in (Fate.REFUSED, Fate.UNREACHED):
        return entry
    tokens = _tokens(usage)
    usd: Decimal | None = _ZERO
    if usage is not None and (tokens.input or tokens.output):
        # What no dialect reads may be an image or audio, whose tokens have prices of their own.
        usd = _price(exchange, answer, usage, entry.model) if answer is not None else None
    whole = response is not None and response.complete and exchange.fault is None
    cut = not whole or (answer is not None and not answer.complete)
    part = (
        usage is not None and answer is not None and not usage.is_all(is_said=bool(answer.choices))
    )
    return replace(entry, tokens=tokens, usd=usd, at_least=cut or part or not stated)


def _model(answer: InferenceResponse | None, asked: str | None) -> str | None:
    served = answer.model if answer is not None else None
    return served or asked


def _tokens(usage: Usage | None) -> Tokens:
    if usage is None:
        return Tokens()
    counted = usage.count()
    return Tokens(
        counted.asked or 0, counted.read, counted.written, counted.said or 0, counted.thought
    )


def price_call(exchange: Exchange, answer: InferenceResponse, model: str) -> Decimal | None:
    """Find what a model call cost, in US dollars; None where no price is known. Nothing is paid for what was not sent."""
    if find_fate(exchange) is not Fate.SENT:
        return _ZERO
    return _price(exchange, answer, answer.usage, model) if answer.usage is not None else None


def _price(
    exchange: Exchange, answer: InferenceResponse, usage: Usage, model: str
) -> Decimal | None:
    request, dialect = exchange.request, answer.dialect
    found = find_price(request, dialect, model, usage, exchange.started_ns)
    if found is None:
        # What was served has no price, or is not named: what was asked for may have one.
        meant = read_request(request)
        if meant is not None and meant.model != model:
            found = find_price(request, dialect, meant.model, usage, exchange.started_ns)
    return found


def _short_circuits(exchanges: Exchanges) -> set[int]:
    """Give the seqs that a fault on purpose answered, so that the upstream was never asked."""
    kinds = {kind.value for kind in Inject if kind.short_circuits}
    return {
        event.seq
        for event in exchanges.events()
        if event.kind is EventKind.INJECTED and event.data["inject"] in kinds
    }
