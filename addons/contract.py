"""Contracts: check requests and answers against the configured contracts; report and, if configured, refuse violations.

    run/request_contracts.py          which contracts hold for a request, and what came of them
    contract.py                       a request is checked before it is decided on
    run/request_constraints.py        a request that breaks a contract is refused where it would leave or be stubbed
    record.py                         an answer is checked on the writer's thread, before its last byte is released
    playback.py                       one from the tape is checked on a thread, before any of it is played
    engine/http/recording_stream.py   an answer that may be refused is held back until it has been checked

A stream of events, and what is too large to be held, is passed on as it comes: it can be noted, not refused.
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from mitmproxy import http

from ..config import ContractRule, OnViolation
from ..tape.contracts.can_hold_back import can_hold
from ..tape.diff.divergence_types import one_line
from ..tape.exchange import Exchange, RawRequest, Request
from ..tape.playback.script import Step, StepKind, Steps
from ..tape.policy.decide import CONTRACTS, Action
from ..tape.policy.refusal import CONTRACT_BROKEN, refusal_body, refusal_headers, refusal_status
from .run.pending_exchange import PendingExchange, find_pending
from .run.request_contracts import MAX_REASON, ContractState, ContractViolation, report
from .wire.convert_http_messages import make_refusing_answer, read_request
from .wire.prepared_answer import LaidAnswer

if TYPE_CHECKING:
    from ..tape.contracts.check import Checked


class Contract:
    """Check what is asked, before it is decided on."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Find what holds for a request that has come whole; check its body."""
        pending = find_pending(flow)
        if pending is None or pending.open_run.contracts is None or pending.decision is not None:
            return None
        applicable = pending.open_run.contracts.find(pending.facts)
        if applicable is None:
            return None
        contract_state = pending.hold_to(ContractState(applicable))
        if applicable.request is None:
            return None
        return self._check(flow, pending, contract_state, applicable.request)

    async def _check(
        self,
        flow: http.HTTPFlow,
        pending: PendingExchange,
        contract_state: ContractState,
        rule: ContractRule,
    ) -> None:
        asked = read_request(
            flow, pending.arrival.fields, pending.body.uploaded, pending.arrival.names
        )
        checked = await asyncio.to_thread(_check_request, pending, rule, asked)
        contract_state.in_request = ContractViolation(
            "request", rule.match.text, checked, refuses=False
        )
        # A message that cannot be checked violates its contract.
        wrong = checked.text or "; ".join(checked.unchecked)
        if wrong and rule.on_violation is OnViolation.REFUSE:
            text = f"the request violates its contract: {wrong} (contract {rule.match.text!r})"
            contract_state.violation = one_line(
                pending.open_run.redactor.redact_text(text), MAX_REASON
            )


class ReportContractViolation:
    """Tell what was found in what is asked, once it is decided on."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Note it in the run's log."""
        pending = find_pending(flow)
        contract_state = pending.contract_state if pending is not None else None
        if (
            pending is None
            or contract_state is None
            or contract_state.in_request is None
            or pending.decision is None
        ):
            return
        by_contract = pending.decision.rule.startswith(f"{CONTRACTS} ")
        refuses = by_contract and pending.decision.action is Action.REFUSE
        report(pending.open_run, pending.seq, contract_state.in_request._replace(refuses=refuses))


def _check_request(pending: PendingExchange, rule: ContractRule, asked: RawRequest) -> "Checked":
    """Check a request's body. Any thread."""
    from ..tape.contracts.check import check_request  # for who has contracts: not for a start

    checked = check_request(rule.request, asked, asked)
    if not checked.violations:
        return checked
    shown, _ = pending.open_run.redactor.request(asked)
    return check_request(rule.request, asked, shown)


def check_recorded(
    pending: PendingExchange, contract_state: ContractState, exchange: Exchange
) -> None:
    """Check an answer of the tape. Any thread."""
    response, request = exchange.response, exchange.request
    contract_state.withheld = exchange.withheld
    if response is None or exchange.fault is not None or not contract_state.applicable.answers:
        return
    can = can_hold(request.method, response.status, response.headers)
    held = can and response.spilled is None and pending.held.injection is None
    contract_state.check_answer(
        request, response, response, pending.open_run.redactor.redact_text, held=held
    )


def make_refusal(request: Request, withheld: str) -> http.Response:
    """Give what a client is sent in the place of an answer; the same for the same request and reason."""
    body = refusal_body(request, None, withheld, CONTRACT_BROKEN)
    return make_refusing_answer(refusal_status(request), refusal_headers(withheld, request), body)


def lay_refusal(recorded: Exchange, withheld: str, pace: float) -> LaidAnswer:
    """Lay out a refusal in the place of a recorded answer, with the bytes it had then.

    pace: by which its times are multiplied.
    """
    made = make_refusal(recorded.request, withheld)
    at_us = int(recorded.end_us * pace)
    head, end = Step(at_us, StepKind.HEAD), Step(at_us, StepKind.END)
    data = Step(at_us, StepKind.DATA, made.data.content or b"")
    return LaidAnswer(made, Steps([head, data, end]), ragged=False, withheld=True)
