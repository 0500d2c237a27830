"""Answer telemetry that is not on the tape: with an empty success, or with the failure of a machine that is offline."""

from mitmproxy import http

from ...tape.exchange import Ending, Fault, FaultKind, Phase, RedactedText, Request
from ...tape.playback.script import Step, StepKind, Steps
from ...tape.policy.telemetry_answer import empty_success
from ..run.pending_exchange import PendingExchange
from ..wire.convert_http_messages import make_answer

_BAD_GATEWAY = 502
_OFFLINE = RedactedText("nothing is reached in a playback: telemetry that is not on the tape")


def offline_steps() -> Steps:
    """Give the steps of a connection that ends without an answer."""
    return Steps((Step(0, StepKind.FAIL, ending=Ending.RST),))


def discarded(pending: PendingExchange, request: Request) -> tuple[http.Response, Fault | None]:
    """Give what answers a request, and the fault that its client sees in the place of an answer."""
    answer = empty_success(request)
    if answer is not None:
        made = make_answer(answer.status, answer.headers, answer.body)
        if answer.trailers:
            made.trailers = http.Headers(answer.trailers)
            del made.headers["content-length"]
        return made, None
    at_us = pending.now_us()
    fault = Fault(FaultKind.DNS, Phase.CONNECT, _OFFLINE, at_us, Ending.RST)
    return make_answer(_BAD_GATEWAY, (), b""), fault  # its head is never played
