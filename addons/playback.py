"""Serve answers from the tape, and nothing else."""

from collections.abc import Awaitable

from mitmproxy import http

from ..store import LogCorrupt
from ..tape.policy.decide import Action
from .run.pending_exchange import find_pending
from .serving.serve import is_served_later, serve, serve_later


class Playback:
    """Put the recorded outcome into the pending exchange, for the stream to play."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Serve the recorded exchange that was decided on."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or pending.body.early is not None:
            return None
        decision, open_run = pending.decision, pending.open_run
        if decision.action is not Action.SERVE:
            return None
        playback, seq, request = open_run.playback, decision.seq, pending.request
        if playback is None or seq is None or request is None:
            raise TypeError("what is served comes from a tape")
        exchange = pending.take_recorded() or playback.store.exchanges.find(playback.tape, seq)
        if exchange is None:
            raise LogCorrupt(f"run {playback.tape.id}: exchange {seq} is indexed but missing")
        if is_served_later(pending, exchange):
            return serve_later(pending, playback, decision, request, exchange)
        serve(pending, playback, decision, request, exchange)
        return None
