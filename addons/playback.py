"""Serve answers from the tape, and nothing else."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from mitmproxy import http

from ..store import LogCorrupt
from ..tape.canonical.canonical_request import same_bytes
from ..tape.diff.difference import differences
from ..tape.diff.divergence_types import ABSENT, Difference, Divergence, DivergenceKind
from ..tape.diff.suggest_rule import is_content
from ..tape.exchange import (
    Chunk,
    Exchange,
    HttpResponse,
    RawAnswer,
    Request,
    RequestClass,
    Response,
    Seq,
)
from ..tape.matching.agreement import Drift
from ..tape.matching.profile_use import ProfileUse, find_profile_use, have_other_conditions
from ..tape.playback.delivery import is_terminal
from ..tape.playback.script import Steps, script
from ..tape.policy.decide import Action, Decision
from ..tape.policy.revise import Cause, Refused
from ..tape.records.events import EventKind
from ..tape.records.originals import answer_of, put_back
from . import websocket
from .answer.refuse import refusal
from .contract import check_recorded, lay_refusal
from .faults.inject import lay_fault, note_injected
from .run.exchange_events import idempotency_key
from .run.pending_exchange import PendingExchange, find_pending, note_verdict
from .run.playback_state import PlaybackState
from .run.run_state import OpenRun
from .wire.http import make_head, needs_http2

_MOST_IGNORED = 100
"""Ignored differences of a request that are looked at."""
_TAIL_BYTES = 4096
"""Where the last event of a stream is looked for."""


class Playback:
    """Put the recorded outcome into the pending exchange, for the stream to play."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Serve the recorded exchange that was decided on."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or pending.body.early is not None:
            return None
        decision, open_run = pending.decision, pending.open_run
        if decision.action is not Action.SERVE:
            return None
        playback, seq = open_run.playback, decision.seq
        if playback is None or seq is None or pending.request is None:
            raise TypeError("what is served comes from a tape")
        exchange = pending.lookup.recorded or open_run.store.exchanges.find(playback.tape, seq)
        pending.find(
            replace(pending.lookup, recorded=None)
        )  # its body need not be there for as long as the answer takes
        if exchange is None:
            raise LogCorrupt(f"run {playback.tape.id}: exchange {seq} is indexed but missing")
        checked = pending.contract_state is not None and pending.contract_state.applicable.answers
        restored = exchange.has_replaced_answer and open_run.keeps_originals
        if checked or restored or (exchange.websocket is not None and open_run.keeps_originals):
            return self._serve_later(pending, playback, decision, pending.request, exchange)
        self._serve(pending, playback, decision, pending.request, exchange)
        return None

    async def _serve_later(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        decision: Decision,
        request: Request,
        exchange: Exchange,
    ) -> None:
        """Serve an exchange whose answer is held to a contract, or is given as it came."""
        contract_state, raw = pending.contract_state, None
        if pending.open_run.keeps_originals:
            raw = await asyncio.to_thread(find_raw, pending.open_run, playback, exchange)
        if contract_state is not None and contract_state.applicable.answers:
            await asyncio.to_thread(check_recorded, pending, contract_state, exchange)
        else:
            contract_state = None
        if pending.finished:  # its client has left, or its run has ended
            return
        self._serve(pending, playback, decision, request, exchange, raw)
        if contract_state is not None:
            contract_state.report(pending.open_run, pending.seq, recorded=bool(exchange.withheld))

    def _serve(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        decision: Decision,
        request: Request,
        exchange: Exchange,
        raw: RawAnswer | None = None,
    ) -> None:
        open_run, flow = pending.open_run, pending.flow
        if open_run.sink_queue is not None:
            pending.account.answer(exchange)
        response = exchange.response
        if pending.held.injection is not None:
            decision = note_injected(pending, pending.held.injection, decision)
        if response is not None and response.status == 101 and pending.held.injection is None:
            wrong = websocket.serve(pending, playback, request, exchange, raw)
        else:
            wrong = needs_http2(request, exchange)
            if not wrong:
                play(pending, playback, exchange, raw)
                _withhold(pending, exchange)
        if wrong:
            flow.response = refusal(request, None, wrong)
            decision = pending.revise(Refused(Cause.UNPLAYABLE, wrong))
        match = "repeated" if decision.repeated else "canonical"
        if match == "canonical":
            recorded = exchange.request
            # A tunnel that failed fails in the place of this request, and has no bytes of its own.
            if recorded.method == "CONNECT" or (
                same_bytes(recorded, request)
                and recorded.http_version == request.http_version
                and playback.agreement.has_same_secrets(request, exchange)
            ):
                match = "exact"
        more: dict[str, Any] = {}
        if match == "canonical" and (found := _find_profile(pending, request, exchange)):
            match, more["profile"] = found
        if decision.allowed:
            match, more["allowed"] = "drifted", [str(one) for one in decision.allowed]
        if pending.lookup.reordered_results:
            more["reordered_results"] = True
        if not wrong:
            more |= notes(pending, playback, request, exchange, raw)
        note_verdict(pending, request, decision, tape_seq=decision.seq, match=match, **more)


def _withhold(pending: PendingExchange, exchange: Exchange) -> None:
    """Lay a refusal over a recorded answer that violates its contract, or did so while recording."""
    withheld = pending.contract_state.withheld if pending.contract_state is not None else ""
    if (withheld or exchange.withheld) and pending.held.injection is None:
        lay_refusal(pending, exchange, withheld or exchange.withheld)


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
    open_run, flow = pending.open_run, pending.flow
    spelling = None
    playback.agreement.open_session(exchange)
    if exchange.response is not None and (given := open_run.redactor.learn(exchange.response)):
        playback.agreement.give(exchange, given)
    answer = answer_of(exchange, raw)
    if pending.request is not None:
        answer, spelling = playback.id_rewriting.rewrite(pending.request, exchange, answer)
    head = answer or Response(0, b"", "HTTP/1.1", (), b"", 0)
    flow.response = make_head(head, flow.request)
    answer, pieces = _read_pieces(pending, answer, raw)
    asked = open_run.config.playback
    held = asked.late == "held" and pending.held.injection is None
    late_wait_us = int(asked.late_wait * 1e6) if held else None
    interim = exchange.interim if raw is None else raw.interim
    # Whoever listens to events reads them as they come, and may leave before an end that waits for others.
    listens = b"event-stream" in (exchange.request.header(b"accept") or b"")
    ordered = not listens and asked.order != "free"
    played = (answer, interim)
    steps = script(exchange, asked.pace, pieces, late_wait_us, played, ordered=ordered)
    change = spelling.take if spelling is not None else None
    own = Steps(steps, change, exchange.gone)
    pending.playing.play(own)
    pending.answer.play(ragged=head.ragged)
    if pending.held.injection is not None:
        lay_fault(pending, pending.held.injection, own)


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


def notes(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    recorded: Exchange,
    raw: RawAnswer | None = None,
) -> dict[str, Any]:
    """Give what the log says of a recorded exchange that is served: a key that drifted, a client that gave up.

    raw: its answer as it came, where that is what is given.
    """
    open_run = pending.open_run
    found: dict[str, Any] = {}
    drifts: list[Drift] = []
    if pending.request_class is RequestClass.EFFECT:
        asked, had = idempotency_key(request), idempotency_key(recorded.request)
        differs = playback.agreement.keys.compare(pending.seq, asked, recorded.seq, had)
        if differs:
            now = ABSENT if asked is None else "(present)" if had is None else "(another)"
            then = ABSENT if had is None else "(present)"
            drifts.append(Drift(differs, Difference("header idempotency-key", then, now)))
    if pending.request_class is not RequestClass.TELEMETRY and recorded.request.method != "CONNECT":
        noted = playback.agreement.note(request, recorded, partial(_alike, pending, playback))
        if noted.headers:
            found["headers"] = list(noted.headers)
        if noted.merged:
            found["merged"] = list(noted.merged)
        if noted.kind_alone:
            found["kind_alone"] = True
        drifts += noted.drifts
    if recorded.has_replaced_answer:
        found["replaced" if raw is None else "as_recorded"] = True
        if raw is None and recorded.has_unloadable_key:
            found["unloadable_key"] = True
    if _rests_on_ignored(playback, request, recorded):
        found["ignored_content"] = True
    if drifts:
        text = "; ".join(one.what for one in drifts)
        found["drifted"] = text
        drifted = Divergence(
            DivergenceKind.DRIFTED,
            pending.seq,
            request.method,
            request.url,
            recorded.seq,
            tuple(one.difference for one in drifts),
            f"served all the same: {text}",
        )
        open_run.note(EventKind.DIVERGED, seq=pending.seq, divergence=drifted.to_json())
    if request.http_version != recorded.request.http_version:
        found["protocols"] = [recorded.request.http_version, request.http_version]
    # Said in the receipt: a client that gave up is kept waiting, whatever the pace.
    if _gave_up(recorded) and pending.held.injection is None:
        found["waits"] = True
    return found


def _rests_on_ignored(playback: PlaybackState, request: Request, recorded: Exchange) -> bool:
    """Say whether what a request is about differs from the tape, where a rule of the configuration has it ignored."""
    rules, kind = playback.rules, recorded.request_class
    if not playback.has_own_ignore or kind not in (RequestClass.EFFECT, RequestClass.INFERENCE):
        return False
    if rules.of(request).masks == playback.shipped_rules.of(request).masks:
        return False
    if kind is RequestClass.EFFECT and playback.agreement.have_other_masked(
        request, recorded, playback.shipped_rules
    ):
        return True
    secret = playback.identifier.redacted_query
    hidden = secret(request) | secret(recorded.request)
    found = differences(
        recorded.request, request, playback.shipped_rules, kind, hidden, _MOST_IGNORED
    )
    return any(is_content(one, kind) for one in found)


def _find_profile(
    pending: PendingExchange, request: Request, recorded: Exchange
) -> tuple[str, list[Any]] | None:
    """Say by what of its client's profile a request is the recorded one; None where it is so without."""
    rules, kind = pending.open_run.rules, pending.request_class
    profile = rules.profiles.find(request)
    if profile is None:
        return None
    use = find_profile_use(recorded.request, request, rules, kind)
    if use is not None:
        return "profile", use.to_row()
    unconditional = rules.of(request, kind).masks.unconditional
    if unconditional and have_other_conditions(recorded.request, request):
        return "unconditional", ProfileUse(profile.name, profile.version, ()).to_row()
    return None


def _alike(pending: PendingExchange, playback: PlaybackState) -> Iterator[Seq]:
    """Give the recorded requests that are the same in all that counts."""
    return iter(()) if pending.fingerprint is None else playback.cursor.uses(pending.fingerprint)


def _gave_up(exchange: Exchange) -> bool:
    """Say whether its client left before it had been sent all; SDKs close a stream after its last event."""
    gone, response = exchange.gone, exchange.response
    if gone is None:
        return False
    if response is None or not gone.head:
        return True
    return len(response.chunks) > gone.chunks or not is_terminal(response.body[-_TAIL_BYTES:])
