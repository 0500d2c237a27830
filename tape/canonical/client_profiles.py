"""What the profile of a client leaves out of its requests.

Rules:

1. A client is known by the product that its `user-agent` begins with, by the endpoint, since each place of a profile names one, and, where
   others have this product, too, by fields that it sends or by a text near the beginning of its bodies.
   All are parts of the request, so an index can always be made again from what was recorded. Profiles that ask for a process are turned off
   before, where the command is another one (`config/profiles/command_programs.py`).
2. A place is a value of a JSON body, or a header field. What the pattern's group finds there does not count; the text around it does, and so
   does a value of another form.
   A token that redaction has replaced does not count either. Of a linked place it counts which values are the same in the request,
   and in the run (`matching/profile_use.py`).
3. Of an effect nothing is left out, whichever client asks.
4. The rules of a configuration are searched first; a place that they mask is theirs.

`matching/profile_use.py` says which places a request needed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...config.match_pattern import Match
from ...config.parse_values import parse_json_path
from ...config.profiles.client_profile import Profile
from ..exchange import Headers, HttpRequest
from .regex_masks import Clock, Pattern, Patterns, Placed, mask_bytes

_AGENT = b"user-agent"
_MOST_PRODUCT = 64
_BEGINNING = 4096
"""Bytes of a body in which a text of its client is looked for."""


def find_product(headers: Headers) -> bytes:
    """Find the product that a `user-agent` begins with, in lower case: `claude-cli` of `claude-cli/2.1`; empty where there is none."""
    for name, value in headers:
        if len(name) == len(_AGENT) and name.lower() == _AGENT:
            first = value.split(None, 1)[:1]
            return first[0].partition(b"/")[0][:_MOST_PRODUCT].lower() if first else b""
    return b""


def agent_fields(headers: Headers) -> Headers:
    """Give the fields of a head by which a client is known."""
    return tuple([field for field in headers if field[0].lower() == _AGENT])


_Place = tuple[str, str, str, int, str]
"""Method, scheme, host, port, and path or target."""


class PlacedField(NamedTuple):
    """A pattern that looks at the values of one header field."""

    name: bytes
    """Lower case."""
    pattern: Pattern
    text: str
    """As people know it."""
    linked: bool = False
    """Whether it counts which values of such places are the same."""


class LeftOut(NamedTuple):
    """What a profile leaves out of a request."""

    placed: tuple[Placed, ...] = ()
    fields: tuple[PlacedField, ...] = ()
    unconditional: bool = False
    """Its conditions count for nothing."""


def mask_field(value: bytes, name: bytes, fields: Sequence[PlacedField]) -> bytes:
    """Give the value of a header field as it counts; a mark, which begins with NUL, stays."""
    patterns = tuple([one.pattern for one in fields if one.name == name])
    if not patterns or value.startswith(b"\x00"):
        return value
    return mask_bytes(value, patterns)


@dataclass(frozen=True, slots=True)
class ClientProfiles:
    """The profiles under which requests are compared; made by `compile_profiles`."""

    by_product: dict[bytes, tuple[Profile, ...]] = field(default_factory=dict)
    """Of one product, in the order in which they are tried."""
    places: dict[str, tuple[tuple[Match, Placed | PlacedField], ...]] = field(default_factory=dict)
    """By name of the profile."""
    patterns: Patterns = ()

    def __bool__(self) -> bool:
        """Say whether any client is known."""
        return bool(self.by_product)

    @property
    def all(self) -> tuple[Profile, ...]:
        """The profiles, each once."""
        return tuple(
            {one.name: one for tried in self.by_product.values() for one in tried}.values()
        )

    @property
    def by_target(self) -> bool:
        """Whether a pattern looks at the query."""
        matches = [match for places in self.places.values() for match, _ in places]
        matches += [entry.match for one in self.all for entry in one.unconditional]
        return any("?" in match.path for match in matches)

    @property
    def told(self) -> list[Any]:
        """All that has an index made again when it changes."""
        return [
            (
                *(one.name, one.version, (*one.products, *one.sends, *one.says)),
                [
                    (
                        p.match.text,
                        p.text,
                        p.regex,
                        *([True] if p.linked else ()),
                        *filter(None, [p.tool]),
                    )
                    for p in one.places
                ],
                [entry.match.text for entry in one.unconditional],
            )
            for one in sorted(self.all, key=str)
        ]

    def find(self, request: HttpRequest) -> Profile | None:
        """Find the profile of the client that sent a request."""
        tried = self.by_product.get(find_product(request.headers), ())
        return next((one for one in tried if _is_from(request, one)), None)

    def of(self, name: str, asked: _Place) -> LeftOut:
        """Give what a profile leaves out of a request."""
        if not name:
            return LeftOut()
        found = [one for match, one in self.places[name] if match.matches(*asked)]
        profile = next(one for one in self.all if one.name == name)
        return LeftOut(
            tuple([one for one in found if isinstance(one, Placed)]),
            tuple([one for one in found if isinstance(one, PlacedField)]),
            any(entry.match.matches(*asked) for entry in profile.unconditional),
        )


def _is_from(request: HttpRequest, profile: Profile) -> bool:
    """Say whether a request with the product of a profile has all else by which its client is known."""
    if profile.sends:
        names = {name.lower() for name, _ in request.headers}
        if not all(name.encode() in names for name in profile.sends):
            return False
    if not profile.says:
        return True
    return any(request.body.find(text.encode(), 0, _BEGINNING) >= 0 for text in profile.says)


def _with_replaced(regex: str, replaced: Sequence[str]) -> str:
    """Give a pattern whose only group also finds what stands in the place of a value that redaction has replaced."""
    marks = "".join(rf"|\x00\({re.escape(kind)}\)" for kind in replaced)
    begins, depth, in_class = -1, 0, False
    at = 0
    while at < len(regex):
        sign = regex[at]
        if sign == "\\":
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
            # A bracket that is the first in a class is one of its characters.
            at += 2 if regex.startswith("[^]", at) else 1 if regex.startswith("[]", at) else 0
        elif sign == "(":
            if begins < 0 and not regex.startswith("(?", at):
                begins, depth = at, 0
            depth += 1
        elif sign == ")":
            depth -= 1
            if begins >= 0 and depth == 0:
                return f"{regex[: begins + 1]}{regex[begins + 1 : at]}{marks}{regex[at:]}"
        at += 1
    return regex


NO_PROFILES = ClientProfiles()


def compile_profiles(
    profiles: Sequence[Profile], clock: Clock | None = None, replaced: Sequence[str] = ()
) -> ClientProfiles:
    """Bring profiles into the form in which requests are compared; patterns are compiled once a client of theirs asks.

    replaced: kinds of secrets, as `redaction/compare_placeholders.py` writes them in the place of a value.
    """
    made: dict[str, Pattern] = {}
    places: dict[str, tuple[tuple[Match, Placed | PlacedField], ...]] = {}
    for profile in profiles:
        found: list[tuple[Match, Placed | PlacedField]] = []
        for place in profile.places:
            pattern = made.get(place.regex)
            if pattern is None:
                found_too = _with_replaced(place.regex, replaced)
                pattern = made[place.regex] = Pattern.later(found_too, clock)
            if place.header:
                one: Placed | PlacedField = PlacedField(
                    place.header.encode(), pattern, place.text, place.linked
                )
            else:
                path = parse_json_path(place.json)
                one = Placed(path, pattern, place.text, place.linked, place.tool)
            found.append((place.match, one))
        places[profile.name] = tuple(found)
    by_product: dict[bytes, tuple[Profile, ...]] = {}
    # A configuration's own come last, and are tried first.
    for one_of in reversed(profiles):
        for product in one_of.products:
            by_product[product.encode()] = (*by_product.get(product.encode(), ()), one_of)
    return ClientProfiles(by_product, places, tuple(made.values()))
