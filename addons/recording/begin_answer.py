"""An answer that is recorded begins: it passes piece by piece, unless a contract holds it back."""

from mitmproxy import http

from ...tape.contracts.can_hold_back import can_hold
from ...tape.exchange import RequestClass
from ..run.pending_exchange import HELD_BYTES, PendingExchange
from ..wire.convert_http_messages import announced_length


def wants_identity(pending: PendingExchange) -> bool:
    """Say whether the upstream is asked for an answer without a coding."""
    wants = pending.open_run.config.upstream_encoding
    return {
        RequestClass.INFERENCE: wants.inference,
        RequestClass.READ: wants.reads,
        RequestClass.EFFECT: wants.effects,
    }.get(pending.request_class, False)


def begin_answer(pending: PendingExchange, answer: http.Response) -> None:
    """Let an answer pass piece by piece."""
    pending.answer.begin(pending.now_us())
    if answer.status_code == 101:
        return
    answer.stream = True
    kind = answer.headers.get("content-type", "")
    has_body = pending.flow.request.method != "HEAD"
    pending.answer.describe(
        event_stream=kind.lower().startswith("text/event-stream"),
        announced=announced_length(answer.data.headers.fields) if has_body else -1,
    )
    if pending.contract_state is not None and pending.progress.recording:
        pending.contract_state.holds = _may_hold(pending, answer)


def _may_hold(pending: PendingExchange, answer: http.Response) -> bool:
    """Say whether an answer is held back until it has been checked."""
    state = pending.contract_state
    if state is None or pending.held.injection is not None:
        return False
    if pending.answer.announced > HELD_BYTES or not state.applicable.refuses_answers:
        return False
    return can_hold(pending.flow.request.method, answer.status_code, answer.data.headers.fields)
