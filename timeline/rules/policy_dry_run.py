"""Dry run of a policy: what other rules would decide for a recorded run, from its log alone.

Rules:

1. What was found on the tape is taken from the log as it was; rules of matching (`ignore`) are `reindex`'s affair.
2. Of a recording also its replay is decided on: each request as one that its own tape holds.
3. A request that was stopped, or refused for its order or by a contract, stays that: bodies are not looked at
   (`contract_violations.py` does).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...config import Config, Mode
from ...store import RunInfo, Store
from ...tape.canonical.address_fields import find_address_fields
from ...tape.canonical.target_overrides import read_claims
from ...tape.classify.by_body import class_by_body
from ...tape.diff.nearest import Endpoints
from ...tape.exchange import (
    IMPORT_RULE,
    Fingerprint,
    Phase,
    Repeat,
    RepeatKind,
    RequestClass,
    Seq,
    VerdictKind,
)
from ...tape.matching.cursor import Cursor, Exhausted, Hit, Unknown
from ...tape.policy.approval_decision import is_undone
from ...tape.policy.decide import (
    CONTRACTS,
    LIMITS,
    STOPPED,
    Action,
    Constraints,
    Decision,
    Drifted,
    Facts,
    Found,
    Policy,
    decide,
)
from ...tape.records.events import EventKind
from ..lookup.endpoints import find_places, read_requests
from ..lookup.stub_examples import find_models
from ..reading.logged_place import split_place

_VERDICTS = {
    Action.FORWARD: VerdictKind.RECORDED,
    Action.LIVE: VerdictKind.LIVE,
    Action.HOLD: VerdictKind.HELD,
    Action.SERVE: VerdictKind.SERVED,
    Action.STUB: VerdictKind.STUBBED,
    Action.DISCARD: VerdictKind.DISCARDED,
    Action.REFUSE: VerdictKind.REFUSED,
}
_STAYS = frozenset({STOPPED, LIMITS})
"""What decided about the run, not about the request."""


@dataclass(frozen=True, slots=True)
class DryRunVerdict:
    """What was decided for a request."""

    request_class: str
    verdict: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """A request for which something else would be decided."""

    seq: Seq
    method: str
    url: str
    before: DryRunVerdict
    after: DryRunVerdict
    replay: DryRunVerdict | None
    """Of a recording: what its replay would do, where that is not to serve it from the tape."""

    @property
    def is_decided_otherwise(self) -> bool:
        """Whether the decision, or the rule that makes it, is another one; on what was imported no rule has decided."""
        before, after = self.before, self.after
        same = (before.request_class, before.verdict) == (after.request_class, after.verdict)
        return not same or before.rule not in (after.rule, IMPORT_RULE)


@dataclass(slots=True)
class PolicyDryRun:
    """What other rules would change in a run."""

    run: str
    requests: int = 0
    changed: list[Row] = field(default_factory=list)
    after: Counter[str] = field(default_factory=Counter)
    """Verdicts under the rules given."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {
            "run": self.run,
            "requests": self.requests,
            "after": dict(sorted(self.after.items())),
            "changed": [
                {
                    "seq": row.seq,
                    "method": row.method,
                    "url": row.url,
                    "before": _shown(row.before),
                    "after": _shown(row.after),
                    "replay": _shown(row.replay) if row.replay is not None else None,
                }
                for row in self.changed
            ],
        }


def dry_run_policy(
    store: Store,
    run: RunInfo,
    config: Config,
    observe: Callable[[Row, Mapping[str, Any], bool], None] = lambda _row, _data, _changed: None,
) -> PolicyDryRun:
    """Decide on a run again. Blocking.

    observe: is given each request as it is decided on, what the log tells of it, and whether anything changes.
    Raises: LogCorrupt.
    """
    made = PolicyDryRun(run.id)
    dry_run = _DryRun(store, run, config)
    for asked in dry_run.asked():
        row = dry_run.row(asked)
        made.requests += 1
        made.after[row.after.verdict] += 1
        changed = row.is_decided_otherwise or row.replay is not None
        if changed:
            made.changed.append(row)
        observe(row, asked.data, changed)
    return made


@dataclass(slots=True)
class _Asked:
    """One request as the log has it."""

    data: Mapping[str, Any]
    """Of its intent or verdict; the last one stands."""
    verdict: str
    held: bool = False


class _DryRun:
    def __init__(self, store: Store, run: RunInfo, config: Config) -> None:
        self._store = store
        self._run = run
        self._config = config
        self._policy = Policy.of(config)
        self._mode = Mode(run.mode)
        self._undone: set[int] = set()
        self._tape = store.runs.find_tape(run)
        self._cursor = Cursor(self._next_use)
        self._near: Endpoints | None = None

    def asked(self) -> list[_Asked]:
        """Give the requests of the run, by seq."""
        found: dict[int, _Asked] = {}
        held: set[int] = set()
        for event in self._store.events.all(self._run):
            data = event.data
            if event.kind is EventKind.HELD:
                held.add(event.seq)
            elif event.kind is EventKind.INTENT:
                live = self._mode is Mode.PLAYBACK
                verdict = VerdictKind.LIVE if live else VerdictKind.RECORDED
                found[event.seq] = _Asked(data, verdict.value, event.seq in held)
            elif event.kind is EventKind.VERDICT:
                found[event.seq] = _Asked(data, data["verdict"], event.seq in held)
            elif event.kind is EventKind.OUTCOME and "status" in data:
                phase = Phase(data["fault"][1]) if "fault" in data else None
                if is_undone(data["status"], phase):
                    self._undone.add(event.seq)
        return [found[seq] for seq in sorted(found)]

    def row(self, asked: _Asked) -> Row:
        """Decide on one request; in order of their seqs, since the tape is exhausted on the way."""
        data = asked.data
        before = DryRunVerdict(
            data["request_class"],
            VerdictKind.HELD.value if asked.held else asked.verdict,
            data.get("rule", ""),
            data.get("reason", ""),
        )
        seq, method, url = Seq(data["seq"]), data["method"], data["url"]
        place = split_place(url)
        refused = before.verdict == VerdictKind.REFUSED.value
        stays = before.rule in _STAYS or before.rule.startswith(f"{CONTRACTS} ")
        if place is None or stays or (refused and before.rule == "tape"):
            return Row(seq, method, url, before, before, None)
        facts = self._with_fields(seq, self._facts(seq, data, place))
        found = self._find(asked, facts) if self._mode is Mode.PLAYBACK else None
        model = self._shows(asked, facts, found)
        constraints = Constraints(repeat=self._repeat(data), model=model)
        after = decide(facts, self._mode, self._policy, found, constraints)
        replay = None
        if self._mode is Mode.RECORD:
            played = decide(facts, Mode.PLAYBACK, self._policy, Hit(seq), constraints)
            if played.action is not Action.SERVE:
                replay = _verdict_of(facts, played)
        return Row(seq, method, url, before, _verdict_of(facts, after), replay)

    def _facts(self, seq: Seq, data: Mapping[str, Any], place: tuple[str, str, int, str]) -> Facts:
        recorded = data["request_class"]
        claims = read_claims(data.get("claims", ()))
        facts, kind = Facts.of((data["method"].upper(), *place), claims, self._config.classes)
        if (kind.named and not kind.by_path) or kind.of.value == recorded:
            return facts
        # Its body said more, or a pattern that is not there any more.
        exchange = self._store.exchanges.find(self._run, seq)
        if exchange is None:
            now = RequestClass(recorded)
            by_body = (kind.of, now) in (
                (RequestClass.EFFECT, RequestClass.READ),
                (RequestClass.EFFECT, RequestClass.TELEMETRY),
                (RequestClass.INFERENCE, RequestClass.EFFECT),
            )
            return facts._replace(request_class=now, by_body=by_body)
        now = class_by_body(kind, exchange.request)
        return facts._replace(request_class=now, by_body=now is not kind.of)

    def _with_fields(self, seq: Seq, facts: Facts) -> Facts:
        """Add the fields by which a live rule may not apply; they are asked for where one would."""
        if self._policy.find_live(facts) is None:
            return facts
        exchange = self._store.exchanges.find(self._run, seq)
        if exchange is None:
            return facts
        asked = exchange.request
        place = facts.scheme, facts.host, facts.port, facts.target
        fields = find_address_fields((*asked.headers, *asked.trailers), *place)
        return facts._replace(address_fields=fields)

    def _find(self, asked: _Asked, facts: Facts) -> Found | None:
        data = asked.data
        if self._tape is None:
            return None
        fingerprint = Fingerprint(data["fingerprint"])
        if asked.verdict != VerdictKind.SERVED.value:
            if not fingerprint:
                return Unknown()
            repeat = self._policy.find_repeat(facts) is not None
            return self._cursor.find(fingerprint, facts.request_class, repeat=repeat)
        seq = Seq(data["tape_seq"])
        if data["match"] == "drifted":
            allowed = tuple(one for one in self._policy.drift if str(one) in data["allowed"])
            return Drifted(seq, data["reason"], allowed=allowed)
        if data["match"] == "repeated":
            again = facts.request_class is RequestClass.TELEMETRY or self._policy.find_repeat(facts)
            return Hit(seq, repeated=True) if again else Exhausted(seq, 1)
        self._cursor.take(fingerprint, Hit(seq))
        return Hit(seq)

    def _shows(self, asked: _Asked, facts: Facts, found: Found | None) -> bool:
        """Say whether the tape shows what an answer to an effect that it does not hold looks like."""
        missed = isinstance(found, Unknown | Exhausted)
        if self._tape is None or not missed or self._policy.find_live(facts) is not None:
            return False
        if not self._policy.imitates(facts):
            return False
        if asked.data.get("after"):
            return True
        own = self._store.exchanges.find(self._run, Seq(asked.data["seq"]))
        if own is None:
            return False
        classes = self._config.classes
        if self._near is None:
            self._near = find_places(read_requests(self._store, self._tape), classes).near
        return bool(find_models(self._store, self._tape, self._near, classes, own.request, found))

    def _next_use(self, fingerprint: Fingerprint, after: int) -> Seq | None:
        assert self._tape is not None
        return self._store.index.next_use(self._tape, fingerprint, after)

    def _repeat(self, data: Mapping[str, Any]) -> Repeat | None:
        if "repeat" not in data:
            return None
        of, kind, unseen = data["repeat"]
        return None if of in self._undone else Repeat(Seq(of), RepeatKind(kind), unseen)


def _verdict_of(facts: Facts, decision: Decision) -> DryRunVerdict:
    kind = _VERDICTS.get(decision.action)
    verdict = kind.value if kind is not None else decision.action.value
    return DryRunVerdict(facts.request_class.value, verdict, decision.rule, decision.reason)


def _shown(verdict: DryRunVerdict) -> dict[str, str]:
    return {
        "class": verdict.request_class,
        "verdict": verdict.verdict,
        "rule": verdict.rule,
        "reason": verdict.reason,
    }
