"""Texts on their way to somebody who edits them, and back: what was not edited stays as it was, byte for byte.

1. JSON is indented by its tokens: a number stays as it is written, and a member that comes twice comes twice. The white space around the
   tokens that were not edited becomes again what it was.
2. A text box of a browser has no CR: CR LF and CR become LF (HTML, "API value normalization"), and NUL becomes U+FFFD. Lines that were not
   edited get back what they were; others end as most lines do.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_COMPARED = 2_000
"""Lines, or tokens, beyond which an edited text is compared by its equal beginning and end alone."""


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
    """Give an edited text with the lines and line ends of the one that was shown.

    shown: before it was put into a text box.
    edited: as the text box had it in the end.
    """
    if as_typed(shown) == edited:
        return shown
    was = [(line, end) for line, end in _LINE.findall(shown)]
    if was and was[-1] == ("", ""):
        # Behind the last line end is a line of nothing; the pattern finds it once more at the end of any other line.
        was = was if len(was) == 1 or was[-2][1] else was[:-1]
    typed = [as_typed(line) for line, _ in was]
    now = edited.split("\n")
    usual = _find_usual_end(shown)
    kept = _find_kept(typed, now)
    made: list[str] = []
    for at, line in enumerate(now):
        text, end = was[kept[at]] if at in kept else (line, usual)
        made += [text, (end or usual) if at < len(now) - 1 else ""]
    restored = "".join(made)
    # A CR that comes to stand before an LF would end one line with it, not two.
    return restored if as_typed(restored) == edited else edited.replace("\n", usual)


def _find_usual_end(text: str) -> str:
    """Give how most lines of a text end."""
    ends = Counter(end for _, end in _LINE.findall(text) if end)
    return ends.most_common(1)[0][0] if ends else "\n"


def _find_kept(was: Sequence[Hashable], now: Sequence[Hashable]) -> dict[int, int]:
    """Give the numbers of lines, or tokens, that were not edited, by where they are now."""
    if max(len(was), len(now)) <= _COMPARED:
        blocks = SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
        return {block.b + at: block.a + at for block in blocks for at in range(block.size)}
    most = min(len(was), len(now))
    head = next((at for at in range(most) if was[at] != now[at]), most)
    tail = next((at for at in range(most - head) if was[-1 - at] != now[-1 - at]), most - head)
    kept = {at: at for at in range(head)}
    return kept | {len(now) - 1 - at: len(was) - 1 - at for at in range(tail)}
