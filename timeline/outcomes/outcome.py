"""The outcome of a run: whether it did what was wanted, and who says so.

The first of these that says anything counts: the labels that a person gave it, what the agent told the control host, and the exit code
of its command. Of several words of one sort the bad ones count.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from ...store import RunInfo, RunStatus, Store
from ...tape.records.events import Event, EventKind

GOOD = frozenset(("ok", "good", "pass", "passed", "success"))
BAD = frozenset(("failed", "fail", "bad", "wrong", "error"))


class Verdict(StrEnum):
    """Whether a run did what was wanted."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a run did what was wanted, and who says so."""

    verdict: Verdict
    by: str = ""
    """`label`, `agent`, `exit code` or `recovered`; empty where nobody says anything."""
    text: str = ""
    """The label, the agent's words, or the code."""
    has_gap: bool = False
    """Whether not all of the run could be written."""

    @property
    def words(self) -> str:
        """Give it for a listing; empty where there is nothing to say."""
        return ", ".join([*[self.verdict.value][: bool(self.by)], *["gap"][: self.has_gap]])

    @property
    def is_ok(self) -> bool:
        """Whether somebody says that it did."""
        return self.verdict is Verdict.OK


def find_outcome(info: RunInfo, events: Iterable[Event]) -> Outcome:
    """Find the outcome of a run.

    events: its log.
    """
    labels = {label.lower(): label for label in info.labels}
    for words, verdict in ((BAD, Verdict.FAILED), (GOOD, Verdict.OK)):
        named = sorted(labels[one] for one in labels.keys() & words)
        if named:
            return Outcome(verdict, "label", named[0])
    told: Outcome | None = None
    code: int | None = None
    for event in events:
        if event.kind is not EventKind.NOTED:
            continue
        word = event.data.get("outcome")
        if isinstance(word, str):
            told = Outcome(read_word(word), "agent", str(event.data.get("why", "")))
        found = event.data.get("child_exit")
        if isinstance(found, int):
            code = found
    if told is not None:
        return told
    if code is not None:
        return Outcome(Verdict.FAILED if code else Verdict.OK, "exit code", str(code))
    if info.status is RunStatus.RECOVERED:
        return Outcome(Verdict.FAILED, "recovered", info.end)
    return Outcome(Verdict.UNKNOWN)


def read_outcome(store: Store, info: RunInfo) -> Outcome:
    """Read the outcome of a run from its log; of one that only an archive has, what its labels say. Blocking.

    Raises: LogCorrupt.
    """
    gaps: list[Event] = []

    def read() -> Iterator[Event]:
        for event in store.events.of_kind(info, EventKind.NOTED, EventKind.GAP):
            if event.kind is EventKind.GAP:
                gaps.append(event)
            yield event

    found = find_outcome(info, read())
    return replace(found, has_gap=bool(gaps))


def outcome_json(outcome: Outcome) -> dict[str, str | None]:
    """Give an outcome as JSON types."""
    return {
        "verdict": outcome.verdict.value,
        "by": outcome.by or None,
        "text": outcome.text or None,
    }


def read_word(word: str) -> Verdict:
    """Read a word for an outcome."""
    short = word.strip().lower()
    if short in GOOD:
        return Verdict.OK
    return Verdict.FAILED if short in BAD else Verdict.UNKNOWN
