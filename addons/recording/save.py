"""Write what is recorded: what has passed, and the outcome."""

import asyncio
from functools import partial

from mitmproxy import http

from ...store import StoreUnwritable
from ...tape.exchange import FaultKind
from ..deciding.given_to_another_process import forget_given
from ..run.pending_exchange import PendingExchange
from ..run.request_constraints import settle_gated
from ..run.run_state import OnTheWay
from ..websockets.recorder import WebSocketRecorder
from . import intent
from .exchange_snapshot import correct, make_record, note_gone, note_outcome, search, take_snapshot

_SEARCHED_BESIDE = 256 * 1024
"""Bytes of an answer from which another thread looks for its secrets: whoever else writes does not wait for that."""


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
    _note_unsent(pending)
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


def _note_unsent(pending: PendingExchange) -> None:
    """Have nobody repeat an effect whose upstream was sent nothing; take from the limits what did not leave."""
    fault, meter = pending.progress.fault, pending.open_run.usage_meter
    if fault is not None and fault.is_unreached:
        pending.account.note_undone()
        forget_given(pending)
        if fault.kind is not FaultKind.DENIED:
            return  # it was tried, which counts
    if meter is not None and not pending.progress.sent_on:
        meter.uncount(pending)


async def _write(pending: PendingExchange, answer: http.Response | None, *, complete: bool) -> None:
    websocket = pending.websocket
    holed = isinstance(websocket, WebSocketRecorder) and websocket.holed
    if pending.progress.unsaved or holed:
        raise StoreUnwritable("a part of the exchange could not be written", intent.HINT)
    await pending.keep_bodies()
    if pending.arrival.lane is not None:
        number = await pending.open_run.lanes.find_lane(pending.flow.client_conn.id)
        pending.arrival.number_lane(number)
    if pending.progress.unlogged:
        intent.append(pending)
    snapshot = take_snapshot(pending, answer, complete=complete, make_event=note_outcome)
    if pending.answer.size >= _SEARCHED_BESIDE:
        snapshot = await asyncio.to_thread(search, snapshot)
    await pending.open_run.store.exchanges.save(
        pending.open_run.number,
        partial(make_record, snapshot),
        collect=OnTheWay.in_process > 1,
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
