"""Decide on every request once: create the pending exchange, ask the policy, store the decision.

Deny first, then fill in: in playback a refusal is preset before anything is looked up, so that whatever
goes wrong afterwards, the client gets that and nothing leaves.

    decide.py                          the hooks
    deciding/begin_exchange.py         a request's head: the pending exchange begins
    deciding/request_facts.py          what the policy may look at
    deciding/decide_before_sending.py  what is about to leave
    deciding/tape_lookup.py            what the tape has; deciding/check_recorded_exchange.py says whether that can be served
"""

from collections.abc import Awaitable

from mitmproxy import flow as mflow
from mitmproxy import http

from ..config import Mode
from ..tape.policy.decide import Action
from .answer.refuse import preset_refusal, refusal
from .attempts.pass_own_loopback_ports import passes
from .deciding.begin_exchange import NO_RULES, begin, prepare
from .deciding.decide_before_sending import let_out_compared
from .deciding.request_facts import drop_trailer_claims
from .deciding.tape_lookup import TapeLookup
from .run.pending_exchange import PendingExchange, find_pending
from .run.registry import RunRegistry
from .run.request_constraints import decide_on

_NO_RUN = "this connection belongs to no open run"


class Decide:
    """Decide on every request, once."""

    def __init__(self, registry: RunRegistry) -> None:
        """Decide for the open runs of `registry`."""
        self._registry = registry

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Begin the pending exchange; in playback preset the refusal."""
        if flow.response is not None or passes(flow):
            return
        open_run = self._registry.of(flow.client_conn)
        if open_run is not None and not open_run.lifetime.ending:
            if open_run.mode is Mode.PLAYBACK:
                flow.response = preset_refusal()
            begin(flow, open_run)
        elif open_run is None or open_run.mode is Mode.PLAYBACK:
            flow.response = refusal(None, None, _NO_RUN)
        else:
            # As a server that closes an idle connection: the client asks again on a new one, and that
            # belongs to a new run.
            flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)

    async def playhead_uploaded(self, pending: PendingExchange) -> None:
        """Give a body that is too large to be held its hash, by which it is compared; take back one that was set aside."""
        await pending.take_upload()

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Decide, now that the body is there."""
        pending = find_pending(flow)
        if pending is None:
            return None
        if pending.decision is not None:
            drop_trailer_claims(flow, live=pending.decision.action is Action.LIVE)
            return None
        request, playback = prepare(flow, pending), pending.open_run.playback
        if pending.open_run.mode is not Mode.PLAYBACK:
            return let_out_compared(pending)
        if playback is None:
            pending.decide(decide_on(pending, NO_RULES, None))
            return None
        return TapeLookup(pending, playback, request).look_up()
