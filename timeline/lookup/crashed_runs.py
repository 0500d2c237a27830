"""Runs that crashed: which of them can be resumed, and what is known of the moment in which they did. Blocking."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import NoReturn

from ...config import Mode
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError
from ...tape.dialects.reader import read_response
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Exchange, Phase, RequestClass, Seq
from ...tape.policy.approval_decision import Ruling
from ...tape.policy.resume import Resume, UnknownEffect
from ...tape.records.events import Event, EventKind
from ...tape.shell_words import shell_word
from ..receipts.command.command_end import find_child_exit
from .resumed_by import find_children, has_ended_well, has_sent

_MOST_TOLD = 400
"""Characters of what is said of a stop."""


class RunStopped(StoreError):
    """Somebody stopped the run before it crashed: nothing goes on with it."""


def find_first(store: Store, info: RunInfo) -> RunInfo:
    """Find the recording at the beginning of a chain of runs of which each resumes the one before."""
    while info.parent is not None and (tape := store.runs.find_tape(info)) is not None:
        info = tape
    return info


def find_crashed(store: Store, name: str, *, or_failed: bool = True) -> RunInfo:
    """Find the run that is to be resumed for a name: itself, or the last of those by which it was resumed and which crashed, too.

    or_failed: whether a run counts whose proxy ended it in order, and whose command failed.
    Raises: UnknownRun; RunOpen, while it or one that resumes it goes on; RunStopped; StoreError, where there is nothing to resume,
    with what there is to do instead; LogCorrupt.
    """
    info = store.runs.get(name)
    while True:
        _require_crashed(store, info, or_failed=or_failed)
        resumed = [one for one in find_children(store, info) if one.has_resumed]
        alive = next((one for one in resumed if _is_alive(store, one)), None)
        if alive is not None:
            raise RunOpen(
                f"run {info.id!r} is being resumed as {alive.id!r}, which goes on",
                f"wait for it, or end it with: playhead seal {shell_word(alive.id)}",
            )
        _require_not_stopped(store, info)
        gone_live = [one for one in resumed if has_sent(store, one)]
        for one in resumed:
            if one not in gone_live and one.status is not RunStatus.SEALED:
                _require_not_stopped(store, one)
        if not gone_live:
            if store.runs.is_gone_on_elsewhere(info):
                raise StoreError(
                    f"run {info.id!r} was resumed by a run that is not in this store: its requests would be sent again",
                    f"run it otherwise with: playhead branch {shell_word(info.id)} --at SEQ",
                )
            return info
        last = gone_live[-1]
        if last.status is RunStatus.SEALED and not (or_failed and find_failure(store, last)):
            raise StoreError(
                f"run {info.id!r} was resumed as {last.id!r}, which has ended ({last.end}): its requests would be sent again",
                f"see its requests with: playhead show {shell_word(last.id)}; run it otherwise with: playhead branch {shell_word(last.id)} --at SEQ",
            )
        info = last


def read_crash(store: Store, info: RunInfo) -> Resume:
    """Read what is known of the crash of a run. Raises: RunStopped; StoreError, where not all of it was written or it is in an archive; LogCorrupt."""
    if info.is_only_in_archive:
        raise StoreError(
            f"run {info.id!r} cannot be resumed while only the archive has it",
            f"restore it with: playhead show {shell_word(info.id)}",
        )
    (before, sent_before), log = _read_before(store, info), _Log()
    for event in store.events.all(info):
        if event.kind is EventKind.GAP:
            raise StoreError(
                f"run {info.id!r} cannot be resumed: exchanges are missing on its tape, since the store could not be written,"
                " and nobody knows which effects are among them",
                f"look at it with: playhead receipt {shell_word(info.id)}; then begin anew",
            )
        if event.kind is EventKind.STOPPED:
            _refuse_stopped(info, event)
        log.take(event)
    died: set[Seq] = set()
    unanswered: set[Seq] = set()
    if info.status is RunStatus.SEALED:
        unanswered.update(_list_fatal(store, info, log))
    unknown = dict.fromkeys(log.begun)
    for seq in (*log.begun, *log.find_deserted()):
        kept = store.exchanges.find(info, seq)
        if kept is None or kept.websocket is not None:
            continue
        if seq not in log.begun and _has_outcome(kept):
            died.add(seq)
            continue
        unanswered.add(seq)
        if not _is_unsent(kept):
            unknown[seq] = None
    own = (
        UnknownEffect(
            info.id,
            event.seq,
            event.data["method"],
            event.data["url"],
            bytes(event.data["fingerprint"]),
            event.data["key"],
            event.seq,
            earlier=_list_attempts(sent_before, event),
        )
        for event in (log.effects[seq] for seq in unknown if seq in log.effects)
    )
    parallel = before.parallel or log.parallel
    # One that was held and never sent is asked anew, whoever asks for it: its refusal was meant for a process that had died.
    unanswered.update(seq for seq in log.repeats if seq not in log.sent)
    repeated = frozenset(log.repeats)
    if log.joined:
        repeated |= _find_repeated_reads(store, info, log.repeats)
    return Resume(
        (*before.unknown, *own), frozenset(unanswered), frozenset(died), repeated, parallel
    )


class _Log:
    """What the log of a crashed run has of its requests, telemetry aside."""

    def __init__(self) -> None:
        self.begun: dict[Seq, Event] = {}
        """Those without an outcome."""
        self.effects: dict[Seq, Event] = {}
        """Effects that were sent."""
        self.sent: set[Seq] = set()
        self.repeats: set[Seq] = set()
        """What was held since another process had asked for it: one that was started again asked for it once more."""
        self.joined = False
        """Whether processes joined it by its name, each of which may have been started again."""
        self.parallel = False
        self._asked_ns: dict[Seq, int] = {}
        self._ended_ns: dict[Seq, int] = {}
        """When there was an outcome."""
        self._left_ns: dict[Seq, int] = {}
        """When its client left."""

    def take(self, event: Event) -> None:
        """Take in an event."""
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            kind = event.data["request_class"]
            if kind == RequestClass.TELEMETRY.value:
                return
            self._asked_ns[event.seq] = event.at_ns
            if event.kind is EventKind.INTENT:
                self.sent.add(event.seq)
                self.parallel = self.parallel or bool(self.begun)
                self.begun[event.seq] = event
                if kind == RequestClass.EFFECT.value:
                    self.effects[event.seq] = event
        elif event.kind is EventKind.NOTED and "joined" in event.data:
            self.joined = True
        elif event.kind is EventKind.HELD and "given" in event.data:
            self.repeats.add(event.seq)
        elif event.kind is EventKind.OUTCOME:
            self.begun.pop(event.seq, None)
            self._ended_ns[event.seq] = event.at_ns
            if "gone_us" in event.data and event.seq in self._asked_ns:
                left_ns = self._asked_ns[event.seq] + event.data["gone_us"] * 1000
                self._left_ns[event.seq] = left_ns

    def find_deserted(self) -> list[Seq]:
        """Give what a client left, and nothing was asked for after that: had it given up, it would have gone on. It died, too."""
        last_ns = max(self._asked_ns.values(), default=0)
        return [seq for seq, left_ns in self._left_ns.items() if left_ns > last_ns]

    def list_last(self, judge: Callable[[Seq], "_Became"]) -> list[Seq]:
        """List the requests from the first failure on that the agent did not get over: it did nothing after it but read."""
        went_on_ns, last = 0, []
        for seq in sorted(self._asked_ns, key=self._asked_ns.__getitem__, reverse=True):
            ended_ns = self._ended_ns.get(seq)
            if ended_ns is not None and ended_ns <= went_on_ns:
                continue
            became = _Became.DONE if ended_ns is None else judge(seq)
            if became is _Became.DONE:
                went_on_ns = max(went_on_ns, self._asked_ns[seq])
            else:
                last.append((seq, became))
        failed = [self._asked_ns[seq] for seq, became in last if became is _Became.FAILED]
        return [seq for seq, _ in last if failed and self._asked_ns[seq] >= min(failed)]


class _Became(Enum):
    """What became of a request of an agent that failed later."""

    FAILED = auto()
    """A model call or read got an error."""
    READ = auto()
    DONE = auto()
    """Anything else: an agent that does this has got over what failed before."""


def _list_fatal(store: Store, info: RunInfo, log: _Log) -> list[Seq]:
    """List what is asked anew, since an agent failed: failed model calls and reads, and what it read after them.

    The same failure from the tape would end it at the same place each time; to ask anew repeats nothing that has an effect.
    """

    def judge(seq: Seq) -> _Became:
        kept = store.exchanges.find(info, seq)
        if kept is None or kept.websocket is not None or kept.request_class is RequestClass.EFFECT:
            return _Became.DONE
        if _has_failed(kept):
            return _Became.FAILED
        return _Became.READ if kept.request_class is RequestClass.READ else _Became.DONE

    return log.list_last(judge)


def _has_failed(recorded: Exchange) -> bool:
    """Say whether a model call or read got an error or was cut, be it within a stream."""
    answer = recorded.response
    if recorded.fault is not None or (answer is not None and answer.status >= _FAILED):
        return True
    if answer is None or answer.spilled or recorded.request_class is not RequestClass.INFERENCE:
        return False
    said = read_response(recorded.request, answer)
    return said is not None and (said.error is not None or not said.complete)


def _find_repeated_reads(store: Store, info: RunInfo, held: Collection[Seq]) -> frozenset[Seq]:
    """Find the reads of processes that were started again: one that goes on with the run asks for what the first did alone.

    A process counts as started again from where it asked for what another had: for something that was held then, or for a read.
    """
    first: dict[bytes, int] = {}
    again: set[int] = set()
    found: set[Seq] = set()
    for one in store.exchanges.all(info):
        lane = one.lane.number if one.lane is not None else 0
        if one.seq in held:
            again.add(lane)
        if one.request_class is not RequestClass.READ:
            continue
        if first.setdefault(one.fingerprint, lane) != lane:
            again.add(lane)
        if lane and lane in again:
            found.add(one.seq)
    return frozenset(found)


_FAILED = 400


def _has_outcome(recorded: Exchange) -> bool:
    """Say whether an exchange that its client left can be given to who asks again: its answer came whole, or the effect failed."""
    answer = recorded.response
    if answer is not None and answer.complete:
        return True
    is_effect = recorded.request_class is RequestClass.EFFECT
    return is_effect and recorded.fault is not None and not _is_unsent(recorded)


def _is_unsent(recorded: Exchange) -> bool:
    """Say whether a request is known not to have been sent, since its client had left."""
    return recorded.fault is not None and recorded.fault.phase is Phase.CONNECT


_Rows = Mapping[tuple[str, int], UnknownEffect]


def _read_before(store: Store, info: RunInfo) -> tuple[Resume, _Rows]:
    """Read what is left of the crash that a run began with, and all that was unknown then; nothing where it resumes none."""
    parent = store.runs.find_tape(info) if info.parent is not None else None
    if parent is None:
        return Resume(), {}
    before = read_crash(store, parent)
    left = tuple(_left_unknown(store, info, before))
    return Resume(left, parallel=before.parallel), {one.row: one for one in before.unknown}


def _list_attempts(sent_before: _Rows, event: Event) -> tuple[UnknownEffect, ...]:
    """List how the effect of an intent was sent before, if somebody let it be sent once more: that it was does not tell what became of those."""
    before = sent_before.get(tuple(event.data.get("unknown_effect", ())))
    return () if before is None else (*before.earlier, replace(before, earlier=()))


def _left_unknown(store: Store, info: RunInfo, before: Resume) -> Iterator[UnknownEffect]:
    """Give the effects that were unknown when a run began to resume another, and still are."""
    settled: set[tuple[str, int]] = set()
    held: dict[Seq, tuple[str, int]] = {}
    for event in store.events.all(info):
        if event.kind is EventKind.INTENT and "unknown_effect" in event.data:
            settled.add(tuple(event.data["unknown_effect"]))
        elif event.kind is EventKind.HELD and "unknown_effect" in event.data:
            held[event.seq] = tuple(event.data["unknown_effect"])
        elif event.kind is EventKind.RULED and event.data["ruling"] == Ruling.DENIED.value:
            settled.update(held[seq] for seq in (event.seq,) if seq in held)
    places = {row: seq for seq, row in held.items()}
    decided = [one for one in before.unknown if one.row in settled]
    for one in before.unknown:
        if one.row in settled:
            continue
        # Who was answered did not ask for it once more then, and does not now.
        is_awaited = one.is_awaited and not any(one.is_same_as(other) for other in decided)
        yield replace(one, place=places.get(one.row), is_awaited=is_awaited)


def find_failure(store: Store, info: RunInfo) -> str:
    """Say how a run failed, as in `whose process died`; empty where it did not. Raises: LogCorrupt.

    Of one that only an archive has that is not known before it is restored.
    """
    if info.status is RunStatus.RECOVERED:
        return "process died"
    if info.status is RunStatus.OPEN or info.is_explored:
        return ""
    if info.is_only_in_archive:
        return "end is in the archive"
    code = find_child_exit(store.events.of_kind(info, EventKind.NOTED))
    return f"command ended with {code}" if code else ""


def _require_crashed(store: Store, info: RunInfo, *, or_failed: bool) -> None:
    if info.parent is not None and not info.has_resumed:
        raise StoreError(
            f"{info.id!r} plays {info.parent!r} and sends nothing of it again, so there is nothing to resume",
            f"run it again with: playhead replay {shell_word(info.parent)}, or playhead branch {shell_word(info.parent)}",
        )
    if _is_alive(store, info):
        raise RunOpen(
            f"run {info.id!r} still goes on",
            f"end it with: playhead seal {shell_word(info.id)}; a run that has ended is not resumed",
        )
    if info.status is RunStatus.SEALED and not (or_failed and find_failure(store, info)):
        newest = next(iter(store.runs.find_recordings(info.id)), info)
        hint = (
            f"go on from an exchange of it with: playhead branch {shell_word(info.id)} --at SEQ"
            if newest.id == info.id or not find_failure(store, newest)
            else f"the newest recording of that name did, {newest.id!r}: playhead resume {shell_word(newest.id)} -- COMMAND"
        )
        raise StoreError(f"run {info.id!r} has not crashed: it ended ({info.end})", hint)
    if has_ended_well(store, info):
        raise StoreError(
            f"run {info.id!r} has not crashed: all its processes had ended with 0 before its proxy died",
            f"go on from an exchange of it with: playhead branch {shell_word(info.id)} --at SEQ",
        )
    if info.mode != Mode.RECORD.value and info.parent is None:
        raise StoreError(f"run {info.id!r} is no recording ({info.mode})", "record one first")


def _require_not_stopped(store: Store, info: RunInfo) -> None:
    """Refuse to go on with a run that somebody stopped: that holds although its process died. Raises: RunStopped; LogCorrupt."""
    if info.is_only_in_archive:
        return  # it is looked at once it is restored
    for event in store.events.all(info):
        if event.kind is EventKind.STOPPED:
            _refuse_stopped(info, event)


def _refuse_stopped(info: RunInfo, event: Event) -> NoReturn:
    reason = f": {event.data['reason']}" if event.data["reason"] else ""
    raise RunStopped(
        one_line(
            f"run {info.id!r} was stopped by {event.data['by']}{reason}; it is not resumed",
            _MOST_TOLD,
        ),
        f"begin a new run under another name, or go on from an exchange of it with: playhead branch {shell_word(info.id)} --at SEQ",
    )


def _is_alive(store: Store, info: RunInfo) -> bool:
    return info.status is RunStatus.OPEN and store.runs.owner_alive(info)


def find_rival(store: Store, info: RunInfo) -> RunInfo | None:
    """Find a run that resumes the same one as a run, was begun before it, and goes on or has sent something."""
    return next(
        (
            one
            for one in store.runs.all()
            if one.parent_number == info.parent_number and one.number < info.number
            if one.has_resumed and (_is_alive(store, one) or has_sent(store, one))
        ),
        None,
    )
