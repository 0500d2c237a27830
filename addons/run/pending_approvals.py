"""Pending approvals of all runs of a process.

A request is held between its decision and its being sent. Whoever decides names it and its digest; the first decision
stands. Belongs to the event loop.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from ... import PlayheadError
from ...config import Gate
from ...tape.exchange import Repeat, Request, Seq
from ...tape.policy.approval_decision import ApprovalDecision, Ruling, gate_name, request_digest

MOST_HELD = 10_000
"""Most requests that are held at a time; the next are refused at once."""
_REMEMBERED = 1000
"""Gates of which is remembered how they were decided on."""


class ApprovalError(PlayheadError):
    """The request is not held, or is another than the one that was looked at."""


@dataclass(slots=True, eq=False)
class PendingApproval:
    """A request that waits for a decision."""

    name: str
    run: str
    seq: Seq
    request: Request
    """Redacted."""
    digest: str
    reason: str
    rule: str
    repeat: Repeat | None
    since_ns: int
    deadline_s: float
    redact_text: Callable[[str], str]
    """Takes the secrets of its run out of what people say."""
    decided: "asyncio.Future[ApprovalDecision]"

    def decide(self, decided: ApprovalDecision) -> bool:
        """Take a decision; False where there is one already."""
        if self.decided.done():
            return False
        self.decided.set_result(replace(decided, reason=self.redact_text(decided.reason)))
        return True

    async def wait(self) -> ApprovalDecision:
        """Wait for the decision; the deadline is one."""
        timer = asyncio.get_running_loop().call_later(
            self.deadline_s, self.decide, ApprovalDecision(Ruling.EXPIRED)
        )
        try:
            return await self.decided
        finally:
            timer.cancel()


class PendingApprovals:
    """The requests that are held now."""

    def __init__(self) -> None:
        """Begin with none."""
        self._pending: dict[str, PendingApproval] = {}
        self._past: OrderedDict[str, ApprovalDecision] = OrderedDict()

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._pending)

    def listed(self, most: int | None = None) -> list[PendingApproval]:
        """Give what is held, oldest first."""
        return list(islice(self._pending.values(), most))

    def find(self, name: str) -> PendingApproval | None:
        """Find what is held by its name."""
        return self._pending.get(name)

    def hold(
        self,
        run: str,
        seq: Seq,
        request: Request,
        gate: Gate,
        *,
        reason: str,
        rule: str,
        repeat: Repeat | None,
        redact_text: Callable[[str], str] = str,
    ) -> PendingApproval:
        """Begin to hold a request."""
        name = gate_name(run, seq)
        approval = self._pending[name] = PendingApproval(
            name=name,
            run=run,
            seq=seq,
            request=request,
            digest=request_digest(request),
            reason=reason,
            rule=rule,
            repeat=repeat,
            since_ns=time.time_ns(),
            deadline_s=gate.deadline_s,
            redact_text=redact_text,
            decided=asyncio.get_running_loop().create_future(),
        )
        return approval

    def let_go(self, approval: PendingApproval, decided: ApprovalDecision) -> None:
        """Forget a request that is held no more, but for how it was decided on."""
        self._pending.pop(approval.name, None)
        self._past[approval.name] = decided
        while len(self._past) > _REMEMBERED:
            self._past.popitem(last=False)

    def decide(self, name: str, digest: str | None, decided: ApprovalDecision) -> PendingApproval:
        """Approve or deny a held request.

        digest: of the request that was looked at; None only to deny.
        Raises: ApprovalError, when it is not held, not held any more, or another request.
        """
        approval = self._pending.get(name)
        if approval is None or approval.decided.done():
            past = self._past.get(name)
            if approval is not None:
                past = approval.decided.result()
            known = f"{name} is held no more: {past.text}" if past else f"nothing is held as {name}"
            raise ApprovalError(known, "`playhead gates` lists the held requests")
        if digest is None and decided.ruling is Ruling.APPROVED:
            raise ApprovalError(
                f"{name}: an approval names the request it is for; its digest is {approval.digest}",
                "look at the request, then approve it with its digest",
            )
        if digest is not None and digest != approval.digest:
            raise ApprovalError(
                f"{name} is another request than the one approved: its digest is {approval.digest},"
                f" not {digest}",
                "look at it again: `playhead gates`",
            )
        approval.decide(decided)
        return approval
