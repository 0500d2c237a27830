"""The row that is reported to sinks for one effect: the row of the effect ledger, as one line of JSON.

`addons/sink_backpressure.py` holds effects back while a sink is full; `effect_sinks.py` delivers the rows.
"""

import json
from typing import Any

from ...tape.diff.divergence_types import Divergence
from ...tape.exchange import Exchange, Request
from ...tape.policy.faults import Injection
from ...timeline.receipts.effects import complete, inject_into, read_effect
from .pending_approvals import PendingApproval


def effect_line(
    run: str,
    tape: str | None,
    logged: dict[str, Any],
    *,
    playback: bool,
    injection: Injection | None,
    asked: Request | None,
    answered: Exchange | None,
    divergence: Divergence | None,
    approval: PendingApproval | None,
) -> bytes:
    """Give the row of an effect that has ended; empty for what is none.

    logged: what the log says of it.
    injection: the fault that has hit it.
    """
    effect = read_effect(logged, intent="verdict" not in logged, playback=playback)
    if effect is None:
        return b""
    if injection is not None:
        inject_into(effect, injection.rule.label, injection.kind.value, playback=playback)
    complete(effect, asked, answered, "" if injection is None else injection.rule.label)
    if divergence is not None:
        effect.divergence = divergence.to_json()
    if approval is not None and approval.decided.done():
        decided = approval.decided.result()
        effect.gate = {
            "ruling": decided.ruling.value,
            "by": decided.by,
            "via": decided.via,
            "reason": decided.reason,
        }
    row = {"run": run, "tape": tape, **effect.to_json()}
    # ASCII: one line, whatever the body holds.
    return json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n"
