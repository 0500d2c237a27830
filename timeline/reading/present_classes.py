"""Read a store with the class that each recorded request has under the patterns of now.

A class is written down once, when its request is made; the patterns that made it may be corrected later. So whatever a class
decides reads recordings through here: what is unused and which effects there were, in receipts and in every listing. Rules:

1. It holds for tapes. What a playback decided on stays as it was decided: its receipt is the account of that run.
2. Where the patterns are those that the tape was recorded under, nothing is computed.
3. A request of which the tape has no exchange goes by what its log has: method, URL and claims. What its body may make harmless
   counts as an effect, unless its body made it what it was.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...config import Classes
from ...store import LogCorrupt, RunInfo, Store
from ...tape.exchange import Exchange, RequestClass
from ...tape.records.events import Event, EventKind

if TYPE_CHECKING:
    from ...tape.classify.by_body import ClassNow

_MOST_KNOWN = 100_000
"""Requests whose class is remembered."""


def with_present_classes(store: Store, classes: Classes) -> Store:
    """Give a store whose tapes are read with the classes that their requests have under these patterns; only for reading.

    store: may itself be such a store, of other patterns.
    """
    present = _PresentClasses(store, classes)
    return store.read_through(present.exchange, present.event)


class _PresentClasses:
    """What is read of tapes under some patterns. Any thread."""

    def __init__(self, store: Store, classes: Classes) -> None:
        self._store = store
        self._classes = classes
        self._known: dict[tuple[int, int], ClassNow] = {}
        """By run and seq."""

    @cached_property
    def _digest(self) -> bytes:
        # Late, as all that classifies: most commands that look back read no tape of other patterns.
        from ...tape.classify.by_method_and_url import classes_digest

        return classes_digest(self._classes)

    def exchange(self, run: RunInfo, exchange: Exchange) -> Exchange:
        """Give an exchange as it is under the patterns."""
        if not self._is_other(run):
            return exchange
        now = self._find(run, exchange).of
        return exchange if now is exchange.request_class else replace(exchange, request_class=now)

    def event(self, run: RunInfo, event: Event) -> Event:
        """Give an event as it is under the patterns."""
        if event.kind not in (EventKind.INTENT, EventKind.VERDICT) or not self._is_other(run):
            return event
        now = self._find_logged(run, event)
        data = {key: value for key, value in event.data.items() if key != "by_body"}
        data["request_class"] = now.of.value
        if now.by_body:
            data["by_body"] = True
        return replace(event, data=data)

    def _is_other(self, run: RunInfo) -> bool:
        """Say whether a run is a tape that was recorded under other patterns."""
        return run.is_tape and run.classes != self._digest

    def _find(self, run: RunInfo, exchange: Exchange) -> "ClassNow":
        key = run.number, exchange.seq
        known = self._known.get(key)
        if known is None:
            from ...tape.classify.by_body import find_class

            known = find_class(exchange.request, self._classes)
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = known
        return known

    def _find_logged(self, run: RunInfo, event: Event) -> "ClassNow":
        known = self._known.get((run.number, event.seq))
        if known is not None:
            return known
        try:
            exchange = self._store.exchanges.find(run, event.seq)
        except LogCorrupt:  # whoever needs the exchange is told
            exchange = None
        return self._by_head(event.data) if exchange is None else self._find(run, exchange)

    def _by_head(self, data: Mapping[str, Any]) -> "ClassNow":
        """Say what kind of call a request is of which there is no exchange."""
        from ...tape.classify.by_body import ClassNow
        from ...tape.classify.by_method_and_url import classify_ways
        from .logged_place import split_place, ways_of

        was, by_body = RequestClass(data["request_class"]), bool(data.get("by_body"))
        place = split_place(data["url"])
        if place is None or data["method"] == "CONNECT":
            return ClassNow(was, by_body)
        kind = classify_ways(ways_of(data, place), self._classes).kind
        if by_body and (kind.by_path or not kind.named):
            return ClassNow(was, by_body)
        return ClassNow(kind.of, by_body=False)
