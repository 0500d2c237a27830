"""Serve a recorded exchange: have its outcome played, and log the verdict."""

import asyncio

from ...tape.exchange import Exchange, RawAnswer, Request
from ...tape.policy.decide import Decision
from ...tape.policy.revise import Cause, Refused
from ..answer.compare_rest_of_request import compare_end
from ..answer.refuse import refusal
from ..contract import check_recorded, lay_refusal
from ..faults.inject import note_injected
from ..run.pending_exchange import PendingExchange, note_verdict
from ..run.playback_state import PlaybackState
from ..websockets.player import serve_websocket
from ..wire.convert_http_messages import needs_http2
from .describe_match import describe_match, notes
from .play import find_raw, lay_out
from .save_served_exchange import keep_served


def is_served_later(pending: PendingExchange, exchange: Exchange) -> bool:
    """Say whether an answer is held to a contract, or given as it came: that takes a thread."""
    state, keeps = pending.contract_state, pending.open_run.keeps_originals
    if state is not None and state.applicable.answers:
        return True
    return keeps and (exchange.has_replaced_answer or exchange.websocket is not None)


async def serve_later(
    pending: PendingExchange,
    playback: PlaybackState,
    decision: Decision,
    request: Request,
    exchange: Exchange,
) -> None:
    """Serve an exchange whose answer is held to a contract, or is given as it came."""
    state, raw = pending.contract_state, None
    if pending.open_run.keeps_originals:
        raw = await asyncio.to_thread(find_raw, pending.open_run, playback, exchange)
    if state is not None and state.applicable.answers:
        await asyncio.to_thread(check_recorded, pending, state, exchange)
    else:
        state = None
    if pending.finished:  # its client has left, or its run has ended
        return
    serve(pending, playback, decision, request, exchange, raw)
    if state is not None:
        state.report(pending.open_run, pending.seq, recorded=bool(exchange.withheld))


def serve(
    pending: PendingExchange,
    playback: PlaybackState,
    decision: Decision,
    request: Request,
    exchange: Exchange,
    raw: RawAnswer | None = None,
) -> None:
    """Serve an exchange.

    raw: its answer as it came, where that is what is given.
    """
    if pending.open_run.sink_queue is not None:
        pending.account.answer(exchange)
    response, injection = exchange.response, pending.held.injection
    if injection is not None:
        decision = note_injected(pending, injection, decision)
    if response is not None and response.status == 101 and injection is None:
        wrong = serve_websocket(pending, playback, request, exchange, raw)
    else:
        wrong = needs_http2(request, exchange)
        if not wrong:
            laid = lay_out(pending, playback, exchange, raw)
            withheld = _find_withheld(pending, exchange)
            if withheld:
                laid = lay_refusal(exchange, withheld, pending.open_run.config.playback.pace)
            pending.play(laid)
    if wrong:
        pending.flow.response = refusal(request, None, wrong)
        decision = pending.revise(Refused(Cause.UNPLAYABLE, wrong))
        playback.resumption.diverge(wrong)
    more = describe_match(pending, playback, decision, request, exchange)
    if not wrong:
        more |= notes(pending, playback, request, exchange, raw)
    note_verdict(pending, request, decision, exchange, tape_seq=decision.seq, **more)
    compare_end(pending, request, exchange)
    if playback.resumption.resume is not None and not wrong:
        keep_served(pending, playback, exchange, raw)


def _find_withheld(pending: PendingExchange, exchange: Exchange) -> str:
    """Say why a recorded answer is withheld: it violates its contract, or did so while recording; empty where it is not."""
    if pending.held.injection is not None:
        return ""
    state = pending.contract_state
    return (state.withheld if state is not None else "") or exchange.withheld
