"""Secrets that a run has shown, and how each is found again: as it is, in base64, in hex.

Whatever was in a declared place (a credential of a header, a token in an answer) may come back anywhere: an
upstream echoes it, an agent logs it. The values are held in memory for as long as the run is open, never
written. Of base64 all three alignments are looked for, in both alphabets; escapes are undone by whoever asks.
Letters outside of ASCII are looked for in each coding, and with escapes.

Bounded: the values learned last are kept.
"""

import base64
import re
from collections.abc import Iterable

from ..records.credential_parts import list_apart, list_uuid_spellings, read_text, read_uuid
from ..records.redacted_value_spelling import in_base64, in_hex, tell_place
from .credential_fields import is_findable, is_given_findable, is_one
from .finding.literals import Later, Literals, Match, Needle
from .looks_like_secret import is_loose
from .placeholders.non_ascii_letters import list_codings, list_escaped, narrow
from .placeholders.same_form_value import reads_as_made

__all__ = ["Learned", "Match", "Needle", "list_needles", "whole_span", "write_match"]

MAX_VALUES = 512
_FORGOTTEN = 32
"""Values that are forgotten at once, the oldest ones."""
_SHORT = 16
"""Bytes below which a value is found only between characters that cannot belong to it."""
_MAX_VALUE = 8 * 1024
_IN_JSON, _MOST_IN_JSON = -3, 3
"""What is below this is how often a value is a text of JSON."""
_ESCAPED = -9
"""From this on down are needles with escapes for what is no ASCII, as `list_escaped` lists them."""
_SPELLED = -100
"""From this on down are the spellings of a UUID, as `list_uuid_spellings` lists them."""
_IN_HEX = (-2, -3)
_MIN_PART = 6
"""Bytes of the beginning of a value that are hidden where a text ends in the middle of it."""

_TO_URL = bytes.maketrans(b"+/", b"-_")
_STANDARD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL = _STANDARD.translate(_TO_URL)
_SIX = {code: at for table in (_STANDARD, _URL) for at, code in enumerate(table)}
_TO_BE_FILLED = re.compile(
    rb"your[-_]|[-_]here|\A[x*.-]+\Z|<[a-z][a-z _.-]*>|\{[a-z_$][\w $.-]*\}|\A[<{].*[>}]\Z|changeme|redacted|placeholder",
    re.IGNORECASE | re.DOTALL,
)
"""What people write in the place of a credential; documentation is full of it. A dummy is learned: it may be echoed."""


_TEXT = re.compile(rb"[!-~]+")


def _decode(value: bytes) -> bytes | None:
    """Give the word that a value means in base64, as of a Secret of Kubernetes; None where it means none."""
    plain = (read_text(value) or b"").strip()
    return plain if _TEXT.fullmatch(plain) else None


class Learned:
    """The secrets of one run.

    May be used from any thread without a lock: taking a value is one step, and whoever searches makes what it
    needs of the values it sees.
    """

    def __init__(self, later: Later | None = None, given: Iterable[bytes] = ()) -> None:
        """Know nothing yet but what is given.

        given: secrets for certain, such as a password that is configured. They are never forgotten.
        later: takes the work of making a fast search of many values; without it a search does it when much is due.
        """
        self._values: dict[bytes, None] = {}
        self._literals = Literals(list_needles, self._values, later)
        self._all: tuple[bytes, ...] | None = ()
        self.longest = 0
        """Bytes of the longest way in which one of them may be written, or more."""
        self._given = frozenset(
            one for value in given if is_given_findable(value) for one in list_codings(value)
        )
        for value in sorted(self._given):
            self._take(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def values(self) -> tuple[bytes, ...]:
        """What is known now, in the order it was learned; what was found out under the same holds."""
        known = self._all
        if known is None:
            known = self._all = tuple(self._values)
        return known

    def add(self, value: bytes) -> None:
        """Take a secret, unless it is too common a word to be looked for."""
        if value in self._values or len(value) > _MAX_VALUE or _TO_BE_FILLED.search(value):
            return
        if value.isascii():
            if not is_findable(value):
                return
            self._take(value)
        elif is_one(value) and is_findable(narrow(value)):
            for one in list_codings(value):
                if one not in self._values:
                    self._take(one)
        for part in list_apart(value):
            self.add(part)
        plain = _decode(value)
        if (
            plain is not None
            and plain not in self._values
            and is_findable(plain)
            and (is_loose(plain) or reads_as_made(plain))
        ):
            self._take(plain)
        if len(self._values) > MAX_VALUES:
            forgotten = [old for old in tuple(self._values) if old not in self._given]
            for old in forgotten[:_FORGOTTEN]:
                self._values.pop(old, None)
                self._literals.forget(old)
            self._all = None

    def _take(self, value: bytes) -> None:
        in_json = len(_in_json(value, _MOST_IN_JSON))
        escaped = [] if value.isascii() else map(len, list_escaped(value))
        self.longest = max(self.longest, 2 * len(value), in_json, *escaped)  # twice in hex
        self._values[value] = None
        self._literals.add(value)
        self._all = None

    def find(self, data: bytes) -> tuple[list[Match], int]:
        """Find where a text has any of them, escapes not undone; and how much of it was searched."""
        matches, searched = self._literals.find(data)
        if not matches:
            return matches, searched
        return [match for match in matches if not _is_part(data, match)], searched

    def is_clean(self, data: bytes) -> bool:
        """Say whether a text has none of them, not even as a part of a longer word, and was searched to its end."""
        return not self._values or self._literals.is_clean(data)

    def find_part(self, data: bytes) -> int:
        """Find where the beginning of one of them ends a text; -1 where none does."""
        best = -1
        for value in self.values:
            # Where more follows than the value has, it is not its beginning.
            tail = data[-len(value) :]
            at = tail.rfind(value[:_MIN_PART])
            if at >= 0 and value.startswith(tail[at:]):
                start = len(data) - len(tail) + at
                best = start if best < 0 else min(best, start)
        return best


def _is_part(data: bytes, match: Match) -> bool:
    """Say whether a short value is a part of a longer word."""
    if (
        not (match.needle.offset == -1 or match.needle.offset <= _ESCAPED)
        or len(match.needle.value) >= _SHORT
    ):
        return False
    around = data[max(0, match.start - 1) : match.start], data[match.end : match.end + 1]
    return any(char.isalnum() for char in around)


def list_needles(value: bytes) -> list[Needle]:
    """Give all ways in which a value is looked for: as it is, in JSON in JSON in JSON, in hex, and in base64 behind whatever stands before it."""
    found = [Needle(value, value, -1)]
    if b'"' in value or b"\\" in value:
        found += [
            Needle(_in_json(value, times), value, _IN_JSON - times)
            for times in range(1, _MOST_IN_JSON + 1)
        ]
    if not value.isascii():
        escaped = enumerate(list_escaped(value))
        found += [Needle(one, value, _ESCAPED - way) for way, one in escaped]
    if (uuid := read_uuid(value)) is not None:
        spelled = enumerate(list_uuid_spellings(uuid))
        found += [Needle(one, value, _SPELLED - way) for way, one in spelled if one != value]
    digits = value.hex().encode()
    found += [Needle(digits, value, -2), Needle(digits.upper(), value, -3)]
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + value)
        # Only characters that hold nothing but the value.
        inner = coded[-(-8 * offset // 6) : 8 * (offset + len(value)) // 6]
        found.append(Needle(inner, value, offset))
        safe = inner.translate(_TO_URL)
        if safe != inner:
            found.append(Needle(safe, value, offset))
    return found


def _in_json(value: bytes, times: int) -> bytes:
    """Give a value as it is in a text of JSON, in a text of JSON and so on; all else that JSON escapes is undone by whoever asks."""
    for _ in range(times):
        value = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return value


def whole_span(data: bytes, match: Match) -> tuple[int, int]:
    """Give what a match covers together with the characters that hold a part of the value."""
    start, end, needle = match
    if needle.offset < 0:
        return start, end
    if needle.offset and data[start - 1 : start] and data[start - 1] in _SIX:
        start -= 1
    if 8 * (needle.offset + len(needle.value)) % 6 and data[end : end + 1] and data[end] in _SIX:
        end += 1
    return start, end


def how_coded(raw: bytes, match: Match) -> str:
    """Say how a match is coded, as `Secret.coded` has it.

    raw: what it covers together with the characters that hold a part of the value.
    """
    if match.needle.offset >= 0:
        return in_base64(raw)
    return in_hex(raw) if match.needle.offset in _IN_HEX else ""


def tell_within(start: int, match: Match) -> str:
    """Say where in base64 a match is, as `tell_place` does; nothing if it is not in base64, or its beginning is not.

    start: of what it covers together with the characters that hold a part of the value.
    """
    offset = match.needle.offset
    if offset < 0 or (offset and start == match.start):
        return ""
    return tell_place(offset, offset, len(match.needle.value))


def write_match(data: bytes, match: Match, placeholder: bytes) -> tuple[int, int, bytes]:
    """Give what stands in the place of a match: the placeholder, coded as the value was."""
    start, end, needle = match
    if needle.offset == -1:
        return start, end, placeholder
    if needle.offset <= _SPELLED:
        uuid = read_uuid(placeholder)
        if uuid is None:  # nothing else stands for one
            return start, end, placeholder[: end - start]
        return start, end, list_uuid_spellings(uuid)[_SPELLED - needle.offset]
    if needle.offset <= _ESCAPED:
        return start, end, list_escaped(placeholder)[_ESCAPED - needle.offset]
    if needle.offset < _IN_JSON:
        return start, end, _in_json(placeholder, _IN_JSON - needle.offset)
    if needle.offset < 0:
        digits = placeholder.hex()
        return start, end, (digits.upper() if needle.offset == -3 else digits).encode()
    offset, first, last = needle.offset, start, end
    start, end = whole_span(data, match)
    # The bits of what stands before and after belong to the neighbours.
    six = [_SIX[code] for code in data[start:end]]
    before = 2 if offset == 1 else 4
    after = 8 * (offset + len(placeholder)) % 6
    coded = base64.b64encode(b"\0" * offset + placeholder + bytes(3)).rstrip(b"=")
    new = [_SIX[code] for code in coded[8 * offset // 6 :]][: end - start]
    if start == first and offset:  # nothing stands before: the first character was not there
        new = [_SIX[code] for code in coded[-(-8 * offset // 6) :]][: end - start]
    elif offset:
        keep = (0x3F << (6 - before)) & 0x3F
        new[0] = (six[0] & keep) | (new[0] & ~keep)
    if end > last:
        keep = 0x3F >> after
        new[-1] = (six[-1] & keep) | (new[-1] & ~keep)
    table = _URL if any(code in b"-_" for code in data[start:end]) else _STANDARD
    return start, end, bytes([table[code] for code in new])
