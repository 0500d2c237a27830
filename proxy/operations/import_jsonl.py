"""`playhead import --jsonl`: runs from JSON lines.

Each line goes the way of a recorded request, without the network: its secrets are taken out, its class and its
fingerprint are found under the rules of now, an effect is held against those before it. All of the file becomes
runs, or none of it does.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from ...addons.run.exchange_events import idempotency_key, intent_row, outcome_event
from ...addons.run.pending_exchange import HELD_BYTES
from ...addons.run.repeated_effects import Effect, Effects
from ...config import Config
from ...store import Ingest, Made, Record, RunInfo, RunStatus, Store, StoreError
from ...tape.canonical.canonical_request import (
    CANONICAL_VERSION,
    canonical,
    effect_key,
    fingerprint,
    raw_key,
    rules_of,
)
from ...tape.canonical.spilled_digest import find_boundary
from ...tape.classify.by_body import class_now
from ...tape.classify.by_method_and_url import classes_digest
from ...tape.exchange import (
    IMPORT_RULE,
    IMPORTED,
    NOT_ASKED,
    Chunk,
    RawRequest,
    RawResponse,
    Redaction,
    Request,
    RequestClass,
    Response,
    RunId,
    Secret,
    Seq,
    Spilled,
    VerdictKind,
)
from ...tape.matching.index import index_digest
from ...tape.records.build_exchange import Asked, Outcome, build_exchange
from ...tape.records.events import Event, EventKind
from ...tape.redaction.redact_heads import find_apart, in_order
from ...tape.redaction.redactor import Redactor, redactions_of
from ...timeline.formats.imported_times import Times
from ...timeline.formats.jsonl import MAX_LINE_BYTES, BadLine, ParsedLine, read_line

_PIECE_BYTES = 1 << 20
_MOST = (1 << 63) - 1
_HELD_BYTES = 64 << 20
"""Most bytes of answers that wait for the requests which came before their end."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One run that was imported."""

    run: RunInfo
    redacted: int
    """How many of its exchanges held a secret, which is a placeholder now."""
    name: str
    """Which it should have."""


@dataclass(slots=True)
class _Run:
    """A run on its way in."""

    name: str
    number: int
    redactor: Redactor
    effects: Effects = field(default_factory=Effects)
    seqs: set[int] = field(default_factory=set)
    last: int = 0
    started_ns: int = 0
    ended_ns: int = 0
    redacted: int = 0
    times: Times = field(default_factory=Times)
    waiting: deque[tuple[Seq, ParsedLine]] = field(default_factory=deque)
    """Lines whose requests of meanwhile may yet come, in order."""


class LineImport:
    """Turns lines into runs of a store. Blocks."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest,
        config: Config,
        make_redactor: Callable[[], Redactor],
        default: str,
    ) -> None:
        """Begin with no run.

        make_redactor: makes what takes the secrets out of one run.
        default: name of the run of lines that name none.
        """
        self._store = store
        self._ingest = ingest
        self._config = config
        self._make_redactor = make_redactor
        self._default = default
        self._rules = rules_of(config, time.thread_time)
        self._now_ns = time.time_ns()
        self._runs: dict[str, _Run] = {}
        self._held = 0
        """Bytes of all lines that wait."""

    def take(self, line: bytes) -> None:
        """Take a line.

        Raises: BadLine; StoreError.
        """
        parsed = read_line(line)
        run = self._find(parsed.run or self._default)
        seq = Seq(parsed.seq or run.last + 1)
        if seq > _MOST:
            raise BadLine(f"expected no exchange after seq {_MOST} of run {run.name!r}")
        if seq in run.seqs:
            raise BadLine(
                f"expected a seq of its own, found {seq} again in run {run.name!r} - at `$.seq`"
            )
        run.seqs.add(seq)
        run.last = max(run.last, seq)
        if (parsed.started_ns or self._now_ns) + parsed.end_us * 1000 > _MOST:
            raise BadLine(
                f"expected an end before 2**63 ns, found {parsed.end_us} us after"
                f" {parsed.started_ns or self._now_ns} ns - at `$.end_us`"
            )
        run.times.begin(seq, parsed)
        run.waiting.append((seq, parsed))
        self._held += _size(parsed)
        while run.waiting and run.times.is_known(run.waiting[0][1]):
            self._save_next(run)
        waiting = (one for one in self._runs.values() for _ in tuple(one.waiting))
        while self._held > _HELD_BYTES:
            self._save_next(next(waiting))

    def _save_next(self, run: _Run) -> None:
        seq, parsed = run.waiting.popleft()
        self._held -= _size(parsed)
        self._save(run, seq, run.times.place(seq, parsed))

    def publish(self) -> list[Imported]:
        """End the runs, and put all of them onto the store's list."""
        rows = []
        for run in self._runs.values():
            while run.waiting:
                self._save_next(run)
            closing = {"reason": "imported", "exchanges": run.last, "unfinished": ()}
            self._store.events.append(run.number, Event(EventKind.SEALED, self._now_ns, closing))
            rows.append(
                RunInfo(
                    number=run.number,
                    id=RunId(run.name),
                    mode="record",
                    created_ns=run.started_ns,
                    status=RunStatus.SEALED,
                    sealed_ns=run.ended_ns,
                    exchanges=run.last,
                    agent="imported",
                    end="imported",
                    rules=index_digest(rules_of(self._config), self._config),
                    canonical=CANONICAL_VERSION,
                    made=Made(classes=classes_digest(self._config.classes)),
                )
            )
        made = self._ingest.publish(rows)
        by_number = {run.number: run for run in self._runs.values()}
        return [
            Imported(run, by_number[run.number].redacted, by_number[run.number].name)
            for run in made
        ]

    def _find(self, name: str) -> _Run:
        run = self._runs.get(name)
        if run is None:
            try:
                number = self._ingest.begin(name)
            except StoreError as error:
                raise BadLine(f"{error} - at `$.run`") from error
            run = self._runs[name] = _Run(name, number, self._make_redactor())
            opening = {"id": name, "mode": "record", "parent": None, "agent": "imported"}
            self._store.events.append(number, Event(EventKind.OPENED, self._now_ns, opening))
        return run

    def _save(self, run: _Run, seq: Seq, parsed: ParsedLine) -> None:
        kind = parsed.request_class or class_now(parsed.request, self._config.classes)
        request, response, redactions, warnings = self._without_secrets(run, parsed)
        interim, more = run.redactor.interim(parsed.interim)
        redactions = (*redactions, *more)
        form = canonical(request, kind, self._rules, run.redactor.redacted_query(request))
        repeat = None
        if kind is RequestClass.EFFECT:
            effect = Effect(seq, idempotency_key(request))
            repeat = run.effects.note(effect_key(form), effect)
            whole = parsed.response is not None and parsed.response.complete
            effect.seen = whole and parsed.gone is None and not parsed.withheld
            effect.undone = parsed.fault is not None and parsed.fault.is_unreached
            effect.is_injected = NOT_ASKED in parsed.warnings
        fault = parsed.fault
        if fault is not None:
            fault = replace(fault, text=run.redactor.redact_text(parsed.fault_text))
        started_ns = parsed.started_ns or self._now_ns
        lane = run.times.find_lane(seq, parsed, kind)
        asked = Asked(seq, request, kind, fingerprint(form), started_ns, repeat=repeat, lane=lane)
        outcome = Outcome(
            parsed.end_us,
            response,
            fault,
            parsed.gone,
            interim,
            run.redactor.websocket(parsed.websocket),
            redactions,
            warnings,
            run.redactor.redact_text(parsed.withheld),
        )
        exchange = build_exchange(asked, VerdictKind.RECORDED, IMPORTED, outcome)
        run.redacted += bool(redactions)
        ended_ns = exchange.started_ns + exchange.end_us * 1000
        run.started_ns = min(run.started_ns or exchange.started_ns, exchange.started_ns)
        run.ended_ns = max(run.ended_ns, ended_ns)
        row = intent_row(seq, request, kind, exchange.fingerprint, repeat=repeat)
        intent = Event(EventKind.INTENT, exchange.started_ns, {**row, "rule": IMPORT_RULE})
        self._store.events.append(run.number, intent)
        for number, message in enumerate(parsed.messages):
            kept = run.redactor.message(message)
            kept = replace(kept, secrets=_join(kept.secrets, message.secrets))
            self._ingest.append_message(run.number, seq, number, kept)
        record = Record(exchange, raw_key(request, kind), outcome_event(exchange))
        self._ingest.save(run.number, record)

    def _without_secrets(
        self, run: _Run, parsed: ParsedLine
    ) -> tuple[Request, Response | None, tuple[Redaction, ...], tuple[str, ...]]:
        redactor = run.redactor
        answers = (*parsed.interim, *([parsed.response] if parsed.response is not None else ()))
        told_places = redactor.keep_exported(
            parsed.request, answers, parsed.messages, parsed.replaced
        )
        warnings: tuple[str, ...] = tuple(map(redactor.redact_text, parsed.warnings))
        request, redactions = redactor.head(replace(parsed.request, secrets=()))
        if len(parsed.request.body) > HELD_BYTES:
            spilled, secrets = self._spill(parsed.request.body, (), redactor, parsed.request, None)
            places = (*request.secrets, *secrets)
            request = replace(request, spilled=spilled, secrets=places)
            redactions = (
                *redactions,
                *redactions_of("request.body", (one.kind for one in secrets)),
            )
        else:
            request, more = redactor.request_body(request, parsed.request.body)
            redactions = (*redactions, *more)
        response, came = None, parsed.response
        if came is not None:
            body, chunks, told = came.body, came.chunks, came.secrets
            large = len(body) > HELD_BYTES
            if large:
                came = replace(came, body=b"", chunks=())
            response, more, changed = redactor.response(came)
            redactions, warnings = (*redactions, *more), (*warnings, *changed)
            if large:
                spilled, secrets = self._spill(body, chunks, redactor, parsed.request, came)
                response = replace(response, spilled=spilled, secrets=secrets)
                redactions = (
                    *redactions,
                    *redactions_of("response.body", (one.kind for one in secrets)),
                )
            if response.body_bytes == len(body):
                response = replace(response, secrets=_join(response.secrets, told))
        # What was replaced before it was exported is a placeholder, and reads like no secret.
        if request.body_bytes == len(parsed.request.body):
            request = replace(request, secrets=_join(request.secrets, parsed.request.secrets))
        known = {one.place for one in redactions}
        redactions = (*redactions, *(one for one in told_places if one.place not in known))
        order = {place: at for at, place in enumerate(parsed.replaced)}
        redactions = tuple(sorted(redactions, key=lambda one: order.get(one.place, len(order))))
        return request, response, redactions, warnings

    def _spill(
        self,
        body: bytes,
        chunks: tuple[Chunk, ...],
        redactor: Redactor,
        request: RawRequest,
        response: RawResponse | None,
    ) -> tuple[Spilled, tuple[Secret, ...]]:
        """Keep a body that is too large to be held in an exchange."""
        headers = (response or request).headers
        boundary = find_boundary(headers) if response is None else b""

        async def keep() -> tuple[Spilled, tuple[Secret, ...]]:
            spool = self._store.bodies.spool(
                boundary,
                pieces=response is not None,
                redact=lambda: redactor.stream(headers, answer=response is not None),
            )
            try:
                at = 0
                for chunk in chunks or _pieces(len(body)):
                    spool.write(body[at : at + chunk.size], chunk)
                    at += chunk.size
                    await spool.settle(_PIECE_BYTES)
                kept = await spool.keep()
                return kept, spool.secrets
            finally:
                spool.drop()

        return asyncio.run(keep())


def _size(parsed: ParsedLine) -> int:
    answer = len(parsed.response.body) if parsed.response is not None else 0
    return len(parsed.request.body) + answer + sum(len(one.data) for one in parsed.messages)


def _join(found: Iterable[Secret], told: Iterable[Secret]) -> tuple[Secret, ...]:
    """Give the places that were found and those that the line has, each once; of the same place what the line says of it."""
    told = tuple(told)
    known = {one[:3]: one for one in told}
    found = tuple(known.get(one[:3], one) for one in found)
    more = find_apart(told, found)
    return tuple(in_order((*found, *more)))


def _pieces(size: int) -> Iterator[Chunk]:
    for at in range(0, size, _PIECE_BYTES):
        yield Chunk(0, min(_PIECE_BYTES, size - at))


def import_lines(
    file: BinaryIO,
    into: LineImport,
    progress: Callable[[int], None],
) -> list[Imported]:
    """Import all lines of a file.

    progress: called with how many bytes have been read.
    Raises: StoreError, naming the line that cannot be read; nothing was imported then.
    """
    done = number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        done += len(line)
        try:
            if len(line) > MAX_LINE_BYTES:
                raise BadLine(
                    f"expected a line of at most {MAX_LINE_BYTES} bytes, found a longer one"
                )
            if line.strip():
                into.take(line)
        except BadLine as error:
            raise StoreError(
                f"line {number}: {error}",
                "nothing was imported; see docs/import.md for the keys of a line",
            ) from error
        progress(done)
    made = into.publish()
    if not made:
        raise StoreError("no exchanges in the file", "see docs/import.md for the keys of a line")
    return made
