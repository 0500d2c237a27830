"""Read the header fields of a request as they are compared with those of another.

Rules:

1. Every field counts that is not noise (`shipped_lists.py`), by its lower-case name and its value. The order of fields with
   different names does not; that of the values of one name does.
2. A credential in its own place counts by being there, with its scheme and the parts of a signature (`authorization.py`), a
   cookie by its name. Which value it has is for `linked_values.py`; one without a value counts as such.
3. What is reported counts by being there where it is linked, and else not at all.
4. What a rule of `ignore` names counts by being there.

Source: RFC 9110 section 5.3 for fields that stand more than once, RFC 9113 section 8.2.3 for cookies over HTTP/2.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from ..exchange import Headers
from ..records.credential_parts import find_in_protocols, find_parts, list_tokens
from .authorization import EMPTY, is_empty, read_authorization
from .shipped_lists import (
    BAGGAGE,
    BAGGAGE_NOISE,
    COOKIE_NOISE,
    DIGESTS,
    KEYS_OF_EFFECTS,
    NOISE,
    NOISE_FAMILIES,
    REPORTED,
    TURN,
    TURN_LINKED,
    TURN_TIME,
    Link,
    Reported,
)

LINKED = b"\x00linked"
"""Stands for a value that another may stand for."""
MASKED = b"\x00*"
DIGEST = b"\x00digest"
NAMED = b"\x00named"
"""Stands for a name of a host, method, path or scheme, which counts in normal form."""
_FAMILIES = tuple(NOISE_FAMILIES)
_IS_DIGEST = re.compile(rb"[A-Za-z0-9+/=:,_ -]{4,}")
_MEANINGFUL = re.compile(rb"STREAMING-.*|UNSIGNED-PAYLOAD", re.ASCII)
_MOST_HEADS = 1024


class Space(Enum):
    """Values of one space stand for one another, whatever field they are in."""

    CREDENTIAL = "credential"
    RUN = "run id"


class Linked(NamedTuple):
    """A value that another one may stand for in another run."""

    space: Space
    place: str
    """Where it is in the head: a field's lower-case name, for a cookie with the cookie's."""
    value: bytes
    follows: bool = False
    """Whether it has to be known already, where it is not the recorded one."""
    part: bool = False
    """Whether it is a part of another one: it counts where an answer gave it."""
    late: bool = False
    """Whether another one may stand for it until something is asked that only the one of the two was asked."""
    number: bool = False
    """Whether, of a late one, an equal value says nothing either."""


class CountedFields(NamedTuple):
    """A request's header fields as they are compared."""

    counted: Headers
    """What both requests have to have: lower-case names in their order, with values or marks."""
    linked: tuple[Linked, ...]
    reported: Headers
    """What may differ, and is reported."""


class _Kind(Enum):
    NOISE = auto()
    DECISIVE = auto()
    CONTENT = auto()
    UPGRADE = auto()
    REPORTED = auto()
    KEY = auto()
    AUTHORIZATION = auto()
    COOKIE = auto()
    CREDENTIAL = auto()
    REPLACED = auto()
    BAGGAGE = auto()
    DIGEST = auto()
    TURN = auto()
    NAMED = auto()
    PROTOCOLS = auto()


_Plan = tuple[tuple[int, bytes, _Kind], ...]
"""Place, lower-case name and kind of each field that is not noise, by name."""
KindOf = Callable[[str], str | None]


def _is_not_named(_name: bytes) -> bool:
    return False


def _is_no_account(_value: bytes) -> bool:
    return False


def _no_kind(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class FieldRules:
    """What each field is, under a configuration."""

    secret: frozenset[bytes] = frozenset()
    """Lower-case names that `redact` adds. What was replaced there is compared as in a body (`compare_request_secrets.py`), but in fields of credentials."""
    kept: frozenset[bytes] = frozenset()
    """Those that `redact_off` takes from them."""
    credential: KindOf = _no_kind
    """Gives what kind of secret a field holds for its lower-case name, as in `Redaction.kind`."""
    named: Callable[[bytes], bool] = _is_not_named
    """Says whether a field names a host, method, path or scheme, so that its value counts in normal form elsewhere."""
    account: Callable[[bytes], bool] = _is_no_account
    """Says whether a value reads like a credential of somebody's."""
    plan: Callable[[tuple[bytes, ...]], _Plan] = field(init=False, compare=False, repr=False)
    """Gives the fields of a head that are not noise, by the names of all."""

    def __post_init__(self) -> None:
        """Remember heads by their names: an agent sends the same ones again and again."""
        object.__setattr__(self, "plan", lru_cache(maxsize=_MOST_HEADS)(self._make_plan))

    def _make_plan(self, names: tuple[bytes, ...]) -> _Plan:
        lowered = [(name.lower(), at) for at, name in enumerate(names)]
        lowered.sort()  # so the values of a field that stands twice keep their order
        found = [(at, name, self._find(name)) for name, at in lowered]
        return tuple(row for row in found if row[2] is not _Kind.NOISE)

    def _find(self, name: bytes) -> _Kind:
        fixed = _FIXED.get(name)
        if fixed is not None:
            return fixed
        if name in self.kept:
            return _Kind.DECISIVE
        secret = self.credential(name.decode("latin-1"))
        if secret is not None:
            return _SECRETS.get(secret, _Kind.CREDENTIAL)
        if name in self.secret:
            return _Kind.REPLACED
        if name.startswith(_FAMILIES):
            return _Kind.NOISE
        if self.named(name):
            return _Kind.NAMED
        return _Kind.REPORTED if name in _CONDITIONS else _Kind.DECISIVE


_COOKIE_NOISE = frozenset(name.encode() for name in COOKIE_NOISE)
_OFFER = b"h2c"
"""What curl and others offer beside a plain request. Source: RFC 7540 section 3.2."""
_SECRETS = {"authorization": _Kind.AUTHORIZATION, "cookie": _Kind.COOKIE}
_FIXED: dict[bytes, _Kind] = {
    **dict.fromkeys(NOISE, _Kind.NOISE),
    **dict.fromkeys(KEYS_OF_EFFECTS, _Kind.KEY),
    **dict.fromkeys(DIGESTS, _Kind.DIGEST),
    b"content-type": _Kind.CONTENT,
    b"content-encoding": _Kind.CONTENT,
    b"upgrade": _Kind.UPGRADE,
    b"sec-websocket-protocol": _Kind.PROTOCOLS,
    BAGGAGE: _Kind.BAGGAGE,
    TURN: _Kind.TURN,
}
_CONDITIONS: dict[bytes, tuple[Reported, ...]] = {
    name: tuple(one for one in REPORTED if one.name == name)
    for name in {one.name for one in REPORTED}
}


def count_fields(
    headers: Headers,
    rules: FieldRules,
    masked: frozenset[bytes] = frozenset(),
    *,
    method: str = "",
    path: str = "",
) -> CountedFields:
    """Read header fields as they are compared.

    masked: lower-case names that a rule of `ignore` names.
    method, path: of the request, for the conditions of what is reported.
    """
    counted: list[tuple[bytes, bytes]] = []
    linked: list[Linked] = []
    reported: list[tuple[bytes, bytes]] = []
    cookies: list[bytes] = []
    for at, name, kind in rules.plan(tuple([name for name, _ in headers])):
        value = headers[at][1]
        if masked and name in masked:
            counted.append((name, MASKED))
        elif kind is _Kind.DECISIVE:
            counted.append((name, value.strip()))
        elif kind is _Kind.PROTOCOLS:
            for start, end in reversed(find_in_protocols(value)):
                linked += _link(name.decode("latin-1"), value[start:end])
                value = value[:start] + LINKED + value[end:]
            counted.append((name, value.strip()))
        elif kind is _Kind.NAMED:
            counted.append((name, NAMED))
        elif kind is _Kind.CONTENT:
            counted.append((name, value))
        elif kind is _Kind.UPGRADE:
            # To HTTP/2 it is an offer that may be ignored; anything else is another question.
            value = value.strip().lower()
            if value != _OFFER:
                counted.append((name, value))
        elif kind is _Kind.KEY:
            reported.append((name, value))  # whether there is one is for `idempotency_keys.py`
        elif kind is _Kind.REPORTED:
            found = _find_condition(name, headers, method, path)
            if found is None:
                counted.append((name, value.strip()))
                continue
            reported.append((name, value))
            if found.link is Link.NONE:
                continue
            late = found.link in (Link.LATE, Link.NUMBER)
            if not late:
                counted.append((name, LINKED))
            follows, number = found.link is Link.FOLLOWS, found.link is Link.NUMBER
            linked.append(
                Linked(
                    Space.RUN,
                    name.decode("latin-1"),
                    value.strip(),
                    follows,
                    late=late,
                    number=number,
                )
            )
        elif kind is _Kind.COOKIE:
            cookies += value.split(b";")
        elif kind is _Kind.AUTHORIZATION:
            form, credentials, parts = read_authorization(value)
            counted.append((name, form))
            place = name.decode("latin-1")
            linked += _link(place, *credentials)
            linked += _link_parts(place, parts)
            linked += link_tokens(place, *credentials, *parts)
        elif kind is _Kind.REPLACED:
            counted.append((name, EMPTY if is_empty(value) else LINKED))
        elif kind is _Kind.CREDENTIAL:
            if is_empty(value):
                counted.append((name, EMPTY))
                continue
            counted.append((name, LINKED))
            place = name.decode("latin-1")
            linked += _link(place, value.strip())
            parts = find_parts(value.strip())
            linked += _link_parts(place, parts)
            linked += link_tokens(place, value.strip(), *parts)
        elif kind is _Kind.DIGEST:
            plain = value.strip()
            meant = _MEANINGFUL.fullmatch(plain) or not _IS_DIGEST.fullmatch(plain)
            counted.append((name, plain if meant else DIGEST))
        elif kind is _Kind.BAGGAGE:
            members = [one.strip() for one in value.split(b",")]
            own = [one for one in members if one and not one.startswith(BAGGAGE_NOISE)]
            if own:
                counted.append((name, b",".join(own)))
        else:
            reported.append((name, value))
            _read_turn(name, value, counted, linked)
    if cookies:
        _read_cookies(cookies, counted, linked)
        counted.sort(key=_name)  # stable
    return CountedFields(tuple(counted), tuple(linked), tuple(reported))


@lru_cache(maxsize=_MOST_HEADS)
def places_without_noise(names: tuple[bytes, ...]) -> tuple[tuple[bytes, int], ...]:
    """Give the lower-case name and the place of each field of a head that is not noise, by name."""
    found = ((name.lower(), at) for at, name in enumerate(names))
    return tuple(sorted(one for one in found if not is_noise(one[0])))


def is_noise(name: bytes) -> bool:
    """Say whether a field is noise for its lower-case name."""
    return name in NOISE or name.startswith(_FAMILIES)


def _name(pair: tuple[bytes, bytes]) -> bytes:
    return pair[0]


def _find_condition(name: bytes, headers: Headers, method: str, path: str) -> Reported | None:
    for one in _CONDITIONS[name]:
        if one.method and (one.method != method or one.path != path):
            continue
        if not one.field or any(
            other.lower() == one.field and value.strip().lower().startswith(one.starts)
            for other, value in headers
        ):
            return one
    return None


def _read_cookies(
    parts: list[bytes], counted: list[tuple[bytes, bytes]], linked: list[Linked]
) -> None:
    """Read what `cookie` says; HTTP/2 may split it over several fields."""
    names = []
    for part in parts:
        name, eq, value = part.strip().partition(b"=")
        if (not name and not eq) or name in _COOKIE_NOISE:
            continue
        if not eq:
            name, value = b"", name
        if is_empty(value):
            names.append(name + EMPTY)
            continue
        names.append(name)
        place = f"cookie {name.decode('latin-1')}"
        linked += _link(place, value)
        linked += link_tokens(place, value)
    if names:
        counted.append((b"cookie", b";".join(sorted(names))))


def _link(place: str, *values: bytes) -> list[Linked]:
    """Give credentials of a place as they are linked, without percent-encodings, which others write otherwise."""
    plain = (unquote_to_bytes(one) if b"%" in one else one for one in values)
    return [Linked(Space.CREDENTIAL, place, one) for one in plain]


def _link_parts(place: str, parts: tuple[bytes, ...]) -> list[Linked]:
    """Give credentials in those of a place."""
    named = [_link(f"{place}#{number}", one)[0] for number, one in enumerate(parts, 1)]
    return [one._replace(part=True) for one in named if not is_empty(one.value)]


def link_tokens(place: str, *values: bytes) -> list[Linked]:
    """Give the tokens in credentials of a place, each by where it begins."""
    found = list[Linked]()
    for number, value in enumerate(values):
        plain = unquote_to_bytes(value) if b"%" in value else value
        found += [
            Linked(Space.CREDENTIAL, f"{place}#{number}.{at}", one, part=True)
            for at, one in list_tokens(plain)
        ]
    return found


def _is_time(value: object) -> bool:
    """Say whether a value is a number of milliseconds since 1970, of this century."""
    return type(value) is int and 10**12 <= value < 10**13


def _read_turn(
    name: bytes, value: bytes, counted: list[tuple[bytes, bytes]], linked: list[Linked]
) -> None:
    """Read JSON in a field, member by member."""
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        counted.append((name, value.strip()))
        return
    for member in TURN_LINKED:
        if isinstance(told.get(member), str):
            place = f"{name.decode('latin-1')} $.{member}"
            linked.append(Linked(Space.RUN, place, told[member].encode()))
            told[member] = "\x00linked"
    if _is_time(told.get(TURN_TIME)):
        told[TURN_TIME] = "\x00time"
    counted.append((name, json.dumps(told, sort_keys=True).encode()))
