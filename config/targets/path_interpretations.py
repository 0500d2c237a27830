r"""Readings of a request's path and query: what one server or another takes them for.

Rules:

1. Each step below is something that servers, frameworks or proxies do to a path. Readings are found by applying every
   step to every reading until nothing new appears, so that no order of servers in a row is left out.
2. The first reading is the path as sent, but for the case of the digits in percent-encodings.
3. Most paths have one reading, and are recognised by one regular expression.
4. Where there are more than `_MOST` readings, or the path is long and not plain, `Readings.whole` is False: then nothing may
   be let out for what the readings found say.
5. What else programs take a character beyond ASCII for cannot be listed. For whoever holds a request, each may be any text
   (`may_fit`). For whoever lets one out, letters and digits are letters; a path that holds anything else is not `Readings.clear`.

A trailing slash is left to whoever compares: it makes two readings of nearly every path.

Source: RFC 3986 sections 3.3, 5.2.4 and 6.2.2, the URL Standard, RFC 3629 section 10 (overlong forms), and what
servers are known to do: `;` of Java's, `\\` and trailing dots of Windows', double decoding of proxies before
an application.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

STAR = "\ue000"
"""In the place of a star of a pattern, where that is no character."""

_MOST = 256
_MOST_QUERIES = 64
_MOST_ROUNDS = 8
"""What is taken away may bring two things together, a few times over."""
_LONGEST = 4096
"""Characters of a path that is not plain, beyond which its readings are not looked for."""

_PLAIN = re.compile(r"(?:/\.*+[\w~!$&'()*+,=:@-](?:[\w~!$&'()*+,=:@.-]*+(?<!\.))?)*+/?", re.ASCII)
"""Segments that are not empty, do not end with a dot, and hold nothing that is taken for something else."""
_TRIPLET = re.compile(r"%([0-9A-Fa-f]{2})")
_CODE_UNIT = re.compile(r"%u([0-9A-Fa-f]{4})", re.IGNORECASE)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SLASHES = re.compile(r"/{2,}")
_PARAMETERS = re.compile(r";[^/]*")
_CONTROLS = re.compile(r"[\t\n\r]")
_UNUSUAL = re.compile(r"[\x00-\x1f\x7f]")
_NETWORK = re.compile(r"[/\\]{2,}[^/\\?#]*")
_SCHEME = re.compile(r"/?(?:https?|wss?):", re.IGNORECASE)
_ABSOLUTE = re.compile(r"/?(?:https?|wss?):[/\\]*[^/\\?#]*", re.IGNORECASE)
_TRAILING = re.compile(r"(?<=[^/. ])[. ]+(?=/|$)| +(?=/|$)")
_SEPARATORS = re.compile(r"%(?:2[fF]|5[cC])")
_OVERLONG = re.compile(
    "[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0\x80[\x80-\xbf][\x80-\xbf]"
)


class Readings(NamedTuple):
    """What a path can be taken for."""

    paths: tuple[str, ...]
    """As sent first."""
    whole: bool = True
    """Whether these are all."""
    clear: bool = True
    """Whether none holds a character that may be taken for a slash, a dot or an end."""


def path_readings(path: str) -> Readings:
    """Give what a path, without its query, can be taken for."""
    if _PLAIN.fullmatch(path):
        return Readings((path,))
    if len(path) > _LONGEST:
        return Readings((path,), whole=False)
    return _find_readings(path)


@lru_cache(maxsize=2048)
def _find_readings(path: str) -> Readings:
    found = {upper_triplets(path): None}
    waiting = list(found)
    while waiting:
        one = waiting.pop()
        for step in _STEPS:
            other = step(one)
            if other[:1] != "/" and other != "*":
                other = f"/{other}"
            if other not in found:
                if len(found) >= _MOST:
                    return Readings(tuple(found), whole=False, clear=False)
                found[other] = None
                waiting.append(other)
    return Readings(tuple(found), clear=not any(map(is_open, found)))


@lru_cache(maxsize=512)
def query_readings(query: str) -> Readings:
    """Give what a query can be taken for as one text, as sent first."""
    found = {upper_triplets(query): None}
    waiting = list(found)
    while waiting:
        one = waiting.pop()
        for step in _QUERY_STEPS:
            other = step(one)
            if other not in found:
                if len(found) >= _MOST_QUERIES:
                    return Readings(tuple(found), whole=False, clear=False)
                found[other] = None
                waiting.append(other)
    return Readings(tuple(found), clear=not any(map(is_open, found)))


def as_characters(text: str) -> str | None:
    """Read the bytes of a path or query as UTF-8; None where they are something else."""
    if text.isascii():
        return text
    with suppress(UnicodeError):
        return text.encode("latin-1").decode("utf-8")
    return None


@lru_cache(maxsize=2048)
def is_open(text: str) -> bool:
    """Say whether a reading holds a character that one program or another may take for a slash, a dot or an end."""
    if text.isascii():
        return _UNUSUAL.search(text) is not None
    plain = as_characters(text)
    if plain is None or _UNUSUAL.search(plain) is not None or not all(map(_is_word, plain)):
        return True
    # Whoever drops the letters is left with a dot segment.
    return any(
        "." in part and not part.strip(".").isascii() and _is_dots(part)
        for part in plain.split("/")
    )


def _is_dots(segment: str) -> bool:
    return not segment.encode("ascii", "ignore").strip(b".")


@lru_cache(maxsize=4096)
def _is_word(char: str) -> bool:
    """Say whether a character is ASCII, or a letter, mark or digit however it is decomposed."""
    return char < "\x80" or all(
        one.isalnum() if one < "\x80" else _is_letter(one)
        for one in char + unicodedata.normalize("NFKD", char)
    )


def _is_letter(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] in "LM" or kind == "Nd"


def without_accents(text: str) -> tuple[str, ...]:
    """Give a reading as whoever reads ASCII alone may take it: without accents, and without all else; none of ASCII."""
    if text.isascii():
        return ()
    plain = unicodedata.normalize("NFKD", as_characters(text) or text)
    return tuple(one.encode("ascii", "ignore").decode("ascii") for one in (plain, text))


def cut_at_open(text: str) -> str:
    """Give what stands before the first character that may be taken for an end."""
    for at, char in enumerate(text):
        if char >= "\x80" or _UNUSUAL.match(char):
            return text[:at]
    return text


def may_fit(pattern: str, text: str) -> bool:
    """Say whether a reading may fit a pattern, if each character beyond ASCII may be any text.

    A letter of a script that has no capitals is itself, nothing, or the end: nobody writes it in ASCII.
    pattern: characters in lower case, with `STAR` for any text.
    """
    plain = as_characters(text)
    states, end = 1, 1 << len(pattern)
    stars, places = _bits(pattern)
    for char in text.lower() if plain is None else plain.lower():
        states = _past_stars(states, stars)
        after = (states & places.get(char, 0)) << 1 | states & stars
        if char < " " or char >= "\x7f":
            if plain is not None and char > "\u0590" and unicodedata.category(char) == "Lo":
                if states & end:
                    return True
                states |= after
            else:
                # All from the first place that was reached.
                states = (end << 1) - (states & -states) if states else 0
        else:
            states = after
        if not states:
            return False
    return bool(_past_stars(states, stars) & end)


def _past_stars(states: int, stars: int) -> int:
    while (more := states | (states & stars) << 1) != states:
        states = more
    return states


@lru_cache(maxsize=1024)
def _bits(pattern: str) -> tuple[int, dict[str, int]]:
    """Give the places of stars and of each character, as bits."""
    stars, places = 0, dict[str, int]()
    for at, char in enumerate(pattern):
        if char == STAR:
            stars |= 1 << at
        else:
            places[char] = places.get(char, 0) | 1 << at
    return stars, places


@lru_cache(maxsize=2048)
def normal_path(path: str) -> str:
    r"""Give the normal form of a path: one for all that servers commonly take for the same.

    Percent-encodings of unreserved characters and of separators decoded, `\\` as `/`, no fragment, no `;params`, no empty
    segments, dot segments resolved, no trailing slash.
    """
    if not path.startswith("/") or _PLAIN.fullmatch(path):
        return path if len(path) < 2 else path.rstrip("/")
    # A MASK of the canonical form holds NUL, and is left as it is.
    for _ in range(_MOST_ROUNDS):
        before = path
        path = _SEPARATORS.sub("/", decode_unreserved(path)).replace("\\", "/")
        path = _resolve(_SLASHES.sub("/", _PARAMETERS.sub("", _cut_fragment(path))))
        if path == before:
            break
    return path.rstrip("/") or "/"


def without_trailing(path: str) -> str:
    """Leave out dots and spaces at the end of segments, as Windows does."""
    return _TRAILING.sub("", path)


def upper_triplets(text: str) -> str:
    """Write the digits of percent-encodings in upper case."""
    return _TRIPLET.sub(lambda found: found[0].upper(), text) if "%" in text else text


def decode_unreserved(text: str) -> str:
    """Decode percent-encodings of what needs none: RFC 3986 section 6.2.2.2."""
    return _TRIPLET.sub(_decoded_unreserved, text) if "%" in text else text


def _decoded_unreserved(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if char in _UNRESERVED else found[0].upper()


def decode(text: str) -> str:
    """Decode every percent-encoding once, byte by byte, and `%uXXXX`."""
    if "%" not in text:
        return text
    text = _CODE_UNIT.sub(lambda found: _bytes_of(chr(int(found[1], 16))), text)
    return _TRIPLET.sub(lambda found: chr(int(found[1], 16)), text)


def _bytes_of(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def fold(text: str) -> str:
    """Put ASCII in the place of what decoders or fonts take for it: overlong UTF-8, full-width forms."""
    if text.isascii():
        return text
    text = _OVERLONG.sub(_short, text)
    try:
        plain = text.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeError:
        plain = text
    folded = unicodedata.normalize("NFKC", plain)
    if folded == plain:
        return text
    return folded.encode(
        "utf-8", "surrogateescape" if plain is not text else "surrogatepass"
    ).decode("latin-1")


def _short(found: re.Match[str]) -> str:
    """Give the character that an overlong form stands for."""
    value = ord(found[0][0]) & (0x1F if len(found[0]) == 2 else 0)
    for char in found[0][1:]:
        value = value << 6 | (ord(char) & 0x3F)
    return _bytes_of(chr(value))


def _resolve(path: str) -> str:
    """Resolve dot segments: RFC 3986 section 5.2.4."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)


def _cut_fragment(text: str) -> str:
    return text.partition("#")[0]


def _cut_query(path: str) -> str:
    return path.partition("?")[0]


def _cut_at_nul(path: str) -> str:
    return path.partition("\0")[0]


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _without_parameters(path: str) -> str:
    return _PARAMETERS.sub("", path) if ";" in path else path


def _cut_parameters(path: str) -> str:
    return path.partition(";")[0]


def _without_empty(path: str) -> str:
    return _SLASHES.sub("/", path)


def _without_controls(path: str) -> str:
    return _CONTROLS.sub("", path)


def _without_authority(path: str) -> str:
    """Leave out what reads like an authority at the beginning."""
    found = _NETWORK.match(path) or _ABSOLUTE.match(path)
    return path if found is None else path[found.end() :]


def _without_scheme(path: str) -> str:
    return _SCHEME.sub("", path, count=1) if _SCHEME.match(path) else path


_STEPS: tuple[Callable[[str], str], ...] = (
    _cut_fragment,
    decode_unreserved,
    decode,
    fold,
    _with_slashes,
    _without_parameters,
    _cut_parameters,
    _without_empty,
    _resolve,
    _without_controls,
    _cut_at_nul,
    without_trailing,
    _cut_query,
    _without_authority,
    _without_scheme,
)
_QUERY_STEPS: tuple[Callable[[str], str], ...] = (
    _cut_fragment,
    decode_unreserved,
    decode,
    fold,
    _without_controls,
    _cut_at_nul,
)


def split_pairs(query: str) -> Iterator[str]:
    """Give the parts of a query, whichever of both separators is meant."""
    return (part for part in re.split("[&;]", query) if part)


def read_pairs(query: str) -> tuple[str, ...]:
    """Give the parts of a query, in lower case, in each way in which one server or another takes their ends."""
    found = dict.fromkeys((*split_pairs(query), *re.split("[&;?]", query)))
    pairs: dict[str, None] = {}
    for part in found:
        name, mark, value = part.replace("+", " ").lower().partition("=")
        for one in (name, name.strip(), _MANGLED.sub("_", name.strip())):
            pairs |= dict.fromkeys((f"{one}{mark}{value}", f"{one}{mark}{value.strip()}"))
    return tuple(pairs)


_MANGLED = re.compile(r"[.\[ ]")
"""What PHP puts an underscore for in the name of a parameter."""
