r"""Letters outside of ASCII in a secret: it is the same secret in each way in which programs write them.

One is UTF-8 in a prompt, Latin-1 in the base64 of HTTP Basic, and on some systems an `o` with a mark of its own behind it (NFD). All have
the placeholder of the value in UTF-8 and NFC. Each letter becomes one that is as long as it is in all of them (`write_letters`).

Source: RFC 7617 section 2.1 (Basic), UAX 15 (NFC, NFD), RFC 8259 section 7 (`\u00fc`).
"""

import json
import re
import unicodedata
from contextlib import suppress
from functools import lru_cache
from hashlib import shake_256
from urllib.parse import quote

_ASCII = bytes(range(0x80)).decode()
_MOST_IN_JSON = 3
"""How often a value is a text of JSON in a text of JSON."""


@lru_cache(maxsize=1024)
def normal_text(value: bytes) -> bytes:
    """Give a value as UTF-8 and NFC; what is no UTF-8 is read as Latin-1."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return unicodedata.normalize("NFC", text).encode()


def write_as(value: bytes, made: bytes) -> bytes:
    """Write a placeholder of `normal_text` as `value` is written; both as long as each other."""
    text = made.decode()
    try:
        value.decode()
    except UnicodeDecodeError:
        found = text.encode("latin-1", "replace")
    else:
        found = unicodedata.normalize("NFD", text).encode()
    return found if len(found) == len(value) else _blank(value)


_ALPHABETS = (
    *("áéíó", "ÁÉÍÓ", "æðøþ", "ÆÐØÞ", "абвг", "АБВГ", "āēīō", "ĀĒĪŌ", "йїўќ", "ЙЇЎЌ"),
    *("一二三四", "가나다라", "각낙닥락", "ếềểễ", "ẾỀỂỄ", "𠀀𠀁𠀂𠀃"),
)
"""What letters outside of ASCII become: of each some that are as long in UTF-8, in NFD, and in Latin-1 where they have it."""


def _form_of(char: str) -> tuple[int, int, bool, bool]:
    spread = unicodedata.normalize("NFD", char)
    return len(char.encode()), len(spread.encode()), ord(char) < 0x100, char.isupper()


_OF_FORM = {_form_of(alphabet[0]): alphabet for alphabet in _ALPHABETS}


def write_letters(text: bytes, seed: bytes) -> bytes:
    """Write another letter for each that is no ASCII, never itself; it depends on the two alone.

    text: as `normal_text` gives it.
    """
    plain = text.decode("utf-8", "surrogatepass")
    drawn = shake_256(seed).digest(len(plain))
    return "".join(map(_other, plain, drawn)).encode("utf-8", "surrogatepass")


def _other(char: str, drawn: int) -> str:
    if char.isascii() or not char.isalpha():
        return char
    length, spread, latin, upper = _form_of(char)
    found = _OF_FORM.get((length, spread, latin, upper))
    if found is None:
        found = _OF_FORM.get((length, spread, latin, False), char)
    others = found.replace(char, "") or char
    return others[drawn % len(others)]


def _blank(value: bytes) -> bytes:
    """Give a value of the same length that says nothing, where its letters are written in two ways."""
    return bytes(code if code >= 0x80 or not chr(code).isalnum() else 0x61 for code in value)


def list_codings(value: bytes) -> list[bytes]:
    """List the ways in which a value may be coded: UTF-8 and NFC first, NFD, Latin-1; one of ASCII in one way."""
    if value.isascii():
        return [value]
    text = normal_text(value).decode()
    found = [text.encode(), unicodedata.normalize("NFD", text).encode()]
    with suppress(UnicodeEncodeError):
        found.append(text.encode("latin-1"))
    return list(dict.fromkeys((*found, value)))


def list_escaped(value: bytes) -> list[bytes]:
    """List the ways in which what is no ASCII of a value may be escaped: in JSON, in JSON in JSON, and percent-encoded."""
    found = [quote(value, safe=_ASCII).encode()]
    found.append(_lowered(found[0], b"%"))
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return found
    for _ in range(_MOST_IN_JSON):
        text = json.dumps(text)[1:-1]
        found.append(text.encode())
        found.append(_raised(found[-1]))
    return found


def _lowered(text: bytes, mark: bytes) -> bytes:
    first, *rest = text.split(mark)
    return mark.join([first, *(part[:2].lower() + part[2:] for part in rest)])


def _raised(text: bytes) -> bytes:
    """Write the digits of escapes of JSON in capitals."""
    first, *rest = text.split(b"\\u")
    return b"\\u".join([first, *(part[:4].upper() + part[4:] for part in rest)])


LETTER_OUTSIDE = re.compile(
    rb"[\xc3-\xdf][\x80-\xbf]|\xe2(?!\x80)[\x80-\xbf]{2}|[\xe0\xe1\xe3-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|"
    rb"\\{1,7}u[dD][89abAB][0-9A-Fa-f]{2}\\{1,7}u[dD][c-fC-F][0-9A-Fa-f]{2}|\\{1,7}u(?!00[0-9abAB]|20[0-4])[0-9A-Fa-f]{4}"
)
"""A character outside of ASCII, in UTF-8 or as an escape of JSON, but for blanks and the marks of prose."""


def narrow_letter(found: re.Match[bytes]) -> bytes:
    """Give a letter, digit or sign of ASCII for a character: without its mark if it is a letter of the Latin script."""
    text = found[0]
    if text[:1] == b"\\":
        units = [int(one[-4:], 16) for one in _UNITS.findall(text)]
        text = b"".join(unit.to_bytes(2) for unit in units).decode("utf-16-be", "replace").encode()
    char = text.decode("utf-8", "replace")[:1]
    plain = unicodedata.normalize("NFD", char)[0]
    return plain.encode() if plain.isascii() else bytes([_class_of(char)])


_UNITS = re.compile(rb"u[0-9A-Fa-f]{4}")


def narrow(value: bytes) -> bytes:
    """Give a value with a letter, digit or sign of ASCII for each character, so that it can be judged as any other."""
    return bytes(map(_class_of, normal_text(value).decode()))


def _class_of(char: str) -> int:
    if char.isascii():
        return ord(char)
    if char.isalpha():
        return ord("a") if char.islower() or not char.isupper() else ord("A")
    if char.isspace():
        return ord(" ")
    return ord("0") if char.isdecimal() else ord("-")
