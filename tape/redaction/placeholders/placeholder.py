r"""Placeholders: keyed, stable, and of the same length and alphabet as the secret they replace.

Rules:

1. A placeholder depends on the key and the value, and on nothing else: a secret is the same placeholder
   wherever it stands in a store, and says nothing without the key.
2. It has the form of the value (`same_form_value.py`): its length, its prefix, everything but letters and digits.
3. Personal data get pseudonyms, which are valid where the data are (`pseudonyms.py`), whatever redaction took them for.
4. A value that has others in it (`records/credential_parts.py`) has their placeholders in it.
5. No two short values of one form have one placeholder (`short_values.py`).
6. A secret that is written with escapes (`%2F`, `\u002f`, `\/`) gives the placeholder of what it means, written
   with the same escapes: its length stands, and what was valid stays valid.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from ...records.credential_parts import (
    find_open,
    find_parts,
    find_tokens,
    find_words,
    form_of,
    list_tokens,
    list_uuid_spellings,
    read_pair,
    read_text,
    read_uuid,
    spell_uuid,
    write_pair,
    write_text,
    write_tokens,
    write_words,
)
from ...records.redacted_value_spelling import UNIT, meaning_of
from ..looks_like_secret import is_shaped, not_remembered
from .non_ascii_letters import normal_text, write_as, write_letters
from .pseudonyms import make_pseudonym, normal_form, read_address
from .same_form_value import (
    is_versioned_uuid,
    make_alike,
    make_run_alike,
    make_uuid_alike,
    reads_as_made,
)
from .short_values import LONGEST, permute_short

_CHARACTER = re.compile(
    rb"\\+u[0-9A-Fa-f]{4}|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|.", re.DOTALL
)
_URL_UNIT = re.compile(rb"%[0-9A-Fa-f]{2}|.", re.DOTALL)
_MADE = b"placeholders 7"
"""Changes where a value would have another placeholder than before."""
_MADE_AROUND = b"placeholders 6"
"""Of tapes on which `urn:uuid:`, versions, times and scopes in tokens become others, and a text in base64 means bytes of any kind."""
_MADE_ASCII = b"placeholders 5"
"""Of tapes on which letters outside of ASCII stay in placeholders."""
_MADE_SHORT = b"placeholders 4"
"""Of tapes on which two short values may have one placeholder."""
_MADE_WHOLE = b"placeholders 3"
"""Of tapes whose placeholders have no tokens in them but those of words and of HTTP Basic."""
_WAYS = (_MADE, _MADE_AROUND, _MADE_ASCII, _MADE_SHORT, _MADE_WHOLE)
"""The newest first."""
_WITH_LETTERS = _WAYS[:2]
_WITHOUT_SHORT = _WAYS[3:]
_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]{1,40}-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END")
_URL_WITH_PASSWORD = re.compile(rb"\s*[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:]*:([^\s@]+)@\S*\s*")
_SCOPED = re.compile(
    rb"([^/\s]{4,256})(/[0-9]{8}/[a-z0-9-]{1,40}/[a-z0-9-]{1,40}/(?:aws4|goog4)_request)"
)
"""Who has signed, and for what: the day, the region and the service are no secret."""
_DOCUMENTS = (b"{", b"[")
_is_shaped = not_remembered(is_shaped)
"""Nobody asks again about a placeholder."""
_TURNS = 16
_MADE_LAST = 8192
"""Placeholders that are remembered: a list of secrets may be searched twice, with and without its escapes."""


def _is_escape(unit: bytes) -> bool:
    """Say whether a character is written as an escape: a backslash may stand for itself."""
    return len(unit) > 1 and unit[:1] == b"\\"


_Make = Callable[[bytes, bytes, bytes], bytes]


class Placeholders:
    """Makes placeholders with a store's key."""

    def __init__(self, key: bytes) -> None:
        """Take the key.

        Raises: ValueError for an empty one.
        """
        if not key:
            raise ValueError("the key of a redactor is empty; expected some secret bytes")
        self._key = key
        self._mac = hmac.new(key, digestmod="sha256")
        # Secrets of one agent repeat from request to request.
        self._made = lru_cache(maxsize=_MADE_LAST)(self._make)
        self._kept: set[bytes] = set()
        self._way = _MADE

    @property
    def key_id(self) -> str:
        """What tells the key, and how placeholders are made, from others; it says nothing of the key."""
        return self._key_id(self._way)

    def _key_id(self, way: bytes) -> str:
        return hmac.digest(self._key, way, "sha256")[:8].hex()

    def make_as(self, key_id: str) -> bool:
        """Make placeholders as those that a key id tells of, if they are made with this key; say whether they are."""
        for way in _WAYS:
            if key_id == self._key_id(way):
                if way != self._way:
                    self._way = way
                    self._made.cache_clear()
                return True
        return False

    def of(self, value: bytes) -> bytes:
        """Give what stands for a value; a placeholder that was kept stands for itself."""
        if value in self._kept:
            return value
        if not value.isascii() and (normal := normal_text(value)) != value:
            # In each coding of its letters it is the same value.
            return write_as(value, self.of(normal))
        return self._made(value)

    def hash(self, value: bytes) -> str:
        """Give the keyed hash of a value that is not kept, as 32 hexadecimal digits."""
        return hmac.digest(self._key, b"unsearched\0" + value, "sha256").hex()[:32]

    def keep(self, value: bytes) -> None:
        """Take a value for a placeholder, which nothing else stands for: an answer of the tape said it."""
        self._kept.update(
            (
                value,
                read_address(value),
                *find_parts(value),
                *_list_texts(value),
                *_list_spellings(value),
                *(one for _, one in list_tokens(value)),
            )
        )

    def in_basic(self, value: bytes) -> bytes:
        """Give what stands for the user and password of HTTP Basic, in base64."""
        pair = read_pair(value, basic=True)
        if pair is None or value in self._kept:
            return self.of(value)
        return write_pair(value, *(self.of(one) if one else one for one in pair))

    def in_url(self, value: bytes) -> bytes:
        """Give what stands for a value in which percent-encodings may stand."""
        if b"%" not in value:
            return self.of(value)
        units = _URL_UNIT.findall(value)
        return write_units(units, self.of(_plain_of(units)))

    def in_text(self, value: bytes) -> bytes:
        """Give what stands for a value in which any escapes may stand."""
        if b"%" not in value and b"\\" not in value:
            return self.of(value)
        if b"@" in value and b"\\u" in value and value not in self._kept:
            written = self._in_address(value)
            if written is not None:
                return written
        units = UNIT.findall(value)
        return write_units(units, self.of(_plain_of(units)))

    def _in_address(self, value: bytes) -> bytes | None:
        """Give what stands for an address in which letters are written as escapes of JSON; None for anything else."""
        units = _CHARACTER.findall(value)
        text = "".join(
            chr(int(one[-4:], 16)) if _is_escape(one) else one.decode("utf-8", "replace")
            for one in units
        )
        plain = text.encode("utf-8", "surrogatepass")
        normal = normal_form(plain)
        if normal is None or b"@" not in normal:
            return None
        made = self.of(plain).decode("utf-8", "replace")
        if not len(units) == len(text) == len(made):
            return None
        parts: list[bytes] = []
        for unit, old, new in zip(units, text, made, strict=True):
            if old == new:
                parts.append(unit)
            elif _is_escape(unit):
                parts.append(unit[:-4] + b"%04x" % ord(new))
            else:
                parts.append(new.encode())
        return b"".join(parts)

    def _make(self, value: bytes) -> bytes:
        normal = normal_form(value)
        if normal is not None:
            return make_pseudonym(value, normal, hmac.digest(self._key, normal, "sha256"))
        if b" " in value and find_words(value):
            return write_words(value, self.of, self._find_open(value))
        uuid = read_uuid(value) if self._way == _MADE else None
        if uuid is not None and uuid != value:
            return spell_uuid(value, self.of(uuid))
        scoped = _SCOPED.fullmatch(value) if self._way == _MADE else None
        if scoped is not None:
            return self.of(scoped[1]) + scoped[2]
        text = read_text(value) if self._way == _MADE else None
        is_document = text is not None and (text.startswith(_DOCUMENTS) or b"://" in text)
        if read_pair(value) is not None and not is_document:
            return self.in_basic(value)
        if text is not None:
            # Whoever decodes it gets a text, and what is known of that text stands for it.
            return write_text(value, self._in_lines(text))
        if (
            self._way not in _WITHOUT_SHORT
            and len(value) <= LONGEST
            and value[:1] not in _DOCUMENTS
        ):
            return self._write_letters(value, permute_short(value, self._key))
        # Of a token that was given its placeholder comes back: with either the whole is the same.
        whole = write_tokens(value, self.of) if self._way != _MADE_WHOLE else value
        mac = self._mac.copy()  # faster than to begin with the key each time
        mac.update(whole)
        seed = mac.digest()
        make: _Make = self._make_around
        if value.isalnum():
            make = _make_plain
        elif is_versioned_uuid(value):
            make = _make_uuid
        made = make(value, whole, seed)
        shaped, form = is_shaped(value), form_of(value)
        for turn in range(_TURNS):
            # Some query keys are places of secrets for what has the shape of one: both have it, or neither.
            # And what is a token in it has to be found again where the agent puts it into another value.
            if _is_shaped(made) == shaped and (self._way == _MADE_WHOLE or form_of(made) == form):
                break
            made = make(value, whole, hmac.digest(seed, b"%d" % turn, "sha256"))
        return self._write_letters(value, made)

    def _find_open(self, value: bytes) -> tuple[tuple[int, int], ...]:
        """Find what stays in a value."""
        return find_open(value) if self._way == _MADE else ()

    def _in_lines(self, text: bytes) -> bytes:
        """Give what stands for a text without the blanks around it; of a key in PEM its lines stay, of a URL all but the password."""
        inner = _PEM.search(text) or _URL_WITH_PASSWORD.fullmatch(text)
        if inner is not None:
            return text[: inner.start(1)] + self.of(inner[1]) + text[inner.end(1) :]
        plain = text.strip()
        return text.replace(plain, self.of(plain), 1)

    def _write_letters(self, value: bytes, made: bytes) -> bytes:
        """Replace the letters outside of ASCII, too."""
        if made.isascii() or self._way not in _WITH_LETTERS:
            return made
        return write_letters(made, hmac.digest(self._key, b"letters\0" + value, "sha256"))

    def _make_around(self, value: bytes, whole: bytes, seed: bytes) -> bytes:
        """Make a value alike that has the placeholders of its tokens in it.

        whole: the value with them.
        """
        tokens = find_tokens(value) if self._way != _MADE_WHOLE else ()
        kept = _apart(tokens, self._find_open(value))
        made = make_alike(whole, seed, kept)
        for start, end in kept:
            made = made[:start] + whole[start:end] + made[end:]
        return made


def _apart(
    tokens: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Give the places of tokens, and those of others that are in no token, in order."""
    tokens = list(tokens)
    free = [
        (first, last)
        for first, last in others
        if all(last <= start or end <= first for start, end in tokens)
    ]
    return sorted([*tokens, *free])


def _list_texts(value: bytes) -> tuple[bytes, ...]:
    """Give the text that a value means in base64, without the blanks around it."""
    text = read_text(value)
    return () if text is None else (text.strip(),)


def _list_spellings(value: bytes) -> tuple[bytes, ...]:
    """Give the other spellings of a UUID."""
    uuid = read_uuid(value)
    return () if uuid is None else list_uuid_spellings(uuid)


def _make_plain(_value: bytes, whole: bytes, seed: bytes) -> bytes:
    """Make a value alike that has no tokens in it, as it has no signs."""
    return make_run_alike(whole, seed)


def _make_uuid(_value: bytes, whole: bytes, seed: bytes) -> bytes:
    return make_uuid_alike(whole, seed)


class Keeper(Placeholders):
    """Keeps each value in other placeholders, in the place of making one for it."""

    def __init__(self, others: Placeholders) -> None:
        """Begin with no value."""
        super().__init__(others._key)
        self._others = others
        self._way = others._way
        self.found: list[bytes] = []
        """Values that were kept, in order."""

    def of(self, value: bytes) -> bytes:
        """Keep a value and give it back."""
        self._others.keep(value)
        self.found.append(value)
        return value


class MadeKeeper(Keeper):
    """Keeps only what reads as a placeholder, and of anything else the parts that do."""

    def of(self, value: bytes) -> bytes:
        """Keep a value if it reads as a placeholder."""
        return super().of(value) if reads_as_made(value) else self._make(value)


@lru_cache(maxsize=1024)
def unescape(value: bytes) -> bytes:
    """Give what a value with escapes means."""
    if b"%" not in value and b"\\" not in value:
        return value
    return _plain_of(UNIT.findall(value))


def rewrite(raw: bytes, plain: bytes) -> bytes:
    """Write other characters in the place of those that `raw` means, in its own escapes."""
    if len(raw) == len(plain):
        return plain
    units = UNIT.findall(raw)
    return write_units(units, plain) if len(_plain_of(units)) == len(plain) else raw


def _plain_of(units: list[bytes]) -> bytes:
    return b"".join([meaning_of(unit) for unit in units])


def _write_escape(unit: bytes, told: bytes) -> bytes:
    """Write a character that is no ASCII as another one is written in JSON; it has as many bytes of UTF-8."""
    text = told.decode("utf-8", "replace").encode("utf-16-be")
    escape, digits = unit[: unit.index(b"u") + 1], text.hex().encode()
    if unit[len(escape) : len(escape) + 4].isupper():
        digits = digits.upper()
    if len(digits) not in (4, 8):
        return unit
    return b"".join(escape + digits[at : at + 4] for at in range(0, len(digits), 4))


def write_units(units: list[bytes], plain: bytes) -> bytes:
    """Write characters as those in `units` are written; what stays the same stays as it is."""
    parts, at = list[bytes](), 0
    for unit in units:
        old = meaning_of(unit)
        told, at = plain[at : at + len(old)], at + len(old)
        if told == old:
            parts.append(unit)
        elif len(old) > 1:
            parts.append(_write_escape(unit, told))
        elif len(unit) == 1:
            parts.append(told)
        else:
            new = told[0]
            digits = b"%02x" if unit.islower() else b"%02X"
            if unit[:1] == b"%":
                parts.append(b"%" + (b"%02x" if unit[1:].islower() else b"%02X") % new)
            elif len(unit.lstrip(b"\\")) == 5:
                parts.append(unit[:-2] + digits % new)
            else:
                parts.append(unit)
    return b"".join(parts)
