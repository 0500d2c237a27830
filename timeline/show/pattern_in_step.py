"""Find a pattern in a step: in its name and text, and in what was sent and answered beside."""

import re
from dataclasses import replace

from ..steps.step import Step

_AROUND = 60
"""Characters before and behind what was found."""
_MATCH = 200
_SHOWN = 40
"""Characters at the beginning of a text that its line shows."""


def find_match(step: Step, pattern: re.Pattern[str]) -> str | None:
    """Give the text around the first match of a step; None where it has none."""
    for text in (step.name, step.text, *step.beside):
        match = pattern.search(text)
        if match is not None:
            begin, end = match.start() - _AROUND, min(match.end(), match.start() + _MATCH) + _AROUND
            return text[max(0, begin) : end]
    return None


def with_match(step: Step, pattern: re.Pattern[str]) -> Step | None:
    """Give a step so that its line shows the match; None where it has none."""
    if pattern.search(step.name) or pattern.search(step.text[:_SHOWN]):
        return step
    for text in (step.text, *step.beside):
        match = pattern.search(text)
        if match is not None:
            begin = max(0, match.start() - _SHOWN // 2)
            shown = f"{'…' if begin else ''}{text[begin : match.end() + _AROUND]}"
            head = f"{step.text} " if text is not step.text else ""
            return replace(step, text=f"{head}{shown}")
    return None
