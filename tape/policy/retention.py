"""Retention: which runs are old enough to be deleted or archived.

Rules, the first that speaks decides:

1. A run that has not ended stays, and one that is pinned.
2. A run with labels that the configuration names stays for the longest of their times, any other for `keep`; both
   are counted from its end.
3. What a run that stays plays or stands on stays with it: its receipt is nothing without its tape.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...config.schema import Retention


class Listed(NamedTuple):
    """What is asked of a run."""

    number: int
    name: str
    ended_ns: int
    """Since the epoch; 0 of one that has not ended."""
    parent: int = 0
    """Number of the run that it plays, or 0."""
    labels: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    changed_ns: int = 0
    """Of one that was archived and written to since: when it was restored; else 0."""


class Sentence(NamedTuple):
    """Whether a run goes, and why."""

    run: Listed
    goes: bool
    reason: str


def decide_retention(runs: Sequence[Listed], rules: Retention, now_ns: int) -> list[Sentence]:
    """Say of each run whether it goes; in the order of `runs`."""
    found = {run.number: _alone(run, rules, now_ns) for run in runs}
    # What plays another came after it: from the newest on, so that a whole line stays with its last.
    for run in sorted(runs, key=lambda run: run.number, reverse=True):
        tape = found.get(run.parent)
        if tape is not None and tape.goes and not found[run.number].goes:
            found[run.parent] = Sentence(tape.run, False, f"{run.name} plays it")
    return [found[run.number] for run in runs]


def _alone(run: Listed, rules: Retention, now_ns: int) -> Sentence:
    if not run.ended_ns:
        return Sentence(run, False, "it has not ended")
    if run.pinned:
        return Sentence(run, False, "it is pinned")
    times = dict(rules.labels)
    own = [label for label in run.labels if label in times]
    keep_s, what = rules.keep_s, "retention.keep"
    if own:
        label = max(own, key=lambda name: float("inf") if times[name] is None else times[name] or 0)
        keep_s, what = times[label], f"retention.labels.{label}"
    if keep_s is None:
        return Sentence(run, False, f"{what} is forever")
    age_s = (now_ns - run.ended_ns) / 1e9
    goes = age_s > keep_s
    return Sentence(run, goes, f"ended {_days(age_s)} ago, {what} is {_days(keep_s)}")


def decide_archiving(runs: Sequence[Listed], rules: Retention, now_ns: int) -> list[Sentence]:
    """Say of each run whether it is to be archived; in the order of `runs`."""
    return [_hot(run, rules, now_ns) for run in runs]


def _hot(run: Listed, rules: Retention, now_ns: int) -> Sentence:
    if run.archived and not run.changed_ns:
        return Sentence(run, False, "it is archived")
    if not run.ended_ns:
        return Sentence(run, False, "it has not ended")
    if run.pinned:
        return Sentence(run, False, "it is pinned")
    age_s = (now_ns - (run.changed_ns or run.ended_ns)) / 1e9
    since = "written to since it was restored" if run.changed_ns else "ended"
    text = f"{since} {_days(age_s)} ago, retention.hot is {_days(rules.hot_s)}"
    return Sentence(run, age_s > rules.hot_s, text)


def _days(seconds: float) -> str:
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + unit
    return f"{max(seconds, 0):.0f}s"
