"""Cuts what the model says into the pieces that it streams."""

import re

_WORD = re.compile(r"\S+\s*|\s+")


def cut(text: str) -> list[str]:
    """Cut a text behind its blanks: an address stands in one piece."""
    return _WORD.findall(text)
