"""The secrets in the path, query and body of a request, which count by their kinds: whose they are.

Two requests that differ in such a value alone have one canonical form. Which of them is meant decides all the same: which recorded
request answers, whether the answer is `exact`, and whether a key of the tape is sent in the place of another key of the tape.

Documents are compared as values, so the secrets of one kind in a body are in any order: a value is mistaken only if no secret of
its kind in the recorded request is the one that it stands for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..exchange import Request
from ..headers.authorization import is_empty
from ..headers.compared_fields import Linked, Space, link_tokens
from ..headers.linked_values import LinkedValues, Pair, find_pairs
from ..records.redacted_value_spelling import InnerSecret
from .compare_redacted_values import Replaced

FindInner = Callable[[Request], Iterable[InnerSecret]]
"""Gives those of a request."""


class Inner(NamedTuple):
    """The secrets of a request outside of its header fields."""

    linked: tuple[Linked, ...]
    """All that are not empty, as they are linked."""
    replaced: tuple[Replaced, ...]
    """Those that count."""


def read_inner(request: Request, find: FindInner) -> Inner:
    """Read the secrets of a request outside of its header fields."""
    found = list(find(request))
    linked = list[Linked]()
    for place, value, *_ in found:
        if not is_empty(value):
            linked.append(Linked(Space.CREDENTIAL, place, value))
            linked += link_tokens(place, value)
    counted = [
        Replaced(one.place, one.value, one.prefix, one.spelling) for one in found if one.counts
    ]
    return Inner(tuple(linked), tuple(counted))


class InnerSecrets:
    """Which inner secrets of a playback stand for which of the tape."""

    def __init__(self, links: LinkedValues) -> None:
        """Take what the header fields of the playback link."""
        self._links = links
        self._own = LinkedValues(links.account)
        """What inner secrets link among themselves; nothing in a header field is judged by it."""

    def find_mistaken(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> list[str]:
        """Find the places with a secret that is the tape's own, or stands for another one than is recorded there."""
        return self._places(LinkedValues.is_mistaken, recorded, present)

    def find_merged(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> list[str]:
        """Find the places with a secret that stands for another one as well, as a word for all does."""
        return self._places(LinkedValues.is_merged, recorded, present)

    def find_split(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> list[Pair]:
        """Find the values that another one has stood for before, each with the recorded one, where a place has one secret."""
        old, new = _alone(recorded), _alone(present)
        return [
            (old[place], new[place])
            for place in new
            if place in old
            and not self._links.was_given(new[place])
            and any(one.is_split(old[place], new[place]) for one in (self._own, self._links))
        ]

    def find_split_fields(
        self, recorded: Iterable[Linked], present: Iterable[Linked]
    ) -> Iterator[Pair]:
        """Find the values of header fields that another one has stood for outside of header fields, each with the recorded one."""
        for old, new in find_pairs(recorded, present):
            told = old.space is Space.CREDENTIAL and not self._links.was_given(new)
            if told and self._own.is_split(old, new):
                yield old, new

    @staticmethod
    def pair(recorded: Iterable[Linked], present: Iterable[Linked]) -> list[Pair]:
        """Give recorded and present values of the places that have one secret."""
        old, new = _alone(recorded), _alone(present)
        return [(old[place], new[place]) for place in new if place in old]

    def pair_unsettled(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> list[Pair]:
        """Give recorded and present values of the places that have one secret, where it is not known yet which stands for which."""
        return [
            pair
            for pair in self.pair(recorded, present)
            if not any(one.is_settled(*pair) for one in (self._own, self._links))
        ]

    def find_unseen(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> list[Pair]:
        """Find the values that nothing explains, each with the recorded one, where a place has one secret."""
        old, new = _alone(recorded), _alone(present)
        both = [place for place in new if place in old]
        pairs = [old[place] for place in both], [new[place] for place in both]
        known = [pair[0] for pair in self._links.compare(*pairs).unseen]
        return [pair for pair in self._own.compare(*pairs).unseen if pair[0] in known]

    def _places(
        self,
        judge: Callable[[LinkedValues, Iterable[Linked], Linked], bool],
        recorded: Iterable[Linked],
        present: Iterable[Linked],
    ) -> list[str]:
        olds: dict[str, list[Linked]] = {}
        for old in recorded:
            olds.setdefault(old.place, []).append(old)
        tables = (self._links, self._own)
        places = (
            new.place
            for new in present
            if new.place in olds and any(judge(one, olds[new.place], new) for one in tables)
        )
        return list(dict.fromkeys(places))

    def rank(self, recorded: tuple[Linked, ...], present: tuple[Linked, ...]) -> int:
        """Say how well they agree: 0 in all, 1 as far as is known, 2 not."""
        if self.agree(recorded, present):
            return 0
        return (
            2
            if self.find_mistaken(recorded, present)
            else self._own.compare(recorded, present).rank
        )

    def agree(self, recorded: tuple[Linked, ...], present: tuple[Linked, ...]) -> bool:
        """Say whether each is the recorded one, or is in its place by an answer of the tape."""
        return len(recorded) == len(present) and all(
            old.place == new.place and self._links.is_same(old, new)
            for old, new in zip(recorded, present, strict=True)
        )

    def note(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> None:
        """Remember which stand for which, where a place has one secret."""
        old, new = _alone(recorded), _alone(present)
        both = [place for place in new if place in old and not self._links.was_given(new[place])]
        self._own.note([old[place] for place in both], [new[place] for place in both])


def _alone(linked: Iterable[Linked]) -> dict[str, Linked]:
    found: dict[str, Linked] = {}
    several = set[str]()
    for one in linked:
        if found.setdefault(one.place, one).value != one.value:
            several.add(one.place)
    return {place: one for place, one in found.items() if place not in several}
