"""What a page has to know of a whole run: where each exchange is in time, what it was, and its steps.

It is filled in two passes, both of which can be gone on with while a run is recorded. `read_log` reads the log alone, which takes
microseconds an exchange: with it the strip can be drawn and scrubbed. `read_steps` reads the exchanges, as `playhead show` does: with
it lanes, tool calls and texts are known. What is kept of an exchange are a few numbers and its steps, compressed.

Time is counted in *active* microseconds: where nothing was under way for longer than `IDLE_US`, a *gap* is counted instead. A request is
under way from its arrival until its outcome, also while a gate holds it; what is only decided on, as an answer from a tape, is not. One that
has no outcome after `LONG_NS`, as a stream that stays open for a whole run, makes nothing else busy.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import IntFlag
from itertools import islice
from typing import Any

from ...store import RunInfo, RunStatus, Store
from ...tape.policy.approval_decision import Ruling
from ...tape.records.events import Event, EventKind
from ...timeline.reading.settle_repeated_effect import Repeats
from ...timeline.reading.substituted_answer import FROM_TAPE, NEVER_SENT
from ...timeline.receipts.effects import Ledger
from ...timeline.show.steps_json import step_json
from ...timeline.steps.before_effects import EffectFinder
from ...timeline.steps.read_run import RunReader
from ...timeline.steps.step import Step, StepKind
from ...timeline.steps.tracer import Price
from .compressed_steps import StepPages

IDLE_US = 5_000_000
EFFECTS = 1000
"""Whose results are known, the first."""
LONG_NS = 600 * 1_000_000_000
KINDS = ("http", "model call", "mcp", "retrieval", "telemetry", "tool call")
"""What an exchange was: its place in this list is what is kept. A model call that wants a tool called is a `tool call`."""
_BY_CLASS = {"inference": 1, "telemetry": 4}
_EXCHANGE = (StepKind.MODEL_CALL, StepKind.RETRIEVAL, StepKind.HTTP, StepKind.MCP)
_TEXT = 300
"""Characters of the name of an effect, and of a note, that are kept."""
_TOLD, _DIVERGED = 2000, 2000
"""Most that is kept of notes, and of divergences."""


class Mark(IntFlag):
    """What is to be seen of an exchange at first sight."""

    EFFECT = 1
    FAILED = 2
    DUPLICATE = 4
    HELD = 8
    REFUSED = 16
    OPEN = 32
    """It has no outcome."""
    DIVERGED = 64
    NOTE = 128


@dataclass(slots=True)
class Gap:
    """A time in which nothing was under way."""

    position: int
    """Of the exchange behind it."""
    active_us: int
    """Where it is in active time."""
    length_us: int


@dataclass(slots=True)
class RunIndex:
    """A run by position: its first exchange is at 0."""

    store: Store
    info: RunInfo
    price: Price | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    seqs: "array[int]" = field(default_factory=lambda: array("Q"))
    kinds: bytearray = field(default_factory=bytearray)
    marks: "array[int]" = field(default_factory=lambda: array("H"))
    lanes: "array[int]" = field(default_factory=lambda: array("H"))
    active: "array[int]" = field(default_factory=lambda: array("q"))
    """When each began, in active microseconds since the first."""
    took: "array[int]" = field(default_factory=lambda: array("q"))
    """Microseconds; -1 where that is not known."""
    folds: "array[int]" = field(default_factory=lambda: array("L"))
    """How many gaps came before."""
    gaps: list[Gap] = field(default_factory=list)
    effects: dict[int, str] = field(default_factory=dict)
    """Method and URL of each effect, by position."""
    told: dict[int, list[str]] = field(default_factory=dict)
    """What people noted and what is missing, by position; at -1 what is about the whole run."""
    divergences: dict[int, list[Any]] = field(default_factory=dict)
    """Divergences as the log has them, by position: the first ones."""
    pages: StepPages = field(default_factory=StepPages)
    step_count: int = 0
    """Of the steps that have been read."""
    complete: bool = False
    """Whether the steps of all exchanges have been read, and the run has ended."""
    _log: "_LogReader" = field(init=False)
    _steps: "_StepReader" = field(init=False)

    def __post_init__(self) -> None:
        self._log = _LogReader(self)
        self._steps = _StepReader(self)

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def stepped(self) -> int:
        """How many exchanges have their steps."""
        return len(self.pages)

    @property
    def logged(self) -> bool:
        """Whether the log has been read, as far as it went then."""
        return self._log.at_end

    @property
    def revision(self) -> int:
        """Number of the last event that was read: what is shown of a run is out of date once it is another."""
        return self._log.event

    @property
    def spans(self) -> "array[int]":
        """Active microseconds of each from its arrival to its end in this run, as the log has them; -1 while it is under way.

        What a tape answered has none, whatever time it took when it was recorded.
        """
        return self._log.spans

    @property
    def ledger(self) -> Ledger:
        """The first effects, as far as the log has been read."""
        return self._log.ledger

    @property
    def reader(self) -> RunReader:
        """What reads the steps: it knows the lanes and the programs so far."""
        return self._steps.reader

    @property
    def began_ns(self) -> int:
        """When the first exchange began."""
        return self._log.began_ns

    @property
    def ended_ns(self) -> int:
        """When the last outcome was known, as far as was read."""
        return self._log.end_ns

    @property
    def active_us(self) -> int:
        """Active time of the run, gaps left out."""
        return self._log.active_end

    def read_log(self, most: int) -> bool:
        """Read on in the log; give whether there may be more.

        most: events that are read.
        Raises: LogCorrupt.
        """
        with self.lock:
            return self._log.read(most)

    def read_steps(self, most: int) -> bool:
        """Read the steps of further exchanges; give whether there may be more. The log has to be read before.

        Raises: LogCorrupt.
        """
        with self.lock:
            return self._steps.read(most)

    def read_steps_again(self) -> None:
        """Begin to read the steps from the first exchange on: one came in between."""
        self.pages, self.step_count = StepPages(), 0
        self.complete = False
        self._steps = _StepReader(self)

    def before_effect(self, seq: int) -> int | None:
        """Give the model call before an effect, as `rewind` does; None where none came before it, or it was not read yet."""
        return self._steps.before.get(seq)

    def is_being_read_by(self, reader: "_StepReader") -> bool:
        """Say whether a reader of steps still is the one that fills this."""
        return self._steps is reader

    def position_of(self, seq: int) -> int | None:
        """Find the position of a seq; None where the run does not have it."""
        at = bisect_left(self.seqs, seq)
        return at if at < len(self.seqs) and self.seqs[at] == seq else None

    def nearest(self, seq: int) -> int:
        """Give the position of the exchange at a seq, or the next one behind it, or the last one."""
        return min(bisect_left(self.seqs, seq), max(0, len(self.seqs) - 1))

    def at_active(self, active_us: float) -> int:
        """Give the position of the last exchange that had begun at an active time."""
        return max(0, bisect_right(self.active, active_us) - 1)

    def kind_of(self, position: int) -> str:
        """Say what an exchange was."""
        return KINDS[self.kinds[position]]


class _LogReader:
    """Fills the numbers from the events of a log."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self.event = 0
        """Number of the last event that was read."""
        self.spans = array("q")
        self._clock_ns = 0
        """Until when time was counted: `active_end` is the active time then."""
        self._under_way: dict[int, int] = {}
        """When each request arrived that has no end yet, by seq."""
        self._held: set[int] = set()
        """Those of them that a gate holds."""
        self._repeats = Repeats()
        self.ledger = Ledger(index.info.mode, EFFECTS)
        self.began_ns = 0
        self.end_ns = 0
        self.active_end = 0
        self.at_end = False

    def read(self, most: int) -> bool:
        index = self._index
        while most > 0:
            page = index.store.events.read(index.info, self.event, min(most, 2000))
            if not page:
                self._add_unlogged()
                self.at_end = True
                return False
            for event in page:
                self._take(event)
            self.event = page[-1].number
            most -= len(page)
        return True

    def _add_unlogged(self) -> None:
        """Add exchanges of which no event tells that they arrived, as of some imported tapes."""
        index = self._index
        after = index.seqs[-1] if len(index) else 0
        if len(index) or not index.info.exchanges:
            return
        for seq in index.store.exchanges.seqs(index.info, after):
            exchange = index.store.exchanges.find(index.info, seq)
            if exchange is None:
                continue
            asked = {
                "request_class": exchange.request_class.value,
                "method": exchange.request.method,
                "url": exchange.request.url,
            }
            self._arrive(seq, exchange.started_ns, asked)
            index.took[-1] = exchange.end_us
            status = exchange.response.status if exchange.response is not None else 0
            self._end(len(index) - 1, exchange.end_us, status)
            self._finish(seq, exchange.started_ns + 1000 * exchange.end_us)

    def _take(self, event: Event) -> None:
        index, data = self._index, event.data
        self.ledger.take(event)
        for seq in self._repeats.take(event):
            self._judge_repeat(seq)
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            self._arrive(event.seq, event.at_ns, data)
            if event.kind is EventKind.VERDICT:
                self._finish(event.seq, event.at_ns)
            position = index.position_of(event.seq)
            if position is not None and position < index.stepped and not index.pages.get(position):
                index.read_steps_again()  # it was held while later ones were read
            return
        if event.kind is EventKind.HELD and index.position_of(event.seq) is None:
            # What is decided on it comes behind later requests; until then it is no effect.
            self._arrive(event.seq, event.at_ns, {**data, "request_class": "held"})
        if event.kind is EventKind.ANNOTATED:
            at = index.position_of(event.seq) if event.seq else -1
            self._tell(at, f"note by {data['by']}: {data['text']}")
            return
        if event.kind is EventKind.GAP and data["until_ns"]:  # its begin is a step
            self._tell(len(index) - 1, f"not recorded until then: {data['reason']}")
            return
        if not event.seq:
            return
        position = index.position_of(event.seq)
        if position is None:
            return
        if event.kind is EventKind.OUTCOME:
            began_ns = self._under_way.get(event.seq)
            ended_ns = event.at_ns
            if "end_us" in data:
                self._end(position, data["end_us"], data.get("status", 0))
                if began_ns is not None:
                    ended_ns = began_ns + 1000 * data["end_us"]
            self._finish(event.seq, ended_ns)
            if "end_us" in data:
                if "fault" in data:
                    index.marks[position] |= Mark.FAILED
            elif position < index.stepped:
                self._read_end(position)
            index.marks[position] &= ~Mark.OPEN
        elif event.kind in (EventKind.HELD, EventKind.RULED):
            index.marks[position] |= Mark.HELD
            self._pass(event.at_ns)
            if event.kind is EventKind.HELD:
                self._held.add(event.seq)
            else:
                self._held.discard(event.seq)
            if event.kind is EventKind.RULED and data["ruling"] != Ruling.APPROVED.value:
                self._finish(event.seq, event.at_ns)
        elif event.kind is EventKind.DIVERGED:
            index.marks[position] |= Mark.DIVERGED
            if len(index.divergences) < _DIVERGED:
                index.divergences.setdefault(position, []).append(data["divergence"])

    def _tell(self, position: int | None, text: str) -> None:
        told = self._index.told
        if position is not None and len(told) < _TOLD:
            told.setdefault(position, []).append(text[:_TEXT])

    def _arrive(self, seq: int, at_ns: int, data: Any) -> None:
        index = self._index
        known = index.position_of(seq)
        if known is not None:
            self._judge(known, data)
            return
        idle_us = (at_ns - self._clock_ns) // 1000 if self._clock_ns else 0
        is_idle = idle_us > IDLE_US and not self._is_busy(at_ns)
        self._under_way[seq] = at_ns
        if len(index) and seq < index.seqs[-1]:
            self._insert(bisect_left(index.seqs, seq), seq, data)
            return
        self.began_ns = self.began_ns or at_ns
        self._clock_ns = self._clock_ns or at_ns
        if is_idle:
            index.gaps.append(Gap(len(index), self.active_end, idle_us))
            self._clock_ns = at_ns
        self._pass(at_ns)
        # One that began before the end of another may be told of behind it; but none is before those that are listed before it.
        active = max(self._find_active(at_ns), index.active[-1] if len(index) else 0)
        if index.gaps:
            active = max(active, index.gaps[-1].active_us)
        index.seqs.append(seq)
        index.kinds.append(_BY_CLASS.get(data["request_class"], 0))
        index.marks.append(Mark.OPEN)
        index.lanes.append(0)
        index.active.append(active)
        index.took.append(-1)
        self.spans.append(-1)
        index.folds.append(len(index.gaps))
        self._judge(len(index) - 1, data)

    def _insert(self, at: int, seq: int, data: Any) -> None:
        """Put in an exchange of which the log tells behind later ones: it was held, or a crash left it. It is where the next one is."""
        index = self._index
        index.seqs.insert(at, seq)
        index.kinds.insert(at, _BY_CLASS.get(data["request_class"], 0))
        index.marks.insert(at, Mark.OPEN)
        index.lanes.insert(at, 0)
        index.active.insert(at, index.active[at])
        index.took.insert(at, -1)
        self.spans.insert(at, -1)
        index.folds.insert(at, index.folds[at])
        for gap in index.gaps:
            gap.position += gap.position > at
        index.effects = {one + (one >= at): text for one, text in index.effects.items()}
        index.told = {one + (one >= at): texts for one, texts in index.told.items()}
        index.divergences = {one + (one >= at): rows for one, rows in index.divergences.items()}
        if at < index.stepped:
            index.read_steps_again()
        self._judge(at, data)

    def _judge(self, position: int, data: Any) -> None:
        index = self._index
        if data["request_class"] == "effect":
            index.marks[position] |= Mark.EFFECT
            index.effects[position] = f"{data['method']} {data['url']}"[:_TEXT]
        self._judge_repeat(index.seqs[position])
        if data.get("verdict") in ("refused", "stubbed"):
            index.marks[position] |= Mark.REFUSED
            index.marks[position] &= ~Mark.OPEN

    def _judge_repeat(self, seq: int) -> None:
        index, repeat = self._index, self._repeats.find(seq)
        position = index.position_of(seq)
        if position is None:
            return
        if repeat is not None and repeat.is_duplicate:
            index.marks[position] |= Mark.DUPLICATE
        else:
            index.marks[position] &= ~Mark.DUPLICATE

    def _read_end(self, position: int) -> None:
        """Read when an exchange ended that was kept before, as a stream whose client has gone since."""
        index = self._index
        exchange = index.store.exchanges.find(index.info, index.seqs[position])
        if exchange is not None:
            index.took[position] = exchange.end_us

    def _pass(self, at_ns: int) -> None:
        """Count time up to a moment at which something was under way."""
        behind_us = (at_ns - self._clock_ns) // 1000
        if behind_us > 0:
            self._clock_ns += behind_us * 1000
            self.active_end += behind_us
        self.end_ns = max(self.end_ns, at_ns)

    def _find_active(self, at_ns: int) -> int:
        """Give the active time of a moment up to which time was counted."""
        return self.active_end - max(0, (self._clock_ns - at_ns) // 1000)

    def _is_busy(self, at_ns: int) -> bool:
        """Say whether something was under way until a moment."""
        return bool(self._held) or any(
            at_ns - began_ns <= LONG_NS for began_ns in self._under_way.values()
        )

    def _finish(self, seq: int, at_ns: int) -> None:
        """Count that an exchange ended."""
        began_ns = self._under_way.pop(seq, None)
        position = self._index.position_of(seq)
        if position is None:
            return
        if began_ns is not None:
            self._pass(at_ns)
            ended = self._find_active(at_ns)
            self.spans[position] = max(0, ended - self._index.active[position])

    def _end(self, position: int, end_us: int, status: int) -> None:
        index = self._index
        index.took[position] = end_us
        if status >= 400 or not status:
            index.marks[position] |= Mark.FAILED


class _StepReader:
    """Fills lanes and steps from the exchanges."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self.reader = RunReader(index.store, index.info, index.price)
        self._reading: Iterator[Step] | None = None
        self._steps: list[Step] = []
        """Of the exchange that is being read."""
        self._finder = EffectFinder()
        self.before: dict[int, int] = {}
        """The model call before each effect."""

    def read(self, most: int) -> bool:
        index = self._index
        if index.complete:
            return False
        if self._reading is None:
            index.info = index.store.runs.reload(index.info)
            self._ended = index.info.status is not RunStatus.OPEN
            self.reader.info = index.info
            self._reading = self.reader.read(end=self._ended)
        begun = index.stepped
        for step in self._reading:
            if self._steps and step.seq != self._steps[0].seq:
                self._flush()
                if not index.is_being_read_by(self):
                    return True
            self._steps.append(step)
            if index.stepped - begun >= most:
                return True
        self._flush()
        self._reading = None
        if self._ended and index.is_being_read_by(self):
            self._read_log()  # its outcomes may have come since the log was read
        if not index.is_being_read_by(self):
            return True
        if self._ended:
            while index.stepped < len(index):
                index.pages.append([])
            index.complete = True
        return False

    def _flush(self) -> None:
        index, steps = self._index, self._steps
        self._steps = []
        if not steps:
            return
        seq = steps[0].seq
        if not len(index) or index.position_of(seq) is None:  # it arrived since the log was read
            self._read_log()
            if not index.is_being_read_by(self):
                return
        position = index.position_of(seq) if seq else 0
        if position is None or not len(index):
            return
        for step in steps:
            found = self._finder.take(step)
            if found is not None and found.seq is not None:
                self.before.setdefault(found.effect, found.seq)
        told = [step_json(step) for step in steps]
        index.step_count += len(told)
        if position < index.stepped:
            index.pages.extend(position, told)
        else:
            while index.stepped < position:
                index.pages.append([])
            index.pages.append(told)
        for step in steps:
            self._note(position, step)

    def _read_log(self) -> None:
        while self._index.read_log(2000):
            pass

    def _note(self, position: int, step: Step) -> None:
        index = self._index
        if step.lane:
            index.lanes[position] = min(step.lane, 0xFFFF)
        if step.kind in _EXCHANGE:
            if step.timing is not None and not step.part:  # its log may have an earlier end
                index.took[position] = step.timing.took_us
            index.kinds[position] = KINDS.index(step.kind.value)
            if step.effect:
                index.marks[position] |= Mark.EFFECT
                index.effects.setdefault(position, step.name[:_TEXT])
            if any(mark.startswith("possible duplicate") for mark in step.marks):
                index.marks[position] |= Mark.DUPLICATE
        elif step.kind is StepKind.TOOL_CALL:
            index.kinds[position] = KINDS.index("tool call")
        elif step.kind in (StepKind.POLICY, StepKind.DECISION, StepKind.SNAPSHOT):
            index.marks[position] |= Mark.NOTE
        if step.failed and step.kind in (StepKind.HTTP, StepKind.MCP, StepKind.ERROR):
            index.marks[position] |= Mark.FAILED


def first_effects(index: RunIndex, most: int) -> list[tuple[int, str, bool]]:
    """Give the first effects of a run: seq, method and URL, and whether it may be a duplicate."""
    listed = islice(sorted(index.effects.items()), most)
    return [(index.seqs[at], name, bool(index.marks[at] & Mark.DUPLICATE)) for at, name in listed]


def tell_results(index: RunIndex, seqs: Collection[int]) -> dict[int, str]:
    """Give what came of effects in a line, as `effects` says it; of those that the log has, and no more of them than `EFFECTS`."""
    store, info = index.store, index.info
    tape = store.runs.find_tape(info)
    return {
        one.seq: "; ".join(filter(None, (one.result, one.gate_result)))
        for one in index.ledger.effects(store, info, tape, only=seqs)
    }


def find_unsent(index: RunIndex, seq: int) -> str:
    """Say of an exchange that it was not sent, where its steps do; empty where they do not, or were not read yet."""
    position = index.position_of(seq)
    steps = index.pages.get(position) if position is not None else []
    marks = {mark for step in steps for mark in step["marks"]}
    return next((one for one in (NEVER_SENT, FROM_TAPE) if one in marks), "")
