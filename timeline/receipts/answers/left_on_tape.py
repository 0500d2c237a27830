"""The exchanges of a tape that a playback did not ask for, in its receipt."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....config import Classes, Match, parse_match
from ....tape.diff.divergence_types import Divergence, DivergenceKind
from ....tape.exchange import Exchange, RequestClass, Seq
from ....tape.records.events import Event, EventKind
from ...reading.logged_place import split_place, ways_of
from ..bounded_rows import BoundedRows, add_row
from ..safe_terminal_text import titled_rows

UNUSED = "unused"
"""Their key in the counts of a receipt."""
_KINDS = frozenset(RequestClass)


@dataclass(slots=True)
class LeftOnTape:
    """What the tape of one playback has that was not asked for."""

    rows: list[dict[str, Any]] = field(default_factory=BoundedRows)
    """By seq, the first of them."""
    last: int = 0
    """Seq of the last recorded request that is no telemetry."""
    _used: Collection[int] = ()
    _has_gap: bool = False
    """Whether rows of the run's log are missing: what is in none may have been asked for all the same."""
    _spared: list[tuple[Match, str | None]] = field(default_factory=list, repr=False)
    """The run's live rules, each with the class it is limited to."""
    _classes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The patterns of the run's classes, by class."""
    _begun: dict[int, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Intents whose outcome has not come."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is EventKind.NOTED:
            self._spared += _rules(event.data.get("live", ()))
            if "telemetry" in event.data:  # as older versions noted it
                self._classes = {RequestClass.TELEMETRY.value: event.data["telemetry"]}
            self._classes = event.data.get("classes", self._classes)

    @property
    def classes(self) -> Classes:
        """The run's own classes: what is telemetry by these need not be asked for, whatever it was recorded as."""
        return Classes(
            **{kind: _patterns(texts) for kind, texts in self._classes.items() if kind in _KINDS}
        )

    def begin(self, used: Collection[int], *, has_gap: bool) -> None:
        """Begin to read the tape's log.

        used: recorded exchanges that were served, or replaced.
        has_gap: whether rows of the run's log are missing.
        """
        self._used, self._has_gap = used, has_gap

    def take_recorded(self, event: Event, counts: Counter[str]) -> None:
        """Take in an event of the tape's log, with the class that its request has by `classes`.

        counts: of the receipt; what is unused is counted.
        """
        if event.kind is EventKind.INTENT:
            self._begun[event.seq] = event.data
            if event.data["request_class"] != RequestClass.TELEMETRY.value:
                self.last = max(self.last, event.seq)
        elif event.kind is EventKind.OUTCOME and event.seq in self._begun:
            self._add(event.seq, self._begun.pop(event.seq), counts)
        elif event.kind is EventKind.VERDICT:  # a gate or a limit refused it
            self._add(event.seq, event.data, counts)

    def close(
        self,
        asked: Collection[int],
        find: Callable[[int], Exchange | None],
        counts: Counter[str],
    ) -> None:
        """Add what had no outcome when the recording ended.

        asked: recorded requests without an outcome that were asked again.
        find: reads an exchange of the tape.
        """
        for seq, data in self._begun.items():
            effect = data["request_class"] == RequestClass.EFFECT.value
            if data["method"] == "CONNECT" or seq in asked:
                continue
            # It may have happened, so a replay that leaves it out is another run; so is one that leaves out what had begun to be answered.
            if effect or find(seq) is not None:
                self._add(Seq(seq), data, counts, outcome="unknown")
        self.rows.sort(key=lambda row: int(row["seq"]))

    def _add(self, seq: Seq, data: Mapping[str, Any], counts: Counter[str], **more: str) -> None:
        if seq not in self._used and not self._is_spared(data):
            counts[UNUSED] += 1
            row = {"seq": seq, "method": data["method"], "url": data["url"], **more}
            add_row(self.rows, row)

    def _is_spared(self, data: Mapping[str, Any]) -> bool:
        """Say whether a recorded exchange need not be used: telemetry, and what goes live instead."""
        kind = data["request_class"]
        if kind == RequestClass.TELEMETRY.value:
            return True
        place = split_place(data["url"])
        if place is None or not self._spared:
            return False
        # Nothing leaves as a read that method and URL do not show.
        by_body = data.get("by_body", False)
        ways = ways_of(data, place)
        return any(
            rule.surely(ways)
            for rule, only in self._spared
            if only is None or (only == kind and not by_body)
        )

    def divergences(self) -> list[Mapping[str, Any]]:
        """Give each as a divergence."""
        return [_divergence(row, self._unasked) for row in self.rows]

    def lines(self, count: int) -> list[str]:
        """List them.

        count: how many there are in all.
        """
        rows = [
            f"seq {row['seq']}  {row['method']} {row['url']}"
            + (" (outcome unknown)" if "outcome" in row else "")
            for row in self.rows
        ]
        return titled_rows(f"left on the tape, {self._unasked}", rows, count)

    @property
    def _unasked(self) -> str:
        """Say that they were not asked for, as far as that is known."""
        return "never asked for, or in the gap" if self._has_gap else "never asked for"


def _patterns(texts: Any) -> tuple[Match, ...]:
    return tuple(match for match, _ in _rules((text, None) for text in texts))


def _rules(noted: Any) -> Iterator[tuple[Match, str | None]]:
    for text, only in noted:
        with contextlib.suppress(ValueError):
            yield parse_match(text), only


def _divergence(row: Mapping[str, Any], unasked: str) -> Mapping[str, Any]:
    text = f"on the tape, and {unasked}"
    if "outcome" in row:
        text = f"under way when the recording ended, so its outcome is unknown, and {unasked}"
    kind, seq = DivergenceKind.UNUSED, Seq(row["seq"])
    return Divergence(kind, seq, row["method"], row["url"], seq, (), text).to_json()
