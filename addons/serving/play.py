"""Have a recorded outcome played: its answer is put together, and its steps are laid out with their times."""

from collections.abc import Iterator
from dataclasses import replace

from ...tape.exchange import Chunk, Exchange, HttpResponse, RawAnswer, Response
from ...tape.playback.script import Steps, script
from ...tape.records.redacted_originals import answer_of, put_back
from ..faults.inject import lay_fault
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun
from ..wire.convert_http_messages import make_head
from ..wire.prepared_answer import LaidAnswer


def find_raw(open_run: OpenRun, playback: PlaybackState, exchange: Exchange) -> RawAnswer | None:
    """Find an answer of the tape as it came, and learn what is secret in it: the agent it is given to sends it back."""
    raw = open_run.store.originals.find(playback.tape, exchange)
    if raw is not None:
        open_run.redactor.learn_originals(raw)
    return raw


def play(
    pending: PendingExchange,
    playback: PlaybackState,
    exchange: Exchange,
    raw: RawAnswer | None = None,
) -> None:
    """Have a recorded outcome played by the pending exchange's stream.

    raw: its answer as it came, where the store kept that.
    """
    pending.play(lay_out(pending, playback, exchange, raw))


def lay_out(
    pending: PendingExchange,
    playback: PlaybackState,
    exchange: Exchange,
    raw: RawAnswer | None = None,
) -> LaidAnswer:
    """Lay out a recorded outcome, with the fault that hits it; learn what is secret in it.

    raw: its answer as it came, where the store kept that.
    """
    open_run, flow = pending.open_run, pending.flow
    spelling = None
    playback.agreement.open_session(exchange)
    given = (
        open_run.redactor.learn(exchange.response, exchange.redactions)
        if exchange.response is not None
        else []
    )
    if given:
        playback.agreement.give(exchange, given)
        if raw is None and exchange.has_replaced_answer:
            forms = open_run.redactor.list_forms(recorded for _, recorded, _ in given)
            playback.resumption.placeholders.give(forms, exchange.seq)
    answer = answer_of(exchange, raw)
    if pending.request is not None:
        answer, spelling = playback.id_rewriting.rewrite(pending.request, exchange, answer)
    head = answer or Response(0, b"", "HTTP/1.1", (), b"", 0)
    made = make_head(head, flow.request)
    answer, pieces = _read_pieces(pending, answer, raw)
    asked = open_run.config.playback
    late_wait_us = int(asked.late_wait * 1e6) if pending.held.injection is None else None
    interim = exchange.interim if raw is None else raw.interim
    # Whoever listens to events reads them as they come, and may leave before an end that waits for others.
    listens = b"event-stream" in (exchange.request.header(b"accept") or b"")
    ordered = not listens and asked.order != "free"
    played = (answer, interim)
    served = asked.late == "served"
    steps = script(
        exchange, asked.pace, pieces, late_wait_us, played, ordered=ordered, served=served
    )
    change = spelling.take if spelling is not None else None
    laid = LaidAnswer(made, Steps(steps, change, exchange.gone), head.ragged)
    injection = pending.held.injection
    return laid if injection is None else lay_fault(pending.request, injection, laid)


def _read_pieces(
    pending: PendingExchange, response: HttpResponse | None, raw: RawAnswer | None
) -> tuple[HttpResponse | None, Iterator[tuple[Chunk, bytes]] | None]:
    """Give an answer, and its body piece by piece where the answer does not have it any more."""
    store = pending.open_run.store
    if response is None:
        return response, None
    if response.spilled is not None:
        pieces = store.bodies.read(response.spilled)
        return response, pieces if raw is None else put_back(pieces, raw.pieces)
    if not pending.is_to_be_set_aside(len(response.body)):
        pending.hold(len(response.body))
        return response, None
    chunks = response.chunks or (Chunk(response.head_us, len(response.body)),)
    pieces = store.bodies.read_aside(response.body, chunks)
    return replace(response, body=b""), pieces
