"""Hints: rules of the configuration that matched nothing in a run, most likely because a pattern is mistyped.

Only what the run's own requests show, counted from its log when the receipt is made. A rule that matched by its
pattern is hinted at only for the places of `ignore` that were never there
(`unused_ignore_places.py`), and those of `redact` (`unused_redact_rules.py`), which have no pattern of requests. A run without requests says nothing about rules.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ....config import Match, parse_match
from ...reading.logged_place import split_place, ways_of
from .unused_ignore_places import Find, UnusedRules
from .unused_redact_rules import UnusedRedactRules


class Hints:
    """The rules of a run that no request has matched so far."""

    def __init__(self) -> None:
        """Begin with no rules."""
        self._left: dict[tuple[str, str, str | None], Match] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._unused_rules = UnusedRules()
        self._unused_redact_rules = UnusedRedactRules()

    def rules(
        self, noted: Mapping[str, Any], places: Iterable[Any] = (), redacted: Iterable[Any] = ()
    ) -> None:
        """Take the rules that the run began with, as the log has them: key -> (pattern, the class it is for or None).

        redacted: key and name of each rule of `redact`.
        """
        self._unused_rules.rules(places)
        self._unused_redact_rules.rules(redacted)
        for key, rules in noted.items():
            for text, only in rules:
                try:
                    self._left[key, text, only] = parse_match(text)
                except ValueError:  # of another version's grammar
                    continue

    def request(self, data: Mapping[str, Any]) -> None:
        """Take a request of the run, as an intent or verdict tells it."""
        self._unused_rules.request(data, split_place(data["url"]) if self._unused_rules else None)
        self._unused_redact_rules.request(data)
        asked = data["method"], data["url"], data["request_class"]
        if not self._left or asked in self._seen:
            return
        if len(self._seen) < 10_000:
            self._seen.add(asked)
        place = split_place(data["url"])
        if place is None:
            return
        ways = ways_of(data, place)
        for rule, match in list(self._left.items()):
            only = rule[2]
            if only is not None and only != data["request_class"]:
                continue
            if match.maybe(ways):
                del self._left[rule]

    def held(self, data: Mapping[str, Any]) -> None:
        """Take a request of the run of which the log has only that a gate held it: its class and its body are not known."""
        place = split_place(data["url"])
        self._unused_rules.pass_over(data["method"], place)
        key, _, text = data["rule"].partition(" ")
        ways = None if place is None else ways_of(data, place)
        for rule, match in list(self._left.items()):
            if rule[:2] == (key, text) or (ways is not None and match.maybe(ways)):
                del self._left[rule]

    def to_json(self, find: Find = lambda _: None) -> list[dict[str, str]]:
        """Give what is left, each rule or place with a sentence for people.

        find: reads a request; without it nothing is said of places.
        """
        idle = [
            {
                "key": key,
                "rule": text,
                "text": f"{key} rule {text!r} matched no {only or 'request'} of this run",
            }
            for key, text, only in self._left
        ]
        return [
            *idle,
            *self._unused_rules.to_json(find),
            *self._unused_redact_rules.to_json(find),
        ]
