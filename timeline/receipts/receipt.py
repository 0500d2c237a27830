"""The receipt: the account of a run, computed from its log.

What was served and how it matched, what was stubbed, refused, live or unused, what the agent did to the
world or would have done, and what tried to leave. A replay is *faithful* when nothing diverged, nothing was
unused, nothing tried to leave, at least one request was made, and its log was closed by its own
process: of one that died the last events may be missing, and nothing of it or of its tape is missing because the
disk was full. One that was served an answer only because a
person allowed the model to drift is faithful *but for* that opt-in, never plainly; so is one into which a fault was
injected, or in which a contract kept an answer of the tape from the agent. Exit codes and their order are the design's
(section 8): 125 untestable, 123 something tried to leave, 121 diverged, 122 not exhausted.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...config import Classes, Match, Mode, parse_match
from ...store import LogCorrupt, RunInfo, RunStatus, Store
from ...tape.canonical.target_overrides import SILENT
from ...tape.classify.background_reads import (
    POLL,
    BackgroundRead,
    find_background_read,
    is_poll,
    may_poll,
)
from ...tape.classify.by_method_and_url import classify
from ...tape.diff.divergence_types import (
    UNKEPT,
    UNKNOWN_OUTCOME,
    Difference,
    Divergence,
    DivergenceKind,
)
from ...tape.exchange import Exchange, FaultKind, Request, RequestClass, Seq, VerdictKind
from ...tape.exit_codes import ExitCode
from ...tape.policy.limits import NANO, CountedUsage, Used
from ...tape.records.events import Event, EventKind
from ..reading.contract_row import ContractRow
from .answers.profile_rows import ProfileRows
from .answers.root_divergence import START_UP, Calls, fold
from .branch import BranchAccount
from .command.compare_files import UNKNOWN, LeftBehind, compare_files
from .command.failed_attempts import (
    NOTHING,
    NOTHING_REMEDY,
    Findings,
    Side,
    find_attempts,
    find_blind_spots,
    find_bypassed,
    find_passed,
)
from .command.file_effects import FileEffects
from .command.remedies import bypass_remedy
from .effects import Effect, Ledger
from .unmatched_rules import Hints, split_place, ways_of

RECEIPT_VERSION = 1
"""The version of the receipt's JSON. A further key does not change it; a key that goes, or means something else, does."""
_BECAME = ("recorded", "served", "live", "discarded", "refused")
"""What becomes of telemetry."""
_COUNTED = (
    *("recorded", "served", "stubbed", "live", "sandboxed", "hypothetical", "refused"),
    "unused",
)
_LISTED = 1000
"""Most rows of one list; the counts stay exact."""
_SEQS = 100
"""Most seqs that are listed for one opt-in."""
_UNTRUSTED = ("issuer certificate", "self-signed certificate", "self signed certificate")
"""What OpenSSL says of a certificate whose root it does not have."""
_TRUST_UPSTREAM = "the upstream's certificate is signed by nobody whom the proxy trusts; `--upstream-ca FILE` (`upstream_ca`) adds its root"


_OPEN_PIPES = "named pipes that could not be closed"
_LEFT_OPEN = (
    ("pipes_open", _OPEN_PIPES),
    ("pipes_unsearched", "folders that were not searched for named pipes"),
    ("pipes_used", "named pipes that were made or written to while the command ran"),
    ("sockets", "path sockets within reach"),
)
"""Keys of `sandbox` under which ways out are listed, and their names."""


@dataclass(slots=True)
class OptIn:
    """Model drift that a person has allowed, as RECORDED=NEW, and what it let through."""

    allowed: str
    served: int = 0
    seqs: list[int] = field(default_factory=list)
    """The first hundred."""


@dataclass(slots=True)
class InjectedRow:
    """A fault on purpose, and the request that it hit."""

    seq: int
    rule: str
    """Its name."""
    inject: str
    """What: `delay`, `status`, `cut`, `reset`, `timeout`, `timeout_after_success`."""
    nth: int
    """Which of the requests that match the rule."""
    seed: int


@dataclass(slots=True)
class GateRow:
    """A request that a gate held, and how that ended."""

    seq: int
    method: str
    url: str
    digest: str
    reason: str
    """Why it was held."""
    ruling: str = ""
    """`approved`, `denied`, `expired`, `left` or `ended`; empty while it waits, and where the log ends before."""
    by: str = ""
    via: str = ""
    why: str = ""
    """What whoever ruled gave as the reason."""
    waited_s: float = 0.0


@dataclass(slots=True)
class GapRow:
    """A time in which not all could be written: the disk was full, or would not be written to."""

    since_ns: int
    until_ns: int | None
    """None where the log ends before: nobody knows what is missing."""
    reason: str
    exchanges: int | None = None
    """Whose outcome is missing."""
    effects: int | None = None
    """Sent on before their intent was written."""
    records: int | None = None
    """Rows of the log that are missing, of all kinds."""


@dataclass(slots=True)
class LimitsRow:
    """The limits that were in force, what was used of them, and which were exhausted."""

    limits: dict[str, int | float | None]
    """By key; null where there was none."""
    used: Used = field(default_factory=Used)
    reached: list[dict[str, Any]] = field(default_factory=list)
    """Each at the first request that it refused."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; null for what was not looked for."""
        used, priced = self.used, self.limits["usd"] is not None
        read = priced or self.limits["tokens"] is not None
        return {
            "limits": self.limits,
            "used": {
                "calls": used.calls,
                "input_tokens": used.input_tokens if read else None,
                "output_tokens": used.output_tokens if read else None,
                "cached_tokens": used.cached_tokens if read else None,
                "usd": used.nano_usd / NANO if priced else None,
                "without_usage": used.unstated if read else None,
                "without_price": used.unpriced if priced else None,
            },
            "reached": self.reached,
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it left behind."""

    child_exit: int | None = None
    """Exit code; None where no command was started."""
    command: tuple[str, ...] = ()
    """Secrets are replaced; empty where no command was started."""
    stdout: tuple[str, int] | None = None
    """Hash and bytes of what it wrote; None where stdout was a terminal, or that cannot be known."""
    files: Mapping[str, str] | None = None
    """Hashes of the files that it changed in its working folder, by path; empty for one that is gone. None where they were too
    many."""
    effects: FileEffects = field(default_factory=FileEffects)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Ended":
        """Read it from the log."""
        stdout = data.get("stdout")
        command = tuple(data.get("command", ()))
        effects = FileEffects()
        effects.take(data)
        return cls(
            data["child_exit"], command, stdout and tuple(stdout), data.get("files"), effects
        )

    @property
    def left_behind(self) -> LeftBehind:
        """What it left in its folder."""
        return LeftBehind(self.files, self.effects)

    def to_json(self) -> dict[str, Any]:
        """Give it as receipts have it."""
        stdout = None if self.stdout is None else {"hash": self.stdout[0], "bytes": self.stdout[1]}
        return {
            "child_exit": self.child_exit,
            "command": list(self.command),
            "stdout": stdout,
            "files": None if self.files is None else dict(self.files),
        }


def find_files(store: Store, tape: RunInfo) -> tuple[str, ...]:
    """Give the paths of the files that the command of a recording changed. Blocking."""
    for event in store.events.all(tape):
        if event.kind is EventKind.NOTED and event.data.get("files"):
            return tuple(event.data["files"])
    return ()


def find_command(events: Iterable[Event]) -> tuple[str, ...]:
    """Give the command that the run of a log was made with, as stored; empty where no launcher made it."""
    for event in events:
        if event.kind is EventKind.NOTED and event.data.get("command"):
            return tuple(event.data["command"])
    return ()


@dataclass(slots=True)
class Receipt:
    """The account of one run."""

    run: str
    parent: str | None
    mode: str
    status: str
    requests: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    """Served answers by how they matched: `exact`, `canonical`, `profile`, `unconditional`, `drifted`, `repeated`."""
    branch: BranchAccount = field(default_factory=BranchAccount)
    """What a branch declared and did."""
    file_effects: FileEffects = field(default_factory=FileEffects)
    """The working folder, and what the command did to it."""
    profiles: ProfileRows = field(default_factory=ProfileRows)
    """What was served by profiles of clients, and which clients have none."""
    model_drift: list[OptIn] = field(default_factory=list)
    drifted: list[dict[str, Any]] = field(default_factory=list)
    """Requests that were served although an idempotency key differs from the tape's by being there or by which share it, or
    a linked value stands for another than before."""
    kind_alone: int = 0
    """Served requests that rest on what a replaced value is and not on the value: the tape is of another store."""
    answers_replaced: int = 0
    """Served answers in which redaction has replaced a value: the agent was given a placeholder. Of a recording, those on its tape."""
    replaced: list[int] = field(default_factory=list)
    """The first of their requests."""
    unloadable_keys: list[int] = field(default_factory=list)
    """The first of those whose answer has the placeholder of a private key that no library loads."""
    answers_as_recorded: int = 0
    """Served answers in which redaction has replaced a value that the store also kept: the agent was given the value."""
    as_recorded: list[int] = field(default_factory=list)
    """The first of their requests."""
    ignored_content: list[int] = field(default_factory=list)
    """Requests that were served although what they are about differs from the tape: a rule has that ignored. The first of them."""
    own_programs: list[str] = field(default_factory=list)
    """Ports of loopback at which programs of the command listened: what it said to them passed, and is on no tape."""
    background: list[dict[str, Any]] = field(default_factory=list)
    """Reads that a client sends from a thread, by chance, and that were not asked for, or were not on the tape."""
    late: list[int] = field(default_factory=list)
    """Requests that were served what their recorded selves had left before it came; the first of them."""
    reordered_results: int = 0
    """Served model calls that list the results of tools that ran side by side in another order."""
    headers_differ: Counter[str] = field(default_factory=Counter)
    """Served requests by the reported header fields that differed from the recorded ones."""
    protocols_differ: Counter[str] = field(default_factory=Counter)
    """Versions of HTTP on the tape and now, as `HTTP/2.0 -> HTTP/1.1`: how many were served over another."""
    credentials_merged: Counter[str] = field(default_factory=Counter)
    """Served requests by the place of a credential that stands for several recorded ones, where no answer depended on it."""
    effects: list[Effect] = field(default_factory=list)
    gates: list[GateRow] = field(default_factory=list)
    """Requests that were held, by seq of their arrival."""
    divergences: list[Mapping[str, Any]] = field(default_factory=list)
    """The first of those that were noted, by seq."""
    injected: list[InjectedRow] = field(default_factory=list)
    """Faults on purpose."""
    contracts: list[ContractRow] = field(default_factory=list)
    """Messages that violated their contract, the first; `contract_violations` counts all."""
    contract_violations: int = 0
    refused_by_contract: dict[str, None] = field(default_factory=dict)
    """Rules for which the client of a playback was refused an answer that it had been given on the tape."""
    root: Mapping[str, Any] | None = None
    """The divergence that the others follow from, or what was unused where nothing else diverged."""
    followed: Counter[str] = field(default_factory=Counter)
    """How many others there were, by kind; what is folded under the root does not count."""
    folded: list[dict[str, Any]] = field(default_factory=list)
    """Calls of start-up that diverged beside the root, and retries of what was refused."""
    telemetry: Counter[str] = field(default_factory=Counter)
    """What programs sent on their own account, by what became of it."""
    unused: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """Attempts of clients that came to nothing, by kind and place."""
    unrecorded: list[str] = field(default_factory=list)
    """Of a recording: what was asked past it, or would have been, in words."""
    egress: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[dict[str, Any]] = field(default_factory=list)
    capture: dict[str, Any] | None = None
    """Of a recording: what the filter of `connect` has taken to the proxy, and what it has left; None where there was none."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    live: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    """Requests whose heads say more than one thing of host, method or path."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)
    """When not all could be written, in order."""
    tape_gap: bool = False
    """Whether exchanges are missing on its tape, so that nobody knows what was to be asked."""
    sink_lost: dict[str, int] = field(default_factory=dict)
    """Effects that were not told to a sink, by its name."""
    stopped: dict[str, Any] | None = None
    """Who stopped the run, why and when; what was asked after that was refused."""
    limits: LimitsRow | None = None
    """None where the run had none."""
    warnings: list[str] = field(default_factory=list)
    hints: list[dict[str, str]] = field(default_factory=list)
    """Rules of the configuration that no request matched, and places in them that none had."""
    contained: bool = False
    sandbox: dict[str, Any] | None = None
    """What was seen of the sandbox; None where there was none."""
    determinism: dict[str, Any] | None = None
    """What was seen of the command's clock and randomness; None where they were its own."""
    end: str = ""
    changed: list[dict[str, str]] = field(default_factory=list)
    """What the run rests on (store, configuration, Playhead itself) and was not as before when its command had ended:
    `path`, and `what` in words."""
    tape_gone: bool = False
    """Whether its tape is not in the store any more, so that nobody knows what was unused."""
    standing: str = ""
    """What its tape is: `sealed`, `recovered` (its process ended abruptly), `imported`, or `rewritten` after it was sealed; empty of a recording."""
    rewritten: dict[str, None] = field(default_factory=dict)
    """Names of the rules by which its tape had been rewritten before it began, in order."""
    recorded: Ended = Ended()
    """How the command ended while its tape was recorded."""
    ended: Ended = Ended()
    """How its own command ended."""
    compared: tuple[str, ...] = ()
    """What of that is compared."""

    @property
    def faithful(self) -> bool | None:
        """Whether a playback was plainly faithful; None for a recording and a branch, and while a run is open."""
        if self.mode != "playback" or self.status == RunStatus.OPEN.value or self.branch:
            return None
        return (
            exit_code(self) == 0 and not self.faithful_but_for and self.standing in ("", "sealed")
        )

    @property
    def faithful_but_for(self) -> list[str]:
        """The opt-ins without which a playback would have diverged, and what was injected; empty where it failed."""
        if self.mode != "playback" or self.status == RunStatus.OPEN.value or self.branch:
            return []
        if exit_code(self):
            return []
        allowed = [one.allowed for one in self.model_drift if one.served]
        allowed += dict.fromkeys(f"injected: {row.rule}" for row in self.injected)
        if self.ignored_content:
            allowed.append("ignored content")
        if self.late:
            allowed.append("late answers served")
        if (self.sandbox or {}).get("pipes_open"):
            allowed.append(_OPEN_PIPES)
        return allowed + [f"refused by contract: {rule}" for rule in self.refused_by_contract]

    @property
    def contained_but_for(self) -> list[str]:
        """The ways out of the sandbox that nobody could close or look for; empty where it is plainly contained, or there was none."""
        told = self.sandbox if self.contained else None
        return [said for key, said in _LEFT_OPEN if (told or {}).get(key)]

    @property
    def root_after(self) -> InjectedRow | None:
        """The last fault that was injected before the root divergence, which most likely follows from it."""
        if self.root is None:
            return None
        left = self.root["kind"] == DivergenceKind.UNUSED.value
        seq = int(self.root["seq"])
        return next((row for row in reversed(self.injected) if left or row.seq <= seq), None)

    @property
    def lacks_answer(self) -> bool:
        """Say whether an answer that was asked for is not whole on the tape."""
        return self.root is not None and UNKEPT in str(self.root.get("text", ""))

    @property
    def divergence_count(self) -> int:
        """How many divergences were noted; what was unused does not count."""
        left = self.counts["unused"] if not self.branch else 0
        start_up = [row["what"] for row in self.folded].count(START_UP)
        return self.followed.total() + (self.root is not None) + start_up - left

    @property
    def level(self) -> str:
        """The fidelity level that was reached."""
        if self.mode == "record":
            return "0: log only"
        live = {row["request_class"] for row in self.live}
        if any(row["connections"] for row in (self.sandbox or {}).get("services", ())):
            return "1: tools partly live"
        if RequestClass.READ.value in live or RequestClass.EFFECT.value in live:
            return "1: tools partly live"
        if self.branch.sandboxed:
            return "1: tools partly in a sandbox"
        if self.branch.hypothetical:
            return "1: partly hypothetical"
        if RequestClass.INFERENCE.value in live:
            return "3: tools and state from the tape, the model live"
        told = self.determinism
        if told is None or told["level"] != "full":
            return "3: tools, state and model from the tape, the clock live"
        if not told["preloaded"] or any(
            told.get(key)
            for key in (
                *("missing", "uncovered", "exhausted"),
                *("kernel_randomness", "sources", "problems"),
            )
        ):
            return "3: tools, state and model from the tape, the clock in part"
        return "4: everything from the tape, the clock too"

    def to_json(self) -> dict[str, Any]:
        """Give the receipt as JSON types; `docs/receipt.md` describes them."""
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
            **self.ended.to_json(),
            **self.file_effects.to_json(),
            "tape": {
                "standing": self.standing,
                "rewritten": list(self.rewritten),
                **self.recorded.to_json(),
            }
            if self.standing
            else None,
            "contained": self.contained,
            "contained_but_for": self.contained_but_for,
            "changed": self.changed,
            "sandbox": self.sandbox,
            "determinism": self.determinism,
            "requests": self.requests,
            "counts": {name: self.counts[name] for name in _COUNTED},
            "branch": self.branch.to_json(),
            "matched": dict(+self.matched),
            "model_drift": [
                {"allowed": one.allowed, "served": one.served, "seqs": one.seqs}
                for one in self.model_drift
            ],
            "drifted": self.drifted,
            "background": self.background,
            "own_programs": self.own_programs,
            "kind_alone": self.kind_alone,
            "secrets_replaced": {
                "answers": self.answers_replaced,
                "seqs": self.replaced,
                "unloadable_keys": self.unloadable_keys,
            },
            "secrets_as_recorded": {"answers": self.answers_as_recorded, "seqs": self.as_recorded},
            "ignored_content": self.ignored_content,
            "late": self.late,
            "profiles": [asdict(row) for row in self.profiles.rows.values()],
            "unprofiled": list(self.profiles.unprofiled),
            "reordered_results": self.reordered_results,
            "headers_differ": dict(sorted(self.headers_differ.items())),
            "protocols_differ": dict(sorted(self.protocols_differ.items())),
            "credentials_merged": dict(sorted(self.credentials_merged.items())),
            "effects": [effect.short() for effect in self.effects],
            "gates": [asdict(row) for row in self.gates],
            "injected": [asdict(row) for row in self.injected],
            "contracts": [asdict(row) for row in self.contracts],
            "contract_violations": self.contract_violations,
            "root_after": asdict(self.root_after) if self.root_after is not None else None,
            "root": dict(self.root) if self.root is not None else None,
            "followed": {
                "count": self.followed.total(),
                "by_kind": dict(sorted(self.followed.items())),
            },
            "divergences": [dict(divergence) for divergence in self.divergences],
            "folded": self.folded,
            "telemetry": {
                "requests": self.telemetry.total(),
                **{name: self.telemetry[name] for name in _BECAME},
            },
            "unused": self.unused,
            "live": self.live,
            "claims": self.claims,
            "refused": self.refused,
            "faults": self.faults,
            "unfinished": self.unfinished,
            "gaps": [asdict(row) for row in self.gaps],
            "tape_gap": self.tape_gap,
            "sink_lost": self.sink_lost,
            "stopped": self.stopped,
            "limits": None if self.limits is None else self.limits.to_json(),
            "attempts": self.attempts,
            "unrecorded": self.unrecorded,
            "egress": self.egress,
            "foreign": self.foreign,
            "capture": self.capture,
            "warnings": self.warnings,
            "hints": self.hints,
        }


def exit_code(receipt: Receipt) -> int:
    """Give the code that `replay` ends with on account of a playback; 0 lets the child's own through."""
    if receipt.mode != "playback":
        return 0
    if not receipt.requests or receipt.status == RunStatus.RECOVERED.value:
        return ExitCode.UNTESTABLE
    if receipt.changed:
        return ExitCode.UNTESTABLE
    if receipt.egress or receipt.foreign or _packets_out(receipt):
        return ExitCode.LEAKED
    if receipt.lacks_answer:
        return ExitCode.UNTESTABLE
    if receipt.branch:
        return _exit_code_of_branch(receipt)
    if (
        receipt.divergences
        or receipt.drifted
        or receipt.refused
        or receipt.counts["stubbed"]
        or receipt.counts["hypothetical"]
        or receipt.stopped
    ):
        return ExitCode.DIVERGED
    if receipt.tape_gone or receipt.tape_gap or receipt.gaps:
        return ExitCode.UNTESTABLE
    return ExitCode.UNUSED if receipt.counts["unused"] else 0


def _exit_code_of_branch(receipt: Receipt) -> int:
    """Give the code of a branch: it leaves its tape on purpose, so what it asks otherwise and leaves unasked is no fault."""
    if receipt.refused or receipt.stopped:
        return ExitCode.DIVERGED
    if receipt.branch.reached is None or receipt.tape_gone or receipt.tape_gap or receipt.gaps:
        return ExitCode.UNTESTABLE
    return 0


def _packets_out(receipt: Receipt) -> int:
    """Give how many packets left the sandbox by a device that should not be there."""
    counters = (receipt.sandbox or {}).get("counters", {})
    return int(counters.get("packets_out", 0))


def build(store: Store, info: RunInfo) -> Receipt:
    """Fold the log of a run into its receipt. Blocking; reads the parent's log too for a playback.

    Raises: LogCorrupt.
    """
    receipt = Receipt(info.id, info.parent, info.mode, info.status.value, end=info.end)
    fold = _Fold(receipt, store, info)
    for event in store.events.all(info):
        fold.take(event)
    fold.close()
    return receipt


class _Fold:
    """One pass over a run's events."""

    def __init__(self, receipt: Receipt, store: Store, info: RunInfo) -> None:
        self.receipt = receipt
        self.store = store
        self.info = info
        self.served_as: dict[int, int] = {}
        self.with_placeholders, self.with_secrets = set[int](), set[int]()
        self.kind_alone = set[int]()
        """By seq, what of the tape was served last for it: a WebSocket is chosen anew by its first message."""
        self.served: frozenset[int] = frozenset()
        self.spared: list[tuple[Match, str | None]] = []
        """The run's live rules, each with the class it is limited to, and what is telemetry in it."""
        self.ledger = Ledger(info.mode, _LISTED)
        self.held: dict[int, tuple[GateRow, int]] = {}
        """What waits, with the time since when, in nanoseconds."""
        self.used = Used()
        self.attempts = Side()
        self.recorded_attempts = Side()
        self.opt_ins: dict[str, OptIn] = {}
        self.hints = Hints()
        self.asked: deque[int] = deque(maxlen=_LISTED)
        """Requests of the run that are no telemetry, the last of them."""
        self.calls, self.tape_calls = Calls(), Calls()
        self.silent = set[int]()
        """Telemetry of the run whose outcome has not come."""
        self.tape: RunInfo | None = None
        if info.parent is not None:
            self.tape = store.runs.find_tape(info)
            if self.tape is None:
                receipt.tape_gone = True
                receipt.warnings.append(f"its tape {info.parent!r} is not in this store any more")

    def take(self, event: Event) -> None:
        receipt, data = self.receipt, event.data
        self.ledger.take(event)
        self.attempts.take(event)
        receipt.branch.take(event)
        match event.kind:
            case EventKind.INTENT:
                self._intent(data)
            case EventKind.VERDICT:
                self._verdict(data)
            case EventKind.OUTCOME:
                self._outcome(data)
            case EventKind.DIVERGED:
                self._diverged(data["divergence"])
            case EventKind.HELD:
                self._held(event)
            case EventKind.RULED:
                self._ruled(event)
            case EventKind.INJECTED:
                row = InjectedRow(*(data[key] for key in ("seq", "rule", "inject", "nth", "seed")))
                _bounded(receipt.injected, row)
            case EventKind.GAP:
                _take_gap(receipt.gaps, data)
            case EventKind.CONTRACT:
                self._contract(ContractRow.from_event(data))
            case EventKind.LOST:
                receipt.sink_lost = dict(data["lost"])
            case EventKind.EGRESS:
                _bounded(receipt.egress, dict(data))
            case EventKind.FOREIGN:
                for item in data["sockets"]:
                    _bounded(receipt.foreign, dict(item))
            case EventKind.STOPPED:
                told = {key: data[key] for key in ("by", "pid", "reason")}
                receipt.stopped = {**told, "at_ns": event.at_ns}
            case EventKind.LIMITED:
                if receipt.limits is not None:
                    told = {key: data[key] for key in ("limit", "seq", "reason")}
                    receipt.limits.reached.append({**told, "at_ns": event.at_ns})
            case EventKind.NOTED:
                if "child_exit" in data:
                    receipt.ended = Ended.of(data)
                    receipt.compared = tuple(data.get("compare", ()))
                receipt.file_effects.take(data)
                receipt.contained = data.get("contained", receipt.contained)
                receipt.sandbox = data.get("sandbox", receipt.sandbox)
                receipt.determinism = data.get("determinism", receipt.determinism)
                receipt.capture = data.get("capture", receipt.capture)
                receipt.changed += data.get("changed", ())
                if "own_program" in data:
                    _bounded(receipt.own_programs, data["own_program"])
                self.spared += _rules(data.get("live", ()))
                self.spared += _rules((text, None) for text in data.get("telemetry", ()))
                if "allow_model_drift" in data:
                    self._opt_in("=".join(data["allow_model_drift"]))
                self.hints.rules(data.get("rules", {}), data.get("ignored", ()))
                if "limits" in data:
                    limits = data["limits"]
                    usd = None if limits["usd"] is None else float(limits["usd"])
                    receipt.limits = LimitsRow({**limits, "usd": usd}, self.used)
                self._replaced(data)
                self._kind_alone(data)
                if (was := receipt.profiles.noted(data)) and receipt.matched[was]:
                    receipt.matched[was] -= 1
                    receipt.matched["profile"] += 1
                if data.get("ignored_content"):  # in a message of a WebSocket
                    _bounded(receipt.ignored_content, data["seq"])
                if "rematched" in data:  # a WebSocket, once its messages were compared
                    before, now = data["rematched"]
                    receipt.matched[now] += 1
                    receipt.matched[before] -= 1
                    receipt.matched += Counter()
                if "text" in data:
                    _bounded(receipt.warnings, data["text"])
            case EventKind.SEALED:
                receipt.unfinished = list(data.get("unfinished", ()))
            case EventKind.RECOVERED:
                receipt.unfinished = list(data.get("unknown", ()))
            case EventKind.OPENED:
                pass

    def _diverged(self, row: Mapping[str, Any]) -> None:
        """Keep a divergence."""
        self.calls.note_diverged(row)
        _bounded(self.receipt.divergences, row)
        self.receipt.followed[row["kind"]] += 1

    def _claims(self, data: Mapping[str, Any]) -> None:
        """Take in what a request's head says of its host, method or path beside."""
        if "claims" in data and not data.get("again"):
            row = {key: data[key] for key in ("seq", "method", "url")}
            said = [pair for pair in data["claims"] if pair[0] not in SILENT]
            told = [{"kind": kind, "text": text} for kind, text in said]
            if told:
                _bounded(self.receipt.claims, {**row, "claims": told})

    def _intent(self, data: Mapping[str, Any]) -> None:
        self.hints.request(data)
        self._claims(data)
        self.calls.take(data)
        self.receipt.requests += 1
        self.used.calls += data["request_class"] != RequestClass.TELEMETRY.value
        self.asked.append(data["seq"])
        live = self.receipt.mode == "playback"
        sandboxed = "sandbox_place" in data
        became = "sandboxed" if sandboxed else "live" if live else "recorded"
        self.receipt.counts[became] += 1
        if data["request_class"] == RequestClass.TELEMETRY.value:
            self.receipt.telemetry[became] += 1
            self.silent.add(data["seq"])
        if live and not sandboxed:
            row = {key: data[key] for key in ("seq", "method", "url", "request_class")}
            row["reason"] = data.get("reason", "")
            _bounded(self.receipt.live, row)

    def _verdict(self, data: Mapping[str, Any]) -> None:
        receipt = self.receipt
        self.hints.request(data)
        self._claims(data)
        self.calls.take(data)
        receipt.requests += not data.get("again")
        receipt.counts[data["verdict"]] += 1
        receipt.profiles.verdict(data)
        telemetry = data["request_class"] == RequestClass.TELEMETRY.value
        if telemetry:
            receipt.telemetry[data["verdict"]] += not data.get("again")
            self.silent.add(data["seq"])
        elif not data.get("again"):
            self.asked.append(data["seq"])
        if data["verdict"] == VerdictKind.SERVED.value:
            if data["seq"] in self.served_as:  # another one in its place
                receipt.counts[data["verdict"]] -= 1
            else:
                receipt.matched[data["match"]] += 1
            self.served_as[data["seq"]] = data["tape_seq"]
            for allowed in data.get("allowed", ()):
                opt_in = self._opt_in(allowed)
                opt_in.served += 1
                if len(opt_in.seqs) < _SEQS:
                    opt_in.seqs.append(data["seq"])
            self._kind_alone(data)
            self._replaced(data)
            if data.get("ignored_content"):
                _bounded(receipt.ignored_content, data["seq"])
            receipt.reordered_results += bool(data.get("reordered_results"))
            receipt.headers_differ.update(data.get("headers", ()))
            if "protocols" in data:
                receipt.protocols_differ[" -> ".join(data["protocols"])] += 1
            receipt.credentials_merged.update(data.get("merged", ()))
            if "drifted" in data:
                row = {"seq": data["seq"], "tape_seq": data["tape_seq"], "what": data["drifted"]}
                _bounded(receipt.drifted, {"kind": DivergenceKind.DRIFTED.value, **row})
            if data.get("waits") and not telemetry:
                text = "kept waiting as recorded: its client gave up, and no pace shortens that"
                _bounded(receipt.warnings, f"seq {data['seq']}: {text}")
        elif data["verdict"] == VerdictKind.REFUSED.value and not telemetry:
            row = {key: data[key] for key in ("seq", "method", "url", "reason")}
            _bounded(receipt.refused, {**row, "repeats": 0})

    def _contract(self, row: ContractRow) -> None:
        receipt = self.receipt
        _bounded(receipt.contracts, row)
        receipt.contract_violations += row.count
        # A request that is refused has a verdict that says so.
        if row.refused and not row.recorded and row.of != "request":
            receipt.refused_by_contract[row.rule] = None

    def _held(self, event: Event) -> None:
        data = event.data
        row = GateRow(data["seq"], data["method"], data["url"], data["digest"], data["reason"])
        _bounded(self.receipt.gates, row)
        self.held[row.seq] = row, event.at_ns

    def _ruled(self, event: Event) -> None:
        data = event.data
        known = self.held.pop(data["seq"], None)
        if known is not None:
            row, since_ns = known
            row.ruling, row.by, row.via = data["ruling"], data["by"], data["via"]
            row.why, row.waited_s = data["reason"], round((event.at_ns - since_ns) / 1e9, 3)

    def _kind_alone(self, data: Mapping[str, Any]) -> None:
        """Take in that a request rests on what a replaced value is; each counts once, whatever of it does."""
        if data.get("kind_alone"):
            self.kind_alone.add(data["seq"])
            self.receipt.kind_alone = len(self.kind_alone)

    def _replaced(self, data: Mapping[str, Any]) -> None:
        """Take in that an answer has placeholders, or was given without."""
        receipt, seq = self.receipt, data.get("seq", 0)
        if data.get("replaced") and seq not in self.with_placeholders:
            self.with_placeholders.add(seq)
            receipt.answers_replaced += 1
            if len(receipt.replaced) < _SEQS:
                receipt.replaced.append(seq)
            if data.get("unloadable_key"):
                _bounded(receipt.unloadable_keys, seq)
        if data.get("as_recorded") and seq not in self.with_secrets:
            self.with_secrets.add(seq)
            receipt.answers_as_recorded += 1
            if len(receipt.as_recorded) < _SEQS:
                receipt.as_recorded.append(seq)

    def _opt_in(self, allowed: str) -> OptIn:
        found = self.opt_ins.get(allowed)
        if found is None:
            found = self.opt_ins[allowed] = OptIn(allowed)
            _bounded(self.receipt.model_drift, found)
        return found

    def _outcome(self, data: Mapping[str, Any]) -> None:
        receipt = self.receipt
        silent = data["seq"] in self.silent
        self.silent.discard(data["seq"])
        for warning in data.get("warnings", ()):
            _bounded(receipt.warnings, f"seq {data['seq']}: {warning}")
        if data.get("late") and not silent:
            _bounded(receipt.late, data["seq"])
        if receipt.mode != Mode.PLAYBACK.value:  # what was live came as it was
            self._replaced(data)
        if "usage" in data:
            self.used.add(CountedUsage.from_row(data["usage"]))
        if "fault" in data and not silent:
            kind, phase, text = data["fault"]
            row = {"seq": data["seq"], "kind": kind, "phase": phase, "text": text}
            _bounded(receipt.faults, row)
            if kind == FaultKind.TLS.value and any(word in text for word in _UNTRUSTED):
                _bounded(receipt.warnings, f"seq {data['seq']}: {_TRUST_UPSTREAM}")

    def close(self) -> None:
        receipt = self.receipt
        receipt.effects += self.ledger.effects(self.store, self.info, self.tape)
        if self.tape is not None:
            self._find_unused(self.tape)
            receipt.standing = _standing(self.tape, rewritten=bool(receipt.rewritten))
            self._spare_extra_reads(self.tape)
            self._compare_ends()
        self._find_attempts()
        receipt.divergences.sort(key=lambda row: int(row["seq"]))
        self._find_root()
        if receipt.requests:
            receipt.hints = self.hints.to_json(self._find_told)[:_LISTED]

    def _find_root(self) -> None:
        """Find the divergence that the others follow from, and fold what is none of its own."""
        receipt = self.receipt
        left = receipt.unused if not receipt.branch else []
        unused = [_unused(row) for row in left]
        found = fold(receipt.divergences, unused, self.calls, self.tape_calls)
        receipt.root, receipt.folded = found.root, found.rows
        if not receipt.branch:
            receipt.followed[DivergenceKind.UNUSED.value] += receipt.counts["unused"]
        gone = [row for row in receipt.divergences if int(row["seq"]) in found.retries]
        receipt.divergences = [row for row in receipt.divergences if row not in gone]
        start_up = [row for row in found.rows if row["what"] == START_UP]
        receipt.followed.subtract(row["kind"] for row in (*gone, *start_up))
        if receipt.root is not None:
            receipt.followed[receipt.root["kind"]] -= 1
        receipt.followed = +receipt.followed
        repeats = Counter(found.retries.values())
        receipt.refused = [
            {**row, "repeats": repeats[row["seq"]]}
            for row in receipt.refused
            if row["seq"] not in found.retries
        ]

    def _find_attempts(self) -> None:
        """List what came to nothing, compare it with the tape, and say what a recording has missed."""
        receipt = self.receipt
        playing = receipt.mode == Mode.PLAYBACK.value
        if playing and self.tape is None:
            return  # nobody knows what it had
        found = find_attempts(self.attempts, self.recorded_attempts if playing else None)
        for row in found.rows:
            _bounded(receipt.attempts, row)
        for divergence in found.divergences if not receipt.branch else ():
            self._diverged(divergence)
        for row in found.egress:
            _bounded(receipt.egress, row)
        if receipt.mode == Mode.RECORD.value and receipt.status != RunStatus.OPEN.value:
            self._find_unrecorded(found)
        elif playing:
            for text in found.warnings:
                _bounded(receipt.warnings, text)

    def _find_unrecorded(self, found: Findings) -> None:
        """Say what a recording has missed, and what to do about it."""
        receipt = self.receipt
        bypassed = [*find_bypassed(receipt.foreign, receipt.capture), *find_passed(receipt.capture)]
        said = [text for text, _ in bypassed] + found.unrecorded
        if not receipt.requests:
            names = [row["process"] for row in receipt.foreign]
            said.insert(0, NOTHING)
            receipt.warnings.insert(
                0, f"{NOTHING}. {NOTHING_REMEDY.format(bypass_remedy(names, receipt.capture))}"
            )
        receipt.unrecorded = said[:_LISTED]
        told = [f"{text}. {remedy}" for text, remedy in bypassed]
        for text in (*told, *found.warnings, *find_blind_spots(receipt.capture)):
            _bounded(receipt.warnings, text)

    def _compare_ends(self) -> None:
        """Note a command that ended otherwise than its tape says."""
        receipt = self.receipt
        now, then = receipt.ended.child_exit, receipt.recorded.child_exit
        if receipt.stopped or receipt.branch:
            return
        if now is not None and then is not None and now != then:
            differs = Difference(_EXIT, str(then), str(now))
            self._end_differs(
                differs, f"the command ended with {now}, and with {then} while it was recorded"
            )
        for word in receipt.compared:
            if word == "stdout":
                found = _compare_stdout(receipt.recorded, receipt.ended)
            else:
                found = compare_files(receipt.recorded.left_behind, receipt.ended.left_behind)
            if found is not None:
                self._end_differs(*found)

    def _end_differs(self, differs: Difference, text: str) -> None:
        receipt = self.receipt
        command = next(iter(receipt.ended.command), "")
        seq = Seq(receipt.requests + 1)
        self._diverged(
            Divergence(
                DivergenceKind.CHANGED, seq, "command", command, None, (differs,), text
            ).to_json()
        )

    def _find_told(self, data: Mapping[str, Any]) -> Exchange | None:
        """Find the exchange of an intent or a verdict; of what was served the tape's, which is the same under the rules."""
        if "tape_seq" in data:
            tape = self.tape
            return None if tape is None else self.store.exchanges.find(tape, data["tape_seq"])
        return self.store.exchanges.find(self.info, data["seq"])

    def _find_unused(self, tape: RunInfo) -> None:
        """List what the tape holds and the playback did not ask for."""
        unused: list[dict[str, Any]] = []
        self.served = frozenset({*self.served_as.values(), *self.receipt.branch.replaced})
        last = 0
        begun: dict[int, Mapping[str, Any]] = {}
        gaps: list[GapRow] = []
        for event in self.store.events.all(tape):
            self.recorded_attempts.take(event)
            if event.kind is EventKind.GAP:
                _take_gap(gaps, event.data)
            elif event.kind is EventKind.REWRITTEN and event.at_ns < self.info.created_ns:
                self.receipt.rewritten.update(dict.fromkeys(event.data["rules"]))
            elif event.kind is EventKind.NOTED and "child_exit" in event.data:
                self.receipt.recorded = Ended.of(event.data)
            elif event.kind is EventKind.INTENT:
                begun[event.seq] = event.data
                self.tape_calls.take(event.data)
                if event.data["request_class"] != RequestClass.TELEMETRY.value:
                    last = max(last, event.seq)
            elif event.kind is EventKind.OUTCOME and event.seq in begun:
                data = begun.pop(event.seq)
                self._add_unused(event.seq, data, unused)
            elif event.kind is EventKind.VERDICT:  # a gate or a limit refused it
                self._add_unused(event.seq, event.data, unused)
        asked = {row.get("nearest_seq") for row in self.receipt.divergences if _is_unfinished(row)}
        for seq, data in begun.items():
            effect = data["request_class"] == RequestClass.EFFECT.value
            if data["method"] == "CONNECT" or seq in asked:
                continue
            # It may have happened, so a replay that leaves it out is another run; so is one that leaves out what had begun to be answered.
            if effect or self._find_kept(tape, seq) is not None:
                self._add_unused(Seq(seq), data, unused, outcome="unknown")
        self.receipt.unused = sorted(unused, key=lambda row: row["seq"])
        self._spare_background(tape, last)
        if any(gap.exchanges != 0 for gap in gaps):
            self.receipt.tape_gap = True
            text = f"its tape {tape.id!r} has a gap: not all that was done then is on it"
            self.receipt.warnings.append(text)

    def _spare_background(self, tape: RunInfo, last: int) -> None:
        """Take from what is unused the reads that a client sends from a thread, by chance."""
        receipt = self.receipt
        if receipt.counts["unused"] != len(receipt.unused):
            return
        for row in reversed(receipt.unused.copy()):
            recorded = self._find_kept(tape, row["seq"])
            found = find_background_read(recorded.request) if recorded is not None else None
            if recorded is not None and is_poll(recorded):
                found = POLL
            if recorded is None or found is None or not (found.anywhere or row["seq"] == last):
                continue
            if not _is_answer_of(found, recorded):
                continue
            receipt.background.insert(0, {**row, "sdk": found.sdk, "extra": False})
            receipt.unused.remove(row)
            receipt.counts["unused"] -= 1
            last -= row["seq"] == last

    def _spare_extra_reads(self, tape: RunInfo) -> None:
        """Take from what diverged the reads that a client sends from a thread, and that did not come, or came too late, while recording."""
        receipt = self.receipt
        if max(len(receipt.refused), len(receipt.divergences)) >= _LISTED:
            return
        for row in reversed(receipt.refused.copy()):
            is_last = bool(self.asked) and row["seq"] == self.asked[-1]
            exchange = self._find_kept(self.info, row["seq"])
            found = find_background_read(exchange.request) if exchange is not None else None
            if found is None and exchange is not None and may_poll(exchange.request):
                found = POLL
            if exchange is None or found is None or not (found.anywhere or is_last):
                continue
            if not self._knows(tape, exchange.request, found):
                continue
            if is_last:
                self.asked.pop()
            receipt.refused.remove(row)
            receipt.counts[VerdictKind.REFUSED.value] -= 1
            for one in [one for one in receipt.divergences if one["seq"] == row["seq"]]:
                receipt.divergences.remove(one)
                receipt.followed[one["kind"]] -= 1
            told = {key: row[key] for key in ("seq", "method", "url")}
            receipt.background.append({**told, "sdk": found.sdk, "extra": True})

    def _find_kept(self, run: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange; None too where nobody knows any more what it was."""
        with contextlib.suppress(LogCorrupt):
            return self.store.exchanges.find(run, Seq(seq))
        return None

    def _knows(self, tape: RunInfo, request: Request, found: BackgroundRead) -> bool:
        """Say whether a tape has requests about the same bucket, account or endpoint, and no other answer to such a read."""
        place = f"{request.scheme}://{request.authority}".lower()
        name = request.path.rpartition("/")[2]
        there = [
            event
            for event in self.store.events.all(tape)
            if event.kind is EventKind.INTENT and event.data["url"].lower().startswith(place)
        ]
        if found is POLL:
            same = [one for one in there if one.data["url"].lower().startswith(f"{place}/")]
            kept = [self._find_kept(tape, event.seq) for event in same]
            return bool(kept) and all(one is not None and is_poll(one) for one in kept)
        about = [event for event in there if f"/{name}" in event.data["url"]]
        if found.refused_by:
            for event in about:
                one = self._find_kept(tape, event.seq) if event.data["method"] == "GET" else None
                if one is not None and not _is_answer_of(found, one):
                    return False
        return bool(about)

    def _add_unused(
        self, seq: Seq, data: Mapping[str, Any], unused: list[dict[str, Any]], **more: str
    ) -> None:
        if seq not in self.served and not self._spared(data):
            self.receipt.counts["unused"] += 1
            _bounded(unused, {"seq": seq, "method": data["method"], "url": data["url"], **more})

    def _spared(self, data: Mapping[str, Any]) -> bool:
        """Say whether a recorded exchange need not be used: telemetry, and what goes live instead."""
        kind = data["request_class"]
        if kind == RequestClass.TELEMETRY.value:
            return True
        place = split_place(data["url"])
        if place is not None and self._is_telemetry_now(data["method"], place):
            return True
        if not self.spared:
            return False
        by_body = data.get(
            "by_body", False
        )  # nothing leaves as a read that method and URL do not show
        if place is None:
            return False
        ways = ways_of(data, place)
        return any(
            rule.surely(ways)
            for rule, only in self.spared
            if only is None or (only == kind and not by_body)
        )

    def _is_telemetry_now(self, method: str, place: tuple[str, str, int, str]) -> bool:
        """Say whether the shipped table knows as telemetry what an older version recorded as something else."""
        return classify(method, *place, _SHIPPED_CLASSES).of is RequestClass.TELEMETRY


_SHIPPED_CLASSES = Classes()
_EXIT = "exit code"
_IMPORTED = "imported"
_REWRITTEN = "rewritten"


def _standing(tape: RunInfo, *, rewritten: bool) -> str:
    if tape.end == _IMPORTED:
        return _IMPORTED
    if tape.status is RunStatus.RECOVERED:
        return "recovered"
    return _REWRITTEN if rewritten else "sealed"


def _take_gap(gaps: list[GapRow], data: Mapping[str, Any]) -> None:
    """Take in that a gap began, or what it came to."""
    row = GapRow(data["since_ns"], data["until_ns"] or None, data["reason"])
    if row.until_ns is not None:
        row.exchanges, row.effects = data["exchanges"], data["effects"]
        row.records = data["records"]
    if gaps and gaps[-1].until_ns is None:
        gaps[-1] = row
    else:
        _bounded(gaps, row)


def _is_answer_of(found: BackgroundRead, exchange: Exchange) -> bool:
    """Say whether an exchange has the answer that goes with a read of a thread."""
    status = exchange.response.status if exchange.response is not None else 0
    return found.refused_by in (0, status)


def _is_unfinished(row: Mapping[str, Any]) -> bool:
    """Say whether a divergence is that the recording ended before the outcome of its request was known."""
    seq = row.get("nearest_seq")
    return bool(seq) and row["text"] == UNKNOWN_OUTCOME.format(seq)


def _unused(row: Mapping[str, Any]) -> Mapping[str, Any]:
    text = "on the tape, and never asked for"
    if "outcome" in row:
        text = "under way when the recording ended, so its outcome is unknown, and never asked for"
    kind, seq = DivergenceKind.UNUSED, Seq(row["seq"])
    return Divergence(kind, seq, row["method"], row["url"], seq, (), text).to_json()


def _rules(noted: Any) -> Iterator[tuple[Match, str | None]]:
    for text, only in noted:
        with contextlib.suppress(ValueError):
            yield parse_match(text), only


def _bounded(rows: list[Any], row: Any) -> None:
    if len(rows) < _LISTED:
        rows.append(row)


def _compare_stdout(then: Ended, now: Ended) -> tuple[Difference, str] | None:
    if then.stdout == now.stdout and now.stdout is not None:
        return None
    shown = [
        UNKNOWN if one is None else f"{one[0]}, {one[1]} bytes" for one in (then.stdout, now.stdout)
    ]
    text = "what the command wrote to stdout differs from the recording"
    if None in (then.stdout, now.stdout):
        text = "stdout cannot be compared: a terminal is not kept, nor is a device; write it to a file or a pipe, then and now"
    return Difference("stdout", *shown), text
