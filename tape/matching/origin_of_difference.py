"""Find the earlier answer that a changed value came from.

Looked for is the whole value, or the part of it that differs, with the rest of its words and without, if it is long enough to be
no coincidence; a shorter one only as a whole string of a JSON document, and only if a single answer holds it.

Where redaction replaced a value, it may be the cause of a difference itself: the agent was given a placeholder, or only one of the two
values was taken for a secret.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..canonical.canonical_request import compared
from ..diff.divergence_types import ABSENT, Difference, Origin
from ..diff.request_differences import common_prefix
from ..exchange import Redaction, Request, Response, Seq
from .dependence import core, may_stand_in_answer
from .traceable_values import MIN_VALUE, answer_leaves, ids, request_leaves

_MIN_LEAF = 6
"""Characters of a shorter value that may still be looked for, as a whole string."""
_MAX_SOUGHT = 6
_DIGESTS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
"""By the hexadecimal digits that each is written with."""
_HEX = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}\Z")
_LONGEST = 4096
"""Characters of a value of an answer whose digest is looked at."""
_MARK = "\0("
"""What begins the mark of a replaced value in a request as it is compared."""


class Sought(NamedTuple):
    """One text that is looked for in answers."""

    text: str
    whole: bool
    """It has to be a whole value there, and stand in one answer alone."""


class Answer(NamedTuple):
    """An answer in which is looked."""

    seq: Seq | None
    tape_seq: Seq | None
    response: Response | None
    redactions: tuple[Redaction, ...] = ()


def find_texts(
    place: str,
    recorded: Request,
    asked: Request,
    untraced: frozenset[str] = frozenset(),
) -> tuple[str | None, str | None]:
    """Find the whole values at a place at which two requests differ; None where there is none to be traced."""
    old = [text for at, text in request_leaves(recorded, untraced) if at == place]
    new = [text for at, text in request_leaves(asked, untraced) if at == place]
    for index in range(max(len(old), len(new))):
        one = old[index] if index < len(old) else None
        other = new[index] if index < len(new) else None
        if one != other:
            return one, other
    return None, None


def sought(place: str, text: str | None, other: str | None) -> tuple[Sought, ...]:
    """Give what to look for, the most telling first."""
    if text is None:
        return ()
    found = [Sought(text, whole=False)] if _is_long(text) else []
    if other is not None and text != other:
        part = _differing(text, other, _in_word)
        # `v1-TOKEN` and `/botTOKEN/` have a token with what the agent writes before it.
        bare = (_differing(text, other, in_it) for in_it in (str.isalnum, _in_nothing))
        found += [Sought(one, whole=False) for one in (part, *ids(part), *bare) if _is_long(one)]
    elif other is None:
        found += [Sought(one, whole=False) for one in ids(text)]
    if not found and place.startswith("body $") and len(text) >= _MIN_LEAF:
        found.append(Sought(text, whole=True))
    return tuple(dict.fromkeys(found))[:_MAX_SOUGHT]


def find_origin(wanted: tuple[Sought, ...], answers: Iterable[Answer]) -> Origin | None:
    """Find the first answer that holds one of the texts; of two texts the more telling one counts.

    answers: in the order in which they were given; may end early where time runs out.
    """
    if not wanted:
        return None
    needles = [core(one.text) for one in wanted]
    found: list[Origin | None] = [None] * len(wanted)
    for answer in answers:
        if answer.response is None:
            continue
        for index, one in enumerate(wanted):
            if found[index] is not None and not one.whole:
                continue
            if not may_stand_in_answer(answer.response, needles[index]):
                continue
            place = _place_of(one, answer.response)
            if place is None:
                continue
            if one.whole and found[index] is not None:
                return None  # two answers hold it: either may be meant
            replaced = _is_replaced(one.text, place, answer)
            found[index] = Origin(answer.seq, answer.tape_seq, place, replaced)
            if index == 0 and not one.whole:
                return found[0]
    return next((one for one in found if one is not None), None)


def find_digested(text: str | None, answers: Iterable[Answer]) -> Origin | None:
    """Find the first answer with a replaced value of which a text is a digest: an agent has computed it from a placeholder.

    answers: as for `find_origin`.
    """
    digest = _read_digest(text or "")
    if digest is None:
        return None
    make, value = digest
    for answer in answers:
        if answer.response is None or not (answer.response.secrets or answer.redactions):
            continue
        for place, leaf in answer_leaves(answer.response):
            data = leaf.encode("utf-8", "replace")[: _LONGEST + 1]
            if (
                len(data) > _LONGEST
                or hashlib.new(make, data, usedforsecurity=False).digest() != value
            ):
                continue
            if _is_replaced(leaf, place, answer):
                return Origin(answer.seq, answer.tape_seq, place, replaced=True)
    return None


def _read_digest(text: str) -> tuple[str, bytes] | None:
    """Read what may be a digest, in hexadecimal or base64: which, and its bytes."""
    text = text.rpartition(":")[2].rpartition("-")[2] if text.startswith("sha") else text
    if len(text) in _DIGESTS and _HEX.match(text):
        return _DIGESTS[len(text)], bytes.fromhex(text)
    if not 22 <= len(text) <= 88 or not _BASE64.match(text):
        return None
    plain = text.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    if len(plain) % 4 == 1:
        return None
    value = base64.b64decode(plain + "=" * (-len(plain) % 4))
    make = _DIGESTS.get(2 * len(value))
    return (make, value) if make is not None else None


def _place_of(one: Sought, response: Response) -> str | None:
    best: str | None = None
    for place, text in answer_leaves(response):
        if text == one.text:
            return place
        if best is None and not one.whole and one.text in text:
            best = place
    return best


def _is_replaced(text: str, place: str, answer: Answer) -> bool:
    """Say whether a text in an answer is a placeholder, part of one, or holds one."""
    assert answer.response is not None
    what, _, name = place.partition(" ")
    if what == "header":
        return any(one.place.lower() == f"response.header.{name}" for one in answer.redactions)
    secrets, body, sought = answer.response.secrets, answer.response.body, text.encode()
    at = body.find(sought) if secrets else -1
    while at >= 0:
        end = at + len(sought)
        if any(one.at < end and at < one.at + one.size for one in secrets):
            return True
        at = body.find(sought, at + 1)
    return False


def find_replaced(
    found: Iterable[Difference], recorded: Request, asked: Request
) -> tuple[str, ...]:
    """Find the places of differences at which one of two requests has more replaced values than the other."""
    olds, news = _count_replaced(recorded), _count_replaced(asked)
    places = (one.place for one in found if ABSENT not in (one.recorded, one.asked))
    return tuple(
        place for place in dict.fromkeys(places) if olds.get(place, 0) != news.get(place, 0)
    )


def _count_replaced(request: Request) -> dict[str, int]:
    counts: dict[str, int] = {}
    for place, text in request_leaves(compared(request)) if request.secrets else ():
        counts[place] = counts.get(place, 0) + text.count(_MARK)
    return counts


def _is_long(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) >= MIN_VALUE


def _differing(text: str, other: str, in_word: Callable[[str], bool]) -> str:
    """Give the part of a text that another does not share, out to the ends of the words it begins and ends in.

    in_word: says whether a character is part of a word.
    """
    start = common_prefix(text, other)
    rest = min(len(text), len(other)) - start
    end = len(text) - (common_prefix(text[-rest:][::-1], other[-rest:][::-1]) if rest else 0)
    while start and in_word(text[start - 1]):
        start -= 1
    while end < len(text) and in_word(text[end]):
        end += 1
    return text[start:end]


def _in_word(char: str) -> bool:
    return char.isalnum() or char in "_-"


def _in_nothing(_char: str) -> bool:
    return False
