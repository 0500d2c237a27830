"""Keep what there is of an exchange that is broken off: its client left, its run ends, it is stopped, or its connection crashed."""

import contextlib
from collections.abc import Awaitable, Iterable

from ...config import Mode
from ...store import StoreError
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Ending, Fault, FaultKind, Phase, RedactedText
from ...tape.playback.websocket import ABRUPT
from ...tape.policy.revise import Cause, Refused
from ...tape.records.events import EventKind
from ..run.pending_exchange import LATE_ANSWER_S, PendingExchange, note_verdict
from ..run.run_state import OpenRun
from ..websockets.player import WebSocketPlayer
from ..websockets.recorder import WebSocketRecorder
from ..wire.upstream_failure import NOT_ENDED, NOT_SENT
from .save import save

_ENDED = "its run ended before the answer did"


async def save_failed(pending: PendingExchange) -> None:
    """Write an exchange that failed, or whose client left."""
    progress = pending.progress
    if progress.fault is None:
        pending.client_left()
        if pending.keep_reading and not progress.sent_on and pending.playing.steps is None:
            said = NOT_SENT if pending.body.request_ended else NOT_ENDED
            pending.failed(said, phase=Phase.CONNECT, ending=Ending.RST, code=0)
    answer = pending.begun_answer
    # An answer to HEAD is its head, and a client that has it may leave at once.
    asks_head = pending.flow.request.method == "HEAD"
    whole = answer is not None and asks_head and progress.fault is None
    await save(pending, answer, complete=whole)
    if not pending.holds:
        pending.let_go()  # the flow may be there for long


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


async def save_crashed(open_run: OpenRun, own: Iterable[PendingExchange], text: str) -> None:
    """Keep what was under way on a connection that an error of ours has ended."""
    open_run.note(EventKind.NOTED, text=f"a client's connection was reset: {text}")
    for pending in own:
        if pending.progress.recording and not pending.progress.saved:
            if isinstance(pending.websocket, WebSocketRecorder):
                pending.websocket.end(ABRUPT, "", by_client=False)
            pending.failed(text, phase=Phase.HEAD, ending=Ending.RST, code=0)
            await save(pending, pending.begun_answer, complete=False)
        elif pending.playing.steps is not None and pending.request is not None:
            note_verdict(pending, pending.request, pending.revise(Refused(Cause.CRASHED, text)))
        pending.finish()


async def wait_for_late_answers(own: Iterable[PendingExchange]) -> None:
    """Wait for the answers that are read on though their client has left; the upstream connections stay as long."""
    late = [pending for pending in own if pending.keep_reading and _goes_on(pending)]
    for pending in late:
        if not pending.progress.saved:
            pending.client_left()  # its stream may hear of it only once the upstream is connected
    for pending in late:
        await pending.ended(LATE_ANSWER_S)


def _goes_on(pending: PendingExchange) -> bool:
    """Say whether a request is sent on, or will be, though its client has left."""
    held = pending.held.approval is not None or pending.held.delayed is not None
    return pending.progress.forwarded or (pending.open_run.mode is Mode.RECORD and not held)
