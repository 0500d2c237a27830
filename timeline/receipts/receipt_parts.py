"""The parts of a receipt, and the one pass over a run's log, and its tape's, that fills them."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...config import Mode
from ...store import LogCorrupt, RunInfo, RunStatus, Store
from ...tape.exchange import Exchange, Seq
from ...tape.records.events import Event
from ..reading.present_classes import with_present_classes
from .answers.background_reads import BackgroundReads
from .answers.divergences import Divergences
from .answers.left_on_tape import UNUSED, LeftOnTape
from .answers.matches import Matches
from .answers.replaced_secrets import ReplacedSecrets
from .answers.request_outcomes import Requests
from .bounded_rows import LISTED, BoundedRows, omitted_of
from .branch import BranchAccount
from .command.bypass_remedies import InUse
from .command.command_end import CommandAccount
from .command.proxy_bypass import PastProxy
from .command.surroundings import Surroundings
from .effects import Effect, Ledger
from .gaps import Gaps
from .interventions.contracts import ContractViolations
from .interventions.gates import Gates
from .interventions.injected import InjectedFaults
from .interventions.limits import LimitsAccount
from .resume import ResumeAccount
from .tape import TapeAccount
from .warnings_and_hints import Advice


@dataclass(slots=True)
class Parts:
    """All parts of one receipt; each knows its keys of the JSON, and its lines of the text."""

    requests: Requests = field(default_factory=Requests)
    matches: Matches = field(default_factory=Matches)
    secrets: ReplacedSecrets = field(default_factory=ReplacedSecrets)
    divergences: Divergences = field(default_factory=Divergences)
    left_on_tape: LeftOnTape = field(default_factory=LeftOnTape)
    background_reads: BackgroundReads = field(default_factory=BackgroundReads)
    effects: list[Effect] = field(default_factory=BoundedRows)
    duplicates: int = 0
    """How many of all effects are possible duplicates."""
    branch: BranchAccount = field(default_factory=BranchAccount)
    resume: ResumeAccount = field(default_factory=ResumeAccount)
    gates: Gates = field(default_factory=Gates)
    injected: InjectedFaults = field(default_factory=InjectedFaults)
    contracts: ContractViolations = field(default_factory=ContractViolations)
    limits: LimitsAccount = field(default_factory=LimitsAccount)
    command: CommandAccount = field(default_factory=CommandAccount)
    surroundings: Surroundings = field(default_factory=Surroundings)
    past_proxy: PastProxy = field(default_factory=PastProxy)
    tape: TapeAccount = field(default_factory=TapeAccount)
    gaps: Gaps = field(default_factory=Gaps)
    advice: Advice = field(default_factory=Advice)

    @property
    def leaves_tape(self) -> bool:
        """Whether the run is a branch, or resumes one that crashed: what it asks otherwise is no fault."""
        return bool(self.branch) or bool(self.resume)

    def rows_omitted(self) -> dict[str, int]:
        """Give how many rows were left out, by the list of the receipt's JSON; only of lists that are cut."""
        requests, matches, past_proxy = self.requests, self.matches, self.past_proxy
        lists: dict[str, list[Any]] = {
            "model_drift": matches.model_drift,
            "drifted": matches.drifted,
            "ignored_content": matches.ignored_content,
            "own_programs": past_proxy.own_programs,
            "late": requests.late,
            "effects": self.effects,
            "gates": self.gates.rows,
            "injected": self.injected.rows,
            "contracts": self.contracts.rows,
            "divergences": self.divergences.rows,
            "unused": self.left_on_tape.rows,
            "live": requests.live,
            "claims": requests.claims,
            "refused": requests.refused,
            "faults": requests.faults,
            "gaps": self.gaps.rows,
            "attempts": past_proxy.attempts,
            "unrecorded": past_proxy.unrecorded,
            "egress": past_proxy.egress,
            "foreign": past_proxy.foreign,
            "warnings": self.advice.warnings,
            "hints": self.advice.hints,
            "branch.hypothetical": self.branch.hypothetical,
            "branch.sandboxed": self.branch.sandboxed,
            "branch.asked_otherwise": self.branch.asked_otherwise,
        }
        return {name: omitted_of(rows) for name, rows in lists.items() if omitted_of(rows)}

    def take(self, event: Event, *, playing: bool) -> None:
        """Take in an event of the run's log."""
        self.advice.take(event)
        self.requests.take(event, self.advice, playing=playing)
        self.matches.take(event)
        self.secrets.take(event, playing=playing)
        self.divergences.take(event)
        self.left_on_tape.take(event)
        self.branch.take(event)
        self.resume.take(event)
        self.gates.take(event)
        self.injected.take(event)
        self.contracts.take(event)
        self.limits.take(event)
        self.command.take(event)
        self.surroundings.take(event)
        self.past_proxy.take(event)
        self.gaps.take(event)

    def take_recorded(self, event: Event, before_ns: int) -> None:
        """Take in an event of the tape's log.

        before_ns: when the run began.
        """
        self.divergences.take_recorded(event)
        self.left_on_tape.take_recorded(event, self.requests.counts)
        self.command.take_recorded(event)
        self.past_proxy.take_recorded(event)
        self.tape.take(event, before_ns)


def read_parts(store: Store, info: RunInfo) -> Parts:
    """Fold the log of a run into the parts of its receipt. Blocking; reads the parent's log too for a playback.

    Raises: LogCorrupt.
    """
    parts = Parts()
    playing = info.mode == Mode.PLAYBACK.value
    tape = store.runs.find_tape(info) if info.parent is not None else None
    if info.parent is not None and tape is None:
        parts.tape.gone = True
        parts.advice.warnings.append(f"its tape {info.parent!r} is not in this store any more")
    ledger = Ledger(info.mode, LISTED)
    for event in store.events.all(info):
        ledger.take(event)
        parts.take(event, playing=playing)
    parts.effects = BoundedRows(ledger.effects(store, info, tape), ledger.omitted)
    parts.duplicates = ledger.duplicates
    if tape is not None:
        _compare_with_tape(parts, store, info, tape)
    if tape is not None or not playing:  # else nobody knows what was attempted while recording
        _close_attempts(parts, info, playing=playing)
    for text in parts.command.ended.warnings(playing=playing):
        parts.advice.warn(text)
    _find_root(parts)
    if parts.requests.total:
        parts.advice.find_hints(_find_told(store, info, tape))
    return parts


def _compare_with_tape(parts: Parts, store: Store, info: RunInfo, tape: RunInfo) -> None:
    """Find what was left on the tape, and how the command ended otherwise."""
    requests, left, background = parts.requests, parts.left_on_tape, parts.background_reads
    # What the tape has counts as what it is under the classes of the run, as it does where the run compares it.
    store = with_present_classes(store, left.classes)
    find, find_recorded = _find_in(store, info), _find_in(store, tape)
    # An effect without an outcome may be on the tape as one whose client left.
    again = parts.resume.list_asked(tape.id)
    resumed = {*parts.resume.anew, *again}
    used = {*parts.matches.served_as.values(), *parts.branch.replaced, *resumed}
    left.begin(used, has_gap=bool(parts.gaps.rows))
    for event in store.events.all(tape):
        parts.take_recorded(event, info.created_ns)
    asked = {*parts.divergences.find_unfinished(), *again}
    left.close(asked, find_recorded, requests.counts)
    background.spare_unasked(left, requests, find_recorded)
    parts.tape.close(tape)
    if parts.tape.gap:
        text = f"its tape {tape.id!r} has a gap: not all that was done then is on it"
        parts.advice.warnings.append(text)
    background.spare_extra(
        requests, parts.divergences, find, lambda: store.events.all(tape), find_recorded
    )
    if not (parts.limits.stopped or parts.leaves_tape):
        for row in parts.command.differences(requests.total):
            parts.divergences.add(row)


def _close_attempts(parts: Parts, info: RunInfo, *, playing: bool) -> None:
    """List what came to nothing, compare it with the tape, and say what a recording has missed."""
    surroundings, past_proxy = parts.surroundings, parts.past_proxy
    ended = parts.command.ended
    in_use = InUse(
        is_launched=ended.child_exit is not None,
        capture=past_proxy.capture,
        is_contained=surroundings.contained,
        has_preload=surroundings.has_preload,
    )
    found = past_proxy.close(in_use, playing=playing)
    for row in found.divergences if not parts.leaves_tape else ():
        parts.divergences.add(row)
    if playing:
        for text in found.warnings:
            parts.advice.warn(text)
    elif info.mode == Mode.RECORD.value and info.status is not RunStatus.OPEN:
        past_proxy.find_unrecorded(
            found,
            parts.requests.total,
            parts.advice,
            in_use,
            ended,
            surroundings.seen("refused"),
        )


def _find_root(parts: Parts) -> None:
    """Find the root divergence; a branch or a resumed run leaves its tape on purpose, so what it did not ask for is none."""
    unused = [] if parts.leaves_tape else parts.left_on_tape.divergences()
    count = 0 if parts.leaves_tape else parts.requests.counts[UNUSED]
    retries = parts.divergences.find_root(unused, count)
    parts.requests.fold_retries(retries)


def _find_in(store: Store, run: RunInfo) -> Callable[[int], Exchange | None]:
    """Give what finds an exchange of a run; None too where nobody knows any more what it was."""

    def find(seq: int) -> Exchange | None:
        with contextlib.suppress(LogCorrupt):
            return store.exchanges.find(run, Seq(seq))
        return None

    return find


def _find_told(
    store: Store, info: RunInfo, tape: RunInfo | None
) -> Callable[[Mapping[str, Any]], Exchange | None]:
    """Give what finds the exchange of an intent or a verdict; of what was served the tape's, which is the same under the rules."""

    def find(data: Mapping[str, Any]) -> Exchange | None:
        if "tape_seq" in data:
            return None if tape is None else store.exchanges.find(tape, data["tape_seq"])
        return store.exchanges.find(info, data["seq"])

    return find
