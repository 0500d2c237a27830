"""The words of a text by which it would be known again, and their hashes for a text that is not kept.

Apart from what looks for them (`freshness.py`), as each recording ends with it, and looks for none.
"""

import re
from collections.abc import Callable, Iterable

HashWord = Callable[[bytes], str]
"""Gives the keyed hash of a word."""
_MOST_WORDS = 10_000
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_WORD = re.compile(
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
    rb"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-z]{6,}"
)
"""A time, a UUID, or letters and digits; in lower case."""
_DIGIT = re.compile(rb"[0-9]")


def find_words(text: bytes) -> set[bytes]:
    """Give the words of a text by which it would be known again: those with digits. A UUID is the same with and without hyphens."""
    found = set(_WORD.findall(_ESCAPE.sub(b" ", text).lower()))
    return {one.replace(b"-", b"") for one in found if _DIGIT.search(one)}


def hash_environment(values: Iterable[str], hashed: HashWord) -> list[str]:
    """Give the keyed hashes of the words in an environment: its values may be secrets, and are not kept."""
    words = set[bytes]()
    for value in values:
        words |= find_words(value.encode("utf-8", "surrogatepass"))
    return sorted(hashed(word) for word in sorted(words)[:_MOST_WORDS])
