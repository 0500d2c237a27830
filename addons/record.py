"""Record traffic: the intent before a request is forwarded, the outcome before the last byte is released.

Only an effect's intent is waited for; every outcome is. Everything that costs time, redaction of the
answer, canonical form, packing, happens on the store's writer thread; a large answer is redacted by another one before that.

    record.py                               the hooks
    recording/intent.py                     what is logged before a request is sent on
    recording/exchange_snapshot.py          what is kept of an exchange, frozen when it is handed over, and the record made of it
    recording/begin_answer.py               an answer begins
    recording/save.py                       what has passed, and the outcome
    recording/save_interrupted_exchange.py  what there is of an exchange that is broken off
"""

from collections.abc import Awaitable

from mitmproxy import connection, http

from ..config import Mode
from ..store import StoreUnwritable
from ..tape.exchange import RequestClass
from ..tape.policy.decide import Action
from .answer.partial_delivery import note_left
from .recording import intent
from .recording.begin_answer import begin_answer, wants_identity
from .recording.save import begin_websocket, release, save, save_left
from .recording.save_interrupted_exchange import (
    break_off,
    give_up,
    give_up_overdue,
    save_crashed,
    save_failed,
    wait_for_late_answers,
)
from .run.pending_exchange import (
    PendingExchange,
    find_pending,
    on_their_way,
)
from .run.registry import RunRegistry
from .wire.upstream_failure import INTERNAL


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
        if pending.open_run.mode is Mode.PLAYBACK and pending.is_deserted:
            return None  # its client left while it was held, so nothing is sent
        flow.response = None
        if wants_identity(pending) and "accept-encoding" in flow.request.headers:
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
        if pending is None or answer is None or pending.playing.steps is not None:
            return
        if pending.leaves:
            begin_answer(pending, answer)

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
        # One that was saved before had its run ended over it.
        if pending.progress.recording and not pending.progress.saved:
            if pending.websocket is not None:
                await begin_websocket(pending)  # its outcome is its end
            else:
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
            await save_failed(pending)

    async def client_disconnected(self, client: connection.Client) -> None:
        """Keep the upstream connections while late answers are still to come."""
        open_run = self._registry.of(client)
        if open_run is None:
            return
        own = [one for one in on_their_way(open_run) if one.flow.client_conn is client]
        if crashed := getattr(client, "crashed", ""):  # put there by our handler
            await save_crashed(open_run, own, f"{INTERNAL}: {crashed}")
        else:
            await wait_for_late_answers(own)
