"""Rewrite a stored run: what the rules of now find in it is replaced, and its log keeps the hashes of what was there.

A run is read twice (`tape/redaction/rewriting/rewriter.py`). What comes of it is written under another number, and takes the place of
the run in one transaction (`Ingest.publish_rewritten`): a kill at any moment leaves the old run or the new one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from blake3 import blake3

from ...config import Config
from ...store import Ingest, LogCorrupt, RunInfo, Store, Told
from ...store import Record as StoredRecord
from ...store.tables.folders import Content
from ...tape.canonical.canonical_request import raw_key
from ...tape.canonical.spilled_digest import find_boundary
from ...tape.exchange import BODY, Exchange, Fingerprint, Message, Redaction, Secret, Spilled
from ...tape.records.check_event_fields import check_event
from ...tape.records.codec import encode_exchange, encode_message
from ...tape.records.events import (
    CHAIN_START,
    HASH_BYTES,
    EventKind,
    content_hash,
    decode_event,
    encode_event,
    link_of,
)
from ...tape.records.rewrite_tombstones import ReplacedEvent, Rewritten, Tombstone, read_rewritten
from ...tape.redaction.redact_large_body import WINDOW_BYTES
from ...tape.redaction.redactor import without_digests
from ...tape.redaction.rewriting.rewriter import BodyRewriter, Place, Rewriter
from ..checks.integrity import count_rewritten
from ..reading.placeholder_key import find_key
from ..receipts.safe_terminal_text import plain
from .rewrite_folder import FolderRewriter

Progress = Callable[[int, int], None]
Find = Callable[[Exchange], Fingerprint]
"""Gives the fingerprint of an exchange under the rules of now."""
REQUEST_BODY, RESPONSE_BODY = "request.body", "response.body"
_LINK = len(CHAIN_START)
__all__ = [
    "Change",
    "Find",
    "Rewriter",
    "find_changes",
    "make_rewriter",
    "render_change",
    "rewrite_run",
]
_LISTED = 1000
"""Most places of a run that are listed; the counts stay exact."""


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """A place of a run that changes. Values are never told."""

    seq: int
    """Its exchange, or 0."""
    event: int
    """Number of its event in the log, or 0."""
    place: str
    rule: str

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {"seq": self.seq, "event": self.event, "place": self.place, "rule": self.rule}


@dataclass(slots=True)
class Change:
    """What the rules of now change in a run."""

    run: RunInfo
    rules: dict[str, None] = field(default_factory=dict)
    """Names of those that apply, in the order in which they were found."""
    exchanges: list[Tombstone] = field(default_factory=list)
    events: list[ReplacedEvent] = field(default_factory=list)
    places: list[ChangedPlace] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    """What its row in the list is to say."""
    in_folder: int = 0
    """How many paths or files of its working folder."""

    def note(self, places: Iterable[tuple[str, str]], *, seq: int = 0, event: int = 0) -> None:
        """Note places that change."""
        for place, rule in places:
            self.rules[rule] = None
            if len(self.places) < _LISTED:
                self.places.append(ChangedPlace(seq, event, place, rule))

    def to_json(self, *, written: bool) -> dict[str, Any]:
        """Give it as JSON types; `docs/commands-store.md` describes them."""
        return {
            "run": self.run.id,
            "rules": list(self.rules),
            "exchanges": [one.seq for one in self.exchanges],
            "events": [one.number for one in self.events],
            "in_folder": self.in_folder,
            "places": [one.to_json() for one in self.places],
            "written": written and bool(self.rules),
        }


class Output(Protocol):
    """Takes a run as it is rewritten."""

    def exchange(self, exchange: Exchange) -> None:
        """Take an exchange."""

    def message(self, seq: int, number: int, message: Message) -> None:
        """Take a message of its WebSocket; all of them follow it."""

    def event(self, value: bytes) -> None:
        """Take an event of the log: its chain hash, then the event."""

    def body(
        self, pieces: Iterable[tuple[bytes, bytes]], boundary: bytes, is_needed: Callable[[], bool]
    ) -> tuple[bytes, bytes] | None:
        """Take a body that is a file; see `store.bodies.keep_anew`."""

    def folder(self, number: int, packed: bytes, contents: Iterable[Content]) -> None:
        """Take a manifest or savepoint of the working folder, with the contents that it needs."""


class Nowhere:
    """Keeps nothing."""

    def exchange(self, exchange: Exchange) -> None:
        """Drop it."""

    def message(self, seq: int, number: int, message: Message) -> None:
        """Drop it."""

    def event(self, value: bytes) -> None:
        """Drop it."""

    def body(
        self, pieces: Iterable[tuple[bytes, bytes]], boundary: bytes, is_needed: Callable[[], bool]
    ) -> None:
        """Drop it, once it was read."""
        for _ in pieces:
            pass

    def folder(self, number: int, packed: bytes, contents: Iterable[Content]) -> None:
        """Drop it."""


class Staged:
    """Writes under a number that nobody sees."""

    def __init__(self, store: Store, ingest: Ingest) -> None:
        """Begin.

        store: into which.
        """
        self._store = store
        self._ingest = ingest
        self.number = ingest.begin_rewrite()

    def exchange(self, exchange: Exchange) -> None:
        """Write it."""
        raw = raw_key(exchange.request, exchange.request_class)
        self._ingest.save(self.number, StoredRecord(exchange, raw, None))

    def message(self, seq: int, number: int, message: Message) -> None:
        """Write it."""
        self._ingest.append_message(self.number, seq, number, message)

    def event(self, value: bytes) -> None:
        """Write it."""
        self._ingest.put_event(self.number, value)

    def body(
        self, pieces: Iterable[tuple[bytes, bytes]], boundary: bytes, is_needed: Callable[[], bool]
    ) -> tuple[bytes, bytes] | None:
        """Keep a body that is a file, where it is another."""
        return self._store.bodies.keep_anew(pieces, boundary, is_needed)

    def folder(self, number: int, packed: bytes, contents: Iterable[Content]) -> None:
        """Write it with its contents."""
        self._ingest.put_contents(self.number, contents)
        self._ingest.put_folder(self.number, number, packed)


def make_rewriter(config: Config, key: bytes) -> Rewriter:
    """Make what applies the rules of a configuration to a recording and what plays it.

    key: of the store's placeholders.
    """
    return Rewriter(key, config.redact, config.redact_off)


def find_changes(
    store: Store,
    runs: Sequence[RunInfo],
    rewriter: Rewriter,
    progress: Progress = lambda _done, _of: None,
) -> list[Change]:
    """Say what the rules of now change in a recording and what plays it. Reads all of it, twice; blocks.

    Raises: LogCorrupt.
    """
    first = [rewrite_into(store, run, rewriter, Nowhere(), None, progress) for run in runs]
    if not any(one.rules for one in first):
        return first
    # By now it is known what is secret: whatever said it before its place did is found.
    return [rewrite_into(store, run, rewriter, Nowhere(), None, progress) for run in runs]


def rewrite_run(
    store: Store,
    run: RunInfo,
    rewriter: Rewriter,
    find: Find,
    at_ns: int,
    progress: Progress = lambda _done, _of: None,
) -> Change:
    """Rewrite a run that the store holds, all of it or nothing. Blocks.

    rewriter: has read the run (`find_changes`).
    Raises: LogCorrupt; StoreError, where it changed meanwhile; StoreUnwritable.
    """
    with store.ingest() as ingest:
        staged = Staged(store, ingest)
        change = rewrite_into(store, run, rewriter, staged, find, progress, at_ns)
        change.run = ingest.publish_rewritten(run, staged.number, change.told)
    return change


def rewrite_into(
    store: Store,
    run: RunInfo,
    rewriter: Rewriter,
    output: Output,
    find: Find | None,
    progress: Progress,
    at_ns: int | None = None,
) -> Change:
    """Read a run, and give an output what the rules of now make of it.

    find: gives new fingerprints; None keeps those of before.
    at_ns: when it is rewritten, as an event at the end of its log says with what was; None has none.
    Raises: LogCorrupt.
    """
    change = Change(run)
    rewriter.make_as(find_key(store, run))
    rewriter.texts.clear()
    for event in store.events.all(run):
        if event.kind is EventKind.REWRITTEN:
            check_event(event)
            rewriter.note(read_rewritten(event))
        elif event.kind is EventKind.NOTED:
            rewriter.note_command(event)
    for exchange in store.exchanges.all(run):
        _rewrite_exchange(store, change, exchange, rewriter, output, find)
        progress(exchange.seq, run.exchanges)
    agent, places = rewriter.stored_text(run.agent, "agent")
    change.note(places)
    end, places = rewriter.stored_text(run.end, "end")
    change.note(places)
    labels, places = rewriter.labels(run.labels)
    change.note(places)
    change.told = Told(agent, end, labels)
    rewritten = FolderRewriter(store.folders.read, store.folders.holds, rewriter)
    for number, packed in enumerate(store.folders.rows(run)):
        output.folder(number, *rewritten.row(number, packed))
    change.note(rewritten.places)
    change.in_folder = rewritten.changed
    _rewrite_log(store, change, rewriter, output, at_ns)
    return change


def _rewrite_exchange(
    store: Store,
    change: Change,
    exchange: Exchange,
    rewriter: Rewriter,
    output: Output,
    find: Find | None,
) -> None:
    new, places = rewriter.exchange(exchange)
    change.note(places, seq=exchange.seq)
    new = _rewrite_bodies(store, change, new, rewriter, output)
    if new is not exchange and find is not None:
        new = replace(new, fingerprint=find(new))
    output.exchange(new)
    said_before, said_now, messages_change = b"", b"", False
    if exchange.websocket is not None:
        before, now = blake3(), blake3()
        for number, message in enumerate(store.messages.all(change.run, exchange.seq)):
            redacted, places = rewriter.stored_message(message, number)
            messages_change |= bool(places)
            change.note(places, seq=exchange.seq)
            output.message(exchange.seq, number, redacted)
            before.update(encode_message(message))
            now.update(encode_message(redacted))
        if messages_change:
            said_before, said_now = before.digest(HASH_BYTES), now.digest(HASH_BYTES)
    if new is not exchange or messages_change:
        was, is_now = (content_hash(encode_exchange(one)) for one in (exchange, new))
        change.exchanges.append(Tombstone(exchange.seq, was, is_now, said_before, said_now))


def _rewrite_bodies(
    store: Store, change: Change, exchange: Exchange, rewriter: Rewriter, output: Output
) -> Exchange:
    """Rewrite the bodies of an exchange that are files."""
    request, response = exchange.request, exchange.response
    if request.spilled is not None:
        body = rewriter.body(request.headers, request.secrets, REQUEST_BODY)
        boundary = find_boundary(request.headers)
        made = _rewrite_body(store, request.spilled, body, boundary, output)
        if made is not None:
            change.note(made.places, seq=exchange.seq)
            head = [one for one in request.secrets if one.part != BODY]
            new = replace(request, spilled=made.spilled, secrets=(*head, *made.secrets))
            exchange = _with_redactions(replace(exchange, request=new), REQUEST_BODY, made.secrets)
    if response is not None and response.spilled is not None:
        body = rewriter.body(response.headers, response.secrets, RESPONSE_BODY)
        made = _rewrite_body(store, response.spilled, body, b"", output)
        if made is not None:
            change.note(made.places, seq=exchange.seq)
            answer = replace(response, spilled=made.spilled, secrets=made.secrets)
            answer, digests = without_digests(answer)
            told = dict.fromkeys((*exchange.redactions, *digests))
            exchange = replace(exchange, response=answer, redactions=tuple(told))
            exchange = _with_redactions(exchange, RESPONSE_BODY, made.secrets)
    return exchange


def _with_redactions(exchange: Exchange, place: str, secrets: Iterable[Secret]) -> Exchange:
    told = dict.fromkeys((*exchange.redactions, *(Redaction(place, one.kind) for one in secrets)))
    return replace(exchange, redactions=tuple(told))


class _Body(NamedTuple):
    """A body that was rewritten."""

    spilled: Spilled
    secrets: tuple[Secret, ...]
    places: tuple[Place, ...]


def _rewrite_body(
    store: Store, spilled: Spilled, body: BodyRewriter | None, boundary: bytes, output: Output
) -> _Body | None:
    """Rewrite a body that is a file; None where nothing changes."""
    if body is None:
        return None
    ended: list[_Body] = []

    def pieces() -> Iterator[tuple[bytes, bytes]]:
        for _, data in store.bodies.read(spilled):
            for at in range(0, len(data), WINDOW_BYTES):
                yield body.feed(data[at : at + WINDOW_BYTES])
        piece, secrets, places = body.finish()
        ended.append(_Body(spilled, secrets, places))
        yield piece

    made = output.body(pieces(), boundary, lambda: bool(ended[0].places))
    if not ended[0].places:
        return None
    if made is None:
        return ended[0]
    return ended[0]._replace(spilled=replace(spilled, digest=made[0], match=made[1]))


def _rewrite_log(
    store: Store, change: Change, rewriter: Rewriter, output: Output, at_ns: int | None
) -> None:
    """Rewrite the log: link it anew from the first event that changes, and say at its end what was rewritten."""
    run = change.run
    link = last = CHAIN_START
    for row in store.events.checked(run):
        if row.problem:
            raise LogCorrupt(f"run {run.id}, event {row.number}: {row.problem}")
        value, last = row.value, row.value[:_LINK]
        event, places = rewriter.event(decode_event(value, row.number))
        change.note(places, event=row.number, seq=event.seq)
        if places:
            change.events.append(ReplacedEvent(row.number, last))
            value, link = encode_event(event, link)
        elif change.events:
            link = link_of(value[_LINK:], link)
            value = link + value[_LINK:]
        else:
            link = last
        output.event(value)
    if not change.rules or at_ns is None:
        return
    rewritten = Rewritten(
        at_ns,
        tuple(change.rules),
        tuple(change.exchanges),
        tuple(change.events),
        last if change.events else b"",
        tuple(rewriter.texts),
        change.in_folder,
    )
    for event in rewritten.to_events():
        value, link = encode_event(event, link)
        output.event(value)


def render_change(one: Change, *, written: bool) -> str:
    """Say what was rewritten in a run, or would be, each place of it."""
    name = plain(one.run.id, 60)
    if not one.rules:
        return f"{name}: nothing to change"
    rules = ", ".join(plain(rule, 80) for rule in one.rules)
    counts = count_rewritten(len(one.exchanges), len(one.events), one.in_folder)
    if written:
        return f"{name}: rewritten by rule {rules}: {counts}"
    lines = [f"{name}: would be rewritten by rule {rules}: {counts}"]
    for place in one.places:
        where = f"event {place.event}" if place.event else f"seq {place.seq}"
        if not place.event and not place.seq:
            where = "run"
        lines.append(f"  {where} {plain(place.place, 120)}: {plain(place.rule, 80)}")
    if len(one.places) == _LISTED:
        lines.append("  … and more")
    return "\n".join(lines)
