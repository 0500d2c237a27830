"""Stub an effect that is not on the tape: from its rule, or modelled on recorded answers.

Whatever it is, it says so in `x-playhead`, in the log and in the receipt.
"""

from typing import Any

from mitmproxy import http

from ...tape.exchange import Request
from ...tape.matching.cursor import Hit
from ...tape.policy.branch import HYPOTHETICAL
from ...tape.policy.decide import BRANCH, Decision
from ...tape.policy.refusal import stub_headers
from ...tape.stubs.kinds import make_configured
from ...tape.stubs.synthesize import Made, imitate
from ...timeline.lookup.stub_examples import find_models
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..wire.convert_http_messages import make_answer

_SHOWN = 5
"""Seqs that are named in the mark of an answer."""


def imitate_tape(
    pending: PendingExchange, playback: PlaybackState, request: Request
) -> Made | None:
    """Make up an answer after those recorded for requests of the same endpoint; None without any. Blocking."""
    store, classes = pending.open_run.store, pending.open_run.config.classes
    near = playback.find_near()
    models = find_models(store, playback.tape, near, classes, request, pending.lookup.found)
    return imitate(models, request, pending.fingerprint or b"") if models else None


def make_stub(
    pending: PendingExchange, request: Request, decision: Decision
) -> tuple[http.Response, dict[str, Any]]:
    """Give the answer of a stub, and what the log says of where it comes from."""
    given, made, reason = decision.answer, pending.lookup.made, decision.reason
    found = pending.lookup.found
    in_place_of: dict[str, Any] = {}
    if given is not None:
        kind, made = given.kind, make_configured(given, request)
        if kind == HYPOTHETICAL and decision.rule == BRANCH and isinstance(found, Hit):
            in_place_of = {"in_place_of": found.seq}
        elif pending.lookup.in_place_of is not None:
            in_place_of = {"in_place_of": pending.lookup.in_place_of}
    else:
        assert made is not None
        kind = "synthetic" if made.changed else "tape"
        reason = f"synthetic, after {_exchanges(made)}; {reason}"
    logged: dict[str, Any] = {"answered_by": kind, **in_place_of}
    if made.after:
        logged["after"] = list(made.after)
    fields = stub_headers(made.headers, reason, decision.verdict.value)
    return make_answer(made.status, fields, made.body), logged


def _exchanges(made: Made) -> str:
    shown = ", ".join(map(str, made.after[:_SHOWN]))
    more = ", ..." if len(made.after) > _SHOWN else ""
    return f"exchange{'s' if len(made.after) > 1 else ''} {shown}{more} of the tape"
