"""Whether two texts of a row are the same, but for ids and times that stand for each other; and where they are not.

A text is compared whole: an id in it that stands for another does not hide what differs behind it.
"""

from collections import defaultdict
from collections.abc import Mapping

from ...tape.diff.request_differences import common_prefix
from .compare_settings import DATE
from .made_anew import Anew, Span, Told, find_spans
from .row import Row

_MOST = 1024 * 1024
"""Characters of a text up to which ids and times are looked for in it."""

Place = tuple[int, int]
"""A place in each of two texts."""


class StandIns:
    """Which ids and times of the two acts of a row stand for each other."""

    def __init__(self, row: Row, *, is_proof: bool, is_exact: bool = False) -> None:
        """Begin.

        is_exact: whether no id stands for another.
        is_proof: whether ids have to be known to stand for each other. The members of a model call that are not compared, and answers,
            have ids that nothing is known of.
        """
        self._is_proof = is_proof
        self._is_exact = is_exact
        self._at_odds = row.at_odds
        self._agreed = row.agreed
        self._there: Mapping[str, set[str]] = defaultdict(set)
        self._back: Mapping[str, set[str]] = defaultdict(set)
        known = row.renaming.known(row.known).items() if row.renaming is not None else ()
        for one, other in (*row.agreed, *known):
            self._there[one].add(other)
            self._back[other].add(one)
        words = {word for pair in (*row.agreed, *row.at_odds) for word in pair}
        self._told = Told(words=words)
        self._found: dict[tuple[str, str, str, bool], Place | None] = {}
        """What was found of two texts: elements of lists are aligned, and then compared."""

    def first_difference(
        self, one: str, other: str, label: str = "", *, is_prompt: bool = False
    ) -> Place | None:
        """Find the first characters that differ; None where the texts are the same but for ids and times.

        label: what is before both, as the name of a member.
        is_prompt: whether dates and times of day do not count, either.
        """
        if one == other:
            return None
        key = one, other, label, is_prompt
        if key not in self._found:
            self._found[key] = self._find(one, other, label, is_prompt=is_prompt)
        return self._found[key]

    def _find(self, one: str, other: str, label: str, *, is_prompt: bool) -> Place | None:
        if self._is_exact or max(len(one), len(other)) > _MOST:
            same = common_prefix(one, other)
            return same, same
        texts = label + one, label + other
        spans = [self._spans(text, is_prompt=is_prompt) for text in texts]
        at, there = 0, 0
        for first, second in zip(*spans, strict=False):
            gaps = texts[0][at : first[0]], texts[1][there : second[0]]
            if gaps[0] != gaps[1]:
                break
            if not self._same(first[2], second[2]):
                return first[0] - len(label), second[0] - len(label)
            at, there = first[1], second[1]
        rest = texts[0][at:], texts[1][there:]
        if rest[0] == rest[1]:
            return None
        same = common_prefix(*rest)
        return at + same - len(label), there + same - len(label)

    def may_be(self, one: str, other: str) -> bool:
        """Say whether two ids of any form may stand for each other."""
        return not self._is_exact and self._stand_for(one, other)

    def _spans(self, text: str, *, is_prompt: bool) -> list[Span]:
        spans = find_spans(text, self._told)
        if not is_prompt:
            return spans
        made = [(begin, end) for begin, end, _ in spans]
        dates = (match.span() for match in DATE.finditer(text))
        spans += [
            (*span, _A_DATE)
            for span in dates
            if not any(begin < span[1] and span[0] < end for begin, end in made)
        ]
        return sorted(spans, key=lambda span: span[0])

    def _same(self, one: Anew, other: Anew) -> bool:
        if one.text == other.text or (one.is_own and other.is_own):
            return True
        if one.is_time or other.is_time:
            pair = one.text, other.text
            return pair in self._agreed and pair not in self._at_odds
        return self._stand_for(one.text, other.text)

    def _stand_for(self, one: str, other: str) -> bool:
        if (one, other) in self._at_odds:
            return False
        there, back = self._there.get(one, set()), self._back.get(other, set())
        if other in there:
            return True
        return not self._is_proof and there <= {other} and back <= {one}


_A_DATE = Anew("")
"""Any date in a prompt."""
