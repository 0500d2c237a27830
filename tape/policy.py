"""One policy, one pure function: what to do with a request.

Asked in this order, first answer wins:

1. the control host            -> CONTROL
2. passthrough or record mode  -> FORWARD, recorded
3. a live rule                 -> LIVE
4. the tape holds it           -> SERVE
5. the tape holds it but for what may drift -> SERVE where a person has allowed it, else REFUSE
6. an effect with a configured answer (and `effects: stub`) -> STUB
7. anything else               -> REFUSE

Empty never means off: without rules, without a tape, on an exhausted tape the answer is REFUSE.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..config import (
    Answer,
    ClassLive,
    Config,
    EffectRule,
    LiveRule,
    Mode,
    ModelDrift,
    ReadRule,
    parse_match,
)
from .cursor import Exhausted, Hit, Unknown
from .divergence import Difference
from .model import RequestClass, Seq

CONTROL_HOST = "playhead.internal"
"""Requests to this host are for Playhead itself and go nowhere."""


class Action(StrEnum):
    """What the addons do."""

    CONTROL = "control"
    FORWARD = "forward"
    LIVE = "live"
    SERVE = "serve"
    STUB = "stub"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the policy may look at; never a body."""

    method: str
    scheme: str
    host: str
    port: int
    target: str
    request_class: RequestClass


@dataclass(frozen=True, slots=True)
class Drifted:
    """A recorded model call differs from the one asked in what may drift, and in nothing else (`drift.py`)."""

    seq: Seq
    """Of the recorded exchange; it has not been served."""
    text: str
    """What drifted, and how to allow it."""
    differences: tuple[Difference, ...] = ()
    allowed: tuple[ModelDrift, ...] = ()
    """The opt-ins under which it is served; empty where it is not."""


Found = Hit | Exhausted | Unknown | Drifted
"""What the tape says of a request."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why in one line."""

    action: Action
    reason: str
    seq: Seq | None = None
    """Of the recorded exchange that answers."""
    repeated: bool = False
    answer: Answer | None = None
    allowed: tuple[ModelDrift, ...] = ()
    """The opt-ins without which it would have been refused."""


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
        live: list[tuple[LiveRule, RequestClass | None]] = [(rule, None) for rule in config.live]
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
            if only is not None and only is not facts.request_class:
                continue
            if rule.match.matches(facts.method, facts.scheme, facts.host, facts.port, facts.target):
                return rule
        return None

    def find_repeat(self, facts: Facts) -> ReadRule | None:
        """Find the rule by which the last answer to a read is served again."""
        if not self.reads or facts.request_class is not RequestClass.READ:
            return None
        for rule in self.reads:
            if rule.match.matches(facts.method, facts.scheme, facts.host, facts.port, facts.target):
                return rule
        return None

    def find_answer(self, facts: Facts) -> EffectRule | None:
        """Find the effect rule with an answer that names a request."""
        for rule in self.effects:
            if rule.answer is not None and rule.match.matches(
                facts.method, facts.scheme, facts.host, facts.port, facts.target
            ):
                return rule
        return None


def decide(facts: Facts, mode: Mode, policy: Policy, found: Found | None) -> Decision:
    """Decide what to do with a request.

    found: what the cursor says, or what was found beside it; None where there is no tape to ask, which refuses.
    """
    if facts.host.lower().rstrip(".") == CONTROL_HOST:
        return Decision(Action.CONTROL, "the control host is Playhead itself")
    if policy.stopped:
        return Decision(Action.REFUSE, policy.stopped)
    if mode is Mode.PASSTHROUGH:
        return Decision(Action.FORWARD, "mode passthrough")
    if mode is Mode.RECORD:
        return Decision(Action.FORWARD, "mode record")
    live = policy.find_live(facts)
    if live is not None:
        return Decision(Action.LIVE, f"live rule {live.match.text!r}: {live.reason}")
    if isinstance(found, Hit):
        text = "on tape"
        if found.repeated:
            again = policy.find_repeat(facts)
            rule_text = "telemetry" if again is None else f"read rule {again.match.text!r}"
            text = f"{rule_text}, served again"
        return Decision(Action.SERVE, text, found.seq, found.repeated)
    if isinstance(found, Drifted) and found.allowed:
        return Decision(Action.SERVE, found.text, found.seq, allowed=found.allowed)
    if facts.request_class is RequestClass.EFFECT and policy.stub:
        rule = policy.find_answer(facts)
        if rule is not None:
            text = f"not on tape; answered by effect rule {rule.match.text!r}"
            return Decision(Action.STUB, text, answer=rule.answer)
    return Decision(Action.REFUSE, _refusal(facts, found))


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
