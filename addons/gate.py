"""Hold the requests that a gate matches until a person or a rule approves or denies them.

Nothing is sent before the decision, nothing after its client has left, and the other requests go on meanwhile. What
is not approved is answered as a refusal, so that the agent can go on.
"""

import logging
from collections.abc import Awaitable
from typing import Any

from mitmproxy import http

from ..store import RunInfo
from ..tape.exchange import Request
from ..tape.policy.approval_decision import ApprovalDecision, Ruling, confirm
from ..tape.policy.decide import Action, Decision
from ..tape.policy.revise import Cause, Finding, Refused, Ruled
from ..tape.records.events import EventKind
from .run.exchange_events import repeat_row
from .run.pending_approvals import MOST_HELD, PendingApprovals
from .run.pending_exchange import PendingExchange, find_pending
from .run.registry import RunRegistry
from .run.run_state import OpenRun

_UNBEGUN = "its run could not be begun, so nobody could be asked"
_CROWDED = f"{MOST_HELD} requests are held already; approve or deny some"
logger = logging.getLogger(__name__)


class Gate:
    """Hold requests until they are approved or denied."""

    def __init__(self, registry: RunRegistry) -> None:
        """Hold the requests of the open runs of `registry`."""
        self._approvals: PendingApprovals = registry.approvals

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Hold a request that the policy has decided to hold."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None:
            return None
        if pending.decision.action is not Action.HOLD:
            return None
        if pending.open_run.info is None or pending.request is None:
            _apply(pending, Refused(Cause.UNASKED, _UNBEGUN))
            return None
        if len(self._approvals) >= MOST_HELD:
            _apply(pending, Refused(Cause.UNASKED, _CROWDED))
            return None
        return self._hold(pending, pending.open_run.info, pending.request, pending.decision)

    async def _hold(
        self, pending: PendingExchange, info: RunInfo, request: Request, decision: Decision
    ) -> None:
        open_run = pending.open_run
        assert decision.gate is not None
        assert decision.then is not None
        approval = self._approvals.hold(
            info.id,
            pending.seq,
            request,
            decision.gate,
            reason=decision.reason,
            rule=decision.rule,
            repeat=decision.repeat,
            redact_text=open_run.redactor.redact_text,
        )
        more: dict[str, Any] = {}
        if decision.repeat is not None:
            more["repeat"] = repeat_row(decision.repeat)
        if (unknown := pending.lookup.unknown) is not None:
            more["unknown_effect"] = unknown.row
        if pending.lookup.given is not None:
            more["given"] = pending.lookup.given
        open_run.note(
            EventKind.HELD,
            seq=pending.seq,
            method=request.method,
            url=request.url,
            digest=approval.digest,
            rule=approval.rule,
            reason=approval.reason,
            deadline_s=approval.deadline_s,
            **more,
        )
        logger.warning(
            "%s: %s %s is %s; rule with: playhead gates",
            approval.name,
            request.method,
            request.url,
            approval.reason,
        )
        pending.held.ask(approval)
        decided = ApprovalDecision(Ruling.ENDED)
        try:
            decided = confirm(
                await approval.wait(),
                left=pending.held.left,
                stopped=str(open_run.lifetime.stopped or "") or _find_divergence(open_run),
                withdrawn=_is_withdrawn(pending, decision),
            )
        finally:
            self._approvals.let_go(approval, decided)
            open_run.counters.approval_decisions[decided.ruling.value] += 1
        open_run.note(
            EventKind.RULED,
            seq=pending.seq,
            digest=approval.digest,
            ruling=decided.ruling.value,
            by=decided.by,
            via=decided.via,
            reason=decided.reason,
        )
        playback = open_run.playback
        if unknown is not None and playback is not None and decided.ruling is Ruling.APPROVED:
            playback.resumption.settle(unknown)
        _apply(pending, Ruled(decided))


def _find_divergence(open_run: OpenRun) -> str:
    """Give why the prefix of a resumed run is another one than was recorded; nothing leaves then."""
    return "" if open_run.playback is None else open_run.playback.resumption.diverged


def _is_withdrawn(pending: PendingExchange, decision: Decision) -> bool:
    """Say whether the live rule that would let a request out has been removed meanwhile; those of a branch stay."""
    policy = pending.open_run.policy
    if decision.then is not Action.LIVE or policy.leaves_tape:
        return False
    return policy.find_live(pending.facts) is None


def _apply(pending: PendingExchange, finding: Finding) -> None:
    """Let a request go on, or have it refused: it has not been done then, and costs nothing."""
    if pending.revise(finding).action is not Action.REFUSE:
        return
    pending.account.note_undone()
    if pending.open_run.usage_meter is not None:
        pending.open_run.usage_meter.uncount(pending)
