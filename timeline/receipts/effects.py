"""The effect ledger: what an agent did to the world, or would have done, computed from the log of its run.

Each effect with what answered it, what came of it, whether it repeats another, and how it differs from what is on
the tape. The receipt shows the short form of the same rows. `docs/effects.md` describes both.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...config import Inject
from ...store import RunInfo, Store
from ...tape.exchange import (
    Exchange,
    FaultKind,
    Repeat,
    RepeatKind,
    Request,
    RequestClass,
    Seq,
    VerdictKind,
)
from ...tape.policy.approval_decision import Ruling
from ...tape.records.events import EXPLORED, Event, EventKind
from ..reading.exchange_json import body_json
from ..reading.settle_repeated_effect import Repeats, read_repeat
from .safe_terminal_text import ROWS, plain

MAX_ROWS = 100_000
"""Most effects of a run that are listed."""
_BEHIND = "upstream, behind the crash point"
"""What answers an effect of a run that resumes another."""
_UNSENT = "kept by explore, never sent"
"""What stands for an answer in a tape that exploring kept: a recorded one, or a stub."""
MAX_BODY = 64 * 1024
"""Bytes of a body that are shown."""


@dataclass(slots=True)
class Effect:
    """Something the agent did to the world, or would have done."""

    seq: int
    method: str
    url: str
    summary: str
    """Beginning of its body."""
    answered_by: str
    """In words: `upstream`, `tape seq N`, `effect rule`, `synthetic, after tape seq N`, `live rule`,
    `hypothetical answer`, `sandbox PLACE`, `injected: NAME`, `kept by explore, never sent`, `refused`."""
    outcome: str
    note: str = ""
    """`possible duplicate of seq N` or `safe retry of seq N`, and whether its answer had been seen."""
    by: str = ""
    """The same in one word: `upstream`, `tape`, `template`, `recorded`, `synthetic`, `hypothetical`, `live`, `sandboxed`,
    `injected`, `explored` or `refused`."""
    left: bool = False
    """Whether it was sent on."""
    tape_seq: int | None = None
    """What answered it on the tape."""
    after: list[int] = field(default_factory=list)
    """What of the tape a stub was made after."""
    rule: str = ""
    reason: str = ""
    status: int | None = None
    """Of the answer, where there was one."""
    key: bytes | None = None
    """Tells its idempotency key from others of its run; None without a key."""
    repeat: dict[str, Any] | None = None
    drifted: str = ""
    gate: dict[str, Any] | None = None
    divergence: Mapping[str, Any] | None = None
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_duplicate(self) -> bool:
        """Whether it may have done something a second time."""
        repeat = self.repeat
        return repeat is not None and repeat["kind"] == RepeatKind.POSSIBLE_DUPLICATE.value

    @property
    def is_deserted(self) -> bool:
        """Whether it waited at a gate until its client had left: nobody answered it."""
        return self.gate is not None and self.gate["ruling"] == Ruling.LEFT.value

    @property
    def result(self) -> str:
        """What answered it, and what came of it, in a line."""
        return f"{self.answered_by}: {self.outcome}"

    @property
    def gate_result(self) -> str:
        """How its waiting at a gate ended, in a line; empty where none held it."""
        if self.gate is None:
            return ""
        by = f" by {self.gate['by']}" if self.gate["by"] else ""
        return f"held by a gate: {self.gate['ruling'] or 'no decision'}{by}"

    def short(self) -> dict[str, Any]:
        """Give the row of a receipt."""
        names = ("seq", "method", "url", "summary", "answered_by", "outcome", "note")
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Give the whole row as JSON types."""
        diverged = self.divergence or {}
        return {
            **self.short(),
            "by": self.by,
            "tape_seq": self.tape_seq,
            "after": self.after,
            "rule": self.rule,
            "reason": self.reason,
            "status": self.status,
            "idempotency_key": self.key.hex() if self.key is not None else None,
            "repeat": self.repeat,
            "drifted": self.drifted,
            "gate": self.gate,
            "divergence": diverged.get("kind"),
            "nearest_seq": diverged.get("nearest_seq"),
            "differences": list(diverged.get("differences", ())),
            **self.body,
        }


def read_effect(data: Mapping[str, Any], *, intent: bool, playback: bool) -> Effect | None:
    """Read an effect from an intent or a verdict of the log; None where it speaks of none."""
    if data["request_class"] != RequestClass.EFFECT.value:
        return None
    effect = Effect(data["seq"], data["method"], data["url"], "", "", "")
    effect.rule, effect.reason = data.get("rule", ""), data.get("reason", "")
    effect.key, effect.drifted = data.get("key"), data.get("drifted", "")
    note_repeat(effect, read_repeat(data))
    if intent:
        effect.by = "live" if playback else "upstream"
        effect.answered_by = "live rule" if playback else "upstream"
        if data.get("resumed"):
            effect.answered_by = _BEHIND
        if "sandbox_place" in data:
            effect.by, effect.answered_by = "sandboxed", f"sandbox {data['sandbox_place']}"
        effect.left = True
        if effect.rule == EXPLORED and not playback:
            effect.by, effect.answered_by, effect.left = EXPLORED, _UNSENT, False
    elif data["verdict"] == VerdictKind.SERVED.value:
        effect.by, effect.tape_seq = "tape", data["tape_seq"]
        effect.answered_by = f"tape seq {data['tape_seq']}"
    elif data["verdict"] in (VerdictKind.STUBBED.value, VerdictKind.HYPOTHETICAL.value):
        _stubbed(effect, data)
    else:
        effect.by = effect.answered_by = "refused"
        effect.outcome = data["reason"]
    return effect


def note_repeat(effect: Effect, repeat: Repeat | None) -> None:
    """Say what an effect repeats."""
    effect.repeat, effect.note = None, ""
    if repeat is not None:
        of, kind, unseen = repeat.of, repeat.kind.value, repeat.unseen
        effect.repeat = {"of": of, "kind": kind, "unseen": unseen}
        effect.note = f"{kind} of seq {of}" + (", whose answer the client had not seen" * unseen)


def _stubbed(effect: Effect, data: Mapping[str, Any]) -> None:
    effect.after = list(data.get("after", ()))
    from ...tape.stubs.kinds import (
        KINDS,  # here: what makes stubs is slow to load, and few runs have any
    )

    kind = KINDS.get(data.get("answered_by", ""), KINDS["template"])
    seqs = f"tape seq {', '.join(map(str, effect.after[:5]))}" + ", …" * (len(effect.after) > 5)
    effect.by, effect.answered_by = kind.by, kind.words.format(seqs=seqs)


def complete(
    effect: Effect, request: Request | None, exchange: Exchange | None, fault_rule: str = ""
) -> None:
    """Add what the exchange tells: the body that was sent, and what came of it.

    request: as it was asked; None where nothing was kept of it.
    exchange: that answered.
    fault_rule: name of the fault on purpose that hit it; empty for none.
    """
    if request is not None:
        effect.summary = summarise(request)
        effect.body = body_json(request, MAX_BODY)
    if exchange is None:
        if effect.by in ("upstream", "live", "sandboxed"):
            effect.outcome = "unknown: no outcome was recorded"
        return
    if effect.by == "injected" and effect.tape_seq is not None:
        return  # what the tape has was not given
    effect.status = exchange.response.status if exchange.response is not None else None
    if effect.by != "refused":  # which says why, not with what
        effect.outcome = describe_outcome(exchange)
    if effect.left and exchange.fault is not None and exchange.fault.kind is FaultKind.DENIED:
        effect.left, effect.by, effect.answered_by = False, "refused", "refused"
        if fault_rule:  # its client left while it was delayed
            effect.by, effect.answered_by = "injected", f"injected: {fault_rule}"


class Ledger:
    """One pass over a run's events."""

    def __init__(self, mode: str, limit: int = MAX_ROWS) -> None:
        """Begin without any.

        limit: most effects that are kept; further ones are counted.
        """
        self._playback = mode == "playback"
        self._limit = limit
        self._effects: dict[int, Effect] = {}
        self._beyond: set[int] = set()
        """Seqs of those that are not kept."""
        self._gates: dict[int, dict[str, Any]] = {}
        self._injected: dict[int, tuple[str, str]] = {}
        """Faults on purpose: the rule's name, and what was injected."""
        self._repeats = Repeats()

    @property
    def omitted(self) -> int:
        """How many effects there are beyond those that are kept."""
        return len(self._beyond)

    @property
    def duplicates(self) -> int:
        """How many of all effects are possible duplicates."""
        repeats = map(self._repeats.find, (*self._effects, *self._beyond))
        return sum(one is not None and one.is_duplicate for one in repeats)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        self._repeats.take(event)
        match event.kind:
            case EventKind.INTENT:
                self._add(data, intent=True)
            case EventKind.VERDICT:
                self._add(data, intent=False)
            case EventKind.HELD:
                self._gates[event.seq] = dict.fromkeys(("ruling", "by", "via", "reason"), "")
            case EventKind.RULED if event.seq in self._gates:
                gate = self._gates[event.seq]
                gate |= {name: data[name] for name in gate}
            case EventKind.INJECTED:
                self._injected[event.seq] = data["rule"], data["inject"]
            case EventKind.DIVERGED if event.seq in self._effects:
                self._effects[event.seq].divergence = data["divergence"]

    def _add(self, data: Mapping[str, Any], *, intent: bool) -> None:
        effect = read_effect(data, intent=intent, playback=self._playback)
        if effect is None:
            return
        gate = self._gates.pop(effect.seq, None)
        known = self._effects.get(effect.seq)
        if known is not None and data.get("again"):
            known.by, known.answered_by, known.outcome = "refused", "refused", effect.outcome
            known.tape_seq = None
            return
        if known is None and len(self._effects) >= self._limit:
            self._beyond.add(effect.seq)
            return
        effect.gate = gate
        self._effects[effect.seq] = effect

    def effects(
        self,
        store: Store,
        info: RunInfo,
        tape: RunInfo | None,
        last: int = MAX_ROWS,
        only: Container[int] | None = None,
    ) -> Iterator[Effect]:
        """Give the effects in the order of the log, each complete; one exchange is read at a time.

        last: give no more than so many, the last of those that are kept.
        only: give those with these seqs.
        """
        for effect in list(self._effects.values())[-last:]:
            if only is not None and effect.seq not in only:
                continue
            exchange = None
            rule, inject = self._injected.get(effect.seq, ("", ""))
            if inject:
                inject_into(effect, rule, inject, playback=self._playback)
            if effect.tape_seq is not None and tape is not None:
                exchange = store.exchanges.find(tape, Seq(effect.tape_seq))
            elif effect.tape_seq is None:
                exchange = store.exchanges.find(info, Seq(effect.seq))
            asked = exchange.request if exchange is not None else None
            complete(effect, asked, exchange, rule)
            note_repeat(effect, self._repeats.find(effect.seq))
            yield effect
            effect.body = {}  # of one at a time


def effects_of(
    store: Store, info: RunInfo, limit: int = MAX_ROWS, last: int = MAX_ROWS
) -> tuple[Iterator[Effect], int]:
    """Fold the log of a run into its effects; give them, and how many more there are. Blocking.

    last: give no more than so many, the last of the first `limit`.
    Raises: LogCorrupt.
    """
    ledger = Ledger(info.mode, limit)
    for event in store.events.all(info):
        ledger.take(event)
    tape = store.runs.find_tape(info)
    return ledger.effects(store, info, tape, last), ledger.omitted


def inject_into(effect: Effect, rule: str, inject: str, *, playback: bool) -> None:
    """Name a fault on purpose as what answered, where its client was given nothing of upstream or tape."""
    from ...tape.faults.kinds import KINDS as KINDS_OF_FAULTS  # late: few runs have any

    short_circuits = Inject(inject).short_circuits
    if short_circuits or (playback and KINDS_OF_FAULTS[Inject(inject)].muted):
        effect.by, effect.answered_by, effect.outcome = "injected", f"injected: {rule}", inject
        effect.left = effect.left and not short_circuits


def summarise(request: Request, limit: int = 120) -> str:
    """Give the beginning of a request's body, on one line."""
    text = " ".join(request.body[: limit * 4].decode("utf-8", "replace").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def describe_outcome(exchange: Exchange) -> str:
    """Say in a few words what came of an exchange, for the client and for the server."""
    response, fault, gone = exchange.response, exchange.fault, exchange.gone
    websocket = exchange.websocket
    if websocket is not None:
        code, by_client = (
            (websocket.close.code, websocket.close.by_client) if websocket.close else (0, False)
        )
        return f"101, {websocket.messages} messages, {describe_close(code, by_client=by_client)}"
    if gone is not None:
        left = gone.text
        if fault is not None and fault.kind is FaultKind.DENIED:
            return fault.text  # which says that its client left
        if fault is not None and fault.is_unreached:
            return f"{left}; {fault.kind.value} in {fault.phase.value}: {fault.text}"
        if response is not None and not gone.head and not response.head_us:
            return f"{left}; {response.status} came, when is not known"
        if response is not None and not gone.head:
            return f"{left}; {response.status} came at {response.head_us / 1e6:.1f} s"
        if response is None:
            return f"{left}; no answer was seen"
        return f"{response.status}, {left}"
    if fault is not None:
        return f"{fault.kind.value} in {fault.phase.value}: {fault.text}"
    if response is not None and exchange.withheld:
        return f"{response.status}, withheld: the client was refused it by a contract"
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


def effect_lines(effects: Sequence[Effect], omitted: int = 0, *, recording: bool) -> list[str]:
    """Show the effects of a receipt: those of a recording, or of a playback those that left before those that did not.

    omitted: how many effects there are beyond these.
    """
    if recording:
        return _titled("effects", effects, omitted)
    left = [effect for effect in effects if effect.left]
    deserted = [effect for effect in effects if not effect.left and effect.is_deserted]
    answered = [effect for effect in effects if not (effect.left or effect.is_deserted)]
    lines = []
    for how in ("behind the crash point", "by a live rule", "in a sandbox"):
        lines += _titled(
            f"effects, executed {how}", [effect for effect in left if _executed(effect) == how]
        )
    lines += _titled("effects, answered instead of executed", answered)
    lines += _titled("effects, neither executed nor answered: the client had left", deserted)
    return [*lines, f"effects beyond the first {len(effects)}: {omitted}"] if omitted else lines


def _executed(effect: Effect) -> str:
    if effect.by == "sandboxed":
        return "in a sandbox"
    return "behind the crash point" if effect.answered_by == _BEHIND else "by a live rule"


def _titled(title: str, effects: Sequence[Effect], omitted: int = 0) -> list[str]:
    if not effects:
        return []
    lines = [f"{title}:"]
    for effect in effects[:ROWS]:
        lines += effect_text(effect)
    more = len(effects) + omitted - ROWS
    if more > 0:
        lines.append(f"  … and {more} more")
    return lines


def effect_text(effect: Effect) -> list[str]:
    """Show an effect, in two lines or three."""
    note = f"  ← {plain(effect.note.upper())}" if effect.note else ""
    lines = [f"  seq {effect.seq}  {plain(f'{effect.method} {effect.url}', 90)}{note}"]
    if effect.summary:
        lines.append(f"         {plain(effect.summary, 120)}")
    return [*lines, f"         {plain(effect.answered_by)}: {plain(effect.outcome, 120)}"]
