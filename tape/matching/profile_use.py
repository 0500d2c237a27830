"""What a match owes to the profile of its client: places at which two requests differ, and that the profile leaves out.

A request that needed its profile is not `exact`, and not `canonical` either: the receipt says by which profile it matched, and
at which places. Values that redaction replaced are compared by their placeholders here. What a rule of the configuration leaves out already is not the profile's doing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..canonical.canonical_request import MAX_PARSED, Masks, Rules, counted_body
from ..canonical.json import JsonPath, quick_tree
from ..canonical.regex_masks import Pattern, PlacedText, find_ids, find_placed, what_is_left
from ..exchange import Request, RequestClass
from ..headers.compared_fields import Linked, Space
from ..headers.shipped_lists import NEW_CONDITIONS


class ProfileUse(NamedTuple):
    """A profile that two requests match by."""

    name: str
    version: int
    places: tuple[str, ...]
    """Header fields and JSON paths as the profile has them, in its order."""

    def to_row(self) -> list[Any]:
        """Give it as the log has it."""
        return [self.name, self.version, list(self.places)]


def find_profile_use(
    recorded: Request, asked: Request, rules: Rules, request_class: RequestClass
) -> ProfileUse | None:
    """Say which places two requests that are the same question owe to a profile; None where they owe nothing."""
    masks = rules.of(asked, request_class).masks
    used = [
        one.text
        for one in masks.fields
        if _fields(recorded, one.name) != _fields(asked, one.name) and one.name not in masks.header
    ]
    used = list(dict.fromkeys(used))
    large = recorded.spilled is not None or asked.spilled is not None
    if masks.placed and not large and recorded.body != asked.body:
        old, new = (counted_body(one, rules) for one in (recorded, asked))
        used += _find_used(old, new, masks)
    return _use(asked, used, rules)


def find_message_use(
    request: Request, recorded: bytes, heard: bytes, rules: Rules, request_class: RequestClass
) -> ProfileUse | None:
    """Say the same of two messages of a WebSocket; `request` is its handshake."""
    masks = rules.of(request, request_class).masks
    if not masks.placed or recorded == heard:
        return None
    return _use(request, _find_used(recorded, heard, masks), rules)


def read_linked(request: Request, rules: Rules, request_class: RequestClass) -> tuple[Linked, ...]:
    """Give the ids of a request in places that the profile of its client links, each with its place."""
    masks = rules.of(request, request_class).masks
    found = [
        Linked(Space.RUN, one.name.decode("latin-1"), told)
        for one in masks.fields
        if one.linked and one.name not in masks.header
        for value in _fields(request, one.name)
        for told in find_ids(value.decode("latin-1"), (one.pattern,))
    ]
    if any(one.linked for one in masks.placed) and request.spilled is None:
        found += _read_linked_body(counted_body(request, rules), masks)
    return tuple(found)


def read_linked_message(
    request: Request, message: bytes, rules: Rules, request_class: RequestClass
) -> tuple[Linked, ...]:
    """Give the same of a message of a WebSocket; `request` is its handshake."""
    masks = rules.of(request, request_class).masks
    if not any(one.linked for one in masks.placed):
        return ()
    return tuple(_read_linked_body(message, masks))


def _read_linked_body(body: bytes, masks: Masks) -> list[Linked]:
    if len(body) > MAX_PARSED:
        return []
    try:
        places = _by_place(quick_tree(body), masks)
    except ValueError:
        return []
    return [
        Linked(Space.RUN, f"body {_show_trail(trail)}", told)
        for trail, one in places.items()
        if not _is_masked(trail, masks.json) and len(what_is_left(one.value, masks.regex)) == 1
        for told in find_ids(one.value, [each.pattern for each in one.placed if each.linked])
    ]


def _show_trail(trail: Sequence[str | int]) -> str:
    steps = (f".{step}" if isinstance(step, str) else f"[{step}]" for step in trail)
    return "$" + "".join(steps)


def have_other_conditions(recorded: Request, asked: Request) -> bool:
    """Say whether two reads differ in what they have already seen."""
    return any(recorded.header(name) != asked.header(name) for name in NEW_CONDITIONS)


def _fields(request: Request, name: bytes) -> list[bytes]:
    return [value for field, value in request.headers if field.lower() == name]


def _use(request: Request, places: Sequence[str], rules: Rules) -> ProfileUse | None:
    profile = rules.profiles.find(request)
    if profile is None or not places:
        return None
    return ProfileUse(profile.name, profile.version, tuple(places))


def _find_used(old: bytes, new: bytes, masks: Masks) -> list[str]:
    if max(len(old), len(new)) > MAX_PARSED:
        return []
    try:
        olds, news = (_by_place(quick_tree(body), masks) for body in (old, new))
    except ValueError:
        return []
    used: dict[str, None] = {}
    for trail, one in olds.items():
        other = news.get(trail)
        if other is None or other.value == one.value or _is_masked(trail, masks.json):
            continue
        if what_is_left(one.value, masks.regex) == what_is_left(other.value, masks.regex):
            continue  # by a rule of the configuration
        for placed in one.placed:
            if _parts(one.value, placed.pattern) != _parts(other.value, placed.pattern):
                used[placed.text] = None
    order = [placed.text for placed in masks.placed]
    return sorted(used, key=order.index)


def _by_place(tree: object, masks: Masks) -> dict[tuple[str | int, ...], PlacedText]:
    return {one.trail: one for one in find_placed(tree, False, masks.placed)}


def _is_masked(trail: tuple[str | int, ...], masked: Sequence[JsonPath]) -> bool:
    return any(
        len(path) <= len(trail)
        and all(step in (None, at) for step, at in zip(path, trail, strict=False))
        for path in masked
    )


def _parts(text: str, pattern: Pattern) -> list[bytes]:
    told = text.encode("utf-8", "surrogatepass")
    return [told[start:end] for start, end in pattern.find(told)]
