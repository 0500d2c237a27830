"""Account for requests whose clients left before they had ended: nothing was sent on, and nothing answered.

A recording notes them, and a replay is expected to have them again: one that its tape does not have is a divergence.
"""

from collections import Counter

from ...config import Mode
from ...tape.diff.divergence_types import Divergence, DivergenceKind
from ...tape.exchange import RequestClass
from ...tape.policy.revise import Cause, Refused, revise
from ...tape.records.events import EventKind
from ..run.pending_exchange import PendingExchange, note_divergence, note_verdict
from ..wire.convert_http_messages import read_request

_TEXT = "cut request: its client left before it had ended"


def note_cut_request(pending: PendingExchange) -> None:
    """Note a request that has not ended, and will not."""
    open_run = pending.open_run
    if pending.finished or pending.playing.has_verdict or open_run.info is None:
        return
    if pending.request_class is RequestClass.TELEMETRY:
        return
    asked = read_request(pending.flow, pending.arrival.fields, names=pending.arrival.names)
    request, _ = open_run.redactor.head(asked)
    method, url = request.method, request.url
    if open_run.mode is Mode.RECORD:
        open_run.note(EventKind.NOTED, cut=[method, url])
    elif open_run.mode is Mode.PLAYBACK:
        playback = open_run.playback
        cuts = playback.cuts if playback is not None else Counter[tuple[str, str]]()
        if cuts[method, url] > 0:
            cuts[method, url] -= 1
            open_run.note(EventKind.NOTED, cut=[method, url])
            return
        note_verdict(pending, request, revise(pending.decision, Refused(Cause.CUT, _TEXT)))
        diverged = Divergence(
            DivergenceKind.UNEXPECTED, pending.seq, method, url, text=f"{_TEXT}; the tape has none"
        )
        note_divergence(pending, diverged)
