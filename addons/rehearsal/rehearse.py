"""Rehearse a playback: ask the tape of one recording for what another recording of the same task has asked.

Each request is decided on as in a playback (`addons/decide.py`), in the order in which it came: cursor, policy, linked values and
the order of the tape. Nothing leaves, nothing is written, and no answer is played. What an earlier answer of the other recording
brought is put as this tape's answer brings it, since an agent that is replayed would have that.

Telemetry is left out, and so are tunnels that failed and what a live rule lets out.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from mitmproxy import connection, http

from ...store import RunInfo
from ...tape.canonical.address_fields import find_address_fields
from ...tape.classify.by_body import class_by_body
from ...tape.diff.divergence_types import Difference, Divergence
from ...tape.exchange import Exchange, Message, Request, RequestClass, Seq
from ...tape.matching.compare_redacted_values import Changed
from ...tape.matching.index import index_digest, reclassify
from ...tape.playback.websocket import MessageCursor, explain_left, explain_stray
from ...tape.policy.decide import Action, Facts
from ...tape.records.events import EventKind
from ...timeline.lookup.requests_under_current_rules import RecordedRequests
from ..answer.explain import explain
from ..deciding.tape_lookup import TapeLookup
from ..run.exchange_parts.arrival import Arrival
from ..run.exchange_parts.prepared_request import PreparedRequest
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun
from ..serving.describe_match import notes
from ..websockets.player import compare_values
from .substitute_values import put_words, put_words_into_message

Words = Mapping[Seq, Mapping[str, str]]
"""What earlier answers brought into requests, by their seq: the other recording's words, and the tape's for them."""


class Refused(NamedTuple):
    """A request that the tape would not have answered."""

    seq: Seq
    """In the recording that asks."""
    method: str
    url: str
    reason: str
    nearest: Seq | None
    """Of the tape."""
    differences: tuple[Difference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {
            "seq": self.seq,
            "method": self.method,
            "url": self.url,
            "reason": self.reason,
            "nearest": self.nearest,
            "differences": [
                {"place": one.place, "values": [one.recorded, one.asked]}
                for one in self.differences
            ],
        }


@dataclass(slots=True)
class Rehearsal:
    """What a playback of one recording would have made of another."""

    served: list[Seq]
    """Requests that the tape answers."""
    refused: list[Seq]
    telemetry: list[Seq]
    """Those that are not counted."""
    first: Refused | None = None
    """The first that it does not."""
    moved: int = 0
    """How many of those served come in another order than on the tape, or under another idempotency key."""

    @property
    def asked(self) -> int:
        """How many requests were asked."""
        return len(self.served) + len(self.refused)

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; `docs/commands-rules.md` describes them."""
        return {
            "asked": self.asked,
            "served": len(self.served),
            "moved": self.moved,
            "first_refused": self.first.to_json() if self.first is not None else None,
        }


class RehearsedRun(OpenRun):
    """A playback that writes nothing down, and notes whether it would have told of a divergence."""

    _diverged = False

    def note(self, kind: EventKind, **_data: Any) -> None:
        """Note what would have been written."""
        self._diverged = self._diverged or kind is EventKind.DIVERGED

    def take_divergence(self) -> bool:
        """Say whether one would have been written since this was last asked."""
        diverged, self._diverged = self._diverged, False
        return diverged


def rehearse(open_run: RehearsedRun, tape: RunInfo, asking: RunInfo, words: Words) -> Rehearsal:
    """Put a recording to the tape of a playback that was opened for it. Blocking; reads both.

    Raises: LogCorrupt.
    """
    return asyncio.run(_rehearse(open_run, tape, asking, words))


async def _rehearse(
    open_run: RehearsedRun, tape: RunInfo, asking: RunInfo, words: Words
) -> Rehearsal:
    config, found, playback = open_run.config, Rehearsal([], [], []), open_run.playback
    if playback is None:
        raise TypeError("a recording is put to a tape")
    if tape.rules != index_digest(open_run.identifier.rules, config):
        playback.reindex()
    clients, asked = _Clients(open_run), RecordedRequests(open_run.make_rewriter, needed=True)
    known: dict[str, str] = {}
    for recorded in open_run.store.exchanges.all(asking):
        exchange = reclassify(recorded, config.classes)
        known |= words.get(exchange.seq, {})
        if exchange.request_class is RequestClass.TELEMETRY:
            found.telemetry.append(exchange.seq)
            continue
        if exchange.tunnel.number and exchange.request.method == "CONNECT":
            continue
        request = put_words(asked.find(exchange).request, known)
        pending = _begin(open_run, clients.find(exchange), exchange, request)
        deciding = TapeLookup(pending, playback, request).look_up()
        if deciding is not None:
            await deciding
        messages = open_run.store.messages.all(asking, exchange.seq, -1)
        said = _said(asked.find_messages(messages), known)
        _note(found, open_run, playback, pending, request, _hear(pending, playback, request, said))
        pending.finish()
    return found


class _Process(NamedTuple):
    pid: int


class _Clients:
    """A connection for each lane of the recording that asks: its processes stand for those of a playback."""

    def __init__(self, open_run: OpenRun) -> None:
        self._open_run = open_run
        self._known: dict[int, connection.Client] = {}

    def find(self, exchange: Exchange) -> connection.Client:
        lane = exchange.lane.number if exchange.lane is not None else 0
        if lane not in self._known:
            client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
            if lane:
                looking = asyncio.get_running_loop().create_future()
                looking.set_result(_Process(lane))
                self._open_run.lanes.look(client.id, looking)
            self._known[lane] = client
        return self._known[lane]


def _begin(
    open_run: OpenRun, client: connection.Client, exchange: Exchange, request: Request
) -> PendingExchange:
    facts, kind = Facts.of_request(request, open_run.config.classes)
    now = class_by_body(kind, request)
    if now is not kind.of:
        facts = facts._replace(request_class=now, by_body=True)
    if open_run.policy.live:
        place = facts.scheme, facts.host, facts.port, facts.target
        fields = find_address_fields((*request.headers, *request.trailers), *place)
        facts = facts._replace(address_fields=fields)
    flow = http.HTTPFlow(client, connection.Server(address=None))
    arrival = Arrival(started_ns=exchange.started_ns)
    pending = PendingExchange(open_run, flow, exchange.seq, facts, kind, arrival)
    pending.ask(PreparedRequest(request))
    return pending


def _note(
    found: Rehearsal,
    open_run: RehearsedRun,
    playback: PlaybackState,
    pending: PendingExchange,
    request: Request,
    strayed: Divergence | None,
) -> None:
    """Note what became of a request, and what a playback remembers of one that it serves."""
    decision, recorded, seq = pending.decision, pending.lookup.recorded, pending.seq
    action = decision.action if decision is not None else Action.REFUSE
    if action in (Action.LIVE, Action.HOLD):
        return
    if action is Action.SERVE and recorded is not None:
        notes(pending, playback, request, recorded)
        playback.id_rewriting.rewrite(request, recorded, recorded.response)
        playback.completion.given.setdefault(recorded.seq, seq)
        if strayed is None:
            found.moved += open_run.take_divergence()
            found.served.append(seq)
            return
    found.refused.append(seq)
    if found.first is None:
        told = strayed or explain(playback, pending, request)
        found.first = Refused(
            seq, request.method, request.url, told.text, told.nearest_seq, told.differences
        )


def _hear(
    pending: PendingExchange, playback: PlaybackState, request: Request, said: Iterator[Message]
) -> Divergence | None:
    """Say how what the client says on a WebSocket is not what the tape has, if the handshake is answered from there."""
    open_run, recorded = pending.open_run, pending.lookup.recorded
    if recorded is None or recorded.websocket is None or recorded.response is None:
        return None

    def find_changed(old: Message, new: Message) -> Sequence[Changed]:
        compared = compare_values(pending, playback, request, recorded, old, new)
        return compared.changed if compared is not None else ()

    read = partial(playback.read_messages, recorded.seq)
    masks = open_run.identifier.rules.of(request, pending.request_class).masks
    cursor = MessageCursor(read, recorded, 0.0, masks, lambda _seqs: True, find_changed)
    for message in said:
        stray = cursor.hear(0, message)
        if stray is not None:
            return explain_stray(
                pending.seq, recorded.seq, request, stray, open_run.identifier.rules
            )
    left = cursor.find_left()
    return explain_left(pending.seq, recorded.seq, request, *left) if left is not None else None


def _said(messages: Iterator[Message], known: Mapping[str, str]) -> Iterator[Message]:
    for message in messages:
        if message.from_client:
            yield put_words_into_message(message, known)
