"""The divergences of a playback, in its receipt: the root, what followed from it, and what is folded under it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....tape.diff.divergence_types import (
    COMMAND,
    SERVED_ALL_THE_SAME,
    UNKEPT,
    UNKNOWN_OUTCOME,
    DivergenceKind,
)
from ....tape.matching.idempotency_keys import KEY_ADDED
from ....tape.records.events import Event, EventKind
from ....tape.shell_words import shell_word
from ..bounded_rows import BoundedRows, add_row
from ..interventions.injected import InjectedFaults, InjectedRow
from ..safe_terminal_text import ROWS, TEXT, plain, titled_rows
from .root_divergence import START_UP, Calls, fold

_ADVICE = 20_000
"""Characters of what names flags to be typed: twice the longest name and more, since part of a flag is another."""
_DRIFTED = DivergenceKind.DRIFTED.value


@dataclass(slots=True)
class Divergences:
    """The requests of one playback that its tape does not have, or has differently."""

    rows: list[Mapping[str, Any]] = field(default_factory=BoundedRows)
    """The first of those that were noted, by seq."""
    root: Mapping[str, Any] | None = None
    """The divergence that the others follow from, or what was unused where nothing else diverged."""
    followed: Counter[str] = field(default_factory=Counter)
    """How many others there were, by kind; what is folded under the root does not count."""
    folded: list[dict[str, Any]] = field(default_factory=list)
    """Calls of start-up that diverged beside the root, and retries of what was refused."""
    _calls: Calls = field(default_factory=Calls, repr=False)
    _recorded_calls: Calls = field(default_factory=Calls, repr=False)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            self._calls.take(event.data)
        elif event.kind is EventKind.DIVERGED:
            self.add(event.data["divergence"])

    def take_recorded(self, event: Event) -> None:
        """Take in an event of the tape's log."""
        if event.kind is EventKind.INTENT:
            self._recorded_calls.take(event.data)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a divergence."""
        self._calls.note_diverged(row)
        add_row(self.rows, row)
        self.followed[row["kind"]] += 1

    def remove(self, seq: int) -> None:
        """Take back those of a request."""
        for row in [row for row in self.rows if row["seq"] == seq]:
            self.rows.remove(row)
            self.followed[row["kind"]] -= 1

    def find_unfinished(self) -> set[int]:
        """Give the recorded requests that were asked again, and whose recording ended before their outcome was known."""
        rows = [(row.get("nearest_seq"), row["text"]) for row in self.rows]
        return {seq for seq, text in rows if seq and text == UNKNOWN_OUTCOME.format(seq)}

    def find_root(self, unused: Sequence[Mapping[str, Any]], unused_count: int) -> dict[int, int]:
        """Find the divergence that the others follow from, and fold what is none of its own.

        unused: a divergence for each recorded exchange that was not asked for, the first of them; none of a branch.
        Gives the refused requests that are retries, each with the seq of the request that it repeats.
        """
        self.rows.sort(key=lambda row: int(row["seq"]))
        found = fold(self.rows, unused, self._calls, self._recorded_calls)
        self.root, self.folded = found.root, found.rows
        self.followed[DivergenceKind.UNUSED.value] += unused_count
        gone = [row for row in self.rows if int(row["seq"]) in found.retries]
        self.rows[:] = [row for row in self.rows if row not in gone]
        start_up = [row for row in found.rows if row["what"] == START_UP]
        self.followed.subtract(row["kind"] for row in (*gone, *start_up))
        if self.root is not None:
            self.followed[self.root["kind"]] -= 1
        self.followed = +self.followed
        return found.retries

    @property
    def lacks_answer(self) -> bool:
        """Whether an answer that was asked for is not whole on the tape."""
        return self.root is not None and UNKEPT in str(self.root.get("text", ""))

    def has_changed_before(self, point: int | None) -> bool:
        """Say whether a request before one is not as it was recorded; an idempotency key that it did not have changes nothing.

        point: of the request, in this run; None where it never came, so that all are before it.
        """
        return any(
            (point is None or row["seq"] < point) and not _names_effect(row) for row in self.rows
        )

    def count(self, unused: int) -> int:
        """Give how many were noted; what was unused does not count."""
        start_up = [row["what"] for row in self.folded].count(START_UP)
        return self.followed.total() + (self.root is not None) + start_up - unused

    def find_injected_before(self, faults: InjectedFaults) -> InjectedRow | None:
        """Find the last fault that was injected before the root, which most likely follows from it."""
        if self.root is None:
            return None
        is_left = self.root["kind"] == DivergenceKind.UNUSED.value
        return faults.find_last(None if is_left else int(self.root["seq"]))

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {
            "root": dict(self.root) if self.root is not None else None,
            "followed": {
                "count": self.followed.total(),
                "by_kind": dict(sorted(self.followed.items())),
            },
            "divergences": [dict(row) for row in self.rows],
            "folded": self.folded,
        }

    def lines(self, after: InjectedRow | None, run: str = "") -> list[str]:
        """Show the root, and how much followed.

        after: the fault that it may follow from.
        run: whose they are; empty where nobody can ask for the others.
        """
        root = self.root
        if root is None or not self.rows:
            return []
        lines = ["diverged:", *_divergence(root)]
        if after is not None:
            lines.append(
                f"         after {plain(after.rule)} was injected into seq {after.seq}, which it may well follow from"
            )
        rule = root.get("rule")
        if rule:
            lines.append("         to ignore it, in the configuration:")
            lines += [f"           {plain(line)}" for line in str(rule).split("\n")[:ROWS]]
            if root.get("note"):
                lines.append(f"         but {plain(str(root['note']))}")
        count = self.followed.total()
        if count:
            kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.followed.items()))
            # What was unused is listed anyway, as left on the tape.
            others = count - self.followed[DivergenceKind.UNUSED.value]
            lists = f" (playhead receipt {shell_word(run)} --all lists them)"
            lines.append(
                f"  followed by {count} more: {plain(kinds)}{lists if run and others else ''}"
            )
        return lines + titled_rows(
            "  folded under it", [f"  {_folded(row)}" for row in self.folded]
        )

    def all_lines(self, count: int) -> list[str]:
        """Show every one that is listed, the root among them; nothing where there is none.

        count: given by `count`.
        """
        if not self.rows:
            return []
        lines = ["all divergences, by seq:"]
        for row in self.rows:
            lines += _divergence(row)
        more = count - len(self.rows)
        return [*lines, f"  … and {more} more"] if more > 0 else lines


def difference_lines(row: Mapping[str, Any]) -> list[str]:
    """Show the first differences of a divergence."""
    return [
        f"         {plain(str(one['place']), 60)}: recorded "
        f"{plain(repr(one['recorded']), 90)}, asked {plain(repr(one['asked']), 90)}"
        for one in row.get("differences", ())[:3]
    ]


def _divergence(row: Mapping[str, Any]) -> list[str]:
    where = "at the end" if row["method"] == COMMAND else f"seq {plain(str(row['seq']), 20)}"
    lines = [
        f"  {where}  {plain(str(row['kind']))}: "
        f"{plain(str(row['method']) + ' ' + str(row['url']), 100)}",
        f"         {plain(str(row['text']), TEXT if row['kind'] != _DRIFTED else _ADVICE)}",
    ]
    lines += difference_lines(row)
    cause = row.get("cause")
    if cause:
        lines += [
            f"         {plain(str(cause['place']), 60)}: the {side} value came from {_origin(cause[side])}"
            for side in ("recorded", "asked")
            if cause[side]
        ]
    return lines


def _origin(row: Mapping[str, Any]) -> str:
    """Name an answer: by its seq on the tape, and by the request it was given to where that is another."""
    tape_seq, seq = row["tape_seq"], row["seq"]
    place = plain(str(row["place"]), 60)
    if tape_seq is None:
        return f"{place} of the answer to seq {seq}, which is not on the tape"
    also = f" (given to seq {seq})" if seq not in (None, tape_seq) else ""
    return f"{place} of the answer to seq {tape_seq} on the tape{also}"


def _names_effect(row: Mapping[str, Any]) -> bool:
    """Say whether all that differs is an idempotency key where the tape has none."""
    return bool(row["kind"] == _DRIFTED and row["text"] == SERVED_ALL_THE_SAME.format(KEY_ADDED))


def _folded(row: Mapping[str, Any]) -> str:
    place = f"seq {row['seq']} {row['method']} {row['url']}"
    if row["what"] == START_UP:
        return f"{START_UP} {place} ({row['kind']})"
    return f"{row['count']} {'retry' if row['count'] == 1 else 'retries'} of {place}"
