"""What a request's head says of its host, method and path beside the places where these belong.

A request names its host in its tunnel, in TLS, in `Host` or `:authority` and in an absolute target; servers and frameworks
obey further fields. Each such word that says something else than the request's own place is a **claim**. A request without
claims, as nearly all are, means what it says.

Names are compared in normal form (`config.targets.hosts`): case, a trailing dot and the scheme's own port make no
difference, and a name that is absent agrees where another one is there: without `Host` and `:authority` a server takes its default.

Source: RFC 9110 section 7.2, RFC 9113 section 8.3.1, RFC 7239 for `Forwarded`; Rack, Symfony, Laravel, Express and ASP.NET for
overrides of methods, IIS and Symfony for those of paths.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ...config.targets.host_interpretations import NO_PORT, Place, host_readings, places
from ...config.targets.path_interpretations import decode, split_pairs
from ...config.targets.request_interpretations import NO_MORE, More
from ..exchange import Headers, Request


class ClaimKind(StrEnum):
    """Where a claim stands."""

    SNI = "sni"
    AUTHORITY = "authority"
    """`:authority` of HTTP/2."""
    TARGET = "target"
    """An absolute target."""
    HOST = "host"
    UNNAMED = "unnamed"
    """None of them: a server takes its default host for it."""
    FORWARDED = "forwarded"
    """A field that some servers take for `Host`."""
    METHOD = "method"
    """A field or parameter that some servers take for the method."""
    PATH = "path"
    """A field that some servers take for the path."""


NAMES = frozenset({ClaimKind.SNI, ClaimKind.AUTHORITY, ClaimKind.TARGET, ClaimKind.HOST})
"""Kinds that are part of what is asked: they count in matching."""


class Claim(NamedTuple):
    """One word that says something else."""

    kind: ClaimKind
    text: str


Claims = tuple[Claim, ...]
_UNNAMED = Claim(ClaimKind.UNNAMED, "")

_FIELDS = {
    b"host": ClaimKind.HOST,
    b"forwarded": ClaimKind.FORWARDED,
    b"x-forwarded-host": ClaimKind.FORWARDED,
    b"x-original-host": ClaimKind.FORWARDED,
    b"x-http-host-override": ClaimKind.FORWARDED,
    b"x-host": ClaimKind.FORWARDED,
    b"x-http-method-override": ClaimKind.METHOD,
    b"x-http-method": ClaimKind.METHOD,
    b"x-method-override": ClaimKind.METHOD,
    b"x-original-url": ClaimKind.PATH,
    b"x-rewrite-url": ClaimKind.PATH,
}
_PARAMETERS = frozenset({"_method", "x-http-method-override", "x-http-method", "x-method-override"})
_FORWARDED_HOST = re.compile(r'(?:^|[;,])\s*host\s*=\s*("[^"]*"|[^;,\s]*)', re.IGNORECASE)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]*([^/\\?#]*)")
_PART = re.compile(
    rb'\bname="?(?:_method|x-http-method-override)"?[^\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n([^\r\n]{1,40})',
    re.IGNORECASE,
)
_MOST = 16
"""Claims of one request; who makes more says nothing that can be relied on, which the first of them says too."""
_FORM_BYTES = 1024 * 1024


def find_claims(
    method: bytes | str,
    scheme: str,
    host: str,
    port: int,
    target: str,
    headers: Headers,
    names: Iterable[tuple[str, str]] = (),
    *,
    named: bool = False,
) -> Claims:
    """Find what a request's head claims.

    method: as sent.
    names: what TLS, `:authority` and an absolute target name, as kind and text, where that is not in `headers`.
    named: whether it has an `:authority` or absolute target, so that it needs no `Host`.
    """
    found: list[Claim] = []
    fields, hosts = _find_fields(tuple([name for name, _ in headers]))
    if not named and not hosts:
        found.append(_UNNAMED)
    for at, kind in fields:
        value = headers[at][1].decode("latin-1")
        if kind is not ClaimKind.HOST:
            found += _said(kind, value, scheme, host, port)
        elif not agrees(value, scheme, host, port):
            found.append(Claim(kind, value))
    if names:
        found += [Claim(ClaimKind(kind), text) for kind, text in names]
    absolute = _ABSOLUTE.match(target) if target[:1] != "/" else None
    if absolute is not None and not agrees(absolute[1], scheme, host, port):
        found.append(Claim(ClaimKind.TARGET, absolute[1]))
    if "?" in target:
        found += _in_pairs(target.partition("?")[2])
    sent = method if isinstance(method, str) else method.decode("latin-1")
    if not sent.isupper() and sent != sent.upper():
        found.append(Claim(ClaimKind.METHOD, sent))
    return tuple(dict.fromkeys(found[:_MOST])) if found else ()


@lru_cache(maxsize=1024)
def _find_fields(names: tuple[bytes, ...]) -> tuple[tuple[tuple[int, ClaimKind], ...], bool]:
    """Find which fields of a head may claim something, and whether one is `Host`.

    Remembered: clients send the same fields again and again.
    """
    kinds = [_FIELDS.get(name.lower().replace(b"_", b"-")) for name in names]
    found = tuple((at, kind) for at, kind in enumerate(kinds) if kind is not None)
    return found, ClaimKind.HOST in kinds


def claims_of(request: Request) -> Claims:
    """Find what a whole request claims, by its head and as a form."""
    claims = find_claims(
        request.method,
        request.scheme,
        request.host,
        request.port,
        request.target,
        request.headers,
        request.names,
        named=request.http_version.startswith("HTTP/2"),
    )
    content = request.header(b"content-type")
    more = find_body_claims(content, request.body) if content is not None else ()
    return (*claims, *more) if more else claims


def read_claims(rows: Iterable[tuple[str, str]]) -> Claims:
    """Read claims from an event; those of kinds that are not known are left out."""
    known = frozenset(ClaimKind)
    return tuple(Claim(ClaimKind(kind), text) for kind, text in rows if kind in known)


def find_body_claims(content_type: bytes, body: bytes) -> Claims:
    """Find the method that a form claims: some frameworks obey a field `_method`."""
    kind = content_type[:33].lower()
    if not body or len(body) > _FORM_BYTES:
        return ()
    if kind.startswith(b"application/x-www-form-urlencoded"):
        return tuple(_in_pairs(body.decode("latin-1")))[:_MOST]
    if kind.startswith(b"multipart/form-data"):
        told = (found[1].decode("latin-1").strip() for found in _PART.finditer(body))
        return tuple(Claim(ClaimKind.METHOD, text) for text in told)[:_MOST]
    return ()


@lru_cache(maxsize=4096)
def agrees(name: str, scheme: str, host: str, port: int) -> bool:
    """Say whether a further name of a request, with its port, is its host."""
    return places(name, scheme) == tuple(Place(one, port) for one in host_readings(host))


@lru_cache(maxsize=4096)
def agrees_without_port(name: str, host: str) -> bool:
    """Say whether a name of TLS is a request's host."""
    return host_readings(name) == host_readings(host)


@lru_cache(maxsize=1024)
def claimed(claims: Claims, scheme: str, port: int) -> More:
    """Give what is claimed, as rules look at it."""
    if not claims:
        return NO_MORE
    methods: list[str] = []
    found: list[Place] = []
    paths: list[str] = []
    for kind, text in claims:
        if kind is ClaimKind.METHOD:
            methods.append(text)
        elif kind is ClaimKind.PATH:
            paths.append(text)
        elif kind is ClaimKind.UNNAMED:
            found.append(Place("", NO_PORT))
        elif kind is ClaimKind.SNI:
            found += [Place(one, port) for one in host_readings(text)]
        else:
            found += places(text, scheme)
    return More(tuple(methods), tuple(found), tuple(paths))


def names_of(request: Request) -> tuple[str, ...]:
    """Give the names of a request's host that do not agree with where it went, as they count in matching."""
    claims = request.names
    said = request.header(b"host")
    if said is not None:
        text = said.decode("latin-1")
        if not agrees(text, request.scheme, request.host, request.port):
            claims = (*claims, (ClaimKind.HOST.value, text))
    return name_row(claims, request.scheme) if claims else ()


def name_row(claims: Iterable[tuple[str, str]], scheme: str) -> tuple[str, ...]:
    """Give the names that do not agree in normal form, sorted, as they count in matching."""
    rows = []
    for kind, text in claims:
        if kind == ClaimKind.SNI:
            rows.append(f"{kind}={host_readings(text)[0]}")
        elif kind in NAMES:
            place = places(text, scheme)[0]
            rows.append(f"{kind}={place.host}:{place.port}")
    return tuple(sorted(rows))


def _said(kind: ClaimKind, text: str, scheme: str, host: str, port: int) -> Iterator[Claim]:
    """Give the claims of one field."""
    if kind is ClaimKind.METHOD:
        for word in text.split(","):
            if word.strip():
                yield Claim(kind, word.strip().upper())
    elif kind is ClaimKind.PATH:
        if text.strip():
            yield Claim(kind, text.strip())
    else:
        named = _FORWARDED_HOST.findall(text) if "=" in text else text.split(",")
        for name in named:
            name = name.strip().strip('"')
            if name and not agrees(name, scheme, host, port):
                yield Claim(kind, name)


def _in_pairs(text: str) -> list[Claim]:
    """Give the methods that the pairs of a query or form claim."""
    if "ethod" not in text and "%" not in text and "ETHOD" not in text:
        return []
    found = []
    for pair in split_pairs(text):
        name, _, value = pair.partition("=")
        if value and decode(name).strip().lower() in _PARAMETERS:
            word = decode(value).strip().upper()
            found.append(Claim(ClaimKind.METHOD, word))
    return found
