"""The row that is reported to sinks for one effect: the row of the effect ledger, as one line of JSON.

`addons/sink_backpressure.py` holds effects back while a sink is full; `effect_sinks.py` delivers the rows.
"""

import json
from typing import TYPE_CHECKING

from ...config import Mode
from ...timeline.receipts.effects import complete, inject_into, read_effect

if TYPE_CHECKING:
    from .pending_exchange import PendingExchange


def effect_line(pending: "PendingExchange") -> bytes:
    """Give the row of an effect that has ended; empty for what is none, or was not decided on."""
    open_run, logged = pending.open_run, pending.logged
    if logged is None or open_run.info is None:
        return b""
    effect = read_effect(
        logged, intent="verdict" not in logged, playback=open_run.mode is Mode.PLAYBACK
    )
    if effect is None:
        return b""
    if pending.injection is not None and pending.injection.text in pending.warnings:
        name, inject = pending.injection.rule.label, pending.injection.kind.value
        inject_into(effect, name, inject, playback=open_run.mode is Mode.PLAYBACK)
    early = pending.early
    # Of what was answered before it had ended nothing is kept: it is what the tape has, or a divergence.
    asked = early.exchange.request if early is not None and not early.diverged else pending.request
    complete(effect, asked, pending.answered)
    if pending.divergence is not None:
        effect.divergence = pending.divergence.to_json()
    approval = pending.approval
    if approval is not None and approval.decided.done():
        decided = approval.decided.result()
        effect.gate = {
            "ruling": decided.ruling.value,
            "by": decided.by,
            "via": decided.via,
            "reason": decided.reason,
        }
    tape = open_run.tape.id if open_run.tape is not None else None
    row = {"run": open_run.info.id, "tape": tape, **effect.to_json()}
    # ASCII: one line, whatever the body holds.
    return json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n"
