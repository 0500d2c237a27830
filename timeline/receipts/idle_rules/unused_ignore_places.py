"""Unused rules: places of `ignore` rules that were in no request, most likely mistyped.

Whether a place was in a request is found out when the receipt is made, by what the canonical form becomes with it and
without it; nothing is counted while requests are served. Bounded: of each rule the first `_LOOKED_AT` requests of its
pattern are looked at. Where there are more, or one is too large or cannot be read, what was not found may still have
been there, and nothing is said. What requests are looked at with is imported where it is needed: most receipts are made
without, and it is a quarter of the time in which `playhead show` starts.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ....config import IgnoreRule, Match, parse_match
from ....config.parse_values import parse_header_name
from ....store import LogCorrupt
from ....tape.exchange import Exchange, RequestClass

if TYPE_CHECKING:
    from ....tape.canonical.canonical_request import Rules

_KEYS = ("json", "header", "query", "form", "regex")
_LOOKED_AT = 50
_LARGEST = 1024 * 1024
"""Bytes of a body that are looked at."""
_MOST_RULES = 200

Find = Callable[[Mapping[str, Any]], Exchange | None]
"""Finds the exchange that a verdict or an intent tells of, its own or the tape's."""


class _Rule:
    """What is known of one rule."""

    def __init__(self, match: Match, places: Iterable[tuple[str, str]]) -> None:
        self.match = match
        self.left = dict.fromkeys(places)
        """Places not seen so far."""
        self.asked: list[Mapping[str, Any]] = []
        self.unsure = False


class UnusedRules:
    """The places of a run's rules that no request had so far."""

    def __init__(self) -> None:
        """Begin with no rules."""
        self._rules: list[_Rule] = []

    def rules(self, noted: Iterable[tuple[str, Mapping[str, Iterable[str]]]]) -> None:
        """Take the rules that the run began with, as the log has them: pattern and places by key."""
        for text, places in noted:
            try:
                match = parse_match(text)
            except ValueError:  # of another version's grammar
                continue
            if len(self._rules) < _MOST_RULES:
                found = [(key, name) for key in _KEYS for name in places.get(key, ())]
                self._rules.append(_Rule(match, found))

    def __bool__(self) -> bool:
        """Say whether there are any rules."""
        return bool(self._rules)

    def request(self, data: Mapping[str, Any], place: tuple[str, str, int, str] | None) -> None:
        """Take a request of the run, as an intent or verdict tells it, and its URL taken apart."""
        if place is None or data["request_class"] == RequestClass.TELEMETRY.value:
            return
        for rule in self._rules:
            if not rule.unsure and rule.match.matches(data["method"], *place):
                if len(rule.asked) < _LOOKED_AT:
                    rule.asked.append(data)
                else:
                    rule.unsure = True

    def pass_over(self, method: str, place: tuple[str, str, int, str] | None) -> None:
        """Take a request that cannot be looked at: it may have had the places of the rules that name it."""
        for rule in self._rules:
            rule.unsure = rule.unsure or (place is not None and rule.match.matches(method, *place))

    def to_json(self, find: Find) -> list[dict[str, str]]:
        """Look at the requests, and give the places that none of them had, each with a sentence for people."""
        found = []
        for rule in self._rules:
            never = [one for one in rule.left if not _counts(*one)]
            for key, name in never:
                del rule.left[key, name]
                text = f"ignore rule {rule.match.text!r}: {key} {name!r} does not count in matching anyway"
                found.append({"key": "ignore", "rule": rule.match.text, "text": text})
            if rule.asked and rule.left:
                _look(rule, find)
                found += [
                    _never_matched(rule.match.text, *one) for one in rule.left if not rule.unsure
                ]
        return found


def _counts(key: str, name: str) -> bool:
    from ....tape.headers.compared_fields import is_noise

    return key != "header" or not is_noise(parse_header_name(name).lower().encode())


def _never_matched(match: str, key: str, name: str) -> dict[str, str]:
    text = f"ignore rule {match!r}: {key} {name!r} was in no request of this run that it matched"
    return {"key": "ignore", "rule": match, "text": text}


def _look(rule: _Rule, find: Find) -> None:
    """Strike the places that the requests of a rule had."""
    from ....tape.canonical.canonical_request import compile_rules
    from ....tape.canonical.regex_masks import slow

    tried: dict[tuple[str, str], Rules] = {}
    none = compile_rules()
    for data in rule.asked:
        if not rule.left:
            return
        try:
            exchange = find(data)
        except LogCorrupt:
            exchange = None
        if exchange is None or _is_unclear(exchange):
            rule.unsure = True
            continue
        for place in list(rule.left):
            if place not in tried:
                key, name = place
                only = IgnoreRule(rule.match, **{key: (name,)})
                tried[place] = compile_rules((only,), time.thread_time)
            had = _had(exchange, none, tried[place])
            if had or slow(tried[place].searched):
                del rule.left[place]


def _is_unclear(exchange: Exchange) -> bool:
    request = exchange.request
    # Rules speak of the messages of a WebSocket too.
    return (
        exchange.websocket is not None
        or request.spilled is not None
        or len(request.body) > _LARGEST
    )


def _had(exchange: Exchange, without: "Rules", rules: "Rules") -> bool:
    from ....tape.canonical.canonical_request import canonical
    from ....tape.canonical.regex_masks import MASK

    request, kind = exchange.request, exchange.request_class
    plain, masked = canonical(request, kind, without), canonical(request, kind, rules)
    if plain.kind is not masked.kind and MASK.encode() not in masked.body:
        # Searched as a text, and nothing was found in it.
        masked = masked._replace(kind=plain.kind, body=plain.body)
    return plain != masked
