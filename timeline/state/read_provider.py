"""Read of a run what a provider keeps for a model call: the exchanges before it, and the answers that it leads back to by their ids."""

from bisect import bisect_left

from ...tape.exchange import Exchange, Seq
from ..steps.model_call import ModelCall, read_call
from ..steps.model_context import read_context
from .calls_before import HORIZON, Exchanges, read_answer
from .provider_conversation import Provider

_CHAIN = 1000
"""Most answers that a conversation is rebuilt from."""
_RESPONSES = "/responses"
_KINDS = (_RESPONSES, "/conversations")


def read_provider(exchanges: Exchanges, call: ModelCall, before: ModelCall | None) -> Provider:
    """Read what the provider keeps for a call, and for the one before it; nothing of calls that have all in their requests.

    Raises: LogCorrupt.
    """
    provider = Provider()
    kept = [one for one in (before, call) if one is not None and one.context.is_kept]
    if not kept:
        return provider
    rows = _read(exchanges, kept, call.seq)
    for _, _, _, found in sorted(rows, key=lambda row: row[:3]):
        if isinstance(found, ModelCall):
            provider.note(found)
        else:
            provider.see(found)
    return provider


_Row = tuple[int, Seq, int, ModelCall | Exchange]
"""When it began, its seq, and the part of a WebSocket; in this order things were kept."""


def _read(exchanges: Exchanges, kept: list[ModelCall], last: Seq) -> list[_Row]:
    """Read backwards from a seq: all that is near, and further back as long as answers are named, each near the call that names it."""
    seqs = exchanges.seqs
    end = bisect_left(seqs, last + 1)
    near = must = max(0, bisect_left(seqs, min(one.seq for one in kept)) - HORIZON)
    wanted = {one.context.previous for one in kept} - {None}
    found, named = list[_Row](), set[str]()
    for at in range(end - 1, -1, -1):
        if at < near or (at < must and not wanted) or len(named) >= _CHAIN:
            break
        exchange = exchanges.find(seqs[at])
        if exchange is None:
            continue
        calls = _read_calls(exchanges, exchange)
        for started_ns, one in calls:
            found.append((started_ns, one.seq, one.part, one))
            id = one.answer.id if one.answer is not None else None
            if id in wanted and id is not None:
                wanted.discard(id)
                named.add(id)
                near = min(near, max(0, at - HORIZON))
                if one.context.previous and one.context.previous not in named:
                    wanted.add(one.context.previous)
        if not calls and any(kind in exchange.request.path for kind in _KINDS):
            found.append((exchange.started_ns, exchange.seq, 0, exchange))
    return found


def _read_calls(exchanges: Exchanges, exchange: Exchange) -> list[tuple[int, ModelCall]]:
    """Give the calls of an exchange that a provider may keep, the last first."""
    if exchange.websocket is None and not exchange.request.path.endswith(_RESPONSES):
        return []
    calls = []
    for part, made in reversed(exchanges.asked(exchange)):
        context = read_context(made.request, made.seq)
        if context is not None:
            call = read_call(made, context, read_answer(made), part)
            calls.append((made.started_ns, call))
    return calls
