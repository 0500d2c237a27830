"""Find a pattern in a step: in its name and text, and in what was sent and answered beside; also as a person reads these.

Arguments of a tool call and results of tools are JSON, whose quotes and blanks are escaped.
"""

import re
from dataclasses import replace

from ..steps.searchable_text import read_plain
from ..steps.step import Step

_AROUND = 60
"""Characters before and behind what was found."""
_MATCH = 200
_SHOWN = 40
"""Characters at the beginning of a text that its line shows."""


def find_match(step: Step, pattern: re.Pattern[str]) -> str | None:
    """Give the text around the first match of a step; None where it has none."""
    for text in (step.name, *_own_texts(step), *step.beside):
        match = pattern.search(text)
        if match is not None:
            begin, end = match.start() - _AROUND, min(match.end(), match.start() + _MATCH) + _AROUND
            return text[max(0, begin) : end]
    return None


def with_match(step: Step, pattern: re.Pattern[str]) -> Step | None:
    """Give a step so that its line shows the match; None where it has none."""
    if pattern.search(step.name) or pattern.search(step.text[:_SHOWN]):
        return step
    own = _own_texts(step)
    for at, text in enumerate((*own, *step.beside)):
        match = pattern.search(text)
        if match is not None:
            begin = max(0, match.start() - _SHOWN // 2)
            shown = f"{'…' if begin else ''}{text[begin : match.end() + _AROUND]}"
            head = f"{step.text} " if at >= len(own) else ""
            return replace(step, text=f"{head}{shown}")
    return None


def _own_texts(step: Step) -> tuple[str, ...]:
    """Give the text of a step as it was sent, and without escapes."""
    return (step.text, *read_plain(step.text))
