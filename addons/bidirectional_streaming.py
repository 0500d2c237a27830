"""Bidirectional streaming: requests whose answer may begin before they have ended, such as gRPC.

They cannot be read to their end first: a client that waits for an answer before it says more would wait for
ever. While recording they are decided by their head and sent on as they come. In playback the bytes that have
come are compared with those of recorded requests of the same endpoint: where the recorded answer began by
then, it begins again. Where an earlier recorded request has begun alike and was answered later, the next message is
waited for, or that the client is quiet. So it is where the server spoke first: nothing comes before its answer. One that
says something else later ends there, as a divergence, and so does one that is given up before all messages of the recorded one
have come. One that its client gives up before any answer is the recorded one that was given up so. One that the tape cannot have,
whatever comes, is decided once its client is quiet: it waits for an answer, and may wait without an end.

    bidirectional_streaming.py              the hooks
    early_answers/match_partial_request.py  which recorded request one has been so far
    answer/request_extent.py                how much of it there is, by where the recorded one ended or was given up
    early_answers/serve_early.py            its answer begins
    answer/compare_rest_of_request.py       what comes after that
"""

from mitmproxy import http

from ..tape.exchange import Request, RequestClass
from ..tape.policy.revise import Cause, Refused, revise
from .answer.compare_rest_of_request import compare, diverge_given_up
from .answer.incomplete_requests import note_cut_request
from .early_answers.match_partial_request import (
    find_begun,
    find_given_up,
    find_nearest,
    may_still_be_known,
)
from .early_answers.serve_early import begin_early, end_given_up
from .run.pending_exchange import PendingExchange, find_pending, note_verdict
from .wire.convert_http_messages import read_request

_GIVEN_UP = "its client gave up before it had ended; the tape has no such request"


class Bidirectional:
    """Begin answers from the tape while their requests still come."""

    def playhead_bidirectional(self, pending: PendingExchange) -> None:
        """Compare what has come; begin to play where the recorded answer had begun."""
        body, playback = pending.body, pending.open_run.playback
        if body.early is not None and pending.request is not None:
            compare(pending, pending.request, body.early)
        elif playback is not None and body.upload is None and body.sent:
            request = _read_head(pending)
            recorded = find_begun(pending, playback, request)
            if recorded is not None:
                begin_early(pending, playback, request, recorded)
                return
            is_known = body.undecided or may_still_be_known(pending, playback, request)
            body.note_unknown(is_unknown=not is_known)

    def error(self, flow: http.HTTPFlow) -> None:
        """Account for a request of a playback that its client gave up before it had ended."""
        pending = find_pending(flow)
        if pending is None or pending.decision is not None:
            return
        if not pending.body.bidirectional:
            note_cut_request(pending)
            return
        playback = pending.open_run.playback
        if pending.finished or playback is None:
            return
        request = _read_head(pending)
        recorded = find_given_up(pending, playback, request)
        if recorded is not None:
            end_given_up(pending, playback, request, recorded)
            return
        note_verdict(pending, request, revise(None, Refused(Cause.CUT, _GIVEN_UP)))
        if pending.request_class is not RequestClass.TELEMETRY:
            recorded = find_nearest(pending, playback, request)
            diverge_given_up(pending, request, recorded)


def _read_head(pending: PendingExchange) -> Request:
    """Read a request as far as its head, and keep that."""
    asked = read_request(pending.flow, pending.arrival.fields, names=pending.arrival.names)
    return pending.prepare(asked, with_body=False)
