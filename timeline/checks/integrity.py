"""Verify a store: the hash chain of each log, and each exchange against the hash in the log.

The log vouches for an exchange from its outcome on. Recordings of versions before that hash are *unproven*, as is
what was under way when its process died: their chain is checked, and that all can be read. The index has no hash: each
row of it is held against what its exchange says, or, where `reindex` made it, against what the rules of now make of it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from blake3 import blake3

from ...store import LogCorrupt, RunInfo, RunStatus, Store, StoreError
from ...tape.canonical.canonical_request import raw_key
from ...tape.counted import counted
from ...tape.exchange import Exchange, Fingerprint, Seq
from ...tape.folders.manifest import Entry as FolderEntry
from ...tape.folders.manifest import read_rows, show_path
from ...tape.matching.index import Entry
from ...tape.records.check_event_fields import check_event
from ...tape.records.codec import BadRecord, encode_exchange, encode_message
from ...tape.records.events import HASH_BYTES, Event, EventKind, content_hash, decode_event
from ...tape.records.rewrite_tombstones import (
    Rewritten,
    join_rewrites,
    read_rewritten,
    replace_hashes,
)
from ...tape.shell_words import shell_word
from ..receipts.safe_terminal_text import plain

_LISTED = 10
_OF_INDEX = "the index "
"""How each problem begins that is of the index alone."""
Find = Callable[[Exchange], Entry]
"""Gives the keys that an exchange has under some rules."""
_TELLING = (EventKind.INTENT, EventKind.VERDICT, EventKind.OUTCOME)
_CLOSING = {RunStatus.SEALED: EventKind.SEALED, RunStatus.RECOVERED: EventKind.RECOVERED}


_ATTEMPTS = 3
"""How often a run that is being recorded is read, while something about it does not fit."""


class State(StrEnum):
    """What a check found a run to be."""

    SOUND = "sound"
    UNRECOVERED = "unrecovered"
    """As its process left it when it ended abruptly: no process that writes has opened the store since."""
    DAMAGED = "damaged"


class Problem(NamedTuple):
    """Something that is not as it was written."""

    seq: int
    """The exchange it concerns; 0 for what belongs to the run itself."""
    event: int
    """Number of the event in the log, or 0."""
    text: str

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {"seq": self.seq, "event": self.event, "text": self.text}


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found in one run."""

    run: RunInfo
    exchanges: int
    unproven: int
    """How many exchanges no hash vouches for."""
    problems: tuple[Problem, ...]
    """In the order of seqs."""
    rewritten: tuple[Rewritten, ...] = ()
    """How it was rewritten since it was recorded, in order."""

    @property
    def state(self) -> State:
        """What the run is, by what was found."""
        if self.problems:
            return State.DAMAGED
        return State.UNRECOVERED if self.run.is_unrecovered else State.SOUND

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {
            "run": self.run.id,
            "state": self.state.value,
            "exchanges": self.exchanges,
            "unproven": self.unproven,
            "problems": [one.to_json() for one in self.problems],
            "rewritten": [one.to_json() for one in self.rewritten],
        }


@dataclass(slots=True)
class _Told:
    """What the log says."""

    known: set[Seq] = field(default_factory=set)
    """Of which it tells at all: a request arrived, or something was decided on it, or came of it."""
    ended: set[Seq] = field(default_factory=set)
    """Which were written whole; a refused or stubbed one, too, since it was logged with its hash."""
    hashes: dict[Seq, bytes] = field(default_factory=dict)
    said: dict[Seq, bytes] = field(default_factory=dict)
    closing: Event | None = None
    rewritten: list[Rewritten] = field(default_factory=list)


def verify_run(
    store: Store,
    run: RunInfo,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    find: Find | None = None,
) -> Verified:
    """Check a run: every event, every exchange, every body, its index. Reads all of it; blocks.

    find: of a run that was indexed anew, gives the keys under the rules that this was done under; None where those are
        not known: then its index is only held against what there is.
    """
    for _ in range(_ATTEMPTS):
        found = _verify(store, run, progress, find)
        if not found.problems or run.status is not RunStatus.OPEN:
            break
        run = store.runs.reload(run)  # it may have been written to between two reads
    return found


def with_archive(here: Verified, there: Verified) -> Verified:
    """Give what was found in a run's copy in the store together with what was found in its archive."""
    return replace(here, problems=(*here.problems, *there.problems))


def _verify(
    store: Store, run: RunInfo, progress: Callable[[int, int], None], find: Find | None
) -> Verified:
    told = _Told()
    held = store.exchanges.seqs(run)  # before the log, which tells of each
    problems = list(_check_log(store, run, told))
    whole = not problems
    if whole and run.status in _CLOSING and not run.is_unrecovered:
        problems += _check_closing(store, run, told)
    index = _Index(store, run, find if run.index else _own_entry)
    unproven = 0
    for seq in held:
        problems += _check_exchange(store, run, seq, told, index, whole=whole)
        unproven += seq not in told.hashes
        progress(seq, run.exchanges)
    # What ended after `held` was read is there.
    lost = {seq for seq in told.ended.difference(held) if not store.exchanges.holds(run, seq)}
    problems += [
        Problem(seq, 0, "it is missing, although the log has its outcome") for seq in sorted(lost)
    ]
    # One of a run that is being recorded may have come since.
    problems += [
        Problem(seq, 0, "the index leads to it, and it is not there")
        for seq in sorted(index.rows.keys() - set(held) - lost)
        if not store.exchanges.holds(run, seq)
    ]
    problems += _check_folder(store, run)
    found = tuple(join_rewrites(told.rewritten))
    return Verified(run, len(held), unproven, tuple(sorted(problems, key=_place)), found)


def _place(problem: Problem) -> tuple[bool, int, int]:
    return (problem.seq == 0, problem.seq, problem.event)


def _check_log(store: Store, run: RunInfo, told: _Told) -> Iterator[Problem]:
    broken = False
    for number, value, problem in store.events.checked(run):
        try:
            event = decode_event(value, number)
        except BadRecord as error:
            yield Problem(0, number, f"event {number}: {problem or error}")
            return
        if problem and not broken:
            broken = True
            text = f"event {number} ({event.kind.value}) does not follow the one before: the log was changed"
            yield Problem(event.seq, number, text)
        if event.kind is EventKind.REWRITTEN:
            yield from _check_rewritten(event, told)
        _note(event, told)


def _check_folder(store: Store, run: RunInfo) -> Iterator[Problem]:
    """Check that what was saved of the working folder can be had back."""
    seen = set[bytes]()
    try:
        for _, files in read_rows(store.folders.rows(run)):
            for path, entry in files.items():
                if entry.digest not in seen:
                    seen.add(entry.digest)
                    yield from _check_content(store, path, entry)
    except (BadRecord, LogCorrupt) as error:
        yield Problem(0, 0, f"its working folder: {error}")


def _check_content(store: Store, path: bytes, entry: FolderEntry) -> Iterator[Problem]:
    try:
        store.folders.read(entry.digest)
    except StoreError as error:
        yield Problem(0, 0, f"its working folder: {show_path(path)}: {error}")


def _check_rewritten(event: Event, told: _Told) -> Iterator[Problem]:
    try:
        check_event(event)
    except BadRecord as error:
        yield Problem(0, event.number, str(error))
        return
    told.rewritten.append(read_rewritten(event))
    for seq in replace_hashes(told.rewritten[-1], told.hashes, told.said):
        text = f"event {event.number} (rewritten) has another hash of before than the log"
        yield Problem(seq, event.number, text)


def _note(event: Event, told: _Told) -> None:
    seq, data = event.seq, event.data
    if event.kind in _TELLING:
        told.known.add(seq)
    if event.kind is EventKind.OUTCOME:
        # Another one says when the client of a served request left; no exchange was written then.
        if "hash" in data or "status" in data:
            told.ended.add(seq)
        if type(data.get("hash")) is bytes:
            told.hashes[seq] = data["hash"]
        if type(data.get("said")) is bytes:
            told.said[seq] = data["said"]
    elif event.kind in _CLOSING.values():
        told.closing = event


def _check_closing(store: Store, run: RunInfo, told: _Told) -> Iterator[Problem]:
    closing = told.closing
    if closing is None or closing.kind is not _CLOSING[run.status]:
        yield Problem(
            0,
            0,
            f"its log does not end as a run does that was {run.status.value}: events are missing",
        )
    elif closing.data.get("exchanges") != run.exchanges:
        text = f"the run list says {run.exchanges} exchanges, its log {closing.data.get('exchanges')!r:.20}"
        yield Problem(0, closing.number, text)
    named = store.runs.find(run.id)
    if named is None or named.number != run.number:
        yield Problem(0, 0, "its name leads elsewhere")


class _Index:
    """The index of a run, to be held against its exchanges."""

    def __init__(self, store: Store, run: RunInfo, find: Find | None) -> None:
        self._store, self._run, self._find = store, run, find
        self.rows: dict[Seq, list[Fingerprint]] = {}
        for seq, fingerprint in store.index.rows(run):
            self.rows.setdefault(seq, []).append(fingerprint)

    def check(self, exchange: Exchange) -> Iterator[Problem]:
        """Find what leads elsewhere than to an exchange, or from elsewhere to it.

        Raises: LogCorrupt.
        """
        seq = exchange.seq
        found = self.rows.get(seq)
        if found is None:
            yield Problem(seq, 0, "the index does not lead to it")
        if self._find is None:
            return
        entry = self._find(exchange)
        if found is not None and found != [entry.fingerprint]:
            yield Problem(seq, 0, "the index has it under the key of another request")
        known = self._store.index.find_fingerprint(self._run, entry.raw)
        if known not in (None, entry.fingerprint):
            yield Problem(seq, 0, "the index leads elsewhere from its bytes")


def _own_entry(exchange: Exchange) -> Entry:
    raw = raw_key(exchange.request, exchange.request_class)
    return Entry(exchange.seq, exchange.fingerprint, raw)


def _check_exchange(
    store: Store, run: RunInfo, seq: Seq, told: _Told, index: _Index, *, whole: bool
) -> Iterator[Problem]:
    try:
        exchange = store.exchanges.find(run, seq)
        if exchange is None:
            yield Problem(seq, 0, "it is missing")
            return
        if exchange.seq != seq:
            yield Problem(seq, 0, f"in its place is exchange {exchange.seq}")
            return
        if seq in told.hashes and content_hash(encode_exchange(exchange)) != told.hashes[seq]:
            yield Problem(seq, 0, "it does not fit the hash that the log has of it")
        elif whole and seq not in told.known:
            yield Problem(seq, 0, "the log does not have it")
        yield from index.check(exchange)
        if not store.file_uses.knows(run, exchange):
            yield Problem(seq, 0, "its large bodies are not among those that `gc` leaves")
        for spilled in exchange.spilled:
            for _ in store.bodies.read(spilled):
                pass
        if seq in told.said and _said(store, run, exchange) != told.said[seq]:
            yield Problem(seq, 0, "its messages do not fit the hash that the log has of them")
        _check_originals(store, run, exchange)
    except LogCorrupt as error:
        yield Problem(seq, 0, str(error))


def _check_originals(store: Store, run: RunInfo, exchange: Exchange) -> None:
    """Read what redaction replaced in an exchange, where the store kept that.

    Raises: LogCorrupt, where it does not fit.
    """
    store.originals.find(run, exchange)
    if exchange.websocket is not None:
        for number, message in enumerate(store.messages.all(run, exchange.seq)):
            if message.secrets:
                store.originals.find_message(run, exchange.seq, number, message)


def _said(store: Store, run: RunInfo, exchange: Exchange) -> bytes:
    told = blake3()
    for message in store.messages.all(run, exchange.seq):
        told.update(encode_message(message))
    return told.digest(HASH_BYTES)


_UNRECOVERED = (
    "its process ended abruptly; the next command that writes to the store, such as `playhead record` or"
    " `playhead gc`, recovers it"
)


def render_verified(found: Sequence[Verified]) -> str:
    """Say of each run whether it is sound, and where first it is not."""
    lines = []
    for one in found:
        count = counted(one.exchanges, "exchange")
        if one.unproven:
            count += f", {one.unproven} without a hash"
        if one.state is State.SOUND:
            lines.append(f"{plain(one.run.id)}: sound, {count}")
            lines += [f"  {render_rewritten(rewritten)}" for rewritten in one.rewritten]
            continue
        if one.state is State.UNRECOVERED:
            lines.append(f"{plain(one.run.id)}: not recovered yet, {count}")
            lines.append(f"  run: {_UNRECOVERED}")
            continue
        first = one.problems[0]
        where = f"first bad seq {first.seq}" if first.seq else "bad"
        lines.append(f"{plain(one.run.id)}: {where}, {count}")
        for problem in one.problems[:_LISTED]:
            place = f"seq {problem.seq}" if problem.seq else "run"
            lines.append(f"  {place}: {plain(problem.text, 500)}")
        if len(one.problems) > _LISTED:
            lines.append(f"  … and {len(one.problems) - _LISTED} more")
        lines.append(f"  hint: {_advise(one)}")
        lines += [f"  {render_rewritten(rewritten)}" for rewritten in one.rewritten]
    return "\n".join(lines) if lines else "no runs"


def _advise(found: Verified) -> str:
    """Say what to do about a damaged run, and whether it can be used until then."""
    of_index = all(problem.text.startswith(_OF_INDEX) for problem in found.problems)
    if of_index and found.run.mode == "record":
        return f"its exchanges are sound, a replay may miss them: make its index anew: playhead reindex {shell_word(found.run.id)}"
    where = "archive" if found.run.archived is not None else "store"
    return (
        f"what it shows or replays proves nothing: restore the {where} from a backup, import the run again from its tape"
        " (`playhead import FILE`), or record it again"
    )


def render_rewritten(one: Rewritten) -> str:
    """Say by which rules a run was rewritten, when, and how much of it."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.at_ns // 10**9))
    names = ", ".join(plain(rule, 80) for rule in one.rules)
    counts = count_rewritten(len(one.exchanges), len(one.events), one.in_folder)
    return f"rewritten by rule {names} at {at}: {counts}"


def count_rewritten(exchanges: int, events: int, files: int) -> str:
    """Say how many exchanges, events and files of the working folder were rewritten."""
    counts = ((exchanges, "exchange"), (events, "event"), (files, "file"))
    said = [counted(count, word) for count, word in counts if count]
    return ", ".join(said) or "its command alone"
