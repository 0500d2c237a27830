"""The policy: one pure function that decides what happens to a request.

Asked in this order, first answer wins (of a playback that is a branch, see below):

1. the control host            -> CONTROL
2. the run was stopped         -> REFUSE
3. mode passthrough            -> FORWARD
4. mode record, or a live rule: it is about to leave
   a limit of the run is exhausted                   -> REFUSE
   it breaks a contract that says refuse           -> REFUSE
   a gate names it (its effect rule has one)       -> HOLD
   another process of its run was given the same   -> HOLD, of a recording under `runs.resume: auto`
   else                                            -> FORWARD, or LIVE
5. the tape holds it           -> SERVE
6. the tape holds it but for what may drift -> SERVE where a person has allowed it, else REFUSE
7. telemetry, unless it deletes something -> DISCARD
8. an effect that breaks a contract that says refuse -> REFUSE
9. an effect for which its rule, or else `playback.effects`, says stub:
   a configured answer         -> STUB with it
   the tape shows what an answer looks like -> STUB, made up
10. anything else              -> REFUSE

A playback that is a branch (`branch.py`) goes another way from 4 on:

1. the tape holds it, or holds it but for what may drift and a person has allowed that  -> SERVE
2. telemetry, as 7
3. its point, or what comes before it, has not been asked for  -> REFUSE
4. a hypothetical answer was given for it            -> STUB with it
5. a route or a class of the branch names it: it is about to leave, as in 4 above  -> LIVE, HOLD or REFUSE
6. as 8 to 10

One that resumes a crashed run (`resume.py`) goes a third way from 4 on:

1. the prefix was another one than is recorded   -> REFUSE
2. the tape holds it and has not served it       -> SERVE
3. not all of the prefix has been asked for      -> as telemetry, 7; else REFUSE
4. it is about to leave, as in 4 above           -> LIVE or REFUSE; HOLD of an effect without an outcome, of one that a gate
   names, of what another process was given, and of an effect of the tape once more that nobody saw answered

Empty never means off: without rules, without a tape, on an exhausted tape the answer is REFUSE.
A gate holds what leaves, and nothing else: what the tape answers asks nobody.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from ...config import (
    Answer,
    Classes,
    ClassLive,
    Config,
    ContractRule,
    EffectRule,
    Gate,
    LiveRule,
    Mode,
    ModelDrift,
    ReadRule,
    parse_match,
)
from ...config.targets.host_interpretations import normal_host
from ...config.targets.request_interpretations import Ways, find_ways
from ..canonical.address_fields import AddressField
from ..canonical.target_overrides import ClaimKind, Claims, claimed, claims_of
from ..classify.by_method_and_url import Kind, classify_ways
from ..diff.divergence_types import Difference, one_line
from ..exchange import Repeat, Request, RequestClass, Seq, VerdictKind
from ..matching.cursor import Exhausted, Hit, Unknown
from .branch import HYPOTHETICAL, Branch, HypotheticalAnswer, SandboxRoute
from .resume import Resume
from .telemetry_answer import ASKED, SENT

CONTROL_HOST = "playhead.internal"
"""Requests to this host are for Playhead itself and go nowhere."""

STOPPED = "stopped"
"""What decided where somebody stopped the run."""
LIMITS = "limits"
"""What decided where a limit of the run is exhausted."""


RESUME = "resume"
"""What decided where a crashed run is resumed and nothing of its tape answers."""
BRANCH = "branch"
"""What decided before a branch has come to its point; begins what decided what it declares."""
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
    DISCARD = "discard"
    REFUSE = "refuse"


_VERDICTS = {
    Action.LIVE: VerdictKind.LIVE,
    Action.HOLD: VerdictKind.HELD,
    Action.SERVE: VerdictKind.SERVED,
    Action.STUB: VerdictKind.STUBBED,
    Action.DISCARD: VerdictKind.DISCARDED,
    Action.REFUSE: VerdictKind.REFUSED,
}


class Facts(NamedTuple):
    """What the policy may look at. A body decides on a class, and never on what leaves."""

    method: str
    scheme: str
    host: str
    port: int
    target: str
    request_class: RequestClass
    by_body: bool = False
    """Its body made it a read; method and URL alone make it an effect, and it leaves as one or not at all."""
    claims: Claims = ()
    """What its head says of its host, method and path beside."""
    classes: frozenset[RequestClass] = frozenset()
    """All that it can be taken for; empty for its class alone."""
    address_fields: tuple[AddressField, ...] = ()
    """Fields of unknown names that read as an address; only a live rule asks for them."""

    @property
    def websocket(self) -> bool:
        """Whether it asks for a WebSocket."""
        return any(kind is ClaimKind.WEBSOCKET for kind, _ in self.claims)

    @classmethod
    def of(
        cls,
        place: tuple[str, str, str, int, str],
        claims: Claims,
        classes: Classes,
    ) -> tuple["Facts", Kind]:
        """Give what is known of a request by its head, and what kind of call that makes it.

        place: method, scheme, host, port, and path and query as sent.
        """
        method, scheme, host, port, target = place
        more = claimed(claims, scheme, port)
        kind, found = classify_ways(find_ways(method, scheme, host, port, target, more), classes)
        return cls(method, scheme, host, port, target, kind.of, False, claims, found), kind

    @classmethod
    def of_request(cls, request: Request, classes: Classes) -> tuple["Facts", Kind]:
        """Give the same of a whole request; what its body makes of its class is left to the caller."""
        asked = request.method.upper(), request.scheme, request.host, request.port, request.target
        return cls.of(asked, claims_of(request), classes)

    @property
    def ways(self) -> Ways:
        """What it can be taken for."""
        more = claimed(self.claims, self.scheme, self.port)
        return find_ways(self.method, self.scheme, self.host, self.port, self.target, more)

    def ways_by_fields(self, allowed: Collection[str]) -> Ways:
        """Give what a server can take it for that goes by any field that reads as an address, but for some."""
        claims = (
            *self.claims,
            *(
                claim
                for one in self.address_fields
                if one.name not in allowed
                for claim in one.claims
            ),
        )
        more = claimed(claims, self.scheme, self.port)
        return find_ways(self.method, self.scheme, self.host, self.port, self.target, more)

    @property
    def may_be(self) -> frozenset[RequestClass]:
        """The classes that it may have, its own among them."""
        return self.classes | {self.request_class}


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
    awaited: Seq | None = None
    """Of a branch or a resumed run: the exchange that has to be asked for before anything may leave; None once that was."""
    diverged: str = ""
    """Of a resumed run: why its prefix is another one than was recorded; empty while it is not."""
    unknown: str = ""
    """Of a resumed run: which effect without an outcome the request asks for again, in words; empty for none."""
    given: str = ""
    """That another process of the run was given the answer to it, in words; empty where none was, or that does not count."""
    retried: str = ""
    """Of a resumed run: which effect of its tape it asks for again that nobody saw answered, in words; empty for none."""


UNCONSTRAINED = Constraints()
"""A run that goes on, with everything left."""

_NO_FIELDS: frozenset[str] = frozenset()
_SHIPPED_CLASSES = Classes()

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
    route: SandboxRoute | None = None
    """The sandbox that it is sent to instead of its upstream."""

    @property
    def verdict(self) -> VerdictKind:
        """What the log of a playback says of it."""
        if self.action is Action.LIVE and self.route is not None:
            return VerdictKind.SANDBOXED
        if (
            self.action is Action.STUB
            and self.answer is not None
            and self.answer.kind == HYPOTHETICAL
        ):
            return VerdictKind.HYPOTHETICAL
        return _VERDICTS[self.action]


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
    branch: Branch | None = None
    """What a branch declares; then no live rule of the configuration holds."""
    resume: Resume | None = None
    """What is known of the crashed run that is resumed; then none holds either, and effects have no stubs."""
    classes: Classes = _SHIPPED_CLASSES
    """By which requests are classified; a live class asks for that of each reading."""

    @classmethod
    def of(
        cls, config: Config, branch: Branch | None = None, resume: Resume | None = None
    ) -> "Policy":
        """Compile the rules of a configuration, and of a branch or a crashed run where the playback leaves its tape."""
        live: list[tuple[LiveRule, RequestClass | None]] = []
        if branch is not None:
            live += branch.live
        elif resume is None:
            live += [(rule, None) for rule in config.live if not rule.is_local]
            live += _class_rules(config.playback.inference, RequestClass.INFERENCE)
            live += _class_rules(config.playback.reads, RequestClass.READ)
        playback = config.playback
        return cls(
            tuple(live),
            config.effects,
            playback.effects == "stub",
            playback.allow_model_drift,
            config.reads,
            branch=branch,
            resume=resume,
            classes=config.classes,
        )

    def with_reasons(self, show: Callable[[str], str]) -> "Policy":
        """Give the policy with every reason as it may be shown and kept.

        show: takes secrets out of a text.
        """
        branch = self.branch
        if branch is not None:
            routes = tuple(replace(one, reason=show(one.reason)) for one in branch.routes)
            branch = replace(branch, live=_shown(branch.live, show), routes=routes)
        return replace(self, live=_shown(self.live, show), branch=branch)

    @property
    def leaves_tape(self) -> bool:
        """Whether a playback is a branch, or resumes a crashed run."""
        return self.branch is not None or self.resume is not None

    @property
    def sends(self) -> bool:
        """Whether there is a rule by which something of a playback leaves."""
        return bool(self.live) or (self.branch is not None and self.branch.sends)

    def without_live(self, now: "Policy") -> "Policy":
        """Give the policy without the live rules that a newer one no longer has; none is added."""
        if self.leaves_tape:
            return self  # whose rules are of no file
        known = {(rule.match, only): set(rule.allow_fields) for rule, only in now.live}
        kept = tuple(
            one
            for one in self.live
            if known.get((one[0].match, one[1]), _NO_FIELDS).issuperset(one[0].allow_fields)
            and (one[0].match, one[1]) in known
        )
        return self if kept == self.live else replace(self, live=kept)

    def find_live(self, facts: Facts) -> LiveRule | None:
        """Find the live rule that names a request."""
        if not self.live:
            return None
        ways, may_be = facts.ways, facts.may_be
        for rule, only in self.live:
            if only is not None and (facts.by_body or may_be != {only}):
                continue
            if only is RequestClass.READ and ways.websocket:
                continue
            if rule.match.surely(ways) and self._fits_by_fields(rule, only, facts):
                return rule
        return None

    def _fits_by_fields(self, rule: LiveRule, only: RequestClass | None, facts: Facts) -> bool:
        """Say whether a live rule, or class, also names what a server takes the request for that goes by its fields."""
        if not facts.address_fields:
            return True
        ways = facts.ways_by_fields(rule.allow_fields)
        if not rule.match.surely(ways):
            return False
        return only is None or classify_ways(ways, self.classes).all <= facts.may_be

    def find_forced(self, facts: Facts) -> LiveRule | None:
        """Find the live rule by which a request goes live whatever its tape holds: there is none in a branch."""
        return self.find_live(facts) if self.branch is None else None

    def find_route(self, facts: Facts) -> SandboxRoute | None:
        """Find the sandbox that a branch sends a request to."""
        if self.branch is None:
            return None
        ways = facts.ways
        for route in self.branch.routes:
            if route.match.surely(ways) and (
                not facts.address_fields or route.match.surely(facts.ways_by_fields(()))
            ):
                return route
        return None

    def find_hypothetical(self, facts: Facts) -> HypotheticalAnswer | None:
        """Find the answer that a branch was given for a request."""
        if self.branch is None:
            return None
        ways = facts.ways
        return next((one for one in self.branch.answers if one.match.clearly(ways)), None)

    def find_strange(self, facts: Facts) -> tuple[LiveRule, AddressField] | None:
        """Find the live rule that would name a request, were it not for a field that reads as an address; and that field."""
        if not facts.address_fields:
            return None
        rule = self.find_live(facts._replace(address_fields=()))
        if rule is None:
            return None
        for one in facts.address_fields:
            if self.find_live(facts._replace(address_fields=(one,))) is None:
                return rule, one
        return None

    def nearly_live(self, facts: Facts) -> LiveRule | None:
        """Find the live rule that would name a request, were it not spelled so that it may be another."""
        ways, may_be = facts.ways, facts.may_be
        if ways.plain and len(may_be) == 1 and not ways.websocket:
            return None
        fitting = (rule for rule, only in self.live if only is None or only in may_be)
        return next((rule for rule in fitting if rule.match.maybe(ways)), None)

    def find_repeat(self, facts: Facts) -> ReadRule | None:
        """Find the rule by which the last answer to a read is served again."""
        if not self.reads or facts.request_class is not RequestClass.READ:
            return None
        for rule in self.reads:
            if rule.match.clearly(facts.ways):
                return rule
        return None

    def find_answer(self, facts: Facts) -> EffectRule | None:
        """Find the first effect rule that names a request and has an answer to it."""
        for rule in self.effects:
            if rule.answer is not None and rule.match.maybe(facts.ways):
                # One that may be meant comes before those that are: nobody knows which it is.
                return rule if rule.match.clearly(facts.ways) else None
        return None

    def find_gate(self, facts: Facts) -> tuple[EffectRule, Gate] | None:
        """Find the effect rule whose gate holds a request, and its gate: of those that it may be, the strictest."""
        found = [
            (rule, rule.gate)
            for rule in may_decide(self.effects, facts, lambda rule: rule.gate is not None)
            if rule.gate is not None
        ]
        if not found:
            return None
        rule, gate = min(found, key=lambda one: _STRICT.index(one[1].when))
        return None if gate.when == "never" else (rule, gate)

    def imitates(self, facts: Facts) -> bool:
        """Say whether the tape is asked what an answer to a request looks like that is not on it, nor goes live."""
        return (
            facts.request_class is RequestClass.EFFECT
            and self.resume is None
            and self.stubs(facts)
            and not any(
                rule.answer is not None and rule.match.maybe(facts.ways) for rule in self.effects
            )
        )

    def stubs(self, facts: Facts) -> bool:
        """Say whether an effect that is not on the tape may be answered all the same."""
        found = list(may_decide(self.effects, facts, lambda rule: bool(rule.on_miss)))
        decided = bool(found) and found[-1].match.surely(facts.ways)
        return all(rule.on_miss == "stub" for rule in found) and (decided or self.stub)


_SHOWN = 4
_UNKNOWN_GATE = Gate("always", 600.0)
"""Holds what a resumed run may not do twice, where no rule names it; seconds."""

_STRICT = ("always", "duplicates", "never")


def may_decide[Rule: EffectRule | ContractRule](
    rules: Iterable[Rule], facts: Facts, says: Callable[[Rule], bool]
) -> Iterator[Rule]:
    """Give the rules of which one decides on a request: of those that it may be, up to the first that it surely is."""
    ways = facts.ways
    for rule in rules:
        if says(rule) and rule.match.maybe(ways):
            yield rule
            if rule.match.surely(ways):
                return


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
    if normal_host(facts.host) == CONTROL_HOST:
        return Decision(Action.CONTROL, "the control host is Playhead itself", "control host")
    if policy.stopped:
        return Decision(Action.REFUSE, policy.stopped, STOPPED)
    if mode is Mode.PASSTHROUGH:
        return Decision(Action.FORWARD, "mode passthrough", "mode")
    if mode is Mode.RECORD:
        out = Decision(Action.FORWARD, "mode record", "mode")
        decision = _let_out(out, facts, policy, constraints)
        return _hold_once(decision, out, constraints.given)
    if policy.branch is not None:
        return _decide_in_branch(facts, policy, policy.branch, found, constraints)
    if policy.resume is not None:
        return _decide_resumed(facts, policy, found, constraints)
    live = policy.find_live(facts)
    if live is not None:
        text = f"live rule {live.match.text!r}: {live.reason}"
        out = Decision(Action.LIVE, text, f"live {live.match.text}")
        return _let_out(out, facts, policy, constraints)
    return (
        _take_from_tape(facts, policy, found)
        or _stub(facts, policy, constraints)
        or Decision(Action.REFUSE, _refusal(facts, found) + _not_live(facts, policy), "not on tape")
    )


def _decide_in_branch(
    facts: Facts, policy: Policy, branch: Branch, found: Found | None, constraints: Constraints
) -> Decision:
    """Decide on a request of a branch."""
    taken = _take_from_tape(facts, policy, found)
    if taken is not None:
        return taken
    refusal = _refusal(facts, found)
    if constraints.awaited is not None or found is None:
        text = f"{refusal}; a branch sends nothing that it cannot look for on its tape first"
        if constraints.awaited is not None:
            text = (
                f"{refusal}; a branch at {branch.at} sends nothing before exchange {constraints.awaited} has been"
                " asked for"
            )
        return Decision(Action.REFUSE, text, BRANCH)
    given = policy.find_hypothetical(facts)
    if given is not None:
        text = f"not on tape; as given for {given.match.text!r}"
        return Decision(Action.STUB, text, f"{BRANCH} {given.match.text}", answer=given.answer)
    route = policy.find_route(facts)
    if route is not None:
        text = f"not on tape; sent to the sandbox {route.place}: {route.reason}"
        out = Decision(Action.LIVE, text, f"{BRANCH} {route.match.text}", route=route)
        return _let_out(out, facts, policy, constraints)
    live = policy.find_live(facts)
    if live is not None:
        is_afresh = branch.afresh and facts.request_class is RequestClass.INFERENCE
        where = "from its point on" if is_afresh else "not on tape;"
        text = f"{where} the branch has it live: {live.reason}"
        out = Decision(Action.LIVE, text, f"{BRANCH} {live.match.text}")
        return _let_out(out, facts, policy, constraints)
    return _stub(facts, policy, constraints) or Decision(
        Action.REFUSE,
        f"{refusal}, and the branch declares nothing that answers it{_not_live(facts, policy)}",
        "not on tape",
    )


def _decide_resumed(
    facts: Facts, policy: Policy, found: Found | None, constraints: Constraints
) -> Decision:
    """Decide on a request of a run that resumes a crashed one."""
    if constraints.diverged:
        return Decision(Action.REFUSE, constraints.diverged, RESUME)
    awaited = constraints.awaited
    spent = isinstance(found, Hit) and found.repeated and awaited is None
    taken = None if spent else _take_from_tape(facts, policy, found)
    # Behind the crash point telemetry is sent, as by any recording.
    if taken is not None and (taken.action is Action.SERVE or awaited is not None):
        return taken
    if awaited is not None:
        text = f"{_refusal(facts, found)}; a resumed run sends nothing before exchange {awaited} has been asked for again"
        return Decision(Action.REFUSE, text, RESUME)
    out = Decision(Action.LIVE, "behind the crash point", RESUME)
    decision = _let_out(out, facts, policy, constraints)
    why = constraints.unknown or constraints.given or constraints.retried
    return _hold_once(decision, out, why)


def _hold_once(decision: Decision, out: Decision, why: str) -> Decision:
    """Hold what may not leave twice; what was refused stays so.

    out: what becomes of it once it is let go.
    """
    if not why or decision.action is Action.REFUSE:
        return decision
    return replace(
        decision,
        action=Action.HOLD,
        reason=why,
        rule=decision.rule if decision.gate is not None else RESUME,
        gate=decision.gate or _UNKNOWN_GATE,
        then=out.action,
    )


def _take_from_tape(facts: Facts, policy: Policy, found: Found | None) -> Decision | None:
    """Serve what the tape holds; discard telemetry that it does not."""
    if isinstance(found, Hit):
        text = "on tape"
        if found.repeated:
            again = policy.find_repeat(facts)
            rule_text = "telemetry" if again is None else f"read rule {again.match.text!r}"
            if again is None and facts.request_class is not RequestClass.TELEMETRY:
                rule_text = "asked again"
            text = f"{rule_text}, served again"
        return Decision(Action.SERVE, text, "tape", found.seq, found.repeated)
    if isinstance(found, Drifted) and found.allowed:
        return Decision(
            Action.SERVE, found.text, "allow_model_drift", found.seq, allowed=found.allowed
        )
    if found is not None and _is_discarded(facts):
        return Decision(Action.DISCARD, "telemetry that is not on the tape", "telemetry")
    return None


def _stub(facts: Facts, policy: Policy, constraints: Constraints) -> Decision | None:
    """Answer an effect that the tape does not hold, where its rules say so."""
    if facts.request_class is not RequestClass.EFFECT or not policy.stubs(facts):
        return None
    if constraints.violation:
        return _violation_of(constraints)
    rule = policy.find_answer(facts)
    if rule is not None:
        text = f"not on tape; answered by effect rule {rule.match.text!r}"
        return Decision(Action.STUB, text, f"effects {rule.match.text}", answer=rule.answer)
    if constraints.model:
        text = "not on tape; answered after the pattern of recorded answers"
        return Decision(Action.STUB, text, "playback.effects")
    return None


def _is_discarded(facts: Facts) -> bool:
    """Say whether a request is telemetry that nothing depends on; a deletion is a deed, whatever it is declared as."""
    return facts.request_class is RequestClass.TELEMETRY and facts.method.upper() in SENT | ASKED


def _not_live(facts: Facts, policy: Policy) -> str:
    """Say which live rule does not apply, and why, where one nearly does."""
    strange = policy.find_strange(facts)
    if strange is not None:
        named, field = strange
        return (
            f"; live rule {named.match.text!r} does not apply, since the header field {one_line(field.name)!r} has a value that reads"
            f" as another host or path: allow_fields: [{one_line(field.name)}] on the rule says that it is none"
        )
    rule = policy.nearly_live(facts)
    if rule is None:
        return ""
    if facts.ways.plain:
        return (
            f"; live rule {rule.match.text!r} does not apply to a WebSocket, over which anything may be sent:"
            " use a rule for ws:// or wss://, or one without a method"
        )
    why = f"the request may be taken for more than one: {show_ways(facts.ways)}"
    return f"; live rule {rule.match.text!r} does not apply, since {why}"


def show_ways(ways: Ways) -> str:
    """Name on one line in what a request can be read in several ways."""
    told = []
    if len(ways.places) > 1:
        hosts = [
            f"{place.host or '(none)'}:{place.port}" if place.port >= 0 else place.host or "(none)"
            for place in ways.places[:_SHOWN]
        ]
        told.append(f"hosts {' and '.join(dict.fromkeys(hosts))}")
    if len(ways.methods) > 1:
        told.append(f"methods {' and '.join(ways.methods[:_SHOWN])}")
    if not ways.agreed:
        told.append("schemes or names that cannot be read")
    if ways.paths != (ways.sent,):
        told.append(f"paths {' and '.join(dict.fromkeys((ways.sent, *ways.paths[-1:])))}")
    return one_line("; ".join(told))


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
    if not facts.ways.plain:
        text += f"; it may be taken for more than one request: {show_ways(facts.ways)}"
    name = f"effects {rule.match.text}"
    return Decision(
        Action.HOLD, text, name, gate=gate, then=out.action, repeat=repeat, route=out.route
    )


def _violation_of(constraints: Constraints) -> Decision:
    return Decision(Action.REFUSE, constraints.violation, f"{CONTRACTS} {constraints.contract}")


def is_duplicate(repeat: Repeat | None) -> bool:
    """Say whether a repeat is one that a gate on duplicates holds: a safe retry is none."""
    return repeat is not None and repeat.is_duplicate


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


def _shown[C: RequestClass | None](
    rules: tuple[tuple[LiveRule, C], ...], show: Callable[[str], str]
) -> tuple[tuple[LiveRule, C], ...]:
    return tuple((replace(rule, reason=show(rule.reason)), only) for rule, only in rules)


def _class_rules(
    live: ClassLive | None, only: RequestClass
) -> Sequence[tuple[LiveRule, RequestClass | None]]:
    if live is None:
        return ()
    return tuple(
        (LiveRule(parse_match(f"* *://{host}"), live.reason, live.allow_fields), only)
        for host in live.hosts
    )
