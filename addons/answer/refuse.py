"""Refuse a request that the tape does not answer, with the reason; or answer it with a configured stub.

A refusal is HTTP 424 with headers that keep SDKs from trying again; it names the nearest recorded
exchange and the first difference. Both are noted as divergences: the agent can go on, but the replay is
not called faithful. Telemetry that nobody wrote is discarded, which is no divergence.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import Any

from mitmproxy import http

from ... import PlayheadError
from ...config import Mode
from ...store import Record, StoreError, StoreUnwritable
from ...tape.canonical.canonical_request import raw_key
from ...tape.canonical.client_profiles import find_product
from ...tape.diff.divergence_types import Divergence, DivergenceKind
from ...tape.exchange import Fault, Request, RequestClass, Response, VerdictKind
from ...tape.policy.decide import Action, Decision
from ...tape.policy.refusal import (
    NOT_ON_TAPE,
    REFUSAL_STATUS,
    refusal_body,
    refusal_headers,
    refusal_status,
)
from ...tape.policy.revise import Cause, Refused, refusal_code, revise
from ...tape.records.build_exchange import Asked, Outcome, build_exchange
from ...tape.records.events import Event, EventKind
from ..run.pending_exchange import (
    PendingExchange,
    detach,
    find_pending,
    note_divergence,
    note_verdict,
)
from ..run.playback_state import PlaybackState
from ..wire.convert_http_messages import make_refusing_answer
from .discard_telemetry import discarded, offline_steps
from .stub import make_stub

_STUBS = 1000
"""Most stubs of a run that are remembered, to say where a value came from."""


class Refuse:
    """Answer what the policy refused or stubbed."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Answer with the refusal or the stub."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None:
            return None
        if pending.decision.action in (Action.REFUSE, Action.STUB, Action.DISCARD):
            return self._answer(flow, pending, pending.decision)
        return None

    def response(self, flow: http.HTTPFlow) -> None:
        """End the pending exchange: the made-up answer is on its way."""
        pending = find_pending(flow)
        if pending is None or pending.websocket is not None:
            return
        if not pending.progress.recording and pending.playing.steps is None:
            pending.finish()

    async def _answer(
        self, flow: http.HTTPFlow, pending: PendingExchange, decision: Decision
    ) -> None:
        open_run = pending.open_run
        if open_run.lifetime.problem:
            decision = pending.revise(Refused(Cause.NO_TAPE, open_run.lifetime.problem))
        if pending.body.searched:
            request = pending.with_body()
        else:  # while recording
            request = await asyncio.to_thread(pending.with_body)
        divergence = None
        code = refusal_code(decision, stopped=open_run.lifetime.stopped is not None)
        # Who was stopped has not diverged, nor has who was refused for something else than the tape.
        diverges = decision.action is not Action.DISCARD and code == NOT_ON_TAPE
        if open_run.policy.branch is not None and decision.action is Action.STUB:
            diverges = False  # it leaves its tape on purpose
        if pending.lookup.answered:
            diverges = False  # it asks what it may, and somebody answered otherwise
        if open_run.policy.resume is not None and pending.held.approval is not None:
            diverges = False  # a person has refused it
        if open_run.playback is not None and diverges:
            divergence = await asyncio.to_thread(_explain, open_run.playback, pending, request)
        more: dict[str, Any] = {}
        fault: Fault | None = None
        if decision.action is Action.DISCARD:
            flow.response, fault = discarded(pending, request)
            pending.playing.play(offline_steps() if fault is not None else None)
        elif decision.action is Action.STUB:
            flow.response, more = make_stub(pending, request, decision)
        else:
            flow.response = refusal(request, divergence, decision.reason, code)
        if divergence is not None and (product := _find_unprofiled(pending, request, divergence)):
            more["unprofiled"] = product
        note_verdict(pending, request, decision, **more)
        if pending.account.effect is not None:
            pending.account.effect.seen = True
        if pending.body.upload is not None:
            await pending.keep_bodies()
            request = pending.request or request
        await self._keep(pending, request, decision, fault)
        pending.account.diverge(divergence)
        if divergence is not None:
            note_divergence(pending, divergence)

    async def _keep(
        self,
        pending: PendingExchange,
        request: Request,
        decision: Decision,
        fault: Fault | None = None,
    ) -> None:
        """Keep what the tape does not hold: what was asked, and what was answered instead."""
        open_run, answer = pending.open_run, pending.flow.response
        if open_run.info is None or answer is None or not pending.seq:
            return
        run, end_us = open_run.info.number, pending.now_us()
        made = Response(
            status=answer.status_code,
            reason=answer.data.reason,
            http_version="HTTP/1.1",
            headers=answer.data.headers.fields,
            body=answer.data.content or b"",
            head_us=end_us,
        )
        if (
            decision.verdict is VerdictKind.HYPOTHETICAL
        ):  # a person wrote it, who may have quoted a secret
            made, _, _ = await asyncio.to_thread(open_run.redactor.response, made)
        playback = open_run.playback
        stubbed = playback.stubbed if playback is not None else {}
        if decision.action is Action.STUB and len(stubbed) < _STUBS:
            stubbed[pending.seq] = made

        def make() -> Record:
            found = pending.fingerprint or open_run.identifier.fingerprint(
                request, pending.request_class
            )
            asked = Asked(
                pending.seq,
                request,
                pending.request_class,
                found,
                pending.arrival.started_ns,
                pending.redactions,
            )
            response = made if fault is None else None
            what = Outcome(end_us, response, fault, pending.progress.gone)
            exchange = build_exchange(asked, decision.verdict, decision.reason, what)
            # The verdict says all of it but the hash, which the store adds.
            outcome = Event(EventKind.OUTCOME, time.time_ns(), {"seq": pending.seq})
            return Record(exchange, raw_key(request, pending.request_class), outcome)

        if open_run.sink_queue is not None:
            pending.account.answer(make().exchange)
        try:
            if open_run.mode is Mode.RECORD:
                await open_run.store.exchanges.save(run, make)
            else:
                open_run.store.exchanges.save_unwaited(run, make)
        except StoreUnwritable as error:
            # It is refused in any case.
            open_run.gap.note(str(error), exchanges=1)


def _find_unprofiled(pending: PendingExchange, request: Request, divergence: Divergence) -> str:
    """Give the product of a client without a profile whose model call is not on the tape; else nothing."""
    if pending.request_class is not RequestClass.INFERENCE:
        return ""
    if divergence.kind not in (DivergenceKind.CHANGED, DivergenceKind.UNEXPECTED):
        return ""
    if pending.open_run.identifier.rules.profiles.find(request) is not None:
        return ""
    return find_product(request.headers).decode("ascii", "replace")


def refusal(
    request: Request | None,
    divergence: Divergence | None,
    reason: str,
    code: str = NOT_ON_TAPE,
) -> http.Response:
    """Give a refusal as a response."""
    asked = request or Request("", "http", "", 80, "", "HTTP/1.1", ())
    body = refusal_body(asked, divergence, reason, code)
    fields = refusal_headers(reason, request, divergence)
    return make_refusing_answer(refusal_status(request), fields, body)


def preset_refusal() -> http.Response:
    """Give what a playback answers if it never comes to a decision."""
    return make_refusing_answer(REFUSAL_STATUS, _PRESET_HEADERS, _PRESET_BODY)


_PRESET_REASON = "playback could not look this request up"
_PRESET_HEADERS = refusal_headers(_PRESET_REASON)
_PRESET_BODY = refusal_body(Request("", "http", "", 80, "", "HTTP/1.1", ()), None, _PRESET_REASON)


def _failure_reason(error: Exception, pending: PendingExchange | None) -> str:
    """Give what a person can act on with what to do; of an error of ours its kind alone, as its text may quote anything."""
    if not isinstance(error, PlayheadError):
        return f"internal error: {type(error).__name__}"
    text = f"{error}; {error.hint}" if error.hint else str(error)
    return text if pending is None else pending.open_run.redactor.redact_text(text)


def refuse_failed(flow: http.HTTPFlow, error: Exception) -> None:
    """Answer a request whose deciding failed with a refusal.

    Its pending exchange ends here, so that nothing more is decided, played, recorded or let out.
    """
    pending = detach(flow)
    reason = _failure_reason(error, pending)
    flow.response = refusal(None, None, reason)
    if pending is None:
        return
    facts = pending.facts
    # Its query may hold what was to be redacted.
    path = pending.open_run.redactor.redact_text(facts.target.partition("?")[0])
    bare = Request(facts.method, facts.scheme, facts.host, facts.port, path, "HTTP/1.1", ())
    decision = revise(pending.decision, Refused(Cause.FAILED, reason))
    # Where it failed because nothing can be written, this cannot be either; the client is told all the same.
    with contextlib.suppress(StoreError):
        note_verdict(pending, pending.request or bare, decision)
    pending.finish()


def _explain(playback: PlaybackState, pending: PendingExchange, request: Request) -> Divergence:
    """Say how a request diverged. Blocking: what says so reads all formats of models, and is imported for the first of a run."""
    from .explain import explain

    return explain(playback, pending, request)
