"""The words of a text by which it would be known again, and their hashes for a text that is not kept.

Apart from what looks for them (`seen_before_sent.py`), as each recording ends with it, and looks for none.
"""

import base64
import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

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


_NAMESPACES = (uuid.NAMESPACE_DNS, uuid.NAMESPACE_URL, uuid.NAMESPACE_OID, uuid.NAMESPACE_X500)
_DIGESTS = (
    *(hashlib.md5, hashlib.sha1, hashlib.sha224, hashlib.sha256, hashlib.sha384, hashlib.sha512),
    *(hashlib.blake2b, hashlib.sha3_256),
)
_OF_UUIDS = (hashlib.md5, hashlib.sha1, hashlib.sha256)
_VERSIONS = (3, 4, 5, 8)
_LONGEST = 4096


def list_derived(word: bytes) -> Iterator[bytes]:
    """Give what programs make of a word to have an id that is always the same: its digests, a UUID of it, base64, hex.

    A UUID is taken as it is written, and as its bytes.
    """
    if not word or len(word) > _LONGEST:
        return
    told = [word]
    with suppress(ValueError):
        told.append(uuid.UUID(word.decode("latin-1")).bytes)
    for one in told:
        for made in (one, *(digest(one).digest() for digest in _DIGESTS)):
            yield made.hex().encode()
            yield base64.b64encode(made)
            yield base64.urlsafe_b64encode(made)
        for before in (b"", *(space.bytes for space in _NAMESPACES)):
            for digest in _OF_UUIDS:
                first = digest(before + one).digest()[:16]
                yield from (_make_uuid(first, version) for version in _VERSIONS)


def _make_uuid(made: bytes, version: int) -> bytes:
    """Give a UUID of 16 bytes (RFC 9562 section 5)."""
    bits = bytearray(made)
    bits[6] = bits[6] & 0x0F | version << 4
    bits[8] = bits[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(bits))).encode()


def hash_environment(values: Iterable[str], hashed: HashWord) -> list[str]:
    """Give the keyed hashes of the words in an environment: its values may be secrets, and are not kept."""
    words = set[bytes]()
    for value in values:
        words |= find_parts(value.encode("utf-8", "surrogatepass"))
    return sorted(hashed(word) for word in sorted(words)[:_MOST_WORDS])
