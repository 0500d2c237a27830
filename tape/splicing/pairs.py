"""Pair the questions of two recordings of one task, and say of each which part its answers have in how the two differ.

Rules:

1. Of each pair the answers are compared by what they mean (`same_meaning.py`). Wording that differs is put aside: where an agent sends
   it back, the next question is the same question all the same.
2. A *root* is a pair of one question with two answers that mean different things. Roots are what a branch is spliced at.
3. What *follows* is a pair whose questions differ already, by an answer before it. It is answered by the recording that holds the question
   as it is asked, or by none: nobody knows what would have been answered to a question that neither holds.
4. What only one of the two has is answered by that one.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b

from ...config import Answer
from ..canonical.canonical_request import Rules, canonical, fingerprint
from ..diff.align import Item, align, scrub, scrubbed_key
from ..diff.nearest import distance
from ..exchange import Exchange, Request, RequestClass, Seq
from .reused_answer import make_answer
from .same_meaning import compare_answers

Read = Callable[[Seq], Exchange]
"""Reads an exchange of a recording by its seq."""
_MOST_WORDING = 2000
"""Texts that are put aside."""


class Part(StrEnum):
    """Which part the answers of a pair have in how two recordings differ."""

    SAME = "same"
    ROOT = "root"
    FOLLOWS = "follows"
    ALONE = "alone"
    """Only one of the two has the question."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question of both recordings, or of one."""

    bad: Seq | None
    good: Seq | None
    part: Part
    asked: tuple[bytes, bytes] = (b"", b"")
    """What tells the question of each from others, as `Questions.key`; empty where there is none."""


class Wording:
    """Texts that say the same in other words, by which no two questions differ."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[str, str] = {}
        self._longest_first: list[str] = []

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Add texts of the first recording, each with that of the second."""
        for mine, theirs in texts:
            if len(self._found) < _MOST_WORDING:
                self._found.setdefault(_inside(mine), _inside(theirs))
        self._longest_first = sorted(self._found, key=len, reverse=True)

    def take(self, text: str) -> str:
        """Give a text with the words of the second recording."""
        for mine in self._longest_first:
            if mine in text:
                text = text.replace(mine, self._found[mine])
        return text


def _inside(text: str) -> str:
    """Give a text as it stands inside a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class Questions:
    """Tells questions apart, but for wording."""

    def __init__(self, rules: Rules, wording: Wording) -> None:
        """Compare under the rules of now."""
        self._rules = rules
        self._wording = wording

    def key(self, request: Request, request_class: RequestClass) -> bytes:
        """Give 16 bytes that are the same for two requests that ask the same."""
        form = canonical(request, request_class, self._rules)
        body = form.body.decode("utf-8", "surrogateescape")
        head = "\n".join((form.method, form.scheme, form.authority, form.path, *form.query))
        told = self._wording.take(f"{head}\n{form.kind}\n{body}")
        return blake2b(told.encode("utf-8", "surrogateescape"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two recordings of one task, question by question."""

    pairs: tuple[Pair, ...]
    """In the order of the first; what only the second has comes last, in its order."""
    questions: Questions
    answers: tuple[Mapping[Seq, Answer], Mapping[Seq, Answer]]
    """Those of each that can be given to another request."""

    @property
    def roots(self) -> tuple[Pair, ...]:
        """Where a question was answered otherwise."""
        return tuple(pair for pair in self.pairs if pair.part is Part.ROOT)


def pair_recordings(
    seqs: tuple[Sequence[Seq], Sequence[Seq]], read: tuple[Read, Read], rules: Rules
) -> Pairing:
    """Pair two recordings; reads each several times, an exchange at a time.

    seqs: what counts of each, in order.
    """
    items = [[_item(one, rules) for one in map(reading, few)] for few, reading in zip(seqs, read, strict=True)]  # fmt: skip

    def near(one: Seq, other: Seq) -> float:
        return distance(scrub(read[0](one).request), scrub(read[1](other).request))

    def key_of(reading: Read) -> Callable[[Seq], bytes]:
        return lambda seq: scrubbed_key(reading(seq).request)

    found = align(items[0], items[1], near, (key_of(read[0]), key_of(read[1])))
    partner: Mapping[Seq, Seq] = dict(found.pairs)
    wording = Wording()
    questions = Questions(rules, wording)
    pairs: list[Pair] = []
    for seq in seqs[0]:
        other = partner.get(seq)
        part = Part.ALONE
        if other is not None:
            part = _compare(read[0](seq), read[1](other), questions, wording)
        pairs.append(Pair(seq, other, part))
    pairs += [Pair(None, seq, Part.ALONE) for seq in found.only_second]

    def key(seq: Seq | None, reading: Read) -> bytes:
        exchange = reading(seq) if seq is not None else None
        return questions.key(exchange.request, exchange.request_class) if exchange else b""

    # Once all wording is known.
    told = (replace(one, asked=(key(one.bad, read[0]), key(one.good, read[1]))) for one in pairs)
    answers = _read_answers(seqs[0], read[0]), _read_answers(seqs[1], read[1])
    return Pairing(tuple(told), questions, answers)


def _read_answers(seqs: Sequence[Seq], read: Read) -> Mapping[Seq, Answer]:
    made = ((seq, make_answer(read(seq))) for seq in seqs)
    return {seq: answer for seq, answer in made if answer is not None}


def _item(exchange: Exchange, rules: Rules) -> Item:
    request = exchange.request
    form = canonical(request, exchange.request_class, rules)
    origin = f"{request.scheme}://{request.authority.lower()}"
    return Item(exchange.seq, fingerprint(form), request.method, origin, request.path)


def _compare(bad: Exchange, good: Exchange, questions: Questions, wording: Wording) -> Part:
    found = compare_answers(bad, good)
    same_question = questions.key(bad.request, bad.request_class) == questions.key(
        good.request, good.request_class
    )
    if found.same:
        wording.add(found.wording)
        return Part.SAME
    return Part.ROOT if same_question and make_answer(good) is not None else Part.FOLLOWS
