"""The receipt: the account of a run, computed from its log.

It is made of parts, each in a module of its own: what was asked and how it matched (`answers/`), what the command did besides
(`command/`), what was done to the run on purpose (`interventions/`). `receipt_parts.py` fills them. What more than one part decides on
is here: whether a run was faithful, its exit code and its fidelity level.

A replay is *faithful* when nothing diverged, nothing was
unused, nothing tried to leave, at least one request was made, and its log was closed by its own
process: of one that died the last events may be missing, and nothing of it or of its tape is missing because the
disk was full. One that was served an answer only because a
person allowed the model to drift is faithful *but for* that opt-in, never plainly; so is one into which a fault was
injected, or in which a contract kept an answer of the tape from the agent. Exit codes and their order are the design's
(section 8): 125 untestable, 123 something tried to leave, 121 diverged, 122 not exhausted.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from ...config import Mode
from ...store import RunInfo, RunStatus, Store
from ...tape.exchange import RequestClass
from ...tape.exit_codes import ExitCode
from .answers.left_on_tape import UNUSED
from .command.command_end import LEFT_RUNNING
from .command.surroundings import OPEN_PIPES
from .interventions.injected import InjectedRow
from .receipt_parts import Parts, read_parts

RECEIPT_VERSION = 1
"""The version of the receipt's JSON. A further key does not change it; a key that goes, or means something else, does."""


class _Of[Value]:
    """A value of a part, under the name that the JSON has for it."""

    def __init__(self, read: Callable[[Parts], Value]) -> None:
        self._read = read

    @overload
    def __get__(self, receipt: None, owner: type) -> "_Of[Value]": ...
    @overload
    def __get__(self, receipt: "Receipt", owner: type) -> Value: ...
    def __get__(self, receipt: "Receipt | None", owner: type) -> "Value | _Of[Value]":
        return self if receipt is None else self._read(receipt.parts)


@dataclass(slots=True)
class Receipt:
    """The account of one run."""

    run: str
    parent: str | None
    """The run that is its tape; None of a recording."""
    mode: str
    status: str
    end: str = ""
    parts: Parts = field(default_factory=Parts)

    # The JSON is flat; these are its keys that callers ask for most.
    requests = _Of(lambda parts: parts.requests.total)
    counts = _Of(lambda parts: parts.requests.counts)
    telemetry = _Of(lambda parts: parts.requests.telemetry)
    live = _Of(lambda parts: parts.requests.live)
    claims = _Of(lambda parts: parts.requests.claims)
    refused = _Of(lambda parts: parts.requests.refused)
    faults = _Of(lambda parts: parts.requests.faults)
    unfinished = _Of(lambda parts: parts.requests.unfinished)
    matched = _Of(lambda parts: parts.matches.matched)
    model_drift = _Of(lambda parts: parts.matches.model_drift)
    drifted = _Of(lambda parts: parts.matches.drifted)
    kind_alone = _Of(lambda parts: parts.matches.kind_alone)
    reordered_results = _Of(lambda parts: parts.matches.reordered_results)
    headers_differ = _Of(lambda parts: parts.matches.headers_differ)
    protocols_differ = _Of(lambda parts: parts.matches.protocols_differ)
    credentials_merged = _Of(lambda parts: parts.matches.credentials_merged)
    answers_replaced = _Of(lambda parts: parts.secrets.count)
    replaced = _Of(lambda parts: parts.secrets.seqs)
    answers_as_recorded = _Of(lambda parts: parts.secrets.count_as_recorded)
    divergences = _Of(lambda parts: parts.divergences.rows)
    root = _Of(lambda parts: parts.divergences.root)
    unused = _Of(lambda parts: parts.left_on_tape.rows)
    background = _Of(lambda parts: parts.background_reads.rows)
    effects = _Of(lambda parts: parts.effects)
    branch = _Of(lambda parts: parts.branch)
    resume = _Of(lambda parts: parts.resume)
    gates = _Of(lambda parts: parts.gates.rows)
    injected = _Of(lambda parts: parts.injected.rows)
    contracts = _Of(lambda parts: parts.contracts.rows)
    limits = _Of(lambda parts: parts.limits.row)
    stopped = _Of(lambda parts: parts.limits.stopped)
    changed = _Of(lambda parts: parts.surroundings.changed)
    sandbox = _Of(lambda parts: parts.surroundings.sandbox)
    determinism = _Of(lambda parts: parts.surroundings.determinism)
    attempts = _Of(lambda parts: parts.past_proxy.attempts)
    unrecorded = _Of(lambda parts: parts.past_proxy.unrecorded)
    egress = _Of(lambda parts: parts.past_proxy.egress)
    gaps = _Of(lambda parts: parts.gaps.rows)
    sink_lost = _Of(lambda parts: parts.gaps.sink_lost)
    tape_gap = _Of(lambda parts: parts.tape.gap)
    rewritten = _Of(lambda parts: parts.tape.rewritten)
    warnings = _Of(lambda parts: parts.advice.warnings)
    hints = _Of(lambda parts: parts.advice.hints)

    @property
    def is_playback(self) -> bool:
        """Whether the run played a tape, as replays and branches do."""
        return self.mode == Mode.PLAYBACK.value

    @property
    def _is_judged(self) -> bool:
        """Whether it can be faithful: a recording, a branch and a resumed run cannot, nor a run that is still open."""
        is_open = self.status == RunStatus.OPEN.value
        return self.is_playback and not is_open and not self.parts.leaves_tape

    @property
    def faithful(self) -> bool | None:
        """Whether a playback was plainly faithful; None for a recording, a branch and a resumed run, and while a run is open."""
        if not self._is_judged:
            return None
        return exit_code(self) == 0 and not self.faithful_but_for and self.parts.tape.is_plain

    @property
    def faithful_but_for(self) -> list[str]:
        """The opt-ins without which a playback would have diverged, and what was injected; empty where it failed."""
        if not self._is_judged or exit_code(self):
            return []
        parts = self.parts
        allowed = parts.matches.drift_allowed
        allowed += [f"injected: {rule}" for rule in parts.injected.rules]
        if parts.matches.ignored_content:
            allowed.append("ignored content")
        if parts.requests.late:
            allowed.append("late answers served")
        if parts.surroundings.seen("pipes_open"):
            allowed.append(OPEN_PIPES)
        if parts.command.ended.left:
            allowed.append(LEFT_RUNNING)
        return allowed + [f"refused by contract: {rule}" for rule in parts.contracts.refused_by]

    @property
    def root_after(self) -> InjectedRow | None:
        """The last fault that was injected before the root divergence, which most likely follows from it."""
        return self.parts.divergences.find_injected_before(self.parts.injected)

    @property
    def divergence_count(self) -> int:
        """How many divergences were noted; what was unused does not count."""
        unused = self.parts.requests.counts[UNUSED] if not self.parts.leaves_tape else 0
        return self.parts.divergences.count(unused)

    @property
    def level(self) -> str:
        """The fidelity level that was reached."""
        if self.mode == Mode.RECORD.value:
            return "0: log only"
        parts, live = self.parts, self.parts.requests.live_classes
        if (
            parts.surroundings.reached_services
            or RequestClass.READ.value in live
            or RequestClass.EFFECT.value in live
        ):
            return "1: tools partly live"
        if parts.branch.sandboxed:
            return "1: tools partly in a sandbox"
        if parts.branch.hypothetical:
            return "1: partly hypothetical"
        if RequestClass.INFERENCE.value in live:
            return "3: tools and state from the tape, the model live"
        match parts.surroundings.clock:
            case "live":
                return "3: tools, state and model from the tape, the clock live"
            case "in part":
                return "3: tools, state and model from the tape, the clock in part"
            case _:
                return "4: everything from the tape, the clock too"

    def to_json(self) -> dict[str, Any]:
        """Give the receipt as JSON types; `docs/receipt-json.md` describes them."""
        parts, after = self.parts, self.root_after
        return {
            "version": RECEIPT_VERSION,
            "run": self.run,
            "parent": self.parent,
            "mode": self.mode,
            "status": self.status,
            "end": self.end,
            "level": self.level,
            "faithful": self.faithful,
            "faithful_but_for": self.faithful_but_for,
            "exit_code": exit_code(self),
            **parts.command.ended.to_json(),
            **parts.command.files.to_json(),
            "tape": parts.tape.to_json(parts.command.recorded),
            **parts.surroundings.to_json(),
            **parts.requests.to_json(),
            "branch": parts.branch.to_json(),
            "resume": parts.resume.to_json(),
            **parts.matches.to_json(),
            "background": parts.background_reads.rows,
            "own_programs": parts.past_proxy.own_programs,
            "kind_alone": parts.matches.kind_alone,
            **parts.secrets.to_json(),
            "ignored_content": parts.matches.ignored_content,
            "late": parts.requests.late,
            **parts.matches.profiles_json(),
            **parts.matches.differing_json(),
            "effects": [effect.short() for effect in parts.effects],
            "gates": parts.gates.to_json(),
            "injected": parts.injected.to_json(),
            **parts.contracts.to_json(),
            "root_after": asdict(after) if after is not None else None,
            **parts.divergences.to_json(),
            "telemetry": parts.requests.telemetry_json(),
            "unused": parts.left_on_tape.rows,
            **parts.requests.rows_json(),
            "gaps": parts.gaps.rows_json(),
            "tape_gap": parts.tape.gap,
            "sink_lost": parts.gaps.sink_lost,
            **parts.limits.to_json(),
            **parts.past_proxy.to_json(),
            **parts.advice.to_json(),
            "rows_omitted": parts.rows_omitted(),
        }


def exit_code(receipt: Receipt) -> int:
    """Give the code that `replay` ends with on account of a playback; 0 lets the child's own through."""
    if not receipt.is_playback:
        return 0
    parts, requests = receipt.parts, receipt.parts.requests
    if not requests.total or receipt.status == RunStatus.RECOVERED.value:
        return ExitCode.UNTESTABLE
    if parts.surroundings.changed:
        return ExitCode.UNTESTABLE
    if parts.past_proxy.egress or parts.past_proxy.foreign or parts.surroundings.packets_out:
        return ExitCode.LEAKED
    if parts.divergences.lacks_answer:
        return ExitCode.UNTESTABLE
    if parts.branch:
        return _exit_code_of_branch(parts)
    if parts.resume:
        return _exit_code_of_resumed(parts)
    if has_diverged(parts) or requests.counts["hypothetical"]:
        return ExitCode.DIVERGED
    if parts.tape.gone or parts.tape.gap or parts.gaps.rows:
        return ExitCode.UNTESTABLE
    return ExitCode.NOT_EXHAUSTED if requests.counts[UNUSED] else 0


def has_diverged(parts: Parts) -> bool:
    """Say whether a playback did otherwise than its tape, or was stopped; answers that somebody gave at breakpoints aside."""
    requests = parts.requests
    return bool(
        parts.divergences.rows
        or parts.matches.drifted
        or requests.refused
        or requests.counts["stubbed"]
        or parts.limits.stopped
    )


def _exit_code_of_branch(parts: Parts) -> int:
    """Give the code of a branch: it leaves its tape on purpose, so what it asks otherwise and leaves unasked is no fault."""
    if (
        parts.requests.refused
        or parts.limits.stopped
        or parts.divergences.has_changed_before(parts.branch.reached)
    ):
        return ExitCode.DIVERGED
    if parts.branch.reached is None or parts.tape.gone or parts.tape.gap or parts.gaps.rows:
        return ExitCode.UNTESTABLE
    return 0


def _exit_code_of_resumed(parts: Parts) -> int:
    """Give the code of a run that resumes another: what it asks behind the crash point is new, and who denies an effect has looked."""
    unlike = (*parts.requests.refused, *parts.divergences.rows)
    if parts.limits.stopped or any(row["seq"] not in parts.gates.seqs for row in unlike):
        return ExitCode.DIVERGED
    if parts.resume.reached is None or parts.gaps.rows:
        return ExitCode.UNTESTABLE
    return 0


def build(store: Store, info: RunInfo) -> Receipt:
    """Fold the log of a run into its receipt. Blocking; reads the parent's log too for a playback.

    Raises: LogCorrupt.
    """
    parts = read_parts(store, info)
    return Receipt(info.id, info.parent, info.mode, info.status.value, info.end, parts)
