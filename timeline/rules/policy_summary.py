"""What other rules would change in many runs: counts by rule, coverage, the first change and samples.

A rule *covers* a request if it decides on it, in a recording or in its replay. Rules that no request matched are *idle*: most likely
their pattern is mistyped, or nothing of the time looked at is what they are for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...config import Config
from ...store import RunInfo, Store
from ..receipts.idle_rules.unmatched_rules import Hints
from .policy_dry_run import DryRunVerdict, Row, dry_run_policy

_SAMPLES = 3
_KEYS = ("effects", "reads", "live", "contracts", "faults", "ignore")


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that would be decided otherwise."""

    run: str
    row: Row


@dataclass(slots=True)
class RuleCount:
    """What one rule would decide."""

    requests: int = 0
    changed: int = 0
    runs: set[str] = field(default_factory=set)
    """Runs in which it changes something."""
    samples: list[Sample] = field(default_factory=list)


class PolicySummary:
    """What the rules of a configuration would change in the runs that were added, oldest first."""

    def __init__(self, config: Config) -> None:
        """Begin without any run."""
        self._config = config
        self.runs = 0
        self.requests = 0
        self.changed = 0
        self.changed_runs = 0
        self.covered = 0
        """Requests that a rule of the file decides on."""
        self.rules: dict[str, RuleCount] = {}
        self.first: Sample | None = None
        self._hints = Hints()
        self._hints.rules(_rules_of(config))
        self._names = {f"{key} {match}" for key, match in _named(config)}

    def add(self, store: Store, run: RunInfo) -> None:
        """Decide on a run again. Blocking.

        Raises: LogCorrupt.
        """
        before = self.changed

        def observe(row: Row, data: Mapping[str, Any], changed: bool) -> None:
            self._hints.request(data)
            self._count(Sample(run.id, row), changed)

        self.requests += dry_run_policy(store, run, self._config, observe).requests
        self.runs += 1
        self.changed_runs += self.changed > before

    def _count(self, sample: Sample, changed: bool) -> None:
        row = sample.row
        self.changed += changed
        if changed and self.first is None:
            self.first = sample
        deciding = [row.after] if row.replay is None else [row.after, row.replay]
        named = [one for one in deciding if one.rule in self._names]
        self.covered += bool(named)
        for verdict in named or deciding[:1]:
            count = self.rules.setdefault(verdict.rule or "(none)", RuleCount())
            count.requests += 1
            if changed:
                count.changed += 1
                count.runs.add(sample.run)
                if len(count.samples) < _SAMPLES:
                    count.samples.append(sample)

    @property
    def idle(self) -> list[str]:
        """The rules of the file that matched no request."""
        return [f"{one['key']} {one['rule']}" for one in self._hints.to_json()]

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; `docs/commands-rules.md` describes them."""
        return {
            "runs": self.runs,
            "requests": self.requests,
            "changed": self.changed,
            "changed_runs": self.changed_runs,
            "covered": self.covered,
            "first": _sample_json(self.first) if self.first is not None else None,
            "rules": [
                {
                    "rule": name,
                    "of_the_file": name in self._names,
                    "requests": count.requests,
                    "changed": count.changed,
                    "runs": len(count.runs),
                    "samples": [_sample_json(one) for one in count.samples],
                }
                for name, count in self.by_rule()
            ],
            "idle": self.idle,
        }

    def by_rule(self) -> list[tuple[str, RuleCount]]:
        """Give the counts, those that change most first."""
        return sorted(self.rules.items(), key=lambda one: (-one[1].changed, -one[1].requests))


def _named(config: Config) -> Iterator[tuple[str, str]]:
    for key in _KEYS:
        for rule in getattr(config, key):
            match = getattr(rule, "match", None)
            if match is not None and not getattr(rule, "is_local", False):
                yield key, match.text


def _rules_of(config: Config) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for key, text in _named(config):
        found.setdefault(key, []).append((text, None))
    return found


def _sample_json(sample: Sample) -> dict[str, Any]:
    row = sample.row
    return {
        "run": sample.run,
        "seq": row.seq,
        "method": row.method,
        "url": row.url,
        "before": _verdict_json(row.before),
        "after": _verdict_json(row.after),
        "replay": _verdict_json(row.replay) if row.replay is not None else None,
    }


def _verdict_json(verdict: DryRunVerdict) -> dict[str, str]:
    return {
        "class": verdict.request_class,
        "verdict": verdict.verdict,
        "rule": verdict.rule,
        "reason": verdict.reason,
    }
