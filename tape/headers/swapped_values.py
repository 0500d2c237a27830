"""Find a value of the tape in the place of another one of it: two accounts have changed places, or one has taken the other's.

A value that both runs have stands for itself. Whether a present value is one of the tape is asked before it is taken to stand for another
one: at once for those of the same recorded request, and for those of the whole tape once they were read.
"""

from collections.abc import Callable, Iterable, Iterator

from .compared_fields import Linked, Space
from .linked_values import Pair, find_pairs, is_cookie

_Key = tuple[Space, str, bytes]


class RecordedValues:
    """The credentials of one tape that were not given by an answer before a request had them."""

    def __init__(self, account: Callable[[bytes], bool]) -> None:
        """Begin with nothing.

        account: says whether a value reads like a credential of somebody's, and not like a word for all.
        """
        self._account = account
        self._own = set[_Key]()
        self._given = set[bytes]()

    def add(self, linked: Iterable[Linked]) -> None:
        """Add the values of a request of the tape; the requests come in their order."""
        self._own |= {
            self._key(one) for one in linked if one.value and one.value not in self._given
        }

    def give(self, values: Iterable[bytes]) -> None:
        """Add what an answer of the tape gave. An agent may have it from an earlier run: such a value stands for whatever it does first."""
        self._given.update(values)

    def has(self, one: Linked) -> bool:
        """Say whether a present value is one of the tape's own; a word for all is none."""
        told = one.part or self._account(one.value)
        return told and one.space is Space.CREDENTIAL and self._key(one) in self._own

    def find_moved(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> Iterator[Pair]:
        """Find the values of one recorded request that are in the place of another one of it now."""
        pairs = find_pairs(recorded, present)
        places: dict[_Key, list[bool]] = {}
        """By recorded value: whether another one is there now."""
        for old, new in pairs:
            places.setdefault(self._key(old), []).append(new.value != old.value)
        for old, new in pairs:
            moved = places.get(self._key(new)) if new.value != old.value and new.value else None
            if moved and (
                old.space is Space.RUN or old.part or self._account(new.value) or all(moved)
            ):
                yield old, new

    def _key(self, one: Linked) -> _Key:
        # Cookies are full of settings, which are nobody's; what reads like a key is one in whatever cookie it is.
        scope = one.place if is_cookie(one) and not self._account(one.value) else ""
        if one.part and not self._account(one.value):
            scope = one.place[one.place.rfind("#") :]  # a user is no password
        return one.space, scope, one.value
