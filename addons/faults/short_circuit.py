"""Faults that short-circuit a request: a status of ours, a reset, or no answer; the request is never sent.

Comes after the recorder, which has logged the intent and keeps the outcome: what is on the tape is what the client saw.
"""

from collections.abc import Awaitable

from mitmproxy import http

from ...tape import exchange as model
from ...tape.exchange import FaultKind, Phase, RedactedText, Response
from ...tape.faults.kinds import find_kind
from ...tape.playback.script import Steps
from ..recording.save import save
from ..run.pending_exchange import PendingExchange, find_pending
from ..wire.convert_http_messages import make_head
from .inject import answer_with

_NO_HEAD = Response(0, b"", "HTTP/1.1", (), b"", 0)


class ShortCircuit:
    """Answer, or do not, in the upstream's place."""

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Have a request read whole that would have been sent on as it comes."""
        if _find(flow) is not None:
            flow.request.stream = False

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Do what the rule says in place of sending the request on."""
        pending = _find(flow)
        if pending is None or pending.held.injection is None or pending.request is None:
            return None
        injection = pending.held.injection
        if pending.body.bidirectional:
            pending.body.have_sent([flow.request.raw_content or b""])
            pending.body.end()
        flow.response = answer_with(pending.request, injection)
        if flow.response is not None:
            return None
        kind = find_kind(injection)
        flow.response = make_head(_NO_HEAD, flow.request)
        pending.playing.play(Steps(kind.lay_over((), injection)))
        if not kind.resets:
            return None
        pending.progress.fail(
            model.Fault(
                FaultKind.RESET,
                Phase.HEAD,
                RedactedText(injection.text),
                pending.now_us(),
                injection.ending,
            )
        )
        return save(pending, None, complete=False)  # before the client is told


def _find(flow: http.HTTPFlow) -> PendingExchange | None:
    """Find the pending exchange of a request that is recorded, and not to be sent."""
    pending = find_pending(flow)
    if pending is None or pending.held.injection is None or not pending.progress.recording:
        return None
    return pending if pending.held.injection.kind.short_circuits else None
