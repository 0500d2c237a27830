"""The words of a text by which it would be known again, and their hashes for a text that is not kept.

Apart from what looks for them (`seen_before_sent.py`), as each recording ends with it, and looks for none.
"""

import re
from collections.abc import Callable, Iterable

HashWord = Callable[[bytes], str]
"""Gives the keyed hash of a word."""
_MOST_WORDS = 50_000
_LEAST = 6
"""Characters of a word that says something."""
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_TIME = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_WORD = re.compile(_TIME + rb"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-z]{%d,}" % _LEAST)
"""A time, a UUID, or letters and digits; in lower case."""
_JOINED = re.compile(_TIME + rb"|[0-9a-z]+(?:[-_][0-9a-z]+)*")
"""A time, or words with signs between them."""
_SIGN = re.compile(rb"[-_]")
_MOST_PARTS = 12
"""Words of a joined one; of more only each by itself is one."""
_LETTERS = re.compile(rb"[a-z]+(?=[0-9])")
_DIGIT = re.compile(rb"[0-9]")


def find_words(text: bytes) -> set[bytes]:
    """Give the words of a value by which it would be known again: those with digits. One with hyphens is the same without them."""
    plain = _ESCAPE.sub(b" ", text).lower()
    found = {one.replace(b"-", b"") for one in _WORD.findall(plain)}
    for one in _JOINED.findall(plain):
        if b":" not in one:
            found.add(_SIGN.sub(b"", one))
    return {one for one in found if len(one) >= _LEAST and _DIGIT.search(one)}


def find_parts(text: bytes) -> set[bytes]:
    """Give the words of a text that somebody was told, and what may be made of them: of `A1-B2-C3` also any of its parts in a row.

    What is behind the letters that a word begins with is one, too.
    """
    found = find_words(text)
    for joined in _JOINED.findall(_ESCAPE.sub(b" ", text).lower()):
        parts = _SIGN.split(joined)
        if b":" in joined or len(parts) > _MOST_PARTS:
            continue
        for first in range(len(parts)):
            for last in range(first + 1, len(parts) + 1):
                one = b"".join(parts[first:last])
                behind = _LETTERS.match(one)
                found.update((one, one[behind.end() :]) if behind else (one,))
    return {one for one in found if len(one) >= _LEAST and _DIGIT.search(one)}


def hash_environment(values: Iterable[str], hashed: HashWord) -> list[str]:
    """Give the keyed hashes of the words in an environment: its values may be secrets, and are not kept."""
    words = set[bytes]()
    for value in values:
        words |= find_parts(value.encode("utf-8", "surrogatepass"))
    return sorted(hashed(word) for word in sorted(words)[:_MOST_WORDS])
