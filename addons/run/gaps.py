"""The part of a run that could not be written, because the disk is full or not writable.

A gap is told in the run's log: once when it begins, if that much can still be written, and once when it is over, with
what is missing.
"""

import time

from ...tape.records.events import Event, EventKind


class Gap:
    """What of one run is missing since its log was last told. Belongs to the event loop."""

    def __init__(self) -> None:
        """Begin with nothing missing."""
        self.since_ns = 0
        """When the first of it was lost; 0 while nothing is."""
        self.reason = ""
        self.exchanges = 0
        """Whose outcome was not written."""
        self.effects = 0
        """Of what was sent on, those whose intent was not written before."""
        self.begun = False
        """Whether the log says that there is one."""

    @property
    def open(self) -> bool:
        """Whether anything is missing."""
        return self.since_ns > 0

    def note(self, reason: str, *, exchanges: int = 0, effects: int = 0) -> None:
        """Note that something was not written."""
        if not self.open:
            self.since_ns, self.reason = time.time_ns(), reason
        self.exchanges += exchanges
        self.effects += effects

    def add(self, later: "Gap") -> None:
        """Take in what was lost after this was told to a log that could not be written."""
        if later.open:
            self.note(later.reason, exchanges=later.exchanges, effects=later.effects)

    def begin_event(self) -> Event:
        """Make the event that says that there is one."""
        logged = {"since_ns": self.since_ns, "until_ns": 0, "reason": self.reason}
        return Event(EventKind.GAP, time.time_ns(), logged)

    def end_event(self, records: int) -> Event:
        """Make the event that says what is missing.

        records: rows of all kinds that were not written.
        """
        now = time.time_ns()
        counts = {"exchanges": self.exchanges, "effects": self.effects, "records": records}
        times = {"since_ns": self.since_ns, "until_ns": now}
        return Event(EventKind.GAP, now, {**times, "reason": self.reason, **counts})
