"""The policy: one pure function that decides what happens to a request.

Asked in this order, first answer wins:

1. the control host            -> CONTROL
2. the run was stopped         -> REFUSE
3. mode passthrough            -> FORWARD
4. mode record, or a live rule: it is about to leave
   a limit of the run is exhausted                   -> REFUSE
   it breaks a contract that says refuse           -> REFUSE
   a gate names it (its effect rule has one)       -> HOLD
   else                                            -> FORWARD, or LIVE
5. the tape holds it           -> SERVE
6. the tape holds it but for what may drift -> SERVE where a person has allowed it, else REFUSE
7. an effect that breaks a contract that says refuse -> REFUSE
8. an effect for which its rule, or else `playback.effects`, says stub:
   a configured answer         -> STUB with it
   the tape shows what an answer looks like -> STUB, made up
9. anything else               -> REFUSE

Empty never means off: without rules, without a tape, on an exhausted tape the answer is REFUSE.
A gate holds what leaves, and nothing else: what the tape answers asks nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...config import (
    Answer,
    ClassLive,
    Config,
    EffectRule,
    Gate,
    LiveRule,
    Match,
    Mode,
    ModelDrift,
    ReadRule,
    parse_match,
)
from ..diff.divergence import Difference
from ..exchange import Repeat, RepeatKind, RequestClass, Seq
from ..matching.cursor import Exhausted, Hit, Unknown

CONTROL_HOST = "playhead.internal"
"""Requests to this host are for Playhead itself and go nowhere."""

STOPPED = "stopped"
"""What decided where somebody stopped the run."""
LIMITS = "limits"
"""What decided where a limit of the run is exhausted."""


CONTRACTS = "contracts"
"""Begins what decided where a request is not what its contract says."""


class Action(StrEnum):
    """What the addons do."""

    CONTROL = "control"
    FORWARD = "forward"
    LIVE = "live"
    HOLD = "hold"
    SERVE = "serve"
    STUB = "stub"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the policy may look at. A body decides on a class, and never on what leaves."""

    method: str
    scheme: str
    host: str
    port: int
    target: str
    request_class: RequestClass
    by_body: bool = False
    """Its body made it a read; method and URL alone make it an effect, and it leaves as one or not at all."""

    def fit(self, match: Match) -> bool:
        """Say whether a pattern matches them."""
        return match.matches(self.method, self.scheme, self.host, self.port, self.target)


@dataclass(frozen=True, slots=True)
class Drifted:
    """A recorded model call differs from the one asked in what may drift, and in nothing else (`model_drift.py`)."""

    seq: Seq
    """Of the recorded exchange; it has not been served."""
    text: str
    """What drifted."""
    advice: str = ""
    """How to allow it; empty where it is."""
    differences: tuple[Difference, ...] = ()
    allowed: tuple[ModelDrift, ...] = ()
    """The opt-ins under which it is served; empty where it is not."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """How the run stands, as far as it bears on a request."""

    spent: str = ""
    """Which limit of the run is exhausted, in one line; empty while there is something left."""
    violation: str = ""
    """How it breaks a contract that says refuse, in one line."""
    contract: str = ""
    """Pattern of that contract."""
    repeat: Repeat | None = None
    """The earlier effect that this one may repeat, where a gate asks for that."""
    model: bool = False
    """Whether the tape shows what an answer to an effect of this endpoint looks like."""


UNCONSTRAINED = Constraints()
"""A run that goes on, with everything left."""

Found = Hit | Exhausted | Unknown | Drifted
"""What the tape says of a request."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why in one line."""

    action: Action
    reason: str
    rule: str
    """What decided: a rule of the configuration by its key and pattern, or one of the policy's own by its name."""
    seq: Seq | None = None
    """Of the recorded exchange that answers."""
    repeated: bool = False
    answer: Answer | None = None
    allowed: tuple[ModelDrift, ...] = ()
    """The opt-ins without which it would have been refused."""
    gate: Gate | None = None
    """Of what is held."""
    then: Action | None = None
    """What becomes of it once it is let go: FORWARD or LIVE."""
    repeat: Repeat | None = None
    """What it may repeat, where that is why it is held."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one playback, compiled once."""

    live: tuple[tuple[LiveRule, RequestClass | None], ...]
    """Each with the class it is limited to, or None."""
    effects: tuple[EffectRule, ...]
    stub: bool
    drift: tuple[ModelDrift, ...] = ()
    """What may be served although it drifted."""
    reads: tuple[ReadRule, ...] = ()
    stopped: str = ""
    """Who stopped the run and why, or empty; set while it is open (`addons/stop.py`)."""

    @classmethod
    def of(cls, config: Config) -> "Policy":
        """Compile the rules of a configuration."""
        live: list[tuple[LiveRule, RequestClass | None]] = [
            (rule, None) for rule in config.live if rule.service is None
        ]
        live += _class_rules(config.playback.inference, RequestClass.INFERENCE)
        live += _class_rules(config.playback.reads, RequestClass.READ)
        playback = config.playback
        return cls(
            tuple(live),
            config.effects,
            playback.effects == "stub",
            playback.allow_model_drift,
            config.reads,
        )

    def find_live(self, facts: Facts) -> LiveRule | None:
        """Find the live rule that names a request."""
        for rule, only in self.live:
            if only is not None and (facts.by_body or only is not facts.request_class):
                continue
            if facts.fit(rule.match):
                return rule
        return None

    def find_repeat(self, facts: Facts) -> ReadRule | None:
        """Find the rule by which the last answer to a read is served again."""
        if not self.reads or facts.request_class is not RequestClass.READ:
            return None
        for rule in self.reads:
            if facts.fit(rule.match):
                return rule
        return None

    def find_effect(self, facts: Facts, says: str) -> EffectRule | None:
        """Find the first effect rule that names a request and says something of this kind."""
        for rule in self.effects:
            if getattr(rule, says) and facts.fit(rule.match):
                return rule
        return None

    def find_gate(self, facts: Facts) -> tuple[EffectRule, Gate] | None:
        """Find the effect rule whose gate holds a request, and its gate."""
        rule = self.find_effect(facts, "gate") if self.effects else None
        if rule is None or rule.gate is None or rule.gate.when == "never":
            return None
        return rule, rule.gate

    def imitates(self, facts: Facts) -> bool:
        """Say whether the tape is asked what an answer to a request looks like that is not on it, nor goes live."""
        return (
            facts.request_class is RequestClass.EFFECT
            and self.stubs(facts)
            and self.find_effect(facts, "answer") is None
        )

    def stubs(self, facts: Facts) -> bool:
        """Say whether an effect that is not on the tape may be answered all the same."""
        rule = self.find_effect(facts, "on_miss")
        return self.stub if rule is None else rule.on_miss == "stub"


def decide(
    facts: Facts,
    mode: Mode,
    policy: Policy,
    found: Found | None,
    constraints: Constraints = UNCONSTRAINED,
) -> Decision:
    """Decide what to do with a request.

    found: what the cursor says, or what was found beside it; None where there is no tape to ask, which refuses.
    """
    if facts.host.lower().rstrip(".") == CONTROL_HOST:
        return Decision(Action.CONTROL, "the control host is Playhead itself", "control host")
    if policy.stopped:
        return Decision(Action.REFUSE, policy.stopped, STOPPED)
    if mode is Mode.PASSTHROUGH:
        return Decision(Action.FORWARD, "mode passthrough", "mode")
    if mode is Mode.RECORD:
        return _let_out(Decision(Action.FORWARD, "mode record", "mode"), facts, policy, constraints)
    live = policy.find_live(facts)
    if live is not None:
        text = f"live rule {live.match.text!r}: {live.reason}"
        out = Decision(Action.LIVE, text, f"live {live.match.text}")
        return _let_out(out, facts, policy, constraints)
    if isinstance(found, Hit):
        text = "on tape"
        if found.repeated:
            again = policy.find_repeat(facts)
            rule_text = "telemetry" if again is None else f"read rule {again.match.text!r}"
            text = f"{rule_text}, served again"
        return Decision(Action.SERVE, text, "tape", found.seq, found.repeated)
    if isinstance(found, Drifted) and found.allowed:
        return Decision(
            Action.SERVE, found.text, "allow_model_drift", found.seq, allowed=found.allowed
        )
    if facts.request_class is RequestClass.EFFECT and policy.stubs(facts):
        if constraints.violation:
            return _violation_of(constraints)
        rule = policy.find_effect(facts, "answer")
        if rule is not None:
            text = f"not on tape; answered by effect rule {rule.match.text!r}"
            return Decision(Action.STUB, text, f"effects {rule.match.text}", answer=rule.answer)
        if constraints.model:
            text = "not on tape; answered after the pattern of recorded answers"
            return Decision(Action.STUB, text, "playback.effects")
    return Decision(Action.REFUSE, _refusal(facts, found), "not on tape")


def _let_out(out: Decision, facts: Facts, policy: Policy, constraints: Constraints) -> Decision:
    """Decide on what is about to leave: whether it may, and whether somebody has to be asked."""
    if constraints.spent:
        return Decision(Action.REFUSE, constraints.spent, LIMITS)
    if constraints.violation:
        return _violation_of(constraints)
    found = policy.find_gate(facts)
    if found is None:
        return out
    rule, gate = found
    repeat = constraints.repeat if facts.request_class is RequestClass.EFFECT else None
    if gate.when == "duplicates" and not is_duplicate(repeat):
        return out
    text = f"held by the gate of effect rule {rule.match.text!r}{_repeated(repeat)}"
    name = f"effects {rule.match.text}"
    return Decision(Action.HOLD, text, name, gate=gate, then=out.action, repeat=repeat)


def _violation_of(constraints: Constraints) -> Decision:
    return Decision(Action.REFUSE, constraints.violation, f"{CONTRACTS} {constraints.contract}")


def is_duplicate(repeat: Repeat | None) -> bool:
    """Say whether a repeat is one that a gate on duplicates holds: a safe retry is none."""
    return repeat is not None and repeat.kind is RepeatKind.POSSIBLE_DUPLICATE


def _repeated(repeat: Repeat | None) -> str:
    if repeat is None:
        return ""
    if is_duplicate(repeat):
        return f": it may repeat the effect of exchange {repeat.of}"
    return f": it is a {repeat.kind.value} of exchange {repeat.of}"


def _refusal(facts: Facts, found: Found | None) -> str:
    if isinstance(found, Drifted):
        return found.text
    what = f"class {facts.request_class.value}"
    if isinstance(found, Exhausted):
        return f"exhausted: every recorded answer to this request has been served ({what})"
    if found is None:
        return f"there is no tape to play ({what})"
    return f"not on the tape ({what})"


def _class_rules(
    live: ClassLive | None, only: RequestClass
) -> Sequence[tuple[LiveRule, RequestClass | None]]:
    if live is None:
        return ()
    return tuple((LiveRule(parse_match(f"* *://{host}"), live.reason), only) for host in live.hosts)
