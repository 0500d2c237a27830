"""Stub an effect that is not on the tape: from its rule, or modelled on recorded answers.

Whatever it is, it says so in `x-playhead`, in the log and in the receipt.
"""

from typing import Any

from mitmproxy import http

from ...tape.policy.decide import Decision
from ...tape.policy.refusal import stub_headers
from ...tape.stubs.synthesize import Made, imitate
from ...timeline.lookup.stub_examples import find_models
from ..run.pending_exchange import PendingExchange
from ..wire.http import make_answer

_SHOWN = 5
"""Seqs that are named in the mark of an answer."""


def imitate_tape(pending: PendingExchange) -> Made | None:
    """Make up an answer after those recorded for requests of the same endpoint; None without any. Blocking."""
    open_run, request = pending.open_run, pending.request
    assert open_run.tape is not None
    assert request is not None
    near, classes = open_run.find_near(), open_run.config.classes
    models = find_models(open_run.store, open_run.tape, near, classes, request, pending.found)
    return imitate(models, request, pending.fingerprint or b"") if models else None


def stubbed(pending: PendingExchange, decision: Decision) -> tuple[http.Response, dict[str, Any]]:
    """Give the answer of a stub, and what the log says of where it comes from."""
    given = decision.answer
    if given is not None:
        fields = tuple((name.encode(), value.encode()) for name, value in given.headers)
        mark = stub_headers(fields, decision.reason)
        return make_answer(given.status, mark, given.body), {"answered_by": "template"}
    made = pending.made
    assert made is not None
    mark = stub_headers(made.headers, f"synthetic, after {_exchanges(made)}; {decision.reason}")
    logged = {"answered_by": "synthetic" if made.changed else "tape", "after": list(made.after)}
    return make_answer(made.status, mark, made.body), logged


def _exchanges(made: Made) -> str:
    shown = ", ".join(map(str, made.after[:_SHOWN]))
    more = ", ..." if len(made.after) > _SHOWN else ""
    return f"exchange{'s' if len(made.after) > 1 else ''} {shown}{more} of the tape"
