"""Write what is recorded: what has passed, the outcome, and what there is of an exchange that is broken off."""

import asyncio
import contextlib
from collections.abc import Awaitable
from functools import partial

from mitmproxy import http

from ...store import StoreError, StoreUnwritable
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Ending, Fault, FaultKind, Phase, RedactedText
from ...tape.playback.websocket import ABRUPT
from ...tape.policy.revise import Cause, Refused
from ..run.pending_exchange import LATE_ANSWER_S, PendingExchange, note_verdict
from ..run.request_constraints import settle_gated
from ..websockets.player import WebSocketPlayer
from ..websockets.recorder import WebSocketRecorder
from . import intent
from .exchange_snapshot import correct, make_record, note_gone, note_outcome, search, take_snapshot

_SEARCHED_BESIDE = 256 * 1024
"""Bytes of an answer from which another thread looks for its secrets: whoever else writes does not wait for that."""
_ENDED = "its run ended before the answer did"


# ---- while it is under way --------------------------------------------------------------------------


async def release(pending: PendingExchange) -> None:
    """Make durable what has passed of an answer.

    Raises: StoreUnwritable.
    """
    if pending.progress.unsaved:
        return
    if pending.answer.download is not None and not pending.answer.download.is_aside:
        # Too large to be written twice: what has passed is in its file, and kept with the outcome.
        await pending.answer.download.settle()
    elif pending.progress.recording and not pending.progress.broken and pending.body.request_ended:
        # Half a request would stand for the whole one.
        async with pending.in_memory():
            snapshot = take_snapshot(pending, pending.flow.response, complete=False)
            await pending.open_run.store.exchanges.save(
                pending.open_run.number, partial(make_record, snapshot)
            )


async def begin_websocket(pending: PendingExchange) -> None:
    """Note how a WebSocket began, before its client knows it. Should we die over it, its messages have their exchange."""
    open_run = pending.open_run
    snapshot = take_snapshot(pending, pending.flow.response, complete=True)
    try:
        await open_run.store.exchanges.save(open_run.number, partial(make_record, snapshot))
    except StoreUnwritable as error:
        open_run.miss(error)


# ---- its outcome -------------------------------------------------------------------------------------


async def save(pending: PendingExchange, answer: http.Response | None, *, complete: bool) -> None:
    """Write an outcome, and end the pending exchange."""
    pending.progress.save()
    settle_gated(pending, answer.status_code if answer is not None else 0)
    state = pending.contract_state
    try:
        try:
            async with pending.in_memory():
                if pending.open_run.usage_meter is not None:
                    pending.open_run.usage_meter.heard(pending, answer)
                await _write(pending, answer, complete=complete)
        except StoreUnwritable as error:
            if state is not None and state.holds:
                raise  # it is checked where it is written, and not let go unchecked
            pending.progress.give_up()
            pending.open_run.miss(error, exchanges=1)
        if state is not None:
            state.report(pending.open_run, pending.seq)
        withheld = state is not None and bool(state.withheld)
        if complete and pending.progress.gone is None and not withheld:
            pending.account.note_seen()  # the last byte is released now
    finally:
        pending.finish()


async def _write(pending: PendingExchange, answer: http.Response | None, *, complete: bool) -> None:
    websocket = pending.websocket
    holed = isinstance(websocket, WebSocketRecorder) and websocket.holed
    if pending.progress.unsaved or holed:
        raise StoreUnwritable("a part of the exchange could not be written", intent.HINT)
    await pending.keep_bodies()
    if pending.arrival.lane is not None:
        number = await pending.open_run.lanes.find_number(pending.flow.client_conn.id)
        pending.arrival.number_lane(number)
    if pending.progress.unlogged:
        intent.append(pending)
    snapshot = take_snapshot(pending, answer, complete=complete, make_event=note_outcome)
    if pending.answer.size >= _SEARCHED_BESIDE:
        snapshot = await asyncio.to_thread(search, snapshot)
    await pending.open_run.store.exchanges.save(
        pending.open_run.number, partial(make_record, snapshot)
    )


async def save_left(pending: PendingExchange) -> None:
    """Correct an exchange whose client left before it was sent the end."""
    open_run, progress, download = pending.open_run, pending.progress, pending.answer.download
    if open_run.info is None or pending.progress.gone is None or not pending.seq:
        return
    if progress.broken or progress.unsaved:
        return
    if download is not None and download.is_aside:
        make = partial(correct, pending, open_run.info)  # its body is in the store alone
    else:
        answer = pending.flow.response
        make = partial(
            make_record, take_snapshot(pending, answer, complete=True, make_event=note_gone)
        )
    try:
        await open_run.store.exchanges.save(open_run.info.number, make)
    except StoreUnwritable as error:
        open_run.miss(error)


# ---- broken off --------------------------------------------------------------------------------------


async def give_up_overdue(pending: PendingExchange) -> None:
    """Save what there is of an exchange whose client left long ago, though its connection is still there."""
    text = f"its answer went on for {LATE_ANSWER_S / 60:g} minutes after its client had left"
    await give_up(pending, text)
    pending.progress.break_off()  # what still comes is not kept


async def give_up(pending: PendingExchange, text: str = _ENDED) -> None:
    """Save what there is of an exchange whose run ends now.

    text: why that is all.
    """
    if isinstance(pending.websocket, WebSocketPlayer):
        await pending.websocket.end()
    if pending.progress.recording and not pending.progress.saved:
        if pending.websocket is None:
            pending.client_left()
        pending.progress.add_warning(text)
        muted = pending.held.muted and pending.answer.whole
        await save(pending, pending.begun_answer, complete=pending.websocket is not None or muted)
    pending.finish()


def break_off(pending: PendingExchange, text: RedactedText, rule: str) -> Awaitable[None] | None:
    """Keep an exchange as cut by us, and why; one that was served is noted as refused after all.

    rule: what decided that.
    Gives what is still to be written; whatever comes of the exchange from now on is not.
    """
    if pending.progress.recording and not pending.progress.saved:
        if isinstance(pending.websocket, WebSocketRecorder):
            pending.websocket.end(ABRUPT, "", by_client=False)
        if pending.held.muted:
            pending.client_left()  # it has heard nothing of what came
        begun = bool(pending.answer.taken) or pending.answer.head_sent
        kind, phase = (FaultKind.CUT, Phase.BODY) if begun else (FaultKind.RESET, Phase.HEAD)
        pending.progress.fail(Fault(kind, phase, one_line(text), pending.now_us(), Ending.RST))
        pending.progress.break_off()
        pending.progress.save()
        return save(pending, pending.begun_answer, complete=False)
    waiting = None
    if pending.request is not None and not pending.finished:
        decision = pending.revise(Refused(Cause.STOPPED, text, rule))
        # Where nothing can be written, whoever breaks it off has more to say than this.
        with contextlib.suppress(StoreError):
            note_verdict(pending, pending.request, decision)
        if isinstance(pending.websocket, WebSocketPlayer):
            waiting = pending.websocket.end()
    pending.finish()
    return waiting


async def save_crashed(pending: PendingExchange, text: str) -> None:
    """Keep what was under way on a connection that an error of ours has ended."""
    if pending.progress.recording and not pending.progress.saved:
        if isinstance(pending.websocket, WebSocketRecorder):
            pending.websocket.end(ABRUPT, "", by_client=False)
        pending.failed(text, phase=Phase.HEAD, ending=Ending.RST, code=0)
        await save(pending, pending.begun_answer, complete=False)
    elif pending.playing.steps is not None and pending.request is not None:
        note_verdict(pending, pending.request, pending.revise(Refused(Cause.CRASHED, text)))
    pending.finish()
