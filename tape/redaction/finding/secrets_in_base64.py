"""Look into base64 once: words that announce a secret, and beginnings of keys, as base64 writes them at each of three offsets.

A run of base64 is decoded only where such a word is in it, and only near the word, one level deep.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from .format_table import FORMATS, expand

_NAMES = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "psk", "secret", "token", "jwt"),
    *("credential", "authorization", "bearer ", "cookie", "session", "signature"),
    *("private_key", "private key", "api_key", "apikey"),
)
_ENDS = ("key", "pass", "auth")
"""Ends of names, which are parts of other words, too: what is behind a name has to be behind them."""
_BEHIND = ("=", ":", '"', "'", "\\", ">", " =", " :")
_NAMED = (*_NAMES, *(end + sign for end in _ENDS for sign in _BEHIND))
_WORDS = (
    "://",
    "apiKey",
    *dict.fromkeys(f(n) for n in _NAMED for f in (str, str.title, str.upper)),
)
"""What announces a value, small, capitalised and in capitals; what the table of formats has announces a key by itself."""
_LEAST = 4
"""Characters of base64 below which a word is found by chance in what is no text."""
_LONGEST = 8
"""Characters of one that are looked for where a key begins: a longer text is not found sooner."""
_MOST_TEXTS = 8
"""Ways in which a short prefix and the first bits of what follows it are written; classes would make the search ten times slower (2026-11)."""
_MOST = 6 * 1024
"""Characters before and behind a word that are looked into."""
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_OUTSIDE = re.compile(rb"[^A-Za-z0-9+/_-]")
_INSIDE = bytes(code if code in _ALPHABET else 0 for code in range(256))
_NEAR = 64
_TEXT = 12
"""Bytes of a word and what is behind it that have to be text."""
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")


class Coded(NamedTuple):
    """A run of base64 and its meaning."""

    start: int
    """Of the run in its text; the first byte of the meaning begins there."""
    end: int
    plain: bytes


type Codes = tuple[frozenset[int], ...]
"""Which bytes may be at each place of a beginning."""


class Word(NamedTuple):
    """A word, or the beginning of a key, as base64 writes it behind 0, 1 or 2 other bytes."""

    text: bytes
    begins: int
    """Characters of its first group of four that precede it."""
    keys: tuple[Codes, ...]
    """Beginnings of keys, of which one has to be there; none of a word."""


def words() -> tuple[Word, ...]:
    """Give what is looked for, each text once."""
    found: dict[tuple[bytes, int], list[Codes]] = {}
    for text in _WORDS:
        for offset in range(3):
            begins, texts = _write_word(text.encode(), offset)
            for written in texts:
                found.setdefault((written, begins), [])
    for codes in _beginnings():
        for offset in range(3):
            for written in _write(codes, offset, _LONGEST):
                keys = found.setdefault((written, _begins(offset)), [codes])
                if keys and codes not in keys:
                    keys.append(codes)
    return tuple(Word(text, begins, tuple(keys)) for (text, begins), keys in found.items())


def _begins(offset: int) -> int:
    """Give the first character that is of what is behind some bytes alone."""
    return -(-8 * offset // 6)


def _write_word(text: bytes, offset: int) -> tuple[int, list[bytes]]:
    """Write a word behind others; a short one with the character that has two bits of what is beside it.

    Three bytes have four characters of their own only where they are a group.
    """
    codes = tuple(frozenset((code,)) for code in text)
    begins = _begins(offset)
    texts = _write(codes, offset, len(codes) * 2)
    if not texts and offset == 1:
        begins -= 1
        texts = _write((_PLAIN, *codes), 0, len(codes) * 2, begins)
    elif not texts:
        texts = _write((*codes, _PLAIN), offset, _LEAST)
    return begins, texts


_PLAIN = frozenset(range(128))
_MOST_CODES = 24
"""Bytes of the beginning of a key that are looked at."""


def _beginnings() -> Iterator[Codes]:
    """Give for each format and each of its prefixes which bytes a key begins with."""
    for row in FORMATS:
        if row.head:
            yield from (_read(head) for head in expand(row.head).split())
        for begins in row.begins:
            codes = (*(frozenset((code,)) for code in begins.encode()), *_read(expand(row.then)))
            yield codes[:_MOST_CODES]


_UNIT = re.compile(r"(\\.|\[[^\]]*\]|[^\\\[(|?*+{])(?:\{(\d+)(,)?\d*\})?")


def _read(pattern: str) -> Codes:
    """Read which bytes a pattern begins with, as far as each is at a place of its own."""
    found: list[frozenset[int]] = []
    at = 0
    while len(found) < _MOST_CODES and (unit := _UNIT.match(pattern, at)) is not None:
        found += [_codes(unit[1])] * int(unit[2] or 1)
        at = unit.end()
        if unit[3]:
            break
    return tuple(found[:_MOST_CODES])


@lru_cache(maxsize=64)
def _codes(unit: str) -> frozenset[int]:
    """Give which bytes a class of a pattern has."""
    one = re.compile(unit.encode())
    return frozenset(code for code in range(128) if one.fullmatch(bytes((code,))))


def _write(codes: Codes, offset: int, longest: int, begins: int | None = None) -> list[bytes]:
    """Write bytes behind others in all ways that there are, in both alphabets of base64: the characters that are of them alone.

    begins: the first of these characters; by default the first that is of them alone. Nothing where that are too many ways, or too few characters.
    """
    texts, size = [b""], 0
    begins = _begins(offset) if begins is None else begins
    for at in range(begins, 8 * (offset + len(codes)) // 6):
        first, left = divmod(6 * at - 8 * offset, 8)
        signs = _signs(left, codes[first], codes[first + 1] if left > 2 else _ANY)
        if (
            size == longest
            or len(texts) * len(signs) > _MOST_TEXTS
            or (size >= _LEAST and len(signs) > 2)
        ):
            break
        texts = [text + sign for text in texts for sign in signs]
        size += 1
        if size >= _LEAST and len(texts) > 2:
            break
    return texts if size >= _LEAST else []


_ANY = frozenset(range(256))


@lru_cache(maxsize=4096)
def _signs(left: int, one: frozenset[int], other: frozenset[int]) -> tuple[bytes, ...]:
    """Give the characters that six bits of two bytes may be.

    left: bits of the first byte before them.
    """
    if left <= 2:
        signs = {code >> 2 - left & 63 for code in one}
    else:
        low = {code >> 10 - left for code in other}
        signs = {code << left - 2 & 63 | few for code in one for few in low}
    found = {_ALPHABET[sign : sign + 1] for sign in signs}
    return tuple(sorted(found | {sign.translate(_TO_URL) for sign in found}))


def decode(data: bytes, end: int, word: Word) -> Coded | None:
    """Decode the run of base64 around a word that ends at a position, or None where it means no text."""
    first = end - len(word.text) - word.begins
    near = _OUTSIDE.search(data, end, end + _NEAR)
    last = near.start() if near else min(len(data), end + _NEAR)
    if last - first < 8:
        return None
    text = _decode_text(data[first : last - (last - first) % 4], word.begins * 6 // 8)
    if text is None or not _begins_key(text, word):
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


def _decode_text(run: bytes, skipped: int) -> bytes | None:
    """Decode groups of base64 that mean text behind some bytes; most that have a word by chance mean none.

    What is before and behind that text may be anything, as the tags and lengths of a message are.
    """
    try:
        plain = binascii.a2b_base64(run.translate(_TO_STANDARD))[skipped:]
    except binascii.Error:
        return None
    begins = plain[:_TEXT]
    return plain if begins.isascii() and min(begins, default=0) >= 9 else None


def _begins_key(text: bytes, word: Word) -> bool:
    """Say whether a text begins with a key where a word says so; short prefixes are parts of words, too."""
    return not word.keys or any(
        all(code in codes for code, codes in zip(text, key, strict=False)) for key in word.keys
    )


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
