"""Reads that clients send from a thread, by chance: whether they come at all differs from run to run, and is no divergence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ....tape.classify.background_reads import (
    POLL,
    BackgroundRead,
    find_background_read,
    is_poll,
    may_poll,
)
from ....tape.exchange import Exchange, Request, VerdictKind
from ....tape.records.events import Event, EventKind
from ..bounded_rows import LISTED
from ..safe_terminal_text import plain
from .divergences import Divergences
from .left_on_tape import UNUSED, LeftOnTape
from .request_outcomes import Requests

Find = Callable[[int], Exchange | None]
"""Reads an exchange by its seq; None too where nobody knows any more what it was."""


@dataclass(slots=True)
class BackgroundReads:
    """The reads of one playback that came, or did not, unlike on its tape."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """By seq; `extra` says which came and are not on the tape."""

    def spare_unasked(self, left: LeftOnTape, requests: Requests, find: Find) -> None:
        """Take such reads from what was left on the tape.

        find: reads the tape.
        """
        last = left.last
        if requests.counts[UNUSED] != len(left.rows):
            return
        for row in reversed(left.rows.copy()):
            recorded = find(row["seq"])
            found = find_background_read(recorded.request) if recorded is not None else None
            if recorded is not None and is_poll(recorded):
                found = POLL
            if recorded is None or found is None or not (found.anywhere or row["seq"] == last):
                continue
            if not _is_answer_of(found, recorded):
                continue
            self.rows.insert(0, {**row, "sdk": found.sdk, "extra": False})
            left.rows.remove(row)
            requests.counts[UNUSED] -= 1
            last -= row["seq"] == last

    def spare_extra(
        self,
        requests: Requests,
        diverged: Divergences,
        find: Find,
        tape: Callable[[], Iterable[Event]],
        find_recorded: Find,
    ) -> None:
        """Take from what diverged such reads as did not come, or came too late, while recording.

        find: reads the run.
        tape: gives the tape's log.
        find_recorded: reads the tape.
        """
        if max(len(requests.refused), len(diverged.rows)) >= LISTED:
            return
        for row in reversed(requests.refused.copy()):
            is_last = bool(requests.asked) and row["seq"] == requests.asked[-1]
            exchange = find(row["seq"])
            found = find_background_read(exchange.request) if exchange is not None else None
            if found is None and exchange is not None and may_poll(exchange.request):
                found = POLL
            if exchange is None or found is None or not (found.anywhere or is_last):
                continue
            if not _knows(tape(), exchange.request, found, find_recorded):
                continue
            if is_last:
                requests.asked.pop()
            requests.refused.remove(row)
            requests.counts[VerdictKind.REFUSED.value] -= 1
            diverged.remove(row["seq"])
            told = {key: row[key] for key in ("seq", "method", "url")}
            self.rows.append({**told, "sdk": found.sdk, "extra": True})

    def lines(self) -> list[str]:
        """Give them as text."""
        return [
            f"{'refused' if row['extra'] else 'not asked for'}, as may be: {row['method']} {plain(row['url'])} ({row['sdk']} asks in the background)"
            for row in self.rows
        ]


def _knows(log: Iterable[Event], request: Request, found: BackgroundRead, find: Find) -> bool:
    """Say whether a tape has requests about the same bucket, account or endpoint, and no other answer to such a read."""
    place = f"{request.scheme}://{request.authority}".lower()
    name = request.path.rpartition("/")[2]
    there = [
        event
        for event in log
        if event.kind is EventKind.INTENT and event.data["url"].lower().startswith(place)
    ]
    if found is POLL:
        same = [one for one in there if one.data["url"].lower().startswith(f"{place}/")]
        kept = [find(event.seq) for event in same]
        return bool(kept) and all(one is not None and is_poll(one) for one in kept)
    about = [event for event in there if f"/{name}" in event.data["url"]]
    if found.refused_by:
        for event in about:
            one = find(event.seq) if event.data["method"] == "GET" else None
            if one is not None and not _is_answer_of(found, one):
                return False
    return bool(about)


def _is_answer_of(found: BackgroundRead, exchange: Exchange) -> bool:
    """Say whether an exchange has the answer that goes with a read of a thread."""
    status = exchange.response.status if exchange.response is not None else 0
    return found.refused_by in (0, status)
