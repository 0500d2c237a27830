"""Unused rules: rules of `redact` whose place was in no request or answer of a recording, most likely mistyped.

A slip there leaves what was to be hidden on the tape. Whether a place was there is found out when the receipt is made, from the
exchanges as they are stored: redaction replaces values, not names. The log has no pattern, as it may say what is to be hidden: of these it
is known alone that nothing was replaced which no named place explains. Bounded: where a run has more than is looked at, or what
cannot be looked at, nothing is said.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from ....store import LogCorrupt
from ....tape.exchange import Exchange, HttpRequest, HttpResponse
from ....tape.records.content_coding import read_codings, undo_what_came

_MOST_EXCHANGES = 2000
_MOST_BYTES = 16 * 1024 * 1024
_MOST_NAMES = 2000
_LIKE = 0.75
_CONFIGURED = "configured"
"""Kind of a redaction that a rule of the configuration made."""
_NAMED = ("header", "query", "json", "form")
_IN_HEADS = ("header", "query")
_JSON_NAME = re.compile(rb'"([^"\\]{1,64})\\*"\s*:')
_FORM_NAME = re.compile(rb'(?:^|&)([^=&\s"{}]{1,64})=|name="([^"]{1,64})"')
_QUERY_NAME = re.compile(r"[?&]([^=&#]{1,64})=")

Find = Callable[[Mapping[str, Any]], Exchange | None]


class _Place(NamedTuple):
    """Where a rule looks, as the log has it."""

    key: str
    name: str
    """Of a pattern its place in the list of rules."""

    @property
    def is_named(self) -> bool:
        return self.key in _NAMED


class UnusedRedactRules:
    """The places of a recording's rules of `redact`, and the requests that are looked at."""

    def __init__(self) -> None:
        """Begin with no rules."""
        self._left: dict[_Place, None] = {}
        self._asked: dict[int, Mapping[str, Any]] = {}
        self._names: dict[str, dict[str, None]] = {key: {} for key in _NAMED}
        self._own: tuple[str, ...] = ()
        """Ends of the places of redactions that rules for heads explain."""
        self._are_bodies_known = True
        self._is_unexplained = False

    def rules(self, noted: Iterable[tuple[str, str]]) -> None:
        """Take the rules that the run began with, as the log has them: key, and name or number."""
        self._left |= {_Place(key, name): None for key, name in noted}
        self._own = tuple(f".{one.name.lower()}" for one in self._left if one.key in _IN_HEADS)

    def request(self, data: Mapping[str, Any]) -> None:
        """Take a request of the run, as an intent or verdict tells it."""
        if self._left and len(self._asked) <= _MOST_EXCHANGES:
            self._asked[data["seq"]] = data

    def to_json(self, find: Find) -> list[dict[str, str]]:
        """Look at the exchanges, and give the rules that met nothing, each with a sentence for people."""
        if not self._left or not self._asked or len(self._asked) > _MOST_EXCHANGES:
            return []
        size = 0
        for data in self._asked.values():
            if self._is_unexplained and not any(one.is_named for one in self._left):
                break
            try:
                exchange = find(data)
            except LogCorrupt:
                exchange = None
            if exchange is None or size > _MOST_BYTES:
                return []
            size += self._look(exchange)
        return [self._explain(one) for one in self._left if self._is_known(one)]

    def _is_known(self, place: _Place) -> bool:
        """Say whether that a rule met nothing is known for sure."""
        if place.is_named:
            return place.key == "header" or self._are_bodies_known
        return self._are_bodies_known and not self._is_unexplained

    def _look(self, exchange: Exchange) -> int:
        """Strike the places that an exchange had; give how many bytes were looked at."""
        named = {one for one in self._left if one.is_named}
        texts = [*_read_texts(exchange)]
        if exchange.websocket is not None or exchange.spilled:
            self._are_bodies_known = False
        self._collect(exchange, texts)
        url = exchange.request.url.lower()
        self._is_unexplained = self._is_unexplained or any(
            one.kind == _CONFIGURED and not one.place.lower().endswith(self._own)
            for one in exchange.redactions
        )
        for one in named:
            if _has(one, exchange, url, texts):
                del self._left[one]
        return sum(map(len, texts))

    def _collect(self, exchange: Exchange, texts: list[bytes]) -> None:
        """Keep the names that are there, one of which may be meant."""
        found: tuple[Iterable[str], ...] = (
            _list_headers(exchange),
            map(unquote_plus, _QUERY_NAME.findall(exchange.request.url)),
            (one.decode("utf-8", "replace") for text in texts for one in _JSON_NAME.findall(text)),
            (
                (one or other).decode("utf-8", "replace")
                for text in texts
                for one, other in _FORM_NAME.findall(text)
            ),
        )
        for key, names in zip(_NAMED, found, strict=True):
            known = self._names[key]
            for name in names:
                if len(known) >= _MOST_NAMES:
                    break
                known[name] = None

    def _explain(self, place: _Place) -> dict[str, str]:
        if not place.is_named:
            text = f"redact[{place.name}], a {place.key}, replaced nothing in this run that no other rule replaces"
            return {"key": "redact", "rule": f"{place.key} {place.name}", "text": text}
        text = f"redact rule {place.key} {place.name!r} met nothing in this run"
        wanted = place.name.lower()
        known = {one.lower(): one for one in self._names[place.key]}
        if wanted in known:
            text += ": its field is there, and its value is no text"
        elif near := difflib.get_close_matches(wanted, known, 1, _LIKE):
            text += f"; did you mean {known[near[0]]!r}? Mend the rule, then `playhead redact --rewrite RUN`"
        return {"key": "redact", "rule": f"{place.key} {place.name}", "text": text}


def _has(place: _Place, exchange: Exchange, url: str, texts: list[bytes]) -> bool:
    """Say whether an exchange has a place, by its name in any case."""
    name = place.name.lower()
    if any(one.place.lower().endswith(f".{name}") for one in exchange.redactions):
        return True
    plain = re.escape(name.encode())
    match place.key:
        case "header":
            return name in _list_headers(exchange)
        case "query":
            keys = {unquote_plus(one) for one in _QUERY_NAME.findall(url)}
            form = rb"[?&]" + plain + rb"="
            return name in keys or any(re.search(form, one, re.IGNORECASE) for one in texts)
        case "json":
            form = rb"(?<![\w$@.-])" + plain + rb"""\\*["']\s*:\s*\\*["']"""
        case _:
            form = rb"(?:^|&)" + plain + rb'=|name="' + plain + rb'"'
    return any(re.search(form, one, re.IGNORECASE) for one in texts)


def _list_headers(exchange: Exchange) -> set[str]:
    heads = [exchange.request.headers, *(one.headers for one in exchange.interim)]
    if exchange.response is not None:
        heads += [exchange.response.headers, exchange.response.trailers]
    heads.append(exchange.request.trailers)
    return {name.decode("latin-1").lower() for head in heads for name, _ in head}


def _read_texts(exchange: Exchange) -> Iterator[bytes]:
    """Read the bodies of an exchange, without their codings."""
    messages: list[HttpRequest | HttpResponse] = [exchange.request]
    messages += [exchange.response] if exchange.response is not None else []
    for message in messages:
        coding = read_codings(message.headers)
        plain = undo_what_came(message.body, coding) if coding else None
        if message.body:
            yield message.body if plain is None else plain
