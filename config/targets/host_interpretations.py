"""Normal forms and readings of host names, IP addresses and authorities.

Rules:

1. The first reading is the normal form: lower case, no trailing dot, IDN as A-labels, IP addresses as `ipaddress`
   writes them, an IPv4 address inside an IPv6 one (RFC 4291 section 2.5.5.2) by itself, no zone.
2. A text has more readings where programs differ about it: `127.1`, `0x7f.0.0.1` and `2130706433` are names to some and
   127.0.0.1 to `inet_aton`, 0.0.0.0 leads there, `010.0.0.1` begins with 8 or 10, `a%2eexample` is decoded or not, `ß` is `ss` (IDNA 2003) or
   itself (IDNA 2008), and in `a@b` either may be meant.

Source: RFC 3986 section 3.2, RFC 5891, UTS #46, inet_aton(3), RFC 6874.
"""

import re
import socket
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from encodings import idna
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

DEFAULT_PORTS = {"http": 80, "https": 443}

NO_PORT = -1
"""Port of a place whose text states something that is no port."""

_MOST = 32
"""Readings of one host beyond which no more are looked for."""
_LONGEST = 1024
"""Characters of a host that are looked at: a longer one is itself alone."""

_PLAIN = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z_][a-z0-9_-]*")
"""Names that are read in one way: a last label that begins with a letter makes it no address."""
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")
_DOTS = re.compile("[.\u3002\uff0e\uff61\u2024\ufe52]")
_SPACES = re.compile(r"[\x00-\x20\x7f\u00ad\u200b-\u200f\u2060\ufeff]+")
_EMPTY_LABELS = re.compile(r"\.{2,}")
_DEVIATIONS = frozenset("ßς\u200c\u200d")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]@]*\]|[^:\[\]@/\\?#,]*)(?::(?P<port>[0-9]{0,9}))?")
_ODD = re.compile(
    r"[^A-Za-z0-9._:\[\]%,@/?#\t -]|%(?:[89A-Fa-f][0-9A-Fa-f]|25|[01][0-9A-Fa-f]|7[fF])"
)
"""A character that no host name, address or list of them has: quotes, backslashes, brackets, what is no ASCII,
percent-encoded or not. Nobody knows what a program makes of it."""
_UNSPECIFIED = frozenset({"0.0.0.0", "::", "[::]"})
_LISTS = re.compile(r"[,/\\?#@\s]+")


class Place(NamedTuple):
    """A host in normal form and its port."""

    host: str
    port: int


@lru_cache(maxsize=8192)
def host_readings(text: str) -> tuple[str, ...]:
    """Give what a host can be taken for, the normal form first."""
    lower = text.lower()
    if _PLAIN.fullmatch(lower):
        return (lower,)
    if len(text) > _LONGEST:
        return (lower,)
    found = dict.fromkeys([_canonical(lower)])
    waiting = [lower, *found]
    while waiting and len(found) < _MOST:
        for other in _otherwise(waiting.pop()):
            form = _canonical(other)
            if form and form not in found:
                found[form] = None
                waiting.append(form)
    return tuple(found)


def normal_host(text: str) -> str:
    """Give the normal form of a host."""
    return host_readings(text)[0]


@lru_cache(maxsize=8192)
def places(text: str, scheme: str) -> tuple[Place, ...]:
    """Give what an authority, as `Host` or `:authority`, can be taken for; more than one where it is malformed."""
    found = _parse(text.strip(" \t"), scheme)
    if found is not None:
        return found
    all_found = dict.fromkeys([Place(text.lower(), NO_PORT)])
    for part in _LISTS.split(text)[:_MOST]:
        if part:
            bare = _parse(f"[{part}]", scheme) if part.count(":") > 1 else None
            all_found |= dict.fromkeys(_parse(part, scheme) or bare or ())
    # Whatever is before or behind the name, a program that reads no further takes the name alone.
    host = text.rpartition("@")[2]
    for part in (*text.split(":")[:_MOST], *host.split(":")[:_MOST], host.strip(". \t")):
        all_found |= dict.fromkeys(_parse(part, scheme) or ())
    return tuple(all_found)


def is_anywhere(text: str) -> bool:
    """Say whether a name is spelled so that programs may take it for any: it has a character that no name has."""
    return len(text) > _LONGEST or _ODD.search(text) is not None


def embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Give an address, and the IPv4 addresses that it may be translated to."""
    yield address
    if isinstance(address, IPv6Address):
        for inner in (address.ipv4_mapped, address.sixtofour):
            if inner is not None:
                yield inner
        value = int(address)
        if value >> 32 in (0, 0x0064FF9B << 64) and value > 1:
            yield IPv4Address(value & 0xFFFFFFFF)  # RFC 4291 section 2.5.5.1, RFC 6052


def read_addresses(text: str) -> tuple[IPv4Address | IPv6Address, ...]:
    """Give the IP addresses that a host may be, however it is spelled; none where it is a name."""
    found = []
    for reading in host_readings(text):
        with suppress(ValueError):
            found.append(ip_address(reading))
    return tuple(found)


def _parse(text: str, scheme: str) -> tuple[Place, ...] | None:
    """Read `HOST[:PORT]`; None where it is something else."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or not found["host"] or _SPACES.search(text):
        return None
    port = int(found["port"]) if found["port"] else DEFAULT_PORTS.get(scheme, NO_PORT)
    if port > 65535:
        return None
    return tuple(Place(host, port) for host in host_readings(found["host"]))


def _canonical(text: str) -> str:
    """Write a host in the form that is its own; the same for what differs in writing alone."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in bare:
        with suppress(ValueError):
            address = IPv6Address(bare.partition("%")[0])
            return str(address.ipv4_mapped or address)
        return text
    if not text.isascii():
        text = ".".join(_to_ascii(label, keep=False) for label in _DOTS.split(text))
    return text[:-1] if text.endswith(".") else text


def _otherwise(text: str) -> Iterator[str]:
    """Give what one program or another makes of a host."""
    if "%" in text and ":" not in text:
        # As UTF-8, or byte by byte.
        yield (
            unquote_to_bytes(text.encode("utf-8", "surrogatepass"))
            .decode("utf-8", "replace")
            .lower()
        )
    if "@" in text:
        yield text.rpartition("@")[2]
    if text.startswith("[") and text.endswith("]") and ":" not in text:
        yield text[1:-1]
    yield text.rstrip(".")
    yield text.strip(".")
    yield _EMPTY_LABELS.sub(".", text)
    yield _SPACES.sub("", text)
    yield _SPACES.split(text)[0]
    if not text.isascii():
        labels = _DOTS.split(text)
        if not _DEVIATIONS.isdisjoint(text):
            yield ".".join(_to_ascii(label, keep=True) for label in labels)
        yield unicodedata.normalize("NFKC", text).lower()
    if text in _UNSPECIFIED:
        yield from ("127.0.0.1", "::1")  # where a connection to it leads
    if _NUMBERS.fullmatch(text):
        with suppress(OSError, UnicodeError):
            yield socket.inet_ntoa(socket.inet_aton(text))
        octets = text.split(".")
        if len(octets) == 4 and all(one.isdigit() and len(one) < 10 for one in octets):
            yield ".".join(str(int(one)) for one in octets)


def _to_ascii(label: str, *, keep: bool) -> str:
    """Give a label's ASCII form; what has none stays.

    keep: what IDNA 2003 maps away and IDNA 2008 keeps.
    """
    if label.isascii():
        return label
    if keep:
        label = unicodedata.normalize("NFC", label.lower())
        return f"xn--{label.encode('punycode').decode('ascii')}"
    with suppress(UnicodeError):
        return idna.ToASCII(label).decode("ascii").lower()
    return label
