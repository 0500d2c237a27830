"""A WebSocket that comes from the tape: the layers in `proxy/engine/websocket/` read and write frames, what a message means is said here."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...store import StoreError
from ...tape.canonical.client_profiles import find_product
from ...tape.diff.divergence_types import Divergence
from ...tape.exchange import (
    Close,
    Ending,
    Exchange,
    Headers,
    Message,
    MessageKind,
    RawAnswer,
    RawClose,
    RawMessage,
    RedactedText,
    Request,
    RequestClass,
    Seq,
    WebSocketMessage,
)
from ...tape.matching.compare_redacted_values import Changed
from ...tape.matching.header_agreement import ComparedMessage
from ...tape.matching.profile_use import ProfileUse, find_message_use
from ...tape.playback.websocket import (
    ABRUPT,
    MessageCursor,
    Send,
    Stray,
    Turn,
    Wait,
    as_request,
    explain_broken,
    explain_close,
    explain_left,
    explain_stray,
    explain_unheard,
    find_first,
    find_ignored,
    is_alike,
)
from ...tape.policy.refusal import websocket_refusal
from ...tape.policy.revise import Recognised
from ...tape.records.events import EventKind
from ...tape.records.redacted_originals import answer_of, restore_close
from ...timeline.outcomes.task import read_task_of_message
from ..run.pending_exchange import (
    PendingExchange,
    WebSocket,
    note_divergence,
    note_verdict,
    on_their_way,
)
from ..run.playback_state import PlaybackState
from ..wire.convert_http_messages import make_head
from ..wire.websocket_handshake import answer_again, is_upgrade

_MOST_EXPLAINED = 4 * 1024 * 1024
"""Bytes of a message up to which its client is told at once how it differs; it is compared on the loop."""
DIVERGED = 1008
DIVERGED_REASON = "playhead: replay divergence"
UNREADABLE = "the tape cannot be read on"


class WebSocketPlayer(WebSocket):
    """A WebSocket that comes from the tape."""

    def __init__(
        self,
        pending: PendingExchange,
        playback: PlaybackState,
        request: Request,
        exchange: Exchange,
        raw: RawAnswer | None = None,
    ) -> None:
        """Begin before the handshake is answered.

        raw: its answer as it came, where the store kept that.
        """
        open_run = pending.open_run
        self._pending = pending
        self._playback = playback
        self._request = request
        self._pace = open_run.config.playback.pace
        self._masks = open_run.identifier.rules.of(request, pending.request_class).masks
        self._raw = raw
        self._set(exchange)
        self._begun = False
        """Whether either side has said something: from then on it is known which one of the tape it is."""
        self._stray: Stray | None = None
        self._strayed: Divergence | None = None
        """How it differs, where the client was told."""
        self._broken = ""
        self._closed: tuple[int, str] | None = None
        self._unheard = self._ended = False
        self._told: dict[str, Any] = {}
        """For the receipt: whether redaction `replaced` a value in a message that was sent, or was sent `as_recorded`, whether a
        match rests on a `kind_alone`, on what of the client's `profile`, and how it is `rematched` for another credential. For its cost:
        how many messages of the tape were `played`, where not all were."""
        self._profile: ProfileUse | None = None
        self._is_task_known = False

    # ---- what the layer asks -------------------------------------------------------------------

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Header fields of the handshake's answer as it was played."""
        assert self._pending.flow.response is not None
        return self._pending.flow.response.data.headers.fields

    @property
    def close(self) -> RawClose:
        """The recorded end."""
        assert self.exchange.websocket is not None
        close = self.exchange.websocket.close or Close(0, False, ABRUPT, RedactedText(""))
        return restore_close(close, self._raw)

    @property
    def ending(self) -> Ending:
        """How the upstream's connection ended, where it did so without a closing frame."""
        fault = self.exchange.fault
        return fault.ending if fault is not None else Ending.FIN

    def begin(self) -> None:
        """Start the clock: the handshake is answered."""
        self._cursor.begin(_now_us())

    def step(self) -> Send | Wait | Turn:
        """Say what comes next.

        Raises: StoreError, where the tape cannot be read on.
        """
        turn = Turn.LISTEN if self._ended else self._cursor.step(_now_us())
        if not isinstance(turn, Send):
            return turn
        self._begun = True
        return Send(self._restored(turn.message))

    def _restored(self, message: WebSocketMessage) -> WebSocketMessage:
        """Give a message of the server that was just played as it came, where the store kept that; learn what is secret in it.

        Raises: StoreError.
        """
        open_run = self._pending.open_run
        if not message.secrets or not isinstance(message, Message):
            return message
        given = open_run.redactor.learn_message(message)
        self._playback.agreement.give_message(given)
        raw = None
        if open_run.keeps_originals:
            number = self._cursor.passed - 1
            raw = open_run.store.originals.find_message(
                self._playback.tape, self.exchange.seq, number, message
            )
        if raw is None:
            forms = open_run.redactor.list_forms(given)
            self._playback.resumption.placeholders.give(forms, self.exchange.seq)
            self._told["replaced"] = True
            return message
        open_run.redactor.message(raw)
        self._told["as_recorded"] = True
        return raw

    def hear(self, kind: MessageKind, data: bytes) -> bool:
        """Take a message of the client; False where it is not the one on the tape, which ends all.

        Raises: StoreError, where the tape cannot be read on.
        """
        if self._ended:
            return True
        heard = self._pending.open_run.redactor.message(RawMessage(0, True, kind, data))
        self._note_task(heard)
        self._stray = self._cursor.hear(_now_us(), heard)
        if self._stray is not None and not self._begun and self._choose(heard):
            self._stray = self._cursor.hear(_now_us(), heard)
        self._begun = True
        return self._stray is None

    def _note_task(self, heard: Message) -> None:
        """Note what the first model call is to do: a message that diverges is in no exchange."""
        pending = self._pending
        if self._is_task_known or pending.request_class is not RequestClass.INFERENCE:
            return
        task = read_task_of_message(replace(self.exchange, request=self._request), heard)
        if task is not None:
            self._is_task_known = True
            pending.open_run.note(EventKind.NOTED, seq=pending.seq, task=task.noted())

    def _note_difference(self, recorded: Message, heard: Message) -> None:
        """Note what a message that is not the recorded one byte for byte owes to the profile of its client, and to rules of `ignore`."""
        request, playback = self._request, self._playback
        rules, kind = playback.identifier.rules, self._pending.request_class
        shipped = playback.shipped_rules if playback.has_own_rules else None
        differs = find_ignored(request, recorded, heard, shipped, kind)
        if differs is not None:
            self._told["rematched"] = ["exact", "canonical"]
        if differs:
            self._told["ignored_content"] = True
        use = find_message_use(request, recorded.data, heard.data, rules, kind)
        if use is not None:
            known = self._profile.places if self._profile is not None else ()
            self._profile = use._replace(places=tuple(dict.fromkeys((*known, *use.places))))
            self._told["profile"] = self._profile.to_row()

    def _find_changed(self, recorded: Message, heard: Message) -> Sequence[Changed]:
        """Find the replaced values of a message that are not those of the recorded one."""
        compared = compare_values(
            self._pending, self._playback, self._request, self.exchange, recorded, heard
        )
        if compared is None:
            return ()
        if compared.kind_alone:
            self._told["kind_alone"] = True
        if not (compared.changed or compared.same):
            self._told["rematched"] = ["exact", "canonical"]
        return compared.changed

    def _choose(self, heard: Message) -> bool:
        """Go on as another WebSocket of the tape to the same URL, one that begins with this message; False where there is none."""
        pending = self._pending
        cursor, fingerprint = self._playback.cursor, pending.fingerprint
        if fingerprint is None:
            return False
        holders = {
            one.websocket.exchange.seq: one.websocket
            for one in on_their_way(pending.open_run)
            if isinstance(one.websocket, WebSocketPlayer) and one is not pending
        }
        for seq in cursor.uses(fingerprint):
            holder = holders.get(seq)
            if seq == self.exchange.seq or (cursor.served(seq) and holder is None):
                continue
            if holder is not None and holder._begun:
                continue
            other = self._playback.read_recorded(seq)
            if other is None or not self._may_become(other, heard):
                continue
            mine = self.exchange
            if holder is None:
                cursor.exchange(fingerprint, mine.seq, seq)
            else:
                holder.become(mine)
            self.become(other)
            return True
        return False

    def _may_become(self, other: Exchange, heard: Message) -> bool:
        """Say whether another WebSocket of the tape has the same handshake and begins with this message of the client."""
        if other.websocket is None or _handshake(other) != _handshake(self.exchange):
            return False
        first = find_first(self._playback.read_messages(other.seq))
        return (
            first is not None
            and is_alike(first, heard, self._masks)
            and not self._find_changed(first, heard)
        )

    def _set(self, exchange: Exchange) -> None:
        """Play an exchange from its beginning."""
        self.exchange = exchange
        read = partial(self._playback.read_messages, exchange.seq)
        self._cursor = MessageCursor(
            read,
            exchange,
            self._pace,
            self._masks,
            self._arrived,
            self._find_changed,
            self._note_difference,
        )

    def become(self, other: Exchange) -> None:
        """Play another exchange of the tape from its beginning, in the place of this one."""
        self._raw = None  # both have the same handshake, and its answer was given
        if self._pending.open_run.keeps_originals:
            self._raw = self._pending.open_run.store.originals.find(self._playback.tape, other)
        self._set(other)
        self.begin()
        pending = self._pending
        reason = "on tape: the WebSocket to this URL that begins with this message"
        match = (pending.account.logged or {}).get("match", "canonical")
        decision = pending.revise(Recognised(other.seq, reason))
        note_verdict(pending, self._request, decision, tape_seq=other.seq, match=match)

    def crossed(self) -> Iterator[WebSocketMessage]:
        """Give what the server said across the client's closing frame, once that has come.

        Raises: StoreError, where the tape cannot be read on.
        """
        self.leave()
        return iter(()) if self._ended else map(self._restored, self._cursor.close())

    def leave(self) -> None:
        """Take note that the client ends it now, before anything more is played."""
        self._unheard = not self._ended and self._cursor.leaves_early(_now_us())

    def answer_to(self, code: int, reason: str) -> tuple[int, str]:
        """Give what answers a client's closing frame: what the server answered, or its echo."""
        close = self.close
        return close.answer if close.by_client and close.answer is not None else (code, reason)

    def closed(self, code: int, reason: str) -> None:
        """Note how the client ended it: as a closing frame says, or 1006 without one."""
        self._closed = code, self._pending.open_run.redactor.redact_text(reason)

    def broke(self, text: str) -> None:
        """Note why it cannot go on."""
        self._broken = text

    # ---- its end -------------------------------------------------------------------------------

    async def end(self) -> None:
        """Say whether all of it was played, and end the pending exchange. Twice is once."""
        if self._ended:
            return
        self._ended = True
        pending = self._pending
        try:
            found = await asyncio.to_thread(self._explain)
            if found is not None:
                self._note_unprofiled()
                note_divergence(pending, found)
            if self._profile is not None or (pending.account.logged or {}).get("match") != "exact":
                self._told.pop("rematched", None)
            recorded = self.exchange.websocket
            if recorded is not None and self._cursor.passed < recorded.messages:
                self._told["played"] = self._cursor.passed
            if self._told:
                pending.open_run.note(EventKind.NOTED, seq=pending.seq, **self._told)
        finally:
            pending.finish()

    def _note_unprofiled(self) -> None:
        """Note the client of a model call that diverged, where it has no profile."""
        pending = self._pending
        if pending.request_class is not RequestClass.INFERENCE:
            return
        product = find_product(self._request.headers).decode("ascii", "replace")
        if product and pending.open_run.identifier.rules.profiles.find(self._request) is None:
            self._told["unprofiled"] = product

    def refuse(self) -> bytes | None:
        """Give the message in which the protocol says that the client's last message is refused; None where it has none."""
        request, stray = self._request, self._stray
        if stray is None or len(stray.data) > _MOST_EXPLAINED:
            return None
        self._strayed = self._explain_stray(request, stray)
        return websocket_refusal(request, self._strayed)

    def _explain_stray(self, request: Request, stray: Stray) -> Divergence:
        rules = self._pending.open_run.identifier.rules
        return explain_stray(self._pending.seq, self.exchange.seq, request, stray, rules)

    def _explain(self) -> Divergence | None:
        seq, tape_seq, request = self._pending.seq, self.exchange.seq, self._request
        if self._stray is not None:
            return self._strayed or self._explain_stray(request, self._stray)
        if self._broken and not self._was_broken:
            return explain_broken(seq, tape_seq, request, self._broken)
        try:
            left = self._cursor.find_left()
        except StoreError as error:
            return explain_broken(seq, tape_seq, request, f"{UNREADABLE}: {error}")
        if left is not None:
            return explain_left(seq, tape_seq, request, *left)
        if self._unheard:
            return explain_unheard(seq, tape_seq, request)
        recorded, closed = self.exchange.websocket, self._closed
        close = recorded.close if recorded is not None else None
        if close is None or not close.by_client or closed in (None, (close.code, close.reason)):
            return None
        return explain_close(seq, tape_seq, request, close, closed)

    @property
    def _was_broken(self) -> bool:
        """Whether the client broke the protocol while recording too."""
        return self.exchange.fault is not None and self.close.by_client

    def _arrived(self, seqs: range) -> bool:
        open_run = self._pending.open_run
        served, holds = self._playback.cursor.served, open_run.store.exchanges.holds
        # Requests that left no exchange, as those to Playhead itself, cannot be asked again.
        return all(served(Seq(seq)) or not holds(self._playback.tape, seq) for seq in seqs)

    async def answer(self) -> None:
        """Wait until the handshake's answer is due."""
        assert self.exchange.response is not None
        due_s = self.exchange.response.head_us * self._pace / 1e6
        wait_s = due_s - (time.monotonic() - self._pending.arrival.t0)
        if wait_s > 0:
            await asyncio.sleep(wait_s)


_OF_ONE_HANDSHAKE = (b"sec-websocket-accept", b"date")


def compare_values(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    exchange: Exchange,
    recorded: Message,
    heard: Message,
) -> ComparedMessage | None:
    """Compare what redaction replaced and a profile links in two messages of the client; None where there is no such value.

    exchange: the WebSocket of the tape.
    """
    masks = playback.identifier.rules.of(request, pending.request_class).masks
    if not (recorded.secrets or any(one.linked for one in masks.placed)):
        return None
    old, new = (
        replace(as_request(request, one.data), secrets=one.secrets) for one in (recorded, heard)
    )
    after = Seq(max(recorded.after, exchange.seq) + 1)
    return playback.agreement.compare_message(old, new, pending.request_class, after)


def _handshake(exchange: Exchange) -> tuple[int, Headers] | None:
    """Give what a handshake's answer said to the client, but for what is of that one handshake alone."""
    answer = exchange.response
    if answer is None:
        return None
    fields = (one for one in answer.headers if one[0].lower() not in _OF_ONE_HANDSHAKE)
    return answer.status, tuple(fields)


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def serve_websocket(
    pending: PendingExchange,
    playback: PlaybackState,
    asked: Request,
    exchange: Exchange,
    raw: RawAnswer | None = None,
) -> str:
    """Have a recorded WebSocket played; give why it cannot be, or empty.

    raw: its answer as it came, where the store kept that.
    """
    response, flow = answer_of(exchange, raw), pending.flow
    if response is None:
        return "the tape holds no answer to its handshake"
    if not is_upgrade(asked.headers):
        return "the tape holds a WebSocket, and none was asked for"
    if exchange.websocket is None:
        return "the tape has a switch of protocols, but nothing after it"
    made = answer_again(exchange.request, response, asked)
    if isinstance(made, str):
        return made
    flow.response = make_head(made, flow.request)
    pending.become(WebSocketPlayer(pending, playback, asked, exchange, raw))
    pending.playing.play_interim(exchange.interim if raw is None else raw.interim)
    return ""
