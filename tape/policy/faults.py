"""Injected faults: which requests they hit, and what the client receives.

1. Which are hit follows from the rules, their seed and the order in which matching requests arrive, and from nothing
   else: no clock, no chance. Each rule counts all that match it, whether or not another rule hits them; of several
   rules that hit a request the first does.
2. A fault is laid over the recorded answer as steps, the same steps that play a recorded fault.
3. What is made up says so in `x-playhead`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ...config import FaultRule, Inject, Mode
from ..exchange import Ending, Headers, Request
from ..playback.script import Step, StepKind
from .decide import Facts
from .refusal import injected_headers, is_grpc

SHORT_CIRCUITS = frozenset({Inject.STATUS, Inject.RESET, Inject.TIMEOUT})
"""Faults of requests that the upstream is never asked."""


class Injection(NamedTuple):
    """A rule that hits a request."""

    rule: FaultRule
    nth: int
    """Which of the requests that match the rule it is, from 1."""

    @property
    def kind(self) -> Inject:
        """What is injected."""
        return self.rule.inject

    @property
    def ending(self) -> Ending:
        """How the client's connection ends, where it does."""
        return Ending(self.rule.ending)

    @property
    def text(self) -> str:
        """One line for people."""
        return f"injected: {self.rule.label}"


class Faults:
    """The rules of one run, and how many requests each has matched so far."""

    def __init__(self, rules: Sequence[FaultRule], seed: int, mode: Mode) -> None:
        """Begin a run in this mode; rules for other modes are left out."""
        self.seed = seed
        self._rules = [rule for rule in rules if mode in rule.modes]
        self._counts = [0] * len(self._rules)

    def take(self, facts: Facts, *, upgrade: bool = False) -> Injection | None:
        """Count a request that has arrived; give what is injected into it.

        upgrade: it asks for a WebSocket, which is hit by what needs no answer alone.
        """
        found = None
        ways = facts.ways if self._rules else None
        for index, rule in enumerate(self._rules):
            if upgrade and rule.inject not in SHORT_CIRCUITS:
                continue
            if ways is None or not rule.match.maybe(ways):
                continue
            self._counts[index] += 1
            if found is None and hits(rule, self._counts[index], self.seed):
                found = Injection(rule, self._counts[index])
        return found


def hits(rule: FaultRule, nth: int, seed: int) -> bool:
    """Say whether a rule hits the nth request that matches it, from 1."""
    if rule.nth is not None:
        return nth == rule.nth
    if rule.every is not None:
        return nth % rule.every == 0
    if rule.share is not None:
        return _draw(rule.label, nth, seed) < rule.share
    return True


def _draw(label: str, nth: int, seed: int) -> float:
    """Give a number from 0 up to 1 that looks drawn, and is always the same."""
    text = f"{seed} {nth} {label}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64


def lay_over(steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
    """Give the steps that play a recorded answer with a fault over it; `status` has an answer of its own."""
    match injection.kind:
        case Inject.DELAY:
            return _later(steps, int(injection.rule.delay_s * 1e6))
        case Inject.CUT:
            return _cut(steps, injection)
        case Inject.RESET:
            return iter((Step(0, StepKind.FAIL, ending=injection.ending),))
        case Inject.TIMEOUT | Inject.TIMEOUT_AFTER_SUCCESS:
            return iter((Step(0, StepKind.HANG),))
        case Inject.STATUS:
            raise ValueError("a status is an answer of its own")


def _later(steps: Iterable[Step], delay_us: int) -> Iterator[Step]:
    for step in steps:
        latest_us = step.latest_us + delay_us if step.latest_us else 0
        yield step._replace(at_us=step.at_us + delay_us, latest_us=latest_us)


def _cut(steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
    """Play so many bytes and then the cut; an answer that is shorter ends as it does."""
    left = injection.rule.after_bytes
    for step in steps:
        if step.kind is StepKind.HEAD and not left:
            yield step
            yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
            return
        if step.kind is StepKind.DATA and len(step.data) >= left:
            yield step._replace(data=step.data[:left])
            yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
            return
        left -= len(step.data)
        yield step


def made_answer(request: Request, injection: Injection) -> tuple[int, Headers, bytes]:
    """Give the answer of a fault that is a status: status, header fields without `content-length`, body."""
    rule = injection.rule
    headers = injected_headers(request, rule.label, rule.retry_after_s)
    if is_grpc(request):
        return 200, headers, b""
    message = f"Playhead injected a fault here: {rule.label}"
    error = {"message": message, "type": "playhead_injected", "code": "injected", "param": None}
    body = {
        "type": "error",
        "error": error,
        "message": message,
        "playhead": {"injected": rule.label},
    }
    return rule.status, headers, json.dumps(body).encode("ascii")
