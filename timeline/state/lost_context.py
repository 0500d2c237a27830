"""What compaction dropped from the context of a lane, and what no answer or message of the agent explains in it.

A run is read from its beginning up to the call that is looked at, so that each part has the seq at which it was first said.
"""

from collections.abc import Callable

from ...store import StoreError
from ..steps.tracer import Tracer
from .calls_before import Exchanges
from .find_state import find_state
from .watch_contexts import Looked, Watch


def look_at(
    exchanges: Exchanges,
    seq: int | None,
    part: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Looked]:
    """Look at the request of a model call, or of each one of the run.

    part: of a model call of a WebSocket; 0 for each of them.
    Raises: StoreError, where there is no model call of a lane at the seq; LogCorrupt.
    """
    if seq is not None and part:
        exchanges.get_part(exchanges.get(seq), part)
    seqs = exchanges.seqs
    watch = Watch(lambda one: seq is None or one == seq)
    tracer = Tracer(observe=watch.observe, observe_aside=watch.note_aside)
    for at, number in enumerate(seqs, 1):
        if seq is not None and number > seq and watch.found and not watch.is_open:
            break
        exchange = exchanges.find(number)
        if exchange is not None:
            tracer.add(exchange, exchanges.messages(exchange) if exchange.websocket else ())
            watch.see(exchange)
        progress(at, len(seqs))
    tracer.end()
    watch.end()
    if seq is not None and not watch.found:
        state = find_state(exchanges, seq, part)  # says what there is where the seq is outside
        hint = f"the last model call before it is {state.call.seq}"
        if state.call.seq == seq:
            hint = f"it is one beside the conversation ({state.call.aside or 'retrieval'})"
        raise StoreError(
            f"exchange {seq} of run {exchanges.info.id!r} is no model call of an agent", hint
        )
    return [one for one in watch.found if part in (0, one.call_part)]
