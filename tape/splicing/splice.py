"""A branch that is given some answers of another recording: which answer a question gets that its own tape does not answer as it stands.

    the question of a root    the other recording's answer where it is spliced in, else the tape's own
    another question          the recording that holds it, the tape before the other one
    neither                   nothing: it is live where that was declared, and else refused

Belongs to one run.
"""

from collections import defaultdict

from ..exchange import Request, RequestClass, Seq
from ..policy.branch import Spliced
from .pairs import Pair, Pairing, Part


class Splice:
    """The answers of one run."""

    def __init__(self, pairing: Pairing, count: int, name: str) -> None:
        """Splice in the answers to the first roots.

        count: of these.
        name: of the other recording.
        """
        self.name, self.count = name, count
        self._answers = pairing.answers
        self._questions = pairing.questions
        self._spliced = {pair.bad: pair for pair in pairing.roots[:count]}
        self._waiting: dict[bytes, list[Pair]] = defaultdict(list)
        self._used: set[Seq | None] = set()
        """Of the tape."""
        self._given: set[Seq | None] = set()
        """Of the other recording."""
        for pair in pairing.pairs:
            for key in {*pair.asked} - {b""}:
                self._waiting[key].append(pair)

    def replace(self, seq: Seq) -> Spliced | None:
        """Give what is answered in the place of an exchange of the tape that has just been asked for; None for its own answer."""
        self._used.add(seq)
        pair = self._spliced.get(seq)
        return None if pair is None else self._take_good(pair)

    def find(self, request: Request, request_class: RequestClass) -> Spliced | None:
        """Find what answers a question that the tape does not hold as it stands; None where nothing does."""
        if request_class is RequestClass.TELEMETRY:
            return None
        key = self._questions.key(request, request_class)
        for pair in self._waiting.get(key, ()):
            used = pair.bad in self._used if pair.bad is not None else pair.good in self._given
            if not used:
                self._used.add(pair.bad)
                return self._take_good(pair) if self._is_good(pair, key) else self._take_own(pair)
        return None

    def _is_good(self, pair: Pair, key: bytes) -> bool:
        """Say whether the other recording answers a question of a pair."""
        if pair.part is Part.ROOT:
            return pair.bad in self._spliced
        return key != pair.asked[0]

    def _take_own(self, pair: Pair) -> Spliced | None:
        answer = self._answers[0].get(pair.bad) if pair.bad is not None else None
        if answer is None:
            return None
        return Spliced(answer, pair.bad, "to the same question in other words")

    def _take_good(self, pair: Pair) -> Spliced | None:
        self._given.add(pair.good)
        answer = self._answers[1].get(pair.good) if pair.good is not None else None
        if answer is None:
            return None
        source = f"as {self.name!r} was answered in exchange {pair.good}"
        return Spliced(answer, pair.bad, source)
