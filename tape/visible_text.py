"""Text that is shown to a person: whatever nobody would see in it is written as an escape.

What a line is made of, how long it may be and where it breaks is up to each view; which characters are seen is decided here.
Source: Unicode 16, `DerivedCoreProperties.txt`, Default_Ignorable_Code_Point, as far as Python calls them printable (the others
are controls, marks of direction and unassigned, which it does not); then blanks and fillers that are no white space.
"""

import re

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
    "\u2800\U00016fe4\U0001d159]"  # Braille without dots, a filler of Khitan, a note without a head
)


def is_visible(text: str) -> bool:
    """Say whether each character of a text is seen; of white space, a blank alone is."""
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def escape_char(char: str) -> str:
    """Write a character as an escape of Python."""
    return char.encode("unicode_escape").decode("ascii", "replace")


def show_visibly(text: str, keep: str = "") -> str:
    """Give a text with escapes in the place of what is not seen.

    keep: characters that stay as they are.
    """
    if is_visible(text):
        return text
    return "".join(char if char in keep or is_visible(char) else escape_char(char) for char in text)
