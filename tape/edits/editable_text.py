"""Texts on their way to somebody who edits them, and back: what was not edited stays as it was, byte for byte.

1. JSON is indented by its tokens: a number stays as it is written, and a member that comes twice comes twice. The white space around the
   tokens that were not edited becomes again what it was.
2. A text box of a browser has no CR: CR LF and CR become LF (HTML, "API value normalization"), and NUL becomes U+FFFD where it is in the
   page as it comes. Characters that were not edited become again what they were, also within an edited line, and its end; lines that are
   new end as most do.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from ..diff.request_differences import common_prefix

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_END = re.compile(r"\r\n|\r|\n")
_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)
"""One of a text box: CR LF is one there."""
_COMPARED = 2_000
"""Lines, or tokens, beyond which an edited text is compared by those of them that it has once."""


def indent_json(text: str) -> str:
    """Give JSON with an indent of two, its tokens as they are.

    text: of which it is known that it is JSON.
    """
    return "".join(_indent([one[0] for one in _TOKEN.finditer(text)]))


def _indent(tokens: list[str]) -> Iterator[str]:
    depth = 0
    for number, token in enumerate(tokens):
        behind = tokens[number + 1] if number + 1 < len(tokens) else ""
        if token in ("{", "["):
            depth += 1
            yield token
            if behind not in ("}", "]"):
                yield "\n" + "  " * depth
        elif token in ("}", "]"):
            depth -= 1
            if tokens[number - 1] not in ("{", "["):
                yield "\n" + "  " * depth
            yield token
        elif token == ",":
            yield ",\n" + "  " * depth
        elif token == ":":
            yield ": "
        else:
            yield token


def restore_layout(recorded: str, shown: str, edited: str) -> str:
    """Give edited JSON with the white space that was recorded around all that was not edited.

    recorded: as it was answered.
    shown: the same, indented.
    edited: of which it is known that it is JSON.
    """
    was, before, now = _read_tokens(recorded), _read_tokens(shown), _read_tokens(edited)
    if [one for _, one in was] != [one for _, one in before]:
        return edited
    kept = _find_kept(before, now)
    kept |= _find_replaced(before, now, kept)
    usual = _find_usual_end(recorded)
    made: list[str] = []
    for at, (gap, token) in enumerate(now):
        made += [was[kept[at]][0] if at in kept else gap.replace("\n", usual), token]
    return "".join(made)


def _read_tokens(text: str) -> list[tuple[str, str]]:
    """Give the tokens of JSON, each with the white space before it; at the end a token of nothing."""
    found, at = [], 0
    for one in _TOKEN.finditer(text):
        found.append((text[at : one.start()], one[0]))
        at = one.end()
    return [*found, (text[at:], "")]


def _find_replaced(
    was: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]], kept: dict[int, int]
) -> dict[int, int]:
    """Give the places of tokens that others were written in the place of, as of another value of a member."""
    found = {}
    ends = [(-1, -1), *sorted(kept.items()), (len(now), len(was))]
    for (after, was_after), (until, was_until) in pairwise(ends):
        if until - after == was_until - was_after:
            for at in range(1, until - after):
                if now[after + at][0] == was[was_after + at][0]:
                    found[after + at] = was_after + at
    return found


def as_typed(text: str) -> str:
    """Give a text as a text box of a browser has it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def restore_lines(shown: str, edited: str) -> str:
    """Give an edited text with the characters of the one that was shown, wherever they were not edited.

    shown: before it was put into a text box.
    edited: as the text box had it in the end.
    """
    was, edited = _CHARACTER.findall(shown), _END.sub("\n", edited)
    usual = _find_usual_end(shown)
    made, at = [], 0
    for until, was_at, size in _find_same(as_typed(shown), as_typed(edited)):
        made.append(edited[at:until].replace("\n", usual))
        made += was[was_at : was_at + size]
        at = until + size
    return "".join(_part_ends(made))


def _find_same(was: str, now: str) -> Iterator[tuple[int, int, int]]:
    """Give what was not edited of a text as a text box has it: where it is now, where it was, and its length; at last what is at the end."""
    head, tail = _find_frame(was, now)
    yield 0, 0, head
    inner_was, inner_now = was[head : len(was) - tail], now[head : len(now) - tail]
    if inner_was and inner_now:
        for at, was_at, size in _find_same_lines(inner_was, inner_now):
            yield head + at, head + was_at, size
    yield len(now) - tail, len(was) - tail, tail


def _find_same_lines(was: str, now: str) -> Iterator[tuple[int, int, int]]:
    """Compare by whole lines, and what is between equal ones by itself; where none are equal, line by line or by characters."""
    lines_was, lines_now = was.split("\n"), now.split("\n")
    kept = _find_kept(lines_was, lines_now)
    if not kept and len(lines_was) == len(lines_now) > 1:
        kept = {at: at for at in range(len(lines_now))}
    if not kept:
        yield from _find_same_characters(was, now)
        return
    starts_was, starts_now = _find_starts(lines_was), _find_starts(lines_now)
    ends = [(-1, -1), *sorted(kept.items()), (len(lines_now), len(lines_was))]
    for (after, was_after), (until, was_until) in pairwise(ends):
        for first, last, was_first, was_last in (
            (after + 1, until, was_after + 1, was_until),
            (until, until + 1, was_until, was_until + 1),
        ):
            if last > len(lines_now):
                continue
            at, was_at = starts_now[first], starts_was[was_first]
            same = _find_same(was[was_at : starts_was[was_last]], now[at : starts_now[last]])
            for more, was_more, size in same:
                yield at + more, was_at + was_more, size


def _find_same_characters(was: str, now: str) -> Iterator[tuple[int, int, int]]:
    if max(len(was), len(now)) <= _COMPARED:
        for block in SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks():
            yield block.b, block.a, block.size


def _find_frame(was: str, now: str) -> tuple[int, int]:
    """Give how many characters two texts have in common at their beginning, and behind that at their end."""
    head = common_prefix(was, now)
    return head, common_prefix(was[head:][::-1], now[head:][::-1])


def _find_starts(lines: Sequence[str]) -> list[int]:
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    return [*starts[:-1], starts[-1] - 1]  # behind the last one is no line end


def _part_ends(pieces: Iterable[str]) -> Iterator[str]:
    """Keep line ends apart: a CR that comes to stand before an LF would end one line with it, not two."""
    before = ""
    for piece in pieces:
        if before.endswith("\r") and piece.startswith("\n"):
            yield "\r"
        yield piece
        before = piece or before


def _find_usual_end(text: str) -> str:
    """Give how most lines of a text end."""
    ends = Counter(_END.findall(text))
    return ends.most_common(1)[0][0] if ends else "\n"


def _find_kept(was: Sequence[Hashable], now: Sequence[Hashable]) -> dict[int, int]:
    """Give the numbers of lines, or tokens, that were not edited, by where they are now."""
    if max(len(was), len(now)) <= _COMPARED:
        blocks = SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
        return {block.b + at: block.a + at for block in blocks for at in range(block.size)}
    kept: dict[int, int] = {}
    at, was_at = 0, 0
    for until, was_until in [*_find_anchors(was, now), (len(now), len(was))]:
        most = min(until - at, was_until - was_at)
        head = next((by for by in range(most) if was[was_at + by] != now[at + by]), most)
        kept |= {at + by: was_at + by for by in range(head)}
        behind = range(1, most - head + 1)
        tail = next(
            (by for by in behind if was[was_until - by] != now[until - by]), most - head + 1
        )
        kept |= {until - by: was_until - by for by in range(1, tail)}
        if until < len(now):
            kept[until] = was_until
        at, was_at = until + 1, was_until + 1
    return kept


def _find_anchors(was: Sequence[Hashable], now: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Give the most lines, or tokens, that are in both once and in the same order: where each is now, and where it was.

    Source: patience diff (Bram Cohen); it takes no longer than sorting, however long a text is.
    """
    once_was, once_now = (
        {line: at for at, line in enumerate(lines) if counts[line] == 1}
        for lines, counts in ((was, Counter(was)), (now, Counter(now)))
    )
    pairs = [(at, once_was[line]) for line, at in once_now.items() if line in once_was]
    lasts: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, was_at) in enumerate(pairs):
        length = bisect_left(lasts, was_at)
        before.append(ends[length - 1] if length else -1)
        # One that ends a sequence of this length earlier than the one before.
        lasts[length : length + 1], ends[length : length + 1] = [was_at], [number]
    found = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
