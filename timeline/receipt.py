"""The receipt: the account of a run, folded from its log.

What was served and how it matched, what was stubbed, refused, live or left over, what the agent did to the
world or would have done, and what tried to leave. A replay is *faithful* when nothing diverged, nothing was
left over, nothing tried to leave, at least one request was made, and its log was closed by its own
process: of one that died the last events may be missing. One that was served an answer only because a
person allowed the model to drift is faithful *but for* that opt-in, never plainly; so is one into which a fault was
injected. Exit codes and their order are the design's
(section 8): 125 untestable, 123 something tried to leave, 121 diverged, 122 not used up.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..config import Inject, Match, parse_match
from ..store import RunInfo, RunStatus, Store, UnknownRun
from ..tape.divergence import Divergence, DivergenceKind
from ..tape.events import Event, EventKind
from ..tape.faults import UNASKED
from ..tape.model import Exchange, Request, RequestClass, Seq, VerdictKind
from .hints import Hints, split_place

UNTESTABLE = 125
LEAKED = 123
DIVERGED = 121
UNUSED = 122

_PAGE = 1000
_LISTED = 1000
"""Most rows of one list; the counts stay exact."""
_SEQS = 100
"""Most seqs that are listed for one opt-in."""


@dataclass(slots=True)
class Effect:
    """Something the agent did to the world, or would have done."""

    seq: int
    method: str
    url: str
    summary: str
    """Beginning of its body."""
    answered_by: str
    """`upstream`, `tape seq N`, `effect rule`, `refused`, `live rule`, `injected: NAME`, or `nobody`."""
    outcome: str
    note: str = ""
    """`possible duplicate of seq N` or `safe retry of seq N`, and whether its answer had been seen."""


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
class Receipt:
    """The account of one run."""

    run: str
    parent: str | None
    mode: str
    status: str
    requests: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    """Served answers by how they matched: `exact`, `canonical`, `drifted`, `repeated`."""
    model_drift: list[OptIn] = field(default_factory=list)
    drifted: list[dict[str, Any]] = field(default_factory=list)
    """Effects whose idempotency key differs from the tape's by being there, or by which share it."""
    effects: list[Effect] = field(default_factory=list)
    gates: list[GateRow] = field(default_factory=list)
    """Requests that were held, by seq of their arrival."""
    divergences: list[Mapping[str, Any]] = field(default_factory=list)
    """The first of those that were noted, by seq."""
    injected: list[InjectedRow] = field(default_factory=list)
    """Faults on purpose."""
    root: Mapping[str, Any] | None = None
    """The divergence that the others follow from, or what was left over where nothing else diverged."""
    followed: Counter[str] = field(default_factory=Counter)
    """How many others there were, by kind."""
    unused: list[dict[str, Any]] = field(default_factory=list)
    egress: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    live: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    stopped: dict[str, Any] | None = None
    """Who stopped the run, why and when; what was asked after that was refused."""
    warnings: list[str] = field(default_factory=list)
    hints: list[dict[str, str]] = field(default_factory=list)
    """Rules of the configuration that no request matched."""
    contained: bool = False
    child_exit: int | None = None
    end: str = ""

    @property
    def faithful(self) -> bool | None:
        """Whether a playback was plainly faithful; None for a recording, and while a run is open."""
        if self.mode != "playback" or self.status == RunStatus.OPEN.value:
            return None
        return exit_code(self) == 0 and not self.faithful_but_for

    @property
    def faithful_but_for(self) -> list[str]:
        """The opt-ins without which a playback would have diverged, and what was injected; empty where it failed."""
        if self.mode != "playback" or self.status == RunStatus.OPEN.value or exit_code(self):
            return []
        allowed = [one.allowed for one in self.model_drift if one.served]
        return allowed + list(dict.fromkeys(f"injected: {row.rule}" for row in self.injected))

    @property
    def root_after(self) -> InjectedRow | None:
        """The last fault that was injected before the root divergence, which most likely follows from it."""
        if self.root is None:
            return None
        left = self.root["kind"] == DivergenceKind.UNUSED.value
        seq = int(self.root["seq"])
        return next((row for row in reversed(self.injected) if left or row.seq <= seq), None)

    @property
    def divergence_count(self) -> int:
        """How many divergences were noted; what was left over does not count."""
        left = self.counts["unused"]
        return self.followed.total() + (self.root is not None) - left

    @property
    def level(self) -> str:
        """Which rung of the fidelity ladder was reached."""
        if self.mode == "record":
            return "0: log only"
        live = {row["request_class"] for row in self.live}
        if RequestClass.READ.value in live or RequestClass.EFFECT.value in live:
            return "1: tools partly live"
        if RequestClass.INFERENCE.value in live:
            return "3: tools and state from the tape, the model live"
        return "3: tools, state and model from the tape, the clock live"

    def to_json(self) -> dict[str, Any]:
        """Give the receipt as JSON types; `docs/receipt.md` describes them."""
        return {
            "run": self.run,
            "parent": self.parent,
            "mode": self.mode,
            "status": self.status,
            "end": self.end,
            "level": self.level,
            "faithful": self.faithful,
            "faithful_but_for": self.faithful_but_for,
            "exit_code": exit_code(self),
            "child_exit": self.child_exit,
            "contained": self.contained,
            "requests": self.requests,
            "counts": {
                name: self.counts[name]
                for name in ("recorded", "served", "stubbed", "live", "refused", "unused")
            },
            "matched": dict(self.matched),
            "model_drift": [
                {"allowed": one.allowed, "served": one.served, "seqs": one.seqs}
                for one in self.model_drift
            ],
            "drifted": self.drifted,
            "effects": [
                {
                    "seq": effect.seq,
                    "method": effect.method,
                    "url": effect.url,
                    "summary": effect.summary,
                    "answered_by": effect.answered_by,
                    "outcome": effect.outcome,
                    "note": effect.note,
                }
                for effect in self.effects
            ],
            "gates": [asdict(row) for row in self.gates],
            "injected": [asdict(row) for row in self.injected],
            "root_after": asdict(self.root_after) if self.root_after is not None else None,
            "root": dict(self.root) if self.root is not None else None,
            "followed": {
                "count": self.followed.total(),
                "by_kind": dict(sorted(self.followed.items())),
            },
            "divergences": [dict(divergence) for divergence in self.divergences],
            "unused": self.unused,
            "live": self.live,
            "refused": self.refused,
            "faults": self.faults,
            "unfinished": self.unfinished,
            "stopped": self.stopped,
            "egress": self.egress,
            "foreign": self.foreign,
            "warnings": self.warnings,
            "hints": self.hints,
        }


def exit_code(receipt: Receipt) -> int:
    """Give the code that `replay` ends with on account of a playback; 0 lets the child's own through."""
    if receipt.mode != "playback":
        return 0
    if not receipt.requests or receipt.status == RunStatus.RECOVERED.value:
        return UNTESTABLE
    if receipt.egress or receipt.foreign:
        return LEAKED
    if receipt.divergences or receipt.refused or receipt.counts["stubbed"] or receipt.stopped:
        return DIVERGED
    return UNUSED if receipt.counts["unused"] else 0


def build(store: Store, info: RunInfo) -> Receipt:
    """Fold the log of a run into its receipt. Blocking; reads the parent's log too for a playback.

    Raises: LogCorrupt.
    """
    receipt = Receipt(info.id, info.parent, info.mode, info.status.value, end=info.end)
    fold = _Fold(receipt, store, info)
    for event in _log(store, info):
        fold.take(event)
    fold.close()
    return receipt


def _log(store: Store, info: RunInfo) -> Iterator[Event]:
    """Read a log page by page, so that memory does not grow with it."""
    page = store.events(info, 0, _PAGE)
    while page:
        yield from page
        page = store.events(info, page[-1].number, _PAGE)


class _Fold:
    """One pass over a run's events."""

    def __init__(self, receipt: Receipt, store: Store, info: RunInfo) -> None:
        self.receipt = receipt
        self.store = store
        self.info = info
        self.served: set[int] = set()
        self.spared: list[tuple[Match, str | None]] = []
        """The run's live rules, each with the class it is limited to, and what is telemetry in it."""
        self.keys: dict[bytes, list[tuple[int, bytes | None]]] = {}
        self.effects: dict[int, Effect] = {}
        self.held: dict[int, tuple[GateRow, int]] = {}
        """What waits, with the time since when, in nanoseconds."""
        self.opt_ins: dict[str, OptIn] = {}
        self.injected: dict[int, InjectedRow] = {}
        self.hints = Hints()
        self.tape: RunInfo | None = None
        if info.parent is not None:
            try:
                self.tape = store.get_run(info.parent)
            except UnknownRun:
                receipt.warnings.append(f"its tape {info.parent!r} is not in this store any more")

    def take(self, event: Event) -> None:
        receipt, data = self.receipt, event.data
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
                self.injected[row.seq] = row
                _bounded(receipt.injected, row)
            case EventKind.EGRESS:
                _bounded(receipt.egress, dict(data))
            case EventKind.FOREIGN:
                for item in data["sockets"]:
                    _bounded(receipt.foreign, dict(item))
            case EventKind.STOPPED:
                told = {key: data[key] for key in ("by", "pid", "reason")}
                receipt.stopped = {**told, "at_ns": event.at_ns}
            case EventKind.NOTED:
                receipt.child_exit = data.get("child_exit", receipt.child_exit)
                receipt.contained = data.get("contained", receipt.contained)
                self.spared += _rules(data.get("live", ()))
                self.spared += _rules((text, None) for text in data.get("telemetry", ()))
                if "allow_model_drift" in data:
                    self._opt_in("=".join(data["allow_model_drift"]))
                self.hints.rules(data.get("rules", {}))
                if "text" in data:
                    _bounded(receipt.warnings, data["text"])
            case EventKind.SEALED:
                receipt.unfinished = list(data.get("unfinished", ()))
            case EventKind.RECOVERED:
                receipt.unfinished = list(data.get("unknown", ()))
            case EventKind.OPENED:
                pass

    def _diverged(self, row: Mapping[str, Any]) -> None:
        """Keep a divergence; nothing follows from one with a later seq, however they were written down."""
        receipt = self.receipt
        _bounded(receipt.divergences, row)
        receipt.followed[row["kind"]] += 1
        if receipt.root is None or _rank(row) < _rank(receipt.root):
            receipt.root = row

    def _intent(self, data: Mapping[str, Any]) -> None:
        self.hints.request(data)
        self.receipt.requests += 1
        live = self.receipt.mode == "playback"
        self.receipt.counts["live" if live else "recorded"] += 1
        if live:
            row = {key: data[key] for key in ("seq", "method", "url", "request_class")}
            row["reason"] = data.get("reason", "")
            _bounded(self.receipt.live, row)
        if data["request_class"] == RequestClass.EFFECT.value:
            self._effect(data, "live rule" if live else "upstream", "")

    def _verdict(self, data: Mapping[str, Any]) -> None:
        receipt = self.receipt
        self.hints.request(data)
        receipt.requests += not data.get("again")
        receipt.counts[data["verdict"]] += 1
        telemetry = data["request_class"] == RequestClass.TELEMETRY.value
        if data["verdict"] == VerdictKind.SERVED.value:
            self.served.add(data["tape_seq"])
            receipt.matched[data["match"]] += 1
            for allowed in data.get("allowed", ()):
                opt_in = self._opt_in(allowed)
                opt_in.served += 1
                if len(opt_in.seqs) < _SEQS:
                    opt_in.seqs.append(data["seq"])
            if "drifted" in data:
                row = {"seq": data["seq"], "tape_seq": data["tape_seq"], "what": data["drifted"]}
                _bounded(receipt.drifted, {"kind": DivergenceKind.DRIFTED.value, **row})
            if data.get("waits"):
                text = "kept waiting as recorded: its client gave up, and no pace shortens that"
                _bounded(receipt.warnings, f"seq {data['seq']}: {text}")
        elif data["verdict"] == VerdictKind.REFUSED.value and not telemetry:
            row = {key: data[key] for key in ("seq", "method", "url", "reason")}
            _bounded(receipt.refused, row)
        if data["request_class"] == RequestClass.EFFECT.value:
            by = {
                VerdictKind.SERVED.value: f"tape seq {data.get('tape_seq')}",
                VerdictKind.STUBBED.value: "effect rule",
            }.get(data["verdict"], "refused")
            outcome = data["reason"] if by == "refused" else ""
            if data.get("again") and (known := self.effects.get(data["seq"])) is not None:
                known.answered_by, known.outcome = by, outcome
            else:
                self._effect(data, by, outcome)

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

    def _opt_in(self, allowed: str) -> OptIn:
        found = self.opt_ins.get(allowed)
        if found is None:
            found = self.opt_ins[allowed] = OptIn(allowed)
            _bounded(self.receipt.model_drift, found)
        return found

    def _effect(self, data: Mapping[str, Any], by: str, outcome: str) -> None:
        seq = data["seq"]
        if len(self.effects) >= _LISTED:
            return
        effect = Effect(seq, data["method"], data["url"], "", by, outcome)
        # Older logs leave it to the receipt to find out.
        same = self._duplicate(seq, data.get("fingerprint") or b"", data.get("key"))
        effect.note = _describe_repeat(*data["repeat"]) if "repeat" in data else same
        self.effects[seq] = effect

    def _duplicate(self, seq: int, fingerprint: bytes, key: bytes | None) -> str:
        """Say whether an earlier effect of the run had the same effect key."""
        if not fingerprint:
            return ""
        earlier = self.keys.setdefault(fingerprint, [])
        note = ""
        if earlier:
            same = next((other for other, used in earlier if key is not None and used == key), 0)
            note = (
                f"safe retry of seq {same}"
                if same
                else f"possible duplicate of seq {earlier[-1][0]}"
            )
        earlier.append((seq, key))
        return note

    def _outcome(self, data: Mapping[str, Any]) -> None:
        receipt = self.receipt
        for warning in data.get("warnings", ()):
            _bounded(receipt.warnings, f"seq {data['seq']}: {warning}")
        if "fault" in data:
            kind, phase, text = data["fault"]
            row = {"seq": data["seq"], "kind": kind, "phase": phase, "text": text}
            _bounded(receipt.faults, row)

    def close(self) -> None:
        receipt = self.receipt
        for seq, effect in self.effects.items():
            self._complete(seq, effect)
            receipt.effects.append(effect)
        if self.tape is not None:
            self._leftovers(self.tape)
        receipt.divergences.sort(key=lambda row: int(row["seq"]))
        if receipt.counts["unused"]:
            receipt.followed[DivergenceKind.UNUSED.value] += receipt.counts["unused"]
            if receipt.root is None and receipt.unused:
                receipt.root = _unused(receipt.unused[0])
        if receipt.root is not None:
            receipt.followed[receipt.root["kind"]] -= 1
            receipt.followed = +receipt.followed
        if receipt.requests:
            receipt.hints = self.hints.to_json()[:_LISTED]

    def _complete(self, seq: int, effect: Effect) -> None:
        exchange: Exchange | None = None
        if effect.answered_by.startswith("tape seq ") and self.tape is not None:
            recorded = Seq(int(effect.answered_by.removeprefix("tape seq ")))
            exchange = self.store.find_exchange(self.tape, recorded)
        else:
            exchange = self.store.find_exchange(self.info, seq)
            if exchange is None and effect.answered_by in ("upstream", "live rule"):
                effect.outcome = "unknown: no outcome was recorded"
        if exchange is not None:
            effect.summary = summarise(exchange.request)
            if effect.answered_by != "refused":  # which says why, not with what
                effect.outcome = describe_outcome(exchange)
        row = self.injected.get(seq)
        if row is not None and _took_its_place(row, self.receipt.mode):
            if effect.answered_by.startswith("tape seq "):
                effect.outcome = row.inject  # not what the tape has
            effect.answered_by = f"injected: {row.rule}"

    def _leftovers(self, tape: RunInfo) -> None:
        """List what the tape holds and the playback did not ask for."""
        unused: list[dict[str, Any]] = []
        begun: dict[int, Mapping[str, Any]] = {}
        for event in _log(self.store, tape):
            if event.kind is EventKind.INTENT:
                begun[event.seq] = event.data
            elif event.kind is EventKind.OUTCOME and event.seq in begun:
                data = begun.pop(event.seq)
                self._leftover(event.seq, data, unused)
            elif event.kind is EventKind.VERDICT:  # a gate or a limit refused it
                self._leftover(event.seq, event.data, unused)
        self.receipt.unused = sorted(unused, key=lambda row: row["seq"])

    def _leftover(self, seq: Seq, data: Mapping[str, Any], unused: list[dict[str, Any]]) -> None:
        if seq not in self.served and not self._spared(data):
            self.receipt.counts["unused"] += 1
            _bounded(unused, {"seq": seq, "method": data["method"], "url": data["url"]})

    def _spared(self, data: Mapping[str, Any]) -> bool:
        """Say whether a recorded exchange need not be used: telemetry, and what goes live instead."""
        kind = data["request_class"]
        if kind == RequestClass.TELEMETRY.value:
            return True
        if not self.spared:
            return False
        place = split_place(data["url"])
        return place is not None and any(
            rule.matches(data["method"], *place)
            for rule, only in self.spared
            if only is None or only == kind
        )


def _rank(row: Mapping[str, Any]) -> tuple[bool, int]:
    """Order divergences by which can be the root: what was left out is never the cause of what was asked."""
    return row["kind"] == DivergenceKind.UNUSED.value, int(row["seq"])


def _took_its_place(row: InjectedRow, mode: str) -> bool:
    """Say whether the client was given none of the answer that the upstream or the tape has."""
    unheard = mode == "playback" and row.inject == Inject.TIMEOUT_AFTER_SUCCESS
    return unheard or row.inject in UNASKED


def _unused(row: Mapping[str, Any]) -> Mapping[str, Any]:
    text = "on the tape, and never asked for"
    kind, seq = DivergenceKind.UNUSED, Seq(row["seq"])
    return Divergence(kind, seq, row["method"], row["url"], seq, (), text).to_json()


def _describe_repeat(of: int, kind: str, unseen: bool) -> str:
    words = ", whose answer the client had not seen" if unseen else ""
    return f"{kind} of seq {of}{words}"


def _rules(noted: Any) -> Iterator[tuple[Match, str | None]]:
    for text, only in noted:
        with contextlib.suppress(ValueError):
            yield parse_match(text), only


def summarise(request: Request, limit: int = 120) -> str:
    """Give the beginning of a request's body, on one line."""
    text = " ".join(request.body[: limit * 4].decode("utf-8", "replace").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def describe_outcome(exchange: Exchange) -> str:
    """Say in a few words what came of an exchange, for the client and for the server."""
    response, fault, gone = exchange.response, exchange.fault, exchange.gone
    talk = exchange.conversation
    if talk is not None:
        code, by_client = (talk.close.code, talk.close.by_client) if talk.close else (0, False)
        return f"101, {talk.messages} messages, {describe_close(code, by_client=by_client)}"
    if gone is not None:
        left = f"client left after {gone.at_us / 1e6:.1f} s"
        if response is not None and not gone.head:
            return f"{left}; {response.status} came at {response.head_us / 1e6:.1f} s"
        if response is None:
            return f"{left}; no answer was seen"
        return f"{response.status}, {left}"
    if fault is not None:
        return f"{fault.kind.value} in {fault.phase.value}: {fault.text}"
    return str(response.status) if response is not None else "no answer"


def describe_close(code: int, *, by_client: bool) -> str:
    """Say how a WebSocket ended; 0 stands for one that was still open."""
    who = "the client" if by_client else "the server"
    match code:
        case 0:
            return "still open"
        case 1005:
            return f"closed by {who}"
        case 1006:
            return f"cut by {who}"
        case _:
            return f"closed by {who} with {code}"


def _bounded(rows: list[Any], row: Any) -> None:
    if len(rows) < _LISTED:
        rows.append(row)
