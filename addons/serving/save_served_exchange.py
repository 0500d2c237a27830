"""Keep a copy of what a resumed run is served: with it the run is a tape, which can be resumed and replayed itself."""

import time
from dataclasses import replace

from ...store import Record, StoreUnwritable
from ...tape.canonical.canonical_request import raw_key
from ...tape.exchange import Exchange, RawAnswer, RedactedText, VerdictKind
from ...tape.records.events import Event, EventKind
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState


def keep_served(
    pending: PendingExchange, playback: PlaybackState, recorded: Exchange, raw: RawAnswer | None
) -> None:
    """Write a recorded exchange under the seq of the request that it answers; nobody waits, but what leaves later is written later.

    raw: its answer as it came, where the store has that.
    """
    open_run = pending.open_run
    if open_run.info is None:
        return
    run, fingerprint = open_run.info.number, pending.fingerprint
    copy = replace(
        recorded,
        seq=pending.seq,
        verdict=VerdictKind.SERVED,
        reason=RedactedText(f"seq {recorded.seq} of {playback.tape.id}"),
        fingerprint=recorded.fingerprint if fingerprint is None else fingerprint,
    )
    if recorded.request.method == "CONNECT":
        return
    outcome = Event(EventKind.OUTCOME, time.time_ns(), {"seq": pending.seq})
    record = Record(copy, raw_key(copy.request, copy.request_class), outcome, raw)
    try:
        if recorded.websocket is not None:
            for number, message in enumerate(playback.read_messages(recorded.seq)):
                open_run.store.messages.append(run, pending.seq, number, message)
        open_run.store.exchanges.save_unwaited(run, lambda: record)
    except StoreUnwritable as error:
        open_run.gap.note(str(error), exchanges=1)
