"""A request arrives: its pending exchange begins at its head, and what was asked is prepared once its body is there."""

from mitmproxy import http

from ...config import Mode
from ...tape.classify.by_body import class_by_body
from ...tape.exchange import NO_TUNNEL, Lane, Request, RequestClass, Seq
from ...tape.policy.decide import Action, Policy
from ..answer.request_order import find_overlaps
from ..run.exchange_parts.arrival import Arrival
from ..run.pending_exchange import PendingExchange, attach
from ..run.request_constraints import decide_leaving
from ..run.run_state import OpenRun
from ..wire.convert_http_messages import is_bidirectional, read_names, read_request
from .decide_before_sending import has_no_room
from .request_facts import add_form_facts, find_facts, hide_names

NO_RULES = Policy((), (), stub=False)
"""For a playback without a tape: it has no run, so what a rule let out would be written down nowhere."""


def begin(flow: http.HTTPFlow, open_run: OpenRun) -> None:
    """Begin the pending exchange of a request; decide by its head where it may be answered before it has ended."""
    message = flow.request
    tunnel = open_run.connections.tunnels.get(flow.client_conn.id, NO_TUNNEL)
    names = read_names(flow, tunnelled=tunnel is not NO_TUNNEL)
    facts, kind = find_facts(message, names, open_run)
    seq = open_run.next_seq() if open_run.info is not None else Seq(0)
    # Also in a playback, which records what it sends: a resumed run or a branch is a tape for the next one.
    lane = Lane(0, find_overlaps(open_run)) if open_run.info is not None else None
    arrival = Arrival(message.data.headers.fields, tunnel, lane, hide_names(names, open_run))
    pending = PendingExchange(open_run, flow, seq, facts, kind, arrival)
    attach(flow, pending)
    no_room = has_no_room(pending)
    if not no_room and not is_bidirectional(message):
        return
    asked = read_request(flow, arrival.fields, names=names)
    by_head = facts
    facts, kind = add_form_facts(by_head, kind, asked, open_run, unread=True)
    if kind.by_path and not no_room:  # gRPC's messages are no JSON
        facts = facts._replace(request_class=RequestClass.EFFECT, by_body=True)
    pending.classify(facts, kind)
    # What a contract speaks of or a gate may hold is read whole before any of it is sent.
    held_to = open_run.contracts is not None and open_run.contracts.asks(by_head)
    if not held_to and open_run.policy.find_gate(by_head) is None:
        _decide_by_head(flow, pending)
        if no_room and pending.decision is not None:
            pending.progress.give_up()


def _decide_by_head(flow: http.HTTPFlow, pending: PendingExchange) -> None:
    open_run = pending.open_run
    pending.body.open_both_ways()
    lost = open_run.mode is Mode.PLAYBACK and open_run.tape is None
    decision = decide_leaving(pending, NO_RULES if lost else open_run.policy, None)
    if decision.action in (Action.FORWARD, Action.LIVE):
        asked = read_request(flow, pending.arrival.fields, names=pending.arrival.names)
        pending.prepare(asked, with_body=False)
        pending.decide(decision)


def prepare(flow: http.HTTPFlow, pending: PendingExchange) -> Request:
    """Prepare what was asked, now that it has come whole."""
    pending.body.end()
    arrival, uploaded = pending.arrival, pending.body.uploaded
    asked = read_request(flow, arrival.fields, uploaded, arrival.names)
    facts, kind = add_form_facts(pending.facts, pending.kind, asked, pending.open_run)
    now = class_by_body(kind, asked)
    if now is not kind.of:
        facts = facts._replace(request_class=now, by_body=True)
    pending.classify(facts, kind)
    # The body of what is recorded is searched where it is written, off the loop.
    searched = pending.open_run.mode is Mode.PLAYBACK
    pending.body.come(asked.body, searched=searched)
    return pending.prepare(asked, with_body=searched)
