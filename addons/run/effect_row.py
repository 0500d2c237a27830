"""What is told of an effect while its run goes on: the row of the ledger, as one line of JSON.

An effect waits here, before it is sent or answered, while a sink has no room for it (`sink.py`).
"""

import json
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from mitmproxy import http

from ...config import Mode
from ...tape.exchange import RequestClass
from ...timeline.receipts.effects import complete, inject_into, read_effect

if TYPE_CHECKING:
    from .pending import Flight


class Ledger:
    """Hold effects back while a sink is full."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Wait until there is room, as long as the sink's patience lasts."""
        flight: Flight | None = flow.metadata.get("playhead")
        if flight is None or flight.session.bus is None or flight.finished:
            return None
        if flight.request_class is RequestClass.EFFECT and flight.session.bus.full:
            return flight.session.bus.room()
        return None


def tell_line(flight: "Flight") -> bytes:
    """Give the row of an effect that has ended; empty for what is none, or was not decided on."""
    session, told = flight.session, flight.told
    if told is None or session.run is None:
        return b""
    effect = read_effect(told, intent="verdict" not in told, playback=session.mode is Mode.PLAYBACK)
    if effect is None:
        return b""
    if flight.injection is not None and flight.injection.text in flight.warnings:
        name, inject = flight.injection.rule.label, flight.injection.kind.value
        inject_into(effect, name, inject, playback=session.mode is Mode.PLAYBACK)
    early = flight.early
    # Of what was answered before it had ended nothing is kept: it is what the tape has, or a divergence.
    asked = early.exchange.request if early is not None and not early.diverged else flight.request
    complete(effect, asked, flight.answered)
    if flight.divergence is not None:
        effect.divergence = flight.divergence.to_json()
    held = flight.held
    if held is not None and held.ruled.done():
        ruled = held.ruled.result()
        effect.gate = {
            "ruling": ruled.ruling.value,
            "by": ruled.by,
            "via": ruled.via,
            "reason": ruled.reason,
        }
    tape = session.tape.id if session.tape is not None else None
    row = {"run": session.run.id, "tape": tape, **effect.to_json()}
    # ASCII: one line, whatever the body holds.
    return json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n"
