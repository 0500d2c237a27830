"""Find what an agent had kept of its state by the control host, between two of its requests.

The log is searched by halves for the place of a request, so that the search takes as long in a long run as in a short one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.exchange import Seq
from ...tape.records.events import Event, EventKind
from .calls_before import Exchanges

_MOST = 2000
"""Rows of the log that are looked at before a request."""
_NEAR = 64
"""Rows among which there is one that tells of a request; a log without is not searched."""
_NEXT = 6
"""Rows among which there is one most often."""
_ASKED = (EventKind.INTENT, EventKind.VERDICT)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an agent had kept of its state."""

    after: Seq
    """The request that had come last."""
    at_ns: int
    text: str
    """As JSON."""

    @property
    def value(self) -> Json:
        """It, parsed."""
        return find_json(self.text.encode("utf-8", "surrogatepass"))


def find_snapshots(exchanges: Exchanges, after: int, until: int) -> list[Snapshot]:
    """Find the snapshots that came behind the request `after`, 0 for the beginning, and before the request `until`.

    Raises: LogCorrupt.
    """
    end = _find_place(exchanges, until)
    if end is None:
        return []
    begin = _find_place(exchanges, after) if after else 0
    last, found = Seq(0), []
    for event in _between(exchanges, max(begin or 0, end - _MOST), end):
        if event.kind in _ASKED:
            last = event.seq
        elif event.kind is EventKind.NOTED and isinstance(text := event.data.get("snapshot"), str):
            found.append(Snapshot(last, event.at_ns, text))
    return found


def _between(exchanges: Exchanges, begin: int, end: int) -> Iterator[Event]:
    while begin < end:
        page = exchanges.store.events.read(exchanges.info, begin, min(end - begin, 500))
        if not page:
            return
        yield from page
        begin = page[-1].number


def _find_place(exchanges: Exchanges, seq: int) -> int | None:
    """Find the number of the last row before that in which a request came; None where the log does not have it."""
    if _find_asked(exchanges, 0) is None:
        return None

    def has_come(after: int) -> bool:
        asked = _find_asked(exchanges, after)
        return asked is None or asked.seq >= seq

    low, high = -1, _NEAR
    while not has_come(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if has_come(middle) else (middle, high)
    found = _find_asked(exchanges, high)
    return found.number - 1 if found is not None else None


def _find_asked(exchanges: Exchanges, after: int) -> Event | None:
    """Find the first row behind another one that tells of a request, if it is near."""
    for most in (_NEXT, _NEAR):
        rows = exchanges.store.events.read(exchanges.info, after, most)
        for row in rows:
            if row.kind in _ASKED:
                return row
        if len(rows) < most:
            break
    return None
