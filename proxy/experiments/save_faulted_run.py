"""Keep a run that has met faults as a recording: what its agent was answered, and when, as if the services had answered so.

`playhead replay` gives it again, without the faults being laid, and without what was live being asked.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...addons.run.exchange_events import idempotency_key, intent_row, outcome_event
from ...addons.run.repeated_effects import Effect, Effects
from ...config import Config
from ...store import Made, Record, RunInfo, RunStatus, Store
from ...tape.canonical.canonical_request import (
    CANONICAL_VERSION,
    Rules,
    canonical,
    effect_key,
    fingerprint,
    raw_key,
    rules_of,
)
from ...tape.classify.by_method_and_url import classes_digest
from ...tape.exchange import (
    NO_TEXT,
    NOT_ASKED,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    RequestClass,
    Response,
    RunId,
    Seq,
    VerdictKind,
)
from ...tape.faults.kinds import find_kind
from ...tape.matching.index import index_digest
from ...tape.records.events import EXPLORED, Event, EventKind
from ...tape.schedules.remaining_faults import RunningSchedule
from ...tape.schedules.scheduled_fault import SHARES, FaultWord, Schedule, ScheduledFault
from ...timeline.reading.placeholder_key import find_key
from ...timeline.state.calls_before import Exchanges
from ..errors import EngineError

_REASON = "kept of a run that met faults on purpose"
_MOST_NAMES = 1000
_MARGIN_US = 1_000_000
"""So much after its client had left a late answer came."""


class _Kept(NamedTuple):
    """An exchange of a run as its agent saw it, and the seq of the tape that answered it."""

    exchange: Exchange
    tape_seq: Seq | None


def keep_tape(
    store: Store, run: RunInfo, config: Config, schedule: Schedule, late_s: float, name: str
) -> RunInfo:
    """Keep a run under a name; give the recording. Blocking.

    late_s: how late a late answer was.
    Raises: LogCorrupt; StoreError.
    """
    now_ns, rules = time.time_ns(), rules_of(config, time.thread_time)
    tape = store.runs.find_tape(run)
    key = find_key(store, tape) if tape is not None else ""
    kept = list(_read_kept(store, run, tape, (schedule, late_s))) if tape is not None else []
    last = max((one.exchange.seq for one in kept), default=0)
    with store.ingest() as ingest:
        number = ingest.begin(name)

        def append(kind: EventKind, data: Mapping[str, Any], at_ns: int = now_ns) -> None:
            store.events.append(number, Event(kind, at_ns, dict(data)))

        opening = {"id": name, "mode": "record", "parent": None, "agent": EXPLORED}
        append(EventKind.OPENED, {**opening, "placeholders": key})
        effects = Effects()
        for group in _group(kept, schedule):
            made = [_index(one, rules, effects) for one in group]
            for one in made:
                row = intent_row(
                    one.seq, one.request, one.request_class, one.fingerprint, repeat=one.repeat
                )
                append(EventKind.INTENT, {**row, "rule": EXPLORED}, one.started_ns)
            for one in _sort_ends(made, kept, schedule):
                record = Record(one, raw_key(one.request, one.request_class), outcome_event(one))
                ingest.save(number, record)
        for event in store.events.of_kind(run, EventKind.NOTED):
            told = {one: event.data[one] for one in ("child_exit", "command") if one in event.data}
            if told:
                append(EventKind.NOTED, told)
        text = "; ".join(fault.text for fault in schedule)
        append(EventKind.NOTED, {"text": f"kept of {run.id}, which met faults on purpose: {text}"})
        append(EventKind.SEALED, {"reason": EXPLORED, "exchanges": last, "unfinished": ()})
        info = RunInfo(
            number=number,
            id=RunId(name),
            mode="record",
            created_ns=now_ns,
            status=RunStatus.SEALED,
            sealed_ns=now_ns,
            exchanges=last,
            agent=EXPLORED,
            end=EXPLORED,
            rules=index_digest(rules, config),
            canonical=CANONICAL_VERSION,
            made=Made(classes=classes_digest(config.classes)),
        )
        (published,) = ingest.publish([info])
    return published


def keep_schedule(name: str, text: str) -> Path:
    """Keep a schedule as a file that is named after its tape; give its path. What is there, a link too, is never written over.

    A file that says the same already is that file.
    Raises: EngineError, where it cannot be written.
    """
    base = name.replace("/", "-")
    names = chain([base], (f"{base}~{number}" for number in range(2, _MOST_NAMES)))
    for path in (Path(f"{one}.yaml") for one in names):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            with suppress(OSError):
                if path.is_file() and path.read_bytes() == text.encode():
                    return path
        except OSError as error:
            raise EngineError(
                f"{path} cannot be written: {error.strerror}", "its faults are those of the tape"
            ) from error
    raise EngineError(f"{base}.yaml is taken, and so are {_MOST_NAMES - 2} names like it", "")


def _index(exchange: Exchange, rules: Rules, effects: Effects) -> Exchange:
    """Give an exchange with what it is found by, and which effect it repeats."""
    kind = exchange.request_class
    form = canonical(exchange.request, kind, rules)
    repeat = None
    if kind is RequestClass.EFFECT:
        effect = Effect(exchange.seq, idempotency_key(exchange.request))
        repeat = effects.note(effect_key(form), effect)
        effect.seen = exchange.gone is None and exchange.fault is None
        effect.undone = exchange.is_unsent
        effect.is_injected = exchange.is_injected
    return replace(exchange, fingerprint=fingerprint(form), repeat=repeat)


def _read_kept(
    store: Store, run: RunInfo, tape: RunInfo, met: tuple[Schedule, float]
) -> Iterator[_Kept]:
    schedule, late_s = met
    tape_seqs, gone = dict[int, Seq](), dict[int, int]()
    for event in store.events.all(run):
        if event.kind is EventKind.VERDICT and "tape_seq" in event.data:
            tape_seqs[event.seq] = Seq(event.data["tape_seq"])
        elif event.kind is EventKind.OUTCOME and "gone_us" in event.data:
            head, _ = event.data.get("taken", (1, 0))
            if not head:
                gone[event.seq] = int(event.data["gone_us"])
    faults = {fault.seq: fault for fault in schedule}
    exchanges = Exchanges(store, run)
    for seq in exchanges.seqs:
        exchange = exchanges.find(seq)
        if exchange is None or exchange.request_class is RequestClass.TELEMETRY:
            continue
        tape_seq = tape_seqs.get(seq)
        fault = faults.pop(tape_seq, None) if tape_seq is not None else None
        made = replace(
            exchange, seq=Seq(seq), verdict=VerdictKind.RECORDED, reason=_REASON, withheld=NO_TEXT
        )
        if fault is not None and tape_seq is not None:
            other = store.exchanges.find(tape, fault.other) if fault.other is not None else None
            made = _lay(made, fault, late_s, other)
        if seq in gone:
            made = _leave(made, gone[seq])
        yield _Kept(made, tape_seq)


def _lay(
    exchange: Exchange, fault: ScheduledFault, late_s: float, other: Exchange | None
) -> Exchange:
    """Give an exchange as its agent saw it that met a fault."""
    response = exchange.response
    if response is None:
        return exchange
    if fault.word is FaultWord.CUT:
        size = max(1, len(response.body) * fault.share // SHARES)
        cut = replace(response, body=response.body[:size], chunks=(), complete=False)
        text = RedactedText(fault.text)
        failed = Fault(FaultKind.CUT, Phase.BODY, text, exchange.end_us, Ending.RST)
        return replace(exchange, response=cut, fault=failed, gone=None)
    if fault.word is FaultWord.DUPLICATE and other is not None:
        return replace(exchange, response=other.response)
    if fault.word is FaultWord.THROTTLE:
        return replace(
            exchange,
            response=_throttle(exchange, fault),
            gone=None,
            warnings=(*exchange.warnings, NOT_ASKED),
        )
    return _delay(exchange, _find_delay_us(exchange, fault, late_s))


def _find_delay_us(exchange: Exchange, fault: ScheduledFault, late_s: float) -> int:
    """Give how much later its answer came, in microseconds."""
    met = RunningSchedule((fault,), late_s).take(replace(exchange, seq=fault.seq))
    injection = met.injection if met is not None else None
    return int(injection.rule.delay_s * 1e6) if injection is not None else 0


def _delay(exchange: Exchange, delay_us: int) -> Exchange:
    response = exchange.response
    if response is None or not delay_us:
        return exchange
    chunks = tuple(chunk._replace(at_us=chunk.at_us + delay_us) for chunk in response.chunks)
    response = replace(response, head_us=response.head_us + delay_us, chunks=chunks)
    return replace(exchange, response=response, end_us=exchange.end_us + delay_us)


def _throttle(exchange: Exchange, fault: ScheduledFault) -> Response | None:
    met = RunningSchedule((fault,)).take(replace(exchange, seq=fault.seq))
    injection = met.injection if met is not None else None
    made = find_kind(injection).make_answer(exchange.request, injection) if injection else None
    if made is None:
        return exchange.response
    status, headers, body = made
    return Response(status, b"", "HTTP/1.1", headers, body, exchange.end_us)


def _leave(exchange: Exchange, gone_us: int) -> Exchange:
    """Give an exchange whose client left before its answer came: when its fault had it come, or at some time after that."""
    response, late_us = exchange.response, gone_us + _MARGIN_US
    if response is not None:
        late_us = response.head_us if response.head_us > gone_us else late_us
        chunks = tuple(chunk._replace(at_us=late_us) for chunk in response.chunks)
        response = replace(response, head_us=late_us, chunks=chunks)
    return replace(
        exchange, response=response, gone=Gone(gone_us, 0, head=False), end_us=late_us + _MARGIN_US
    )


def _group(kept: Sequence[_Kept], schedule: Schedule) -> Iterator[list[Exchange]]:
    """Give the exchanges one by one, and together those that were under way at the same time and changed places."""
    ends: dict[int, int] = {}
    for first, last in _find_swapped(kept, schedule):
        begin, end = min(first, last), max(first, last)
        ends[begin] = max(end, ends.get(begin, end))
    at = 0
    while at < len(kept):
        end = ends.get(at, at)
        yield [one.exchange for one in kept[at : end + 1]]
        at = end + 1


def _sort_ends(
    made: Sequence[Exchange], kept: Sequence[_Kept], schedule: Schedule
) -> list[Exchange]:
    """Give exchanges that overlapped in the order in which they were answered."""
    late = {kept[first].exchange.seq for first, _ in _find_swapped(kept, schedule)}
    return sorted(made, key=lambda one: (one.seq in late, one.seq))


def _find_swapped(kept: Sequence[_Kept], schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Give the places of two exchanges of which the first was answered after the second."""
    places = {one.tape_seq: at for at, one in enumerate(kept)}
    for fault in schedule:
        first, second = places.get(fault.seq), places.get(fault.other)
        if fault.word is FaultWord.REORDER and first is not None and second is not None:
            yield first, second
