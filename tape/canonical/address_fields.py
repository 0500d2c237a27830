"""Addresses in request fields whose meaning nobody here knows: for a live rule, the server may go by any of them.

Servers, frameworks and gateways take hosts and paths from fields of ever more names (`X-Invoke-Path`, `X-Next-Hop`, `X-Portkey-Config`), so
names are no way to tell. The fields that are known are listed (`headers/known_fields.py`). In any other, whatever *reads* as an address
may be one:

1. an absolute URL, or one that begins with `//`
2. a path: a slash or backslash where a word may begin, with dots before it or not
3. a host: a name with a dot and letters behind the last one, `localhost`, an IPv4 or IPv6 address, `NAME:PORT` if that is all of the value

wherever it is in the value: in a list, in JSON, percent-encoded, with escapes of JSON, with what IDNA and servers take for dots, slashes and
letters (`evil。test`, full-width forms), with octal and hexadecimal numbers (`0x7f.1`). A word alone may be a host for somebody, too, and so may a
number, or base64: these are values of nearly every field, and no address here.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from ...config.targets.host_interpretations import read_addresses
from ...config.targets.path_interpretations import fold
from ...config.targets.request_interpretations import ANY_PATH
from ..exchange import Headers
from ..headers.known_fields import is_known, is_random_by_name
from .target_overrides import (
    Claim,
    ClaimKind,
    agrees,
    agrees_without_port,
    fully_decoded,
    is_read_by_name,
)

_HINTS = re.compile(rb"[./\\:%\x80-\xff]|localhost|0[xX]", re.IGNORECASE)
"""No address is without any of these."""
_URL = re.compile(
    r"""([A-Za-z][A-Za-z0-9+.-]{0,30}):[\\/]{2,}([^\s/?#"'<>,;{}\\]*)([^\s"'<>{}]*)"""
)
_PATH = re.compile(r"""(?:(?<=[^A-Za-z0-9_.~%*+@/\\-])|^)\.{0,2}[/\\][^\s"'<>,;|]*""")
_WORDS = re.compile(r"""[^\s"'<>,;{}()|=&]+""")
_END = re.compile(r"[/?#\\]")
_HOST = re.compile(
    r"(?:[\w\x80-\xff](?:[\w\x80-\xff-]{0,62})\.)+(?:[A-Za-z\x80-\xff]{2,63}|xn--[A-Za-z0-9-]{1,59})\.?(?::\d{1,5})?"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?|127(?:\.\d{1,8}){1,2}(?::\d{1,5})?|0[xX][0-9A-Fa-f]{8}(?::\d{1,5})?|localhost(?::\d{1,5})?",
    re.IGNORECASE,
)
_NAME_AND_PORT = re.compile(r"(?=[^:]*[A-Za-z])[\w.-]{1,253}:\d{1,5}")
_V6 = re.compile(
    r"\[([0-9A-Fa-f:.]+)(?:%[^\]]*)?\](?::\d{1,5})?|([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f.]{0,15}){2,8})"
)
_JSON_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_NUMBERS = re.compile(r"(?=.*\.)(?:.*\.)?0[xX0-9][0-9A-Fa-fxX.]*")
"""An IPv4 address of which a part is octal or hexadecimal, if `inet_aton` reads it."""
_FULL_STOP = "\u3002".encode().decode("latin-1")
"""IDNA takes it for a dot, and NFKC leaves it."""
_MOST = 16
"""Addresses of one field; of more it may be any."""
_MOST_BYTES = 16 * 1024
_ANYTHING = (Claim(ClaimKind.GATEWAY, "*"), Claim(ClaimKind.PATH, ANY_PATH))


class AddressField(NamedTuple):
    """One field that may lead elsewhere."""

    name: str
    """In lower case."""
    claims: tuple[Claim, ...]
    """What it says if the server goes by it."""


def find_address_fields(
    headers: Headers, scheme: str, host: str, port: int, target: str
) -> tuple[AddressField, ...]:
    """Find the fields of unknown names whose values read as an address other than the request's own.

    target: path and query as sent.
    """
    found = []
    for name, value in headers:
        if _HINTS.search(value) is None:
            continue
        lower = name.lower()
        if not _may_lead(lower):
            continue
        random = is_random_by_name(lower)
        read = _read(value, scheme, host, port, target, random=random)
        claims = tuple(dict.fromkeys(islice(read, 4 * _MOST)))
        if len(claims) > _MOST:
            claims = _ANYTHING
        if claims:
            found.append(AddressField(lower.decode("latin-1"), claims))
    return tuple(found)


@lru_cache(maxsize=1024)
def _may_lead(name: bytes) -> bool:
    return not is_known(name) and not is_read_by_name(name)


def _read(
    value: bytes, scheme: str, host: str, port: int, target: str, *, random: bool
) -> Iterator[Claim]:
    """Give what a value claims; of one that is random by its name only URLs count."""
    if len(value) > _MOST_BYTES:
        yield from _ANYTHING
        return
    text = value.decode("latin-1")
    plain = fully_decoded(_JSON_ESCAPE.sub(_unescape, text))
    folded = fully_decoded(fold(plain)).replace(_FULL_STOP, ".")
    for written in dict.fromkeys((text, plain, folded)):
        for url in _URL.finditer(written):
            yield from _host_said(url[2], scheme, host, port)
            yield from _path_said(url[3], target)
        if random:
            continue
        rest = _URL.sub(" ", written)
        for path in _PATH.findall(rest):
            if path.strip("/\\.") or path == written.strip():
                yield from _absolute_said(path, scheme, host, port, target)
        for word in _WORDS.findall(_PATH.sub(" ", rest)):
            yield from _word_said(word, scheme, host, port, target, alone=word == written.strip())


def _unescape(found: re.Match[str]) -> str:
    """Give the bytes of UTF-8, one character each, as those of the field are."""
    return chr(int(found[1], 16)).encode("utf-8", "surrogatepass").decode("latin-1")


def _absolute_said(path: str, scheme: str, host: str, port: int, target: str) -> Iterator[Claim]:
    """Give what a path claims; behind two slashes it is a host."""
    if re.match(r"[/\\]{2}[^/\\]", path):
        named, rest = _cut(path.lstrip("/\\"))
        yield from _host_said(named, scheme, host, port)
        yield from _path_said(rest, target)
    yield from _path_said(path if path[0] != "." else f"/{path}", target)


def _word_said(
    word: str, scheme: str, host: str, port: int, target: str, *, alone: bool
) -> Iterator[Claim]:
    """Give what a word claims that may be a host with a path behind it."""
    named, rest = _cut(word)
    named = named.rpartition("@")[2]
    before, _, behind = named.partition(":")
    # `host:api.example.com` says it, too.
    candidates = (named, behind) if not behind.isdigit() else (named,)
    for candidate in candidates:
        if (
            _HOST.fullmatch(candidate)
            or _is_v6(candidate)
            or _is_v4(candidate)
            or (alone and _NAME_AND_PORT.fullmatch(candidate) and before)
        ):
            yield from _host_said(candidate, scheme, host, port)
            yield from _path_said(rest, target)


def _is_v6(text: str) -> bool:
    found = _V6.fullmatch(text)
    if found is None:
        return False
    try:
        ipaddress.IPv6Address(found[1] or found[2])
    except ValueError:
        return False
    return True


def _is_v4(text: str) -> bool:
    """Say whether a text is an IPv4 address in numbers of C; a date or version (`01.02.2024`) is none."""
    named = text.partition(":")[0]
    if _NUMBERS.fullmatch(named) is None:
        return False
    sure = named.count(".") == 3 or "x" in named.lower()
    return any(sure or not address.is_global for address in read_addresses(named))


def _cut(text: str) -> tuple[str, str]:
    """Give a host and what is behind it."""
    end = _END.search(text)
    return (text, "") if end is None else (text[: end.start()], text[end.start() :])


def _host_said(named: str, scheme: str, host: str, port: int) -> Iterator[Claim]:
    if not named or agrees(named, scheme, host, port):
        return
    if ":" not in named and agrees_without_port(named, host):
        return
    yield Claim(ClaimKind.GATEWAY, f"[{named}]" if _is_v6(named) and named[0] != "[" else named)


def _path_said(path: str, target: str) -> Iterator[Claim]:
    if path and path != target and path != target.partition("?")[0]:
        yield Claim(ClaimKind.PATH, path)
