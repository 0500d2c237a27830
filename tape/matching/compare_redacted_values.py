"""Compare the values that redaction replaced: outside of places for credentials they count, and so does how they are written.

A tape of this store has the placeholder of each value, which is made with the store's key: equal values have equal ones. A tape of
another store has placeholders of another key: there each recorded value stands for one present value and back, for the whole
playback, and the first match of a pair rests on what it is alone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..exchange import HEADER, Request
from ..headers.compared_fields import Linked, Space
from ..records.redacted_value_spelling import Spelling, are_alike

_MOST_IDS = 4096
"""Placeholders of ids of runs that are remembered."""

_CHANGED = "has another secret than the recorded one, whose value was replaced in both"
_RESPELLED = "has the recorded secret written in another way"
_RENAMED = "has another secret than the one that represents the recorded one so far"


class Replaced(NamedTuple):
    """A value that was replaced, and counts."""

    place: str
    """As differences name it, with `#` and a number from the second one there on."""
    value: bytes
    """Its placeholder."""
    prefix: bytes = b""
    """What says whose it is."""
    spelling: Spelling = Spelling()


class Changed(NamedTuple):
    """A place with another value."""

    place: str
    what: str


class RunIds:
    """The ids of runs in header fields, which may also be in a body, where redaction takes them for secrets.

    From then on redaction replaces such an id in header fields, too: it is one id before and after.
    """

    def __init__(self, stands_for: Callable[[bytes], bytes]) -> None:
        """Begin with nothing.

        stands_for: gives the placeholder of a value.
        """
        self._stands_for = stands_for
        self._ids: dict[bytes, bytes] = {}
        """By placeholder."""

    def see(self, linked: Iterable[Linked], request: Request) -> None:
        """Remember the ids of a head that are not replaced there."""
        replaced = {one.part for one in request.secrets if one.part.startswith(HEADER)}
        for one in linked:
            if one.space is Space.RUN and HEADER + one.place.partition(" ")[0] not in replaced:
                if len(self._ids) >= _MOST_IDS:
                    self._ids.pop(next(iter(self._ids)))
                self._ids[self._stands_for(one.value)] = one.value

    def resolve(self, linked: Iterable[Linked]) -> tuple[Linked, ...]:
        """Give values of a head with ids in the place of their placeholders, where they are known."""
        return tuple(
            one._replace(value=self._ids.get(one.value, one.value))
            if one.space is Space.RUN
            else one
            for one in linked
        )

    def write(self, linked: Iterable[Linked]) -> tuple[Linked, ...]:
        """Give values of a head with placeholders in the place of ids that were seen."""
        return tuple(
            one._replace(value=told)
            if one.space is Space.RUN
            and self._ids.get(told := self._stands_for(one.value)) == one.value
            else one
            for one in linked
        )


class ReplacedValues:
    """What stands for what in one playback."""

    def __init__(self, same_key: bool, stands_for: Callable[[bytes, bytes], bool]) -> None:
        """Begin with nothing.

        same_key: whether the tape's placeholders are made with the key of now.
        stands_for: says whether a present value stands for a recorded one, as places for credentials say.
        """
        self._same_key = same_key
        self._stands_for = stands_for
        self._present: dict[bytes, bytes] = {}
        """Recorded by present value."""
        self._recorded: dict[bytes, bytes] = {}

    def find_changed(
        self,
        recorded: Iterable[Replaced],
        present: Iterable[Replaced],
        rotated: frozenset[tuple[bytes, bytes]] = frozenset(),
    ) -> list[Changed]:
        """Find the places whose value is not the recorded one, in order.

        rotated: recorded and present credentials in places for credentials of the same requests.
        """
        found, pairs = list[Changed](), list[tuple[bytes, bytes]]()
        for then, now in _pairs(recorded, present):
            place, old, new = now.place.partition("#")[0], then.value, now.value
            if not are_alike(then.spelling, now.spelling, same=old == new):
                found.append(Changed(place, _RESPELLED))
                continue
            if old == new or (old, new) in rotated or self._stands_for(old, new):
                continue
            if self._same_key or not _are_alike(then.prefix, now.prefix):
                found.append(Changed(place, _CHANGED))
            elif not self._fits(old, new, pairs):
                found.append(Changed(place, _RENAMED))
            pairs.append((old, new))
        return found

    @staticmethod
    def are_spelled_alike(recorded: Iterable[Replaced], present: Iterable[Replaced]) -> bool:
        """Say whether the values of each place are written alike."""
        return all(
            are_alike(then.spelling, now.spelling, same=then.value == now.value)
            for then, now in _pairs(recorded, present)
        )

    def _fits(self, old: bytes, new: bytes, pairs: Iterable[tuple[bytes, bytes]]) -> bool:
        before = self._present.get(new, old) == old and self._recorded.get(old, new) == new
        return before and all((one == old) == (other == new) for one, other in pairs)

    def note(self, recorded: Iterable[Replaced], present: Iterable[Replaced]) -> bool:
        """Remember what stands for what; say whether a match rests on what a value is, and not on the value."""
        alone = False
        for then, now in _pairs(recorded, present):
            old, new = then.value, now.value
            if old == new or self._stands_for(old, new):
                continue
            alone = alone or (not self._same_key and self._present.get(new) != old)
            self._present.setdefault(new, old)
            self._recorded.setdefault(old, new)
        return alone


def _are_alike(one: bytes, other: bytes) -> bool:
    """Say whether two values may be of one kind: their prefixes are no two of different services."""
    return one.startswith(other) or other.startswith(one)


def _pairs(
    recorded: Iterable[Replaced], present: Iterable[Replaced]
) -> Iterator[tuple[Replaced, Replaced]]:
    olds = {one.place: one for one in recorded}
    for one in present:
        if one.place in olds:
            yield olds[one.place], one
