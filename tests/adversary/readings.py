"""All ways in which some server may read a request: what it names must not depend on who reads it.

This knows nothing of how Playhead normalises. A target has as many readings as there are servers: percent-encodings
undone or not, backslashes as slashes, parameters cut off, empty segments dropped, dot segments resolved. What left
by a rule has to be what the rule names in each of them.
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import unquote

from .arrivals import Arrival

OVERRIDES = ("x-http-method-override", "x-method-override", "x-http-method")
"""Header fields with which a request asks to be taken for another method."""
_DEFAULT = {False: 80, True: 443}


def readings(target: str) -> set[str]:
    """Give every path that a target may be taken for; the query is no part of it."""
    whole, _, _ = target.partition("?")
    found = set()
    for fragment, decoded, slashed, bare, merged, resolved in product((False, True), repeat=6):
        path = whole.partition("#")[0] if fragment else whole
        path = unquote(path, "latin-1") if decoded else path
        path = path.replace("\\", "/") if slashed else path
        if bare:
            path = "/".join(segment.partition(";")[0] for segment in path.split("/"))
        path = re.sub("/+", "/", path) if merged else path
        found.add(_resolve(path) if resolved else path)
    return found


def _resolve(path: str) -> str:
    """Remove dot segments as RFC 3986 (5.2.4) does."""
    kept: list[str] = []
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for place, segment in enumerate(segments):
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
            continue
        if place == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)


def plain_name(authority: str, tls: bool) -> str:
    """Give an authority without what makes no difference: case, trailing dot, the scheme's own port."""
    name, colon, port = authority.strip().lower().rpartition(":")
    if not colon or not port.isdigit() or name.count(":"):
        name, port = authority.strip().lower(), ""
    name = name.removesuffix(".")
    return name if port in ("", str(_DEFAULT[tls])) else f"{name}:{port}"


def objections(arrival: Arrival, named: dict[str, Any]) -> list[str]:
    """Say why a request that reached an upstream is not the one that a rule names; empty where it is.

    named: `addresses`, `host` and `path` (regular expressions), `methods`.
    """
    return list(_object(arrival, named))


def _object(arrival: Arrival, named: dict[str, Any]) -> Iterator[str]:
    if arrival.address not in named["addresses"]:
        yield f"reached {arrival.address}, which is another host"
    if arrival.port != _DEFAULT[arrival.tls]:
        yield f"reached port {arrival.port}"
    host = re.compile(named["host"])
    for name in ("host", ":authority"):
        for value in arrival.values(name):
            if not host.fullmatch(plain_name(value, arrival.tls)):
                yield f"{name} is {value!r}"
    if len(arrival.values("host")) > 1:
        yield "more than one host"
    if arrival.sni is not None and not host.fullmatch(plain_name(arrival.sni, True)):
        yield f"the name in the TLS greeting is {arrival.sni!r}"
    target = arrival.target
    if absolute := re.match(r"(?i)https?://([^/?#]*)", target):
        if not host.fullmatch(plain_name(absolute[1], arrival.tls)):
            yield f"the target's host is {absolute[1]!r}"
        target = target[absolute.end() :] or "/"
    path = re.compile(named["path"])
    for reading in sorted(readings(target)):
        if not path.fullmatch(reading):
            yield f"the path {arrival.target!r} can be read as {reading!r}"
            break
    yield from _methods(arrival, named["methods"])


def _methods(arrival: Arrival, methods: list[str]) -> Iterator[str]:
    asked = [arrival.method]
    asked += arrival.values(*OVERRIDES)
    query = unquote(arrival.target.partition("?")[2].replace("+", " "))
    asked += [
        value
        for name, _, value in (pair.partition("=") for pair in re.split("[&;]", query))
        if name.lower() in ("_method", *OVERRIDES)
    ]
    for method in asked:
        # The request's own as it stands; an override is read by servers in any case.
        word = method if method == arrival.method else method.strip().upper()
        if word and word not in methods:
            yield f"the method is {method!r}"
