"""Record traffic: the intent before a request is forwarded, the outcome before the last byte is released.

Only an effect's intent is waited for; every outcome is. Everything that costs time, redaction of the
answer, canonical form, packing, happens on the store's writer thread; a large answer is redacted by another one before that.

    record.py                        the hooks
    recording/intent.py              what is logged before a request is sent on
    recording/exchange_snapshot.py   what is kept of an exchange, frozen when it is handed over, and the record made of it
    recording/save.py                what has passed, the outcome, and what there is of an exchange that is broken off
"""

from collections.abc import Awaitable

from mitmproxy import connection, http

from ..config import Mode
from ..store import StoreUnwritable
from ..tape.contracts.can_hold_back import can_hold
from ..tape.exchange import Ending, Phase, RequestClass
from ..tape.policy.decide import Action
from ..tape.records.events import EventKind
from .answer.delivery import note_left
from .recording import intent
from .recording.save import (
    begin_websocket,
    break_off,
    give_up,
    give_up_overdue,
    release,
    save,
    save_crashed,
    save_left,
)
from .run.pending_exchange import (
    HELD_BYTES,
    LATE_ANSWER_S,
    PendingExchange,
    find_pending,
    on_their_way,
)
from .run.registry import RunRegistry
from .wire.http import announced_length
from .wire.upstream_failure import INTERNAL, NOT_SENT


class Record:
    """Record what is forwarded, in record mode and for live requests in playback."""

    def __init__(self, registry: RunRegistry) -> None:
        """Record for the open runs of `registry`."""
        self._registry = registry
        registry.hooks.on_unfinished = give_up
        registry.hooks.on_overdue = give_up_overdue
        registry.hooks.on_broken = break_off

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin a request that is sent on as it comes: it was decided by its head."""
        pending = find_pending(flow)
        if pending is None or not pending.body.bidirectional or pending.decision is None:
            return None
        waiting = self.request(flow)
        flow.request.stream = True
        return waiting

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Log the intent; for an effect, before it is forwarded."""
        pending = find_pending(flow)
        if pending is None or pending.progress.forwarded or not pending.leaves:
            return None
        flow.response = None
        if _wants_identity(pending) and "accept-encoding" in flow.request.headers:
            flow.request.headers["accept-encoding"] = "identity"
        if pending.open_run.info is None or not pending.seq:
            if pending.open_run.mode is Mode.RECORD:
                intent.pass_unbegun(pending)
            pending.progress.forward()
            return None
        pending.progress.begin()
        if pending.request_class is RequestClass.EFFECT:
            if self._registry.hooks.before_effect is not None:
                return self._log_behind_savepoint(pending)
            return intent.log_durably(pending)
        intent.log(pending)
        return None

    async def _log_behind_savepoint(self, pending: PendingExchange) -> None:
        """Have it kept how things stand, then log the intent of an effect."""
        before_effect = self._registry.hooks.before_effect
        if before_effect is not None and pending.open_run.mode is Mode.RECORD:
            await before_effect(pending)
        await intent.log_durably(pending)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Let the answer pass piece by piece."""
        pending, answer = find_pending(flow), flow.response
        if (
            pending is None
            or answer is None
            or pending.playing.steps is not None
            or not pending.leaves
        ):
            return
        pending.answer.begin(pending.now_us())
        if answer.status_code == 101:
            return
        answer.stream = True
        kind = answer.headers.get("content-type", "")
        pending.answer.describe(
            event_stream=kind.lower().startswith("text/event-stream"),
            announced=announced_length(answer.data.headers.fields)
            if flow.request.method != "HEAD"
            else -1,
        )
        if pending.contract_state is not None and pending.progress.recording:
            pending.contract_state.holds = _may_hold(pending, answer)

    async def playhead_release(self, pending: PendingExchange) -> None:
        """Make durable what has passed, before a piece that the agent will act on is released."""
        try:
            await release(pending)
        except StoreUnwritable as error:
            pending.open_run.miss(error)

    async def playhead_left(self, pending: PendingExchange) -> None:
        """Correct an exchange whose client left before it was sent the end."""
        await save_left(pending)

    async def response(self, flow: http.HTTPFlow) -> None:
        """Log the outcome; the last byte is released after this."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or pending.playing.steps is not None:
            return
        if (
            pending.progress.recording and not pending.progress.saved
        ):  # else its run was ended over it
            if pending.websocket is not None:
                await begin_websocket(pending)  # its outcome is its end
                return
            await save(pending, flow.response, complete=True)
        elif not pending.progress.recording and pending.decision.action is Action.FORWARD:
            pending.finish()  # else whoever saves it does so, once its bodies are kept

    async def playhead_websocket_ended(self, pending: PendingExchange) -> None:
        """Log how a WebSocket ended; its last closing frame is released after this."""
        if pending.progress.recording and not pending.progress.saved:
            await save(pending, pending.flow.response, complete=True)

    async def error(self, flow: http.HTTPFlow) -> None:
        """Log that the exchange failed, or that the client left."""
        pending = find_pending(flow)
        if pending is None:
            return
        if not pending.progress.recording:
            if pending.decision is not None and pending.decision.seq is not None:
                note_left(pending)  # its client left before the first step
            pending.finish()
        elif not pending.progress.saved:
            if pending.progress.fault is None:
                pending.client_left()
                if (
                    pending.keep_reading
                    and not pending.progress.sent_on
                    and pending.playing.steps is None
                ):
                    pending.failed(NOT_SENT, phase=Phase.CONNECT, ending=Ending.RST, code=0)
            answer = pending.begun_answer
            # An answer to HEAD is its head, and a client that has it may leave at once.
            whole = (
                answer is not None
                and flow.request.method == "HEAD"
                and pending.progress.fault is None
            )
            await save(pending, answer, complete=whole)
            if not pending.holds:
                pending.let_go()  # the flow may be there for long

    async def client_disconnected(self, client: connection.Client) -> None:
        """Keep the upstream connections while late answers are still to come."""
        open_run = self._registry.of(client)
        if open_run is None:
            return
        own = [one for one in on_their_way(open_run) if one.flow.client_conn is client]
        if crashed := getattr(client, "crashed", ""):  # put there by our handler
            text = f"{INTERNAL}: {crashed}"
            open_run.note(EventKind.NOTED, text=f"a client's connection was reset: {text}")
            for pending in own:
                await save_crashed(pending, text)
            return
        late = [pending for pending in own if pending.keep_reading and _goes_on(pending)]
        for pending in late:
            if not pending.progress.saved:
                pending.client_left()  # its stream may hear of it only once the upstream is connected
        for pending in late:
            await pending.ended(LATE_ANSWER_S)


def _wants_identity(pending: PendingExchange) -> bool:
    """Say whether the upstream is asked for an answer without a coding."""
    wants = pending.open_run.config.upstream_encoding
    return {
        RequestClass.INFERENCE: wants.inference,
        RequestClass.READ: wants.reads,
        RequestClass.EFFECT: wants.effects,
    }.get(pending.request_class, False)


def _goes_on(pending: PendingExchange) -> bool:
    """Say whether a request is sent on, or will be, though its client has left."""
    held = pending.held.approval is not None or pending.held.delayed is not None
    return pending.progress.forwarded or (pending.open_run.mode is Mode.RECORD and not held)


def _may_hold(pending: PendingExchange, answer: http.Response) -> bool:
    """Say whether an answer is held back until it has been checked."""
    state = pending.contract_state
    if state is None or pending.held.injection is not None:
        return False
    if pending.answer.announced > HELD_BYTES or not state.applicable.refuses_answers:
        return False
    return can_hold(pending.flow.request.method, answer.status_code, answer.data.headers.fields)
