"""Redact heads: declared secrets first, so that they are known when the rest is searched.

An agent sends most of its header fields with every request. What becomes of one depends on itself and on what the
run has learned by then; so it is remembered until more is learned, and only what is new is searched.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..exchange import TARGET, Headers, HttpRequest, Redaction, Request, Secret, find_header_part
from .credential_fields import CONFIGURED, SECRET
from .learned import Learned
from .placeholders.placeholder import Placeholders
from .search import SHORTEST, Search, Searched
from .secrets_in_heads import Heads, Pair, blank

_MOST = 1024
"""Fields of one place that are remembered, and targets."""
_LONGEST = 1024
"""Bytes of one that is remembered."""

_Field = tuple[bytes, bytes]


class _Told(NamedTuple):
    """What becomes of a field for its name."""

    field: _Field
    places: tuple[Redaction, ...]
    rest: bytes
    """What is still to be searched."""


class _Seen:
    """Fields and targets in which a search found nothing, under what was learned by then."""

    __slots__ = ("fields", "targets", "under")

    def __init__(self, under: tuple[bytes, ...]) -> None:
        self.under = under
        self.fields: dict[_Field, _Told] = {}
        self.targets: dict[str, None] = {}


class Fields:
    """Replaces the secrets of heads, wherever in them they stand. May be used from any thread."""

    def __init__(
        self,
        heads: Heads,
        search: Search,
        learned: Learned,
        placeholders: Placeholders,
        paths: Sequence[re.Pattern[bytes]] = (),
    ) -> None:
        """Take who knows the declared places, who searches, and a configuration's patterns for paths."""
        self._heads = heads
        self._search = search
        self._learned = learned
        self._placeholders = placeholders
        self._paths = paths
        self._seen: dict[str, _Seen] = {}

    def request(self, request: HttpRequest) -> tuple[Request, tuple[Redaction, ...]]:
        """Give a request without its body and the secrets of its head, and where they were."""
        place, headers, target = "request.header.", request.headers, request.target
        trailers = [self._named(field, "request.trailer.") for field in request.trailers]
        pairs: list[Pair] = []
        if target not in self._known(place).targets:
            target, pairs = self._declared(target)
        seen, told = self._told(headers, place)
        found = [one for field in (*told, *trailers) for one in field.places]
        found += [
            Redaction(f"request.query.{name}", kind)
            for name, kind in dict.fromkeys((pair.name, pair.kind) for pair in pairs)
        ]
        secrets = [Secret(TARGET, p.at, p.size, p.kind) for p in pairs if not p.alone]
        if target not in seen.targets:
            target, more = self._searched_target(target, pairs)
            if more:
                found.append(Redaction("request.target", SECRET))
                secrets = in_order([*secrets, *more])
            elif not pairs and len(target) <= _LONGEST:
                _keep(seen.targets, target, None)
        kept, places, inside = self._searched(headers, told, seen, place)
        found += places
        secrets = [*inside, *secrets]
        kept_trailers, places, _ = self._searched(
            request.trailers, trailers, _Seen(()), "request.trailer."
        )
        found += places
        new = Request(
            method=request.method,
            scheme=request.scheme,
            host=request.host,
            port=request.port,
            target=target,
            http_version=request.http_version,
            headers=kept,
            trailers=kept_trailers,
            spilled=request.spilled,
            secrets=tuple(secrets) if found else request.secrets,
            names=request.names,
        )
        return new, tuple(found)

    def response(self, headers: Headers, place: str) -> tuple[Headers, tuple[Redaction, ...]]:
        """Give header fields or trailers of an answer without their secrets, and where they were."""
        seen, told = self._told(headers, place)
        found = [one for field in told for one in field.places]
        kept, places, _ = self._searched(headers, told, seen, place)
        found += places
        return (kept, tuple(found)) if found else (headers, ())

    # ---- fields --------------------------------------------------------------------------------

    def _known(self, place: str) -> _Seen:
        values = self._learned.values
        seen = self._seen.get(place)
        if seen is None or seen.under != values:
            seen = self._seen[place] = _Seen(values)
        return seen

    def _told(self, headers: Headers, place: str) -> tuple[_Seen, list[_Told]]:
        """Give what becomes of each field for its name, and learn what is hidden."""
        seen = self._known(place)
        known = seen.fields.get
        told = [known(field) or self._new(field, place, seen) for field in headers]
        if seen.under != self._learned.values:
            # What was clean is to be searched for what these hold.
            seen = self._known(place)
            told = [self._named(field, place) for field in headers]
        return seen, told

    def _new(self, field: _Field, place: str, seen: _Seen) -> _Told:
        told = self._named(field, place)
        if not told.rest and len(field[1]) <= _LONGEST:
            _keep(seen.fields, field, told)
        return told

    def _named(self, field: _Field, place: str) -> _Told:
        name, value = field
        new, kinds, rest = self._heads.field(name, value, in_request=place.startswith("request"))
        if not kinds:
            return _Told(field, (), rest)
        where = place + name.decode("latin-1").lower()
        return _Told((name, new), tuple([Redaction(where, one) for one in kinds]), rest)

    def _searched(
        self, headers: Headers, told: list[_Told], seen: _Seen, place: str
    ) -> tuple[Headers, list[Redaction], list[Secret]]:
        """Look for secrets in what fields hold whose names do not say it; give those of undeclared ones."""
        kept = [one.field for one in told]
        least = 1 if self._search.configured else SHORTEST
        new = [(at, one.rest) for at, one in enumerate(told) if len(one.rest) >= least]
        if not new or self._search.is_plainly_clean([rest for _, rest in new]):
            for at, rest in new:
                _keep_clean(seen, headers[at], told[at], rest)
            return tuple(kept), [], []
        found = list[Redaction]()
        secrets = list[Secret]()
        for at, rest in new:
            searched = self._search.search(rest)
            if searched is not None:
                name, value = kept[at]
                kept[at] = name, _put(value, searched)
                found.append(Redaction(place + name.decode("latin-1").lower(), SECRET))
                secrets += _in_field(headers, at, searched)
            elif seen.under == self._learned.values:
                _keep_clean(seen, headers[at], told[at], rest)
        return tuple(kept), found, in_order(secrets)

    # ---- targets -------------------------------------------------------------------------------

    def _declared(self, target: str) -> tuple[str, list[Pair]]:
        if "?" not in target and ";" not in target and target.startswith("/"):
            return target, []
        # Surrogates stand for bytes that were no UTF-8; they pass through.
        raw = target.encode("utf-8", "surrogatepass")
        # A target that begins with two slashes is a path; a URL that does names a host.
        extra = max(0, len(raw) - len(raw.lstrip(b"/")) - 1)
        new, pairs = self._heads.url(raw[extra:])
        if not pairs:
            return target, []
        text = (raw[:extra] + new).decode("utf-8", "surrogatepass")
        return text, [pair._replace(at=pair.at + extra) for pair in pairs]

    def _searched_target(self, target: str, pairs: list[Pair]) -> tuple[str, list[Secret]]:
        # One byte a character, as it came; anything else did not come over a wire.
        raw = blank(target.encode("latin-1", "replace"), pairs)
        searched = self._search.search(raw)
        spans = [Secret(TARGET, *span) for span in searched.spans] if searched else []
        data = raw if searched is None else searched.data
        end = len(raw.partition(b"?")[0])
        for pattern in self._paths:
            named: list[Secret] = []
            for found in pattern.finditer(raw[:end]):
                start, stop = found.span(found.lastindex or 0)
                if start < stop:
                    named.append(Secret(TARGET, start, stop - start, CONFIGURED))
            fresh = find_apart(named, spans)
            for one in fresh:
                start, stop = one.at, one.at + one.size
                self._learned.add(raw[start:stop])
                new = self._placeholders.in_url(raw[start:stop])
                data = data[:start] + new + data[stop:]
            spans = in_order([*spans, *fresh])
        if not spans:
            return target, []
        parts: list[str] = []
        at = 0
        for one in spans:
            parts += (target[at : one.at], data[one.at : one.at + one.size].decode("latin-1"))
            at = one.at + one.size
        return "".join([*parts, target[at:]]), spans


def _in_field(headers: Headers, at: int, searched: Searched) -> list[Secret]:
    part = find_header_part(headers[at][0])
    if part is None:
        return []
    before = sum(len(value) for name, value in headers[:at] if find_header_part(name) == part)
    return [
        Secret(part, before + span.at, span.size, span.kind, span.coded) for span in searched.spans
    ]


def _keep_clean(seen: _Seen, field: _Field, told: _Told, rest: bytes) -> None:
    """Remember that a search found nothing in a field."""
    if len(rest) <= _LONGEST:
        _keep(seen.fields, field, told._replace(rest=b""))


def _keep(where: dict[Any, Any], key: object, value: object) -> None:
    if len(where) >= _MOST:
        where.clear()
    where[key] = value


def _put(value: bytes, searched: Searched) -> bytes:
    for span in searched.spans:
        end = span.at + span.size
        value = value[: span.at] + searched.data[span.at : end] + value[end:]
    return value


def in_order(secrets: Iterable[Secret]) -> list[Secret]:
    """Give secrets in the order of their places."""
    return sorted(secrets, key=lambda one: (one.part, one.at))


def find_apart(secrets: Iterable[Secret], others: Iterable[Secret]) -> list[Secret]:
    """Give the secrets that share no place with any of others, however many there are of both."""
    by_part: dict[str, list[tuple[int, int]]] = {}
    for one in others:
        by_part.setdefault(one.part, []).append((one.at, one.at + one.size))
    sorted_by_part = {part: _sort_places(places) for part, places in by_part.items()}
    none: tuple[list[int], list[int]] = ([], [0])
    found = []
    for one in secrets:
        starts, ends = sorted_by_part.get(one.part, none)
        # The last end of those that begin before this one ends.
        if ends[bisect_left(starts, one.at + one.size)] <= one.at:
            found.append(one)
    return found


def _sort_places(places: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Give where places begin, in order, and the last end of so many of the first of them: of none, of one, and so on."""
    places.sort()
    ends = accumulate((end for _, end in places), max, initial=0)
    return [start for start, _ in places], list(ends)
