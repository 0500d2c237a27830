"""Decide on every request once: create the pending exchange, ask the policy, store the decision.

Deny first, then fill in: in playback a refusal is preset before anything is looked up, so that whatever
goes wrong afterwards, the client gets that and nothing leaves.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mitmproxy import flow as mflow
from mitmproxy import http

from ..config import Mode
from ..store import LogCorrupt
from ..tape.canonical.address_fields import find_address_fields
from ..tape.canonical.canonical_request import raw_key
from ..tape.canonical.target_overrides import (
    find_body_claims,
    find_claims,
    find_trailer_claims,
    without_claims,
)
from ..tape.classify.by_body import class_by_body
from ..tape.classify.by_method_and_url import Kind
from ..tape.diff.divergence_types import Dependence, Difference
from ..tape.exchange import (
    NO_TUNNEL,
    Exchange,
    Fingerprint,
    HttpRequest,
    Lane,
    Request,
    RequestClass,
    Seq,
)
from ..tape.matching.agreement import Drift
from ..tape.matching.cursor import Hit, Unknown
from ..tape.policy.decide import (
    UNCONSTRAINED,
    Action,
    Constraints,
    Drifted,
    Facts,
    Found,
    Policy,
)
from ..tape.policy.revise import (
    Disagreement,
    MissedTunnel,
    TooEarly,
    Unanswerable,
    Unreadable,
    Unsearched,
)
from ..tape.records.events import EventKind
from .answer.order import (
    find_needs,
    find_overlaps,
    find_passed,
    note_reordered,
)
from .answer.refuse import preset_refusal, refusal
from .answer.stub import imitate_tape
from .attempts.own_ports import passes
from .bidirectional_streaming import is_bidirectional
from .failed_tunnels import find_missed, take_missed
from .run.exchange_parts.arrival import Arrival
from .run.exchange_parts.prepared_request import Lookup
from .run.pending_exchange import HELD_BYTES, PendingExchange, attach, find_pending
from .run.playback_state import PlaybackState
from .run.registry import RunRegistry
from .run.request_constraints import (
    add_violation,
    asks_for_repeats,
    decide_leaving,
    decide_on,
    find_forms,
)
from .run.run_state import OpenRun
from .wire.http import announced_length, note, read_names, read_request

if TYPE_CHECKING:
    from .order.tool_results import ToolResults

_LARGE_BYTES = 64 * 1024
"""Bodies above this are brought into canonical form on a thread."""

_DROPPED = (
    "trailers that override its method, path or host were left out: it was decided before they came"
)
_NO_RULES = Policy((), (), stub=False)
"""For a playback without a tape: it has no run, so what a rule let out would be written down nowhere."""


class TapeLookup:
    """Decide on requests by what the tape of their run holds, and move its cursor."""

    def look_up(
        self, pending: PendingExchange, playback: PlaybackState, request: Request
    ) -> Awaitable[None] | None:
        """Decide on a request of a playback that has a tape.

        request: that of the pending exchange, whole and without its secrets.
        """
        known = playback.find_known(raw_key(request, pending.request_class))
        # Of an effect its effect key is needed even so.
        effect = pending.request_class is RequestClass.EFFECT
        if (known is None or effect) and len(request.body) > _LARGE_BYTES:
            return self._decide_off_loop(pending, playback, request)
        if known is None:
            known, key = playback.identifier.identify(request, pending.request_class)
        else:
            key = playback.identifier.effect_key(request) if effect else None
        pending.identify(None, key)
        return self._look_up(pending, playback, request, known)

    def _let_out(self, pending: PendingExchange, open_run: OpenRun) -> None:
        pending.decide(decide_leaving(pending, open_run.policy, None))

    async def _let_out_counted(
        self, pending: PendingExchange, request: Request, found: Fingerprint
    ) -> None:
        forms = await asyncio.to_thread(find_forms, pending, request, found)
        if (usage_meter := pending.open_run.usage_meter) is not None:
            usage_meter.note_forms(pending, forms)
        self._let_out(pending, pending.open_run)

    async def _decide_off_loop(
        self, pending: PendingExchange, playback: PlaybackState, request: Request
    ) -> None:
        found, key = await asyncio.to_thread(
            playback.identifier.identify, request, pending.request_class
        )
        pending.identify(None, key)
        looking = self._look_up(pending, playback, request, found)
        if looking is not None:
            await looking

    def _look_up(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        found: Fingerprint,
    ) -> Awaitable[None] | None:
        open_run = pending.open_run
        found, hit = playback.find_recorded(
            request, pending.request_class, found, repeat=self._repeats(pending)
        )
        pending.identify(found, pending.effect_key)
        if open_run.policy.find_live(pending.facts) is not None:
            pending.find(Lookup(hit))
            if not _counts_repeats(pending):
                self._let_out(pending, open_run)
                return None
            return self._let_out_counted(pending, request, found)
        if isinstance(hit, Unknown) and pending.request_class is RequestClass.INFERENCE:
            return self._look_for_drift(pending, playback, request)
        if not isinstance(hit, Hit) and open_run.policy.imitates(pending.facts):
            return self._settle_stub(pending, playback, request, hit)
        return self._decide(pending, playback, request, found, hit)

    async def _settle_stub(
        self, pending: PendingExchange, playback: PlaybackState, request: Request, found: Found
    ) -> None:
        """Decide on an effect that is not on the tape, once the tape was asked for a pattern."""
        pending.find(Lookup(found))
        made = await asyncio.to_thread(imitate_tape, pending, playback, request)
        pending.find(Lookup(found, made=made))
        self._settle(pending, playback, request, found)

    async def _look_for_drift(
        self, pending: PendingExchange, playback: PlaybackState, request: Request
    ) -> None:
        """Find a recorded model call that differs only in fields that may drift."""
        await playback.read_values()
        drifts, tool_results = await playback.find_miss_search()
        allowed = pending.open_run.policy.drift
        async with drifts.lock:
            if await self._serve_reordered(pending, playback, request, tool_results):
                return
            near, needs = await drifts.find(request, allowed), None
            while near is not None and near.found.allowed:
                needs = await self._find_needs(pending, playback, request, near.found.seq)
                if not drifts.is_served(near):
                    break
                # Somebody has asked for it meanwhile just as it was recorded.
                near, needs = await drifts.find(request, allowed), None
            if near is None:
                self._settle(pending, playback, request, Unknown())
            elif self._settle(pending, playback, request, near.found):
                comparing = self._take(
                    pending, playback, request, near.fingerprint, near.found.seq, needs
                )
                if comparing is not None:
                    await comparing

    async def _serve_reordered(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        tool_results: "ToolResults",
    ) -> bool:
        """Serve a model call that lists the results of tools in another order than on the tape, if these ran side by side."""
        if pending.open_run.config.playback.order == "strict":
            return False
        found = await asyncio.to_thread(tool_results.find, request)
        if found is None or playback.cursor.served(found.seq):
            return False
        needs = await self._find_needs(pending, playback, request, found.seq)
        if self._settle(pending, playback, request, Hit(found.seq)):
            pending.find(replace(pending.lookup, reordered_results=True))
            comparing = self._take(pending, playback, request, found.fingerprint, found.seq, needs)
            if comparing is not None:
                await comparing
        return True

    def _decide(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        fingerprint: Fingerprint,
        found: Found,
    ) -> Awaitable[None] | None:
        """Decide, and move the cursor past what is about to be served.

        fingerprint: under which the cursor has what was found.
        """
        if self._settle(pending, playback, request, found):
            assert isinstance(found, Hit)
            if not found.repeated and playback.order.find_earlier(found.seq) != ():
                return self._check_order(pending, playback, request, fingerprint)
            return self._take(pending, playback, request, fingerprint, found.seq, None)
        return None

    async def _compare_lane(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        recorded: Exchange,
        passed: tuple[Seq, ...],
    ) -> None:
        found = await note_reordered(playback, pending, request, recorded, passed)
        if found is not None:
            pending.open_run.note(EventKind.DIVERGED, seq=pending.seq, divergence=found.to_json())

    def _settle(
        self, pending: PendingExchange, playback: PlaybackState, request: Request, found: Found
    ) -> bool:
        """Decide on what stays; True where a recorded exchange is to be served, unless it comes too early."""
        now = add_violation(pending, Constraints(model=pending.lookup.made is not None))
        decision = pending.decide(decide_on(pending, pending.open_run.policy, found, now))
        pending.find(replace(pending.lookup, found=found))
        if decision.action is not Action.SERVE:
            return False
        assert isinstance(found, Hit | Drifted)
        missed = find_missed(pending.open_run, playback, request, found.seq)
        if missed is not None:
            take_missed(pending.open_run, playback, missed)
            pending.revise(MissedTunnel(missed.seq))
            return False
        return True

    def _take(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        fingerprint: Fingerprint,
        seq: Seq,
        needs: Dependence | None,
    ) -> Awaitable[None] | None:
        """Read what is served and move the cursor past it; refuse what cannot be, or comes before what it needs.

        Gives what is still to be compared where others of its lane that the tape has behind it came first.
        """
        open_run = pending.open_run
        if needs is not None and not playback.cursor.served(needs.tape_seq):
            _refuse(pending, TooEarly(seq, needs))
            return None
        recorded = _read(open_run, playback, seq)
        if not isinstance(recorded, Exchange):
            _refuse(pending, recorded)
            return None
        recorded_so = _as_asked(pending, recorded)
        if _lacks_values(pending, playback, request, recorded_so):
            return self._take_later(pending, playback, request, fingerprint, seq, needs)
        wrong = _find_disagreements(pending, playback, request, recorded_so, fingerprint)
        pending.find(replace(pending.lookup, recorded=recorded))
        if wrong:
            _refuse(pending, Disagreement(seq, wrong))
            return None
        playback.cursor.take(fingerprint, Hit(seq))
        passed = find_passed(open_run, pending, recorded)
        return self._compare_lane(pending, playback, request, recorded, passed) if passed else None

    async def _take_later(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        fingerprint: Fingerprint,
        seq: Seq,
        needs: Dependence | None,
    ) -> None:
        """Serve a request with a credential that may be another one of the tape, once the tape's were read."""
        await playback.read_values()
        if playback.cursor.served(seq):  # another request was answered with it meanwhile
            looking = self._look_up(pending, playback, request, fingerprint)
        else:
            looking = self._take(pending, playback, request, fingerprint, seq, needs)
        if looking is not None:
            await looking

    def _repeats(self, pending: PendingExchange) -> bool:
        """Say whether a rule has the last answer to a request served again."""
        return pending.open_run.policy.find_repeat(pending.facts) is not None

    async def _check_order(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        found: Fingerprint,
    ) -> None:
        """Serve a request that others on the tape come before, unless it depends on one of them."""
        hit = pending.lookup.found
        while isinstance(hit, Hit):
            needs = await self._find_needs(pending, playback, request, hit.seq)
            found, again = playback.find_recorded(
                request, pending.request_class, found, repeat=self._repeats(pending)
            )
            if again == hit:
                comparing = self._take(pending, playback, request, found, hit.seq, needs)
                if comparing is not None:
                    await comparing
                return
            # Another request with the same fingerprint was served meanwhile.
            hit = again
            pending.find(replace(pending.lookup, found=again))
            if not isinstance(hit, Hit) and pending.open_run.policy.imitates(pending.facts):
                await self._settle_stub(pending, playback, request, hit)
            else:
                now = add_violation(pending, UNCONSTRAINED)
                pending.decide(decide_on(pending, pending.open_run.policy, hit, now))

    async def _find_needs(
        self, pending: PendingExchange, playback: PlaybackState, request: Request, seq: Seq
    ) -> Dependence | None:
        """Find what a request depends on that has not been served, if it is answered by exchange `seq`."""
        if playback.order.find_earlier(seq) == ():
            return None
        return await asyncio.to_thread(find_needs, playback, seq, request, pending.redactions)


class Decide(TapeLookup):
    """Decide on every request, once."""

    def __init__(self, registry: RunRegistry) -> None:
        """Decide for the open runs of `registry`."""
        self._registry = registry

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Begin the pending exchange; in playback preset the refusal."""
        if flow.response is not None or passes(flow):
            return
        open_run = self._registry.of(flow.client_conn)
        if open_run is None or open_run.ending:
            if open_run is not None and open_run.mode is not Mode.PLAYBACK:
                # As a server that closes an idle connection: the client asks again on a new one, and that
                # belongs to a new run.
                flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
                return
            flow.response = refusal(None, None, "this connection belongs to no open run")
            return
        message = flow.request
        tunnel = open_run.connections.tunnels.get(flow.client_conn.id, NO_TUNNEL)
        names = read_names(flow, tunnelled=tunnel is not NO_TUNNEL)
        facts, kind = _find_facts(message, names, open_run)
        seq = open_run.next_seq() if open_run.info is not None else Seq(0)
        lane = Lane(0, find_overlaps(open_run)) if open_run.mode is Mode.RECORD else None
        arrival = Arrival(message.data.headers.fields, tunnel, lane, _hide(names, open_run))
        pending = PendingExchange(open_run, flow, seq, facts, kind, arrival)
        attach(flow, pending)
        if open_run.mode is Mode.PLAYBACK:
            flow.response = preset_refusal()
        # What a contract speaks of or a gate may hold is read whole before any of it is sent.
        asked = open_run.contracts is not None and open_run.contracts.asks(facts)
        no_room = _has_no_room(pending)
        at_once = no_room or is_bidirectional(message)
        if at_once:
            _look_at_form(
                pending, read_request(flow, pending.arrival.fields, names=names), unread=True
            )
            if pending.kind.by_path and not no_room:  # gRPC's messages are no JSON
                now = RequestClass.EFFECT
                pending.classify(pending.facts._replace(request_class=now, by_body=True))
        if at_once and not asked and open_run.policy.find_gate(facts) is None:
            self._decide_by_head(flow, pending)
            if no_room and pending.decision is not None:
                pending.progress.give_up()

    def _decide_by_head(self, flow: http.HTTPFlow, pending: PendingExchange) -> None:
        """Decide by its head on a request that may be answered before it has ended."""
        open_run = pending.open_run
        pending.body.open_both_ways()
        lost = open_run.mode is Mode.PLAYBACK and open_run.tape is None
        policy = _NO_RULES if lost else open_run.policy
        decision = decide_leaving(pending, policy, None)
        if decision.action in (Action.FORWARD, Action.LIVE):
            request = read_request(flow, pending.arrival.fields, names=pending.arrival.names)
            pending.prepare(*open_run.redactor.head(request))
            pending.decide(decision)

    async def playhead_uploaded(self, pending: PendingExchange) -> None:
        """Give a body that is too large to be held its hash, by which it is compared; take back one that was set aside."""
        await pending.take_upload()

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Decide, now that the body is there."""
        pending = find_pending(flow)
        if pending is None:
            return None
        if pending.decision is not None:
            _drop_trailer_claims(flow, live=pending.decision.action is Action.LIVE)
            return None
        open_run = pending.open_run
        pending.body.end()
        asked = read_request(
            flow, pending.arrival.fields, pending.body.uploaded, pending.arrival.names
        )
        _look_at_form(pending, asked)
        # The body of what is recorded is searched where it is written, off the loop.
        recording = open_run.mode is not Mode.PLAYBACK
        redact = open_run.redactor.head if recording else open_run.redactor.request
        request = pending.prepare(*redact(asked)).request
        pending.body.come(asked.body, searched=not recording)
        now = class_by_body(pending.kind, asked)
        if now is not pending.kind.of:
            pending.classify(pending.facts._replace(request_class=now, by_body=True))
        if recording:
            return self._decide_leaving(pending, open_run)
        playback = open_run.playback
        if playback is None:
            pending.decide(decide_on(pending, _NO_RULES, None))
            return None
        return self.look_up(pending, playback, request)

    def _decide_leaving(
        self, pending: PendingExchange, open_run: OpenRun
    ) -> Awaitable[None] | None:
        """Decide on a request that leaves unless a gate or a limit is in its way."""
        if _needs_comparison(pending, open_run):
            if len(pending.body.came) > _LARGE_BYTES:
                return self._decide_leaving_off_loop(pending, open_run)
            _identify_for_comparison(pending, open_run)
        self._let_out(pending, open_run)
        return None

    async def _decide_leaving_off_loop(self, pending: PendingExchange, open_run: OpenRun) -> None:
        await asyncio.to_thread(_identify_for_comparison, pending, open_run)
        self._let_out(pending, open_run)


def _lacks_values(
    pending: PendingExchange, playback: PlaybackState, request: Request, recorded: Exchange
) -> bool:
    """Say whether the credentials of the tape have to be known before a request is served."""
    if pending.request_class is RequestClass.TELEMETRY:
        return False
    return playback.agreement.lacks_values(request, recorded)


def _refuse(pending: PendingExchange, wrong: Unanswerable) -> None:
    """Refuse what the tape has."""
    pending.find(replace(pending.lookup, wrong=wrong))
    pending.revise(wrong)


def _read(
    open_run: OpenRun, playback: PlaybackState, seq: Seq
) -> Exchange | Unreadable | Unsearched:
    """Read what is to be served, or say why it cannot be."""
    try:
        recorded = open_run.store.exchanges.find(playback.tape, seq)
        if recorded is not None and open_run.keeps_originals:
            open_run.store.originals.find(playback.tape, recorded)
    except LogCorrupt as error:
        return Unreadable(seq, str(error))
    if recorded is None:
        return Unreadable(seq, "it is missing")
    rest = recorded.response.find_unsearched() if recorded.response is not None else None
    return recorded if rest is None else Unsearched(seq, rest.size, rest.at)


def _as_asked(pending: PendingExchange, recorded: Exchange) -> Exchange:
    """Give what would answer a request, with the class that the request has today: of an effect no profile leaves anything out."""
    if recorded.request_class is pending.request_class:
        return recorded
    return replace(recorded, request_class=pending.request_class)


def _find_disagreements(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    recorded: Exchange,
    fingerprint: Fingerprint,
) -> tuple[Drift, ...]:
    """Find where a request has another credential or run id than what would answer it stands for."""
    if pending.request_class is RequestClass.TELEMETRY:
        return ()
    alike = partial(playback.cursor.uses, fingerprint)
    wrong = playback.agreement.find_disagreements(request, recorded, alike)
    if playback.id_rewriting.cancels_another(request, recorded.request):
        place = Difference("body $.params.requestId", "(of one call)", "(of another)")
        wrong.append(Drift("it cancels another call than the recorded one", place))
    return tuple(wrong)


def _find_facts(
    message: http.Request, names: tuple[tuple[str, str], ...], open_run: OpenRun
) -> tuple[Facts, Kind]:
    """Give what is known of a request by its head."""
    data = message.data
    scheme, host, port = message.scheme, message.host, message.port
    target = data.path.decode("latin-1")
    claims = find_claims(
        data.method,
        scheme,
        host,
        port,
        target,
        data.headers.fields,
        names,
        named=bool(data.authority),
    )
    place = message.method, scheme, host, port, target
    facts, kind = Facts.of(place, claims, open_run.config.classes)
    if _may_go_live(open_run):
        found = find_address_fields(data.headers.fields, *place[1:])
        facts = facts._replace(address_fields=found) if found else facts
    return facts, kind


def _may_go_live(open_run: OpenRun) -> bool:
    return open_run.mode is Mode.PLAYBACK and bool(open_run.policy.live)


def _hide(names: tuple[tuple[str, str], ...], open_run: OpenRun) -> tuple[tuple[str, str], ...]:
    """Give names of hosts without the secrets of a run."""
    return tuple((kind, open_run.redactor.redact_text(text)) for kind, text in names)


def _look_at_form(pending: PendingExchange, asked: HttpRequest, *, unread: bool = False) -> None:
    """Take in what a body and trailers claim: they let nothing out, and may have the request held."""
    body = None if unread or asked.spilled is not None else asked.body
    claims = find_body_claims(asked.method, asked.headers, body)
    facts = pending.facts
    place = facts.method, facts.scheme, facts.host, facts.port, facts.target
    fields = facts.address_fields
    if asked.trailers:
        claims = (*claims, *find_trailer_claims(asked))
        if _may_go_live(pending.open_run):
            fields = (*fields, *find_address_fields(asked.trailers, *place[1:]))
    if claims:
        classes = pending.open_run.config.classes
        facts, kind = Facts.of(place, (*facts.claims, *claims), classes)
        pending.classify(facts, kind)
    if claims or fields:
        pending.classify(facts._replace(address_fields=fields))


def _drop_trailer_claims(flow: http.HTTPFlow, *, live: bool) -> None:
    """Take from a request that was decided by its head the trailers by which it would be another one.

    live: whether a live rule lets it out; then those go, too, that read as an address.
    """
    message = flow.request
    fields = message.trailers.fields if message.trailers else ()
    target = message.data.path.decode("latin-1")
    place = message.scheme, message.host, message.port, target
    kept = without_claims(fields, *place)
    if live:
        kept = tuple(field for field in kept if not find_address_fields((field,), *place))
    if kept != fields:
        note(message, _DROPPED)
        message.trailers = http.Headers(kept) if kept else None


def _needs_comparison(pending: PendingExchange, open_run: OpenRun) -> bool:
    """Say whether a request has to be compared with others before it leaves."""
    if open_run.mode is not Mode.RECORD:
        return False
    return _counts_repeats(pending) or open_run.policy.find_gate(pending.facts) is not None


def _counts_repeats(pending: PendingExchange) -> bool:
    """Say whether a limit counts how often a request comes in a row."""
    usage_meter = pending.open_run.usage_meter
    return usage_meter is not None and usage_meter.asks_for_repeats(pending)


def _identify_for_comparison(pending: PendingExchange, open_run: OpenRun) -> None:
    """Make what a gate or a limit needs: the request as it is shown to people, and its keys. Any thread."""
    request = pending.with_body()
    counted = open_run.usage_meter if _counts_repeats(pending) else None
    if counted is not None or asks_for_repeats(pending):
        found = open_run.identifier.identify(request, pending.request_class)
        pending.identify(*found)
        if counted is not None:
            counted.note_forms(pending, find_forms(pending, request, found[0]))


def _has_no_room(pending: PendingExchange) -> bool:
    """Say whether a request is too large to be held, cannot be kept, and may pass all the same."""
    open_run = pending.open_run
    if open_run.mode is not Mode.RECORD or not open_run.passes:
        return False
    full = open_run.store.writer.failed is not None
    return full and announced_length(pending.arrival.fields) > HELD_BYTES
