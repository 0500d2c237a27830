"""Look into base64 once: words that announce a secret, as base64 writes them at each of three offsets.

A run of base64 is decoded only where such a word is in it, and only near the word, one level deep.
"""

import base64
import binascii
import re
from typing import NamedTuple

_WORDS = (
    *(
        "password",
        "PASSWORD",
        "passwd",
        "secret",
        "SECRET",
        "private_key",
        "PRIVATE KEY",
        "api_key",
        "apikey",
        "apiKey",
        "token",
    ),
    *(
        "TOKEN",
        "_KEY=",
        "_PASS=",
        "_PWD=",
        "AKIA",
        "ASIA",
        "AIza",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "npm_",
    ),
    *(
        "sk-ant-",
        "sk-proj-",
        "sk_live_",
        "sk_test_",
        "xoxb-",
        "xoxp-",
        "hf_",
        "gsk_",
        "://",
        "Bearer ",
    ),
)
_LEAST = 4
"""Characters of base64 below which a word is found by chance in what is no text."""
_MOST = 6 * 1024
"""Characters before and behind a word that are looked into."""
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_OUTSIDE = re.compile(rb"[^A-Za-z0-9+/_-]")
_INSIDE = bytes(code if code in _ALPHABET else 0 for code in range(256))
_NEAR = 64
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")


class Coded(NamedTuple):
    """A run of base64 and its meaning."""

    start: int
    """Of the run in its text; the first byte of the meaning begins there."""
    end: int
    plain: bytes


class Word(NamedTuple):
    """A word as base64 writes it behind 0, 1 or 2 other bytes."""

    text: bytes
    begins: int
    """Characters of its first group of four that precede it."""


def words() -> tuple[Word, ...]:
    """Give what is looked for."""
    found: dict[bytes, Word] = {}
    for word in _WORDS:
        for offset in range(3):
            coded = base64.b64encode(b"\0" * offset + word.encode())
            begins = -(-8 * offset // 6)
            inner = coded[begins : 8 * (offset + len(word)) // 6]
            if len(inner) >= _LEAST:
                for text in (inner, inner.translate(_TO_URL)):
                    found.setdefault(text, Word(text, begins))
    return tuple(found.values())


def decode(data: bytes, end: int, word: Word) -> Coded | None:
    """Decode the run of base64 around a word that ends at a position, or None where it means no text."""
    first = end - len(word.text) - word.begins
    near = _OUTSIDE.search(data, end, end + _NEAR)
    last = near.start() if near else min(len(data), end + _NEAR)
    if last - first < 8 or not _is_text(data[first : last - (last - first) % 4]):
        return None
    start, stop = _before(data, first), last
    if near is None:
        behind = data[end : end + _MOST].translate(_INSIDE).find(b"\0")
        stop = end + behind if behind >= 0 else min(len(data), end + _MOST)
    if (stop - start) % 4 == 1:
        stop -= 1
    run = data[start:stop]
    plain = binascii.a2b_base64(run.translate(_TO_STANDARD) + b"=" * (-len(run) % 4))
    return Coded(start, stop, plain) if len(plain) > 8 else None


def _is_text(run: bytes) -> bool:
    """Say whether groups of base64 mean text; most that have a word by chance mean none."""
    try:
        plain = binascii.a2b_base64(run.translate(_TO_STANDARD))
    except binascii.Error:
        return False
    return plain.isascii() and min(plain, default=0) >= 9


def _before(data: bytes, first: int) -> int:
    """Find where the groups of four before a position begin, which is the beginning of one itself."""
    least = max(0, first - _MOST)
    outside = data[least:first].translate(_INSIDE).rfind(b"\0")
    return first - (first - least - outside - 1) // 4 * 4


def encode(data: bytes, coded: Coded, start: int, end: int, new: bytes) -> tuple[int, int, bytes]:
    """Give where a part of the meaning is written, and what is written there for other bytes of the same length."""
    first, last = start - start % 3, min(len(coded.plain), end + -end % 3)
    plain = coded.plain[first:start] + new + coded.plain[end:last]
    at = coded.start + first // 3 * 4
    text = base64.b64encode(plain)
    stop = min(coded.end, at + len(text))
    if any(mark in data[coded.start : coded.end] for mark in (b"-", b"_")):
        text = text.translate(_TO_URL)
    return at, stop, text[: stop - at]
