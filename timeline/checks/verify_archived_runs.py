"""Verify archived runs in their archive: every byte of the files of their batch, then what the records of each run say.

Nothing is restored. The files fit the hashes that their batch was sealed with, the events end in the hash in which the run
ended, and each exchange, its messages and its large bodies fit the hashes that the log has of them.
"""

from collections.abc import Callable, Iterator, Sequence

from blake3 import blake3

from ...store import RunInfo, StoreError
from ...store.archive.reading import BatchReader
from ...store.archive.storage import Place
from ...tape.exchange import Exchange
from ...tape.records.check_event_fields import check_event
from ...tape.records.codec import BadRecord, decode_exchange, encode_exchange
from ...tape.records.events import HASH_BYTES, EventKind, content_hash, decode_event
from ...tape.records.rewrite_tombstones import (
    Rewritten,
    join_rewrites,
    read_rewritten,
    replace_hashes,
)
from ...tape.records.tape_file import Kind, Record
from .integrity import Problem, Verified

_KEY_BYTES = 16
"""Of a message's record: its exchange and its number, before the message."""


def verify_batch(
    place: Place, name: str, runs: Sequence[RunInfo], progress: Callable[[int, int], None]
) -> list[Verified]:
    """Check a batch and those of its runs that are given. Reads all of its files; blocks."""
    try:
        with BatchReader(place, name) as batch:
            batch.check_files()
            return [_verify_run(batch, run, progress) for run in runs]
    except StoreError as error:
        problem = Problem(0, 0, f"its archive: {error}")
        return [Verified(run, run.exchanges, 0, (problem,)) for run in runs]


def _verify_run(batch: BatchReader, run: RunInfo, progress: Callable[[int, int], None]) -> Verified:
    assert run.archived is not None
    check = _RunCheck()
    problems: list[Problem] = []
    try:
        for record in batch.records(run.archived.id):
            problems += check.take(record)
            progress(check.exchanges, run.exchanges)
        problems += check.end()
    except (StoreError, BadRecord) as error:
        problems.append(Problem(0, 0, f"its archive: {error}"))
    if not problems and check.events != run.archived.events:
        text = f"its archive has {check.events} of its events; expected {run.archived.events}"
        problems.append(Problem(0, 0, text))
    rewritten = tuple(join_rewrites(check.rewritten))
    return Verified(run, check.exchanges, check.unproven, tuple(problems), rewritten)


class _RunCheck:
    """Compares the records of one run, in order, with the hashes in its log."""

    def __init__(self) -> None:
        self.events = 0
        self.exchanges = 0
        self.unproven = 0
        self.rewritten: list[Rewritten] = []
        self._hashes: dict[int, bytes] = {}
        self._said: dict[int, bytes] = {}
        self._ended: set[int] = set()
        self._body: tuple[Record, blake3] | None = None
        self._messages: tuple[int, blake3] = (0, blake3())

    def take(self, record: Record) -> Iterator[Problem]:
        """Check the next record.

        Raises: BadRecord.
        """
        if record.kind is Kind.PIECE and self._body is not None:
            self._body[1].update(record.data)
            return
        yield from self._end_body()
        if record.kind in (Kind.BODY, Kind.CONTENT):
            self._body = (record, blake3())
        elif record.kind is Kind.EVENT:
            self._note(record.data)
        elif record.kind is Kind.EXCHANGE:
            yield from self._end_messages()
            yield from self._check(decode_exchange(record.data))
        elif record.kind is Kind.MESSAGE:
            self._messages[1].update(record.data[_KEY_BYTES:])

    def end(self) -> Iterator[Problem]:
        """Check what all records together say."""
        yield from self._end_body()
        yield from self._end_messages()
        for seq in sorted(self._ended):
            yield Problem(seq, 0, "it is missing in its archive: the log contains its outcome")

    def _note(self, data: bytes) -> None:
        self.events += 1
        event = decode_event(data, self.events)
        if event.kind is EventKind.REWRITTEN:
            check_event(event)
            self.rewritten.append(read_rewritten(event))
            replace_hashes(self.rewritten[-1], self._hashes, self._said)
        if event.kind is not EventKind.OUTCOME:
            return
        if "hash" in event.data or "status" in event.data:
            self._ended.add(event.seq)
        for key, found in (("hash", self._hashes), ("said", self._said)):
            if type(event.data.get(key)) is bytes:
                found[event.seq] = event.data[key]

    def _check(self, exchange: Exchange) -> Iterator[Problem]:
        seq = exchange.seq
        self.exchanges += 1
        self._ended.discard(seq)
        self._messages = (seq, blake3())
        expected = self._hashes.get(seq)
        self.unproven += expected is None
        if expected not in (None, content_hash(encode_exchange(exchange))):
            yield Problem(seq, 0, "in its archive it does not fit the hash that the log has of it")

    def _end_messages(self) -> Iterator[Problem]:
        seq, found = self._messages
        expected = self._said.get(seq)
        if expected not in (None, found.digest(HASH_BYTES)):
            yield Problem(seq, 0, "its messages in the archive do not fit the hash in the log")

    def _end_body(self) -> Iterator[Problem]:
        body, self._body = self._body, None
        if body is not None and body[1].digest() != body[0].data:
            what = f"{body[0].kind.name.lower()} {body[0].data.hex()}"
            yield Problem(0, 0, f"the {what} in its archive does not fit its hash")
