"""List pending approvals; approve or deny them."""

import time
from typing import Any

from ....addons.run.pending_approvals import ApprovalError, PendingApproval
from ....tape.diff.divergence_types import one_line
from ....tape.exchange import BODY, Request
from ....tape.policy.approval_decision import ApprovalDecision, Ruling
from ....tape.policy.decide import is_duplicate
from ....timeline.receipts.render_text import MAX_SHOWN_BYTES, show_text
from ..http.error_body import ControlError
from ..http.route import Answer, Call, Text

LISTED = 500
"""Most that are listed; there is no limit to how many can be decided on by their names."""
_BODIES_BYTES = 256 * 1024
"""Of bodies in one list, together: what is listed is written on the loop, while agents wait."""
_LEAST_BYTES = 200
_URL, FIELDS, VALUE = 2000, 40, 500
"""What is shown of a head: characters of its URL, fields, and bytes of each value."""
_SHOWN = 100

REASON = Text(500, "Why; for the log and the agent.")
DIGEST = Text(64, "Approve only the request with this digest.")
VIA = Text(20, "How the decision was made; the default is api.", ("api", "command", "page"))


async def list_gates(call: Call) -> Answer:
    """List what is held, oldest first; where much is held, with less of each body."""
    gates = call.proxy_state.registry.approvals
    listed = gates.listed(LISTED)
    share = max(_LEAST_BYTES, _BODIES_BYTES // max(1, len(listed)))
    rows = [_shown(approval, min(share, MAX_SHOWN_BYTES)) for approval in listed]
    return Answer({"gates": rows, "held": len(gates)})


async def get_gate(call: Call) -> Answer:
    """Give one that is held, with as much of its body as is ever shown."""
    name = call.parameters["id"]
    approval = call.proxy_state.registry.approvals.find(name)
    if approval is None:
        raise ControlError(
            404,
            "nothing is held by this name",
            expected="the name of a request that is held",
            found=name[:_SHOWN],
            hint="GET /v1/gates lists them",
        )
    return Answer(_shown(approval))


async def approve(call: Call) -> Answer:
    """Let a held request go; it has to be the one whose digest is given."""
    return await _decide(call, Ruling.APPROVED)


async def deny(call: Call) -> Answer:
    """Refuse a held request."""
    return await _decide(call, Ruling.DENIED)


async def _decide(call: Call, ruling: Ruling) -> Answer:
    caller = await call.find_caller()
    decided = ApprovalDecision(
        ruling, str(caller), call.body.get("via", "api"), call.body.get("reason", "")
    )
    name = call.parameters["id"]
    try:
        approval = call.proxy_state.registry.approvals.decide(
            name, call.body.get("digest"), decided
        )
    except ApprovalError as error:
        raise ControlError(
            409,
            str(error),
            expected="the name and digest of a request that is held",
            found=name,
            hint=error.hint,
        ) from None
    return Answer({**_shown(approval), "ruling": ruling.value, "by": decided.by})


def _shown(approval: PendingApproval, most: int = MAX_SHOWN_BYTES) -> dict[str, Any]:
    request = approval.request
    repeat = approval.repeat
    return {
        "id": approval.name,
        "run": approval.run,
        "seq": approval.seq,
        "method": request.method,
        "url": one_line(request.url, _URL),
        "digest": approval.digest,
        "reason": approval.reason,
        "rule": approval.rule,
        "repeats": repeat.of if repeat is not None and is_duplicate(repeat) else None,
        "headers": [
            [name[:_SHOWN].decode("latin-1"), value[:VALUE].decode("latin-1")]
            for name, value in request.headers[:FIELDS]
        ],
        **_body(request, most),
        "body_bytes": request.body_bytes,
        "whole": request.spilled is None and len(request.body) <= most,
        "since_ns": approval.since_ns,
        "deadline_ns": approval.since_ns + int(approval.deadline_s * 1e9),
        "now_ns": time.time_ns(),
    }


def _body(request: Request, most: int) -> dict[str, Any]:
    """Give the beginning of a body as text, and where in it placeholders are: characters before each, its size and its kind."""
    text, done, replaced = "", 0, list[dict[str, str | int]]()
    for one in request.secrets:
        end = one.at + one.size
        if one.part == BODY and end <= min(most, len(request.body)):
            text += show_text(request.body[done : one.at])
            shown = show_text(request.body[one.at : end])
            replaced.append({"at": len(text), "size": len(shown), "kind": one.kind})
            text, done = text + shown, end
    return {"body": text + show_text(request.body[done:most]), "replaced": replaced}
