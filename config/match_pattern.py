"""Match patterns: which requests a rule speaks of.

Grammar:  [METHOD[,METHOD...] ]SCHEME://HOST[:PORT][/PATH]

* METHOD is an HTTP method or `*`; without one any method matches.
* SCHEME is `http`, `https` or `*`, or `ws` or `wss`: a WebSocket over http or https, and nothing else.
* HOST may hold `*` (any run of characters): `*.openai.com`, `*`.
* PORT is a number or `*`; without one it is the scheme's own port, or any where HOST is `*` or SCHEME is `*`.
* PATH may hold `*`, which also stands for slashes; without one every path matches. A pattern with a
  `?` is matched against path and query, one without against the path alone.

Hosts match in normal form (`targets.hosts`), schemes without regard to case, methods in upper case, and paths by all that they
can be taken for (`targets.paths`). A path in a pattern has to be in normal form, since none other is ever matched.
"""

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from .targets.host_interpretations import DEFAULT_PORTS, Place, host_readings, normal_host
from .targets.path_interpretations import (
    STAR,
    as_characters,
    cut_at_open,
    decode,
    may_fit,
    normal_path,
    path_readings,
    query_readings,
    read_pairs,
    split_pairs,
    upper_triplets,
    without_trailing,
)
from .targets.request_interpretations import ANY_METHOD, Ways

_PATTERN = re.compile(
    r"^(?:(?P<methods>[A-Za-z*]+(?:,[A-Za-z]+)*)\s+)?"
    r"(?P<scheme>https?|wss?|\*)://"
    r"(?P<host>\[[^\[\]\s/?#]+\]|[^/:?#\s\[\]]+)"
    r"(?::(?P<port>\d{1,5}|\*))?"
    r"(?P<path>/\S*)?$"
)
_KEPT = "".join(map(chr, range(0x21, 0x7F)))
"""Characters of a path that stay as they are in its normal form."""
_SHOWN = 40
_SOCKETS = {"ws": "http", "wss": "https"}
_METHODS = frozenset(
    {
        "ACL",
        "BAN",
        "BCOPY",
        "BDELETE",
        "BIND",
        "BMOVE",
        "BPROPFIND",
        "BPROPPATCH",
        "CHECKIN",
        "CHECKOUT",
        "CONNECT",
    }
    | {
        "COPY",
        "DELETE",
        "GET",
        "HEAD",
        "LABEL",
        "LINK",
        "LOCK",
        "MERGE",
        "MKACTIVITY",
        "MKCALENDAR",
        "MKCOL",
    }
    | {
        "MKREDIRECTREF",
        "MKWORKSPACE",
        "MOVE",
        "NOTIFY",
        "OPTIONS",
        "ORDERPATCH",
        "PATCH",
        "POLL",
        "POST",
        "PRI",
    }
    | {
        "PROPFIND",
        "PROPPATCH",
        "PURGE",
        "PUT",
        "QUERY",
        "REBIND",
        "REPORT",
        "SEARCH",
        "SUBSCRIBE",
        "TRACE",
    }
    | {"UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UNSUBSCRIBE", "UPDATE", "UPDATEREDIRECTREF"}
)
"""Methods that are registered with IANA, of WebDAV in Exchange, and of caches: what is like one of them, and is none, was mistyped."""
_MISSPELLED = 0.7
_UNUSUAL = re.compile(r"[^\x20-\x7e]")
"""What is no plain character."""


@dataclass(frozen=True, slots=True)
class Match:
    """One parsed pattern; `text` is what the person wrote."""

    text: str
    methods: frozenset[str]
    """Upper case; empty for any."""
    scheme: str
    """`http`, `https`, or empty for any."""
    host: str
    """Glob, in normal form."""
    port: int | None
    path: str
    """Glob; empty for any."""
    websocket: bool = False
    """Whether it speaks of WebSockets alone."""

    def matches(self, method: str, scheme: str, host: str, port: int, target: str) -> bool:
        """Say whether a request is meant as it was sent; `target` is path and query."""
        if self.methods and method not in self.methods:
            return False
        if not self._leads_to(scheme, Place(normal_host(host), port)):
            return False
        if not self.path:
            return True
        if "?" not in self.path:
            target = target.partition("?")[0]
        return _fits(self.path, upper_triplets(target))

    def surely(self, ways: Ways) -> bool:
        """Say whether a request is meant as sent, and in every other way that it can be taken.

        Over a WebSocket anything may be said, so a pattern with methods does not mean it, unless it says so.
        """
        if ways.websocket and self.methods and not self.websocket:
            return False
        if not self.clearly(ways):
            return False
        if not self.path:
            return True
        sent = ways.sent
        if "?" in self.path and ways.query is not None:
            sent = f"{sent}?{upper_triplets(ways.query)}"
        return _globs(self.path)[0].fullmatch(sent) is not None

    def clearly(self, ways: Ways) -> bool:
        """Say whether a request is meant in every way that it can be taken, however it was written."""
        if self.websocket and not ways.handshake:
            return False
        if self.methods and not self.methods.issuperset(ways.methods):
            return False
        if not ways.agreed or len(ways.places) != 1:
            return False
        if not self._leads_to(ways.scheme, ways.places[0]):
            return False
        if not self.path:
            return True
        # What is written in full is what it says, whatever it may be taken for.
        if not ways.whole or not (ways.clear or "*" not in self.path or self.path == "/*"):
            return False
        if "?" not in self.path or not ways.queries:
            return all(_fits_nearly(self.path, path) for path in ways.paths)
        return all(self._clearly_asks(ways, query) for query in ways.queries)

    def _clearly_asks(self, ways: Ways, query: str) -> bool:
        queries = query_readings(query)
        if not queries.whole:
            return False
        texts = list(queries.paths)
        if not queries.clear:
            # A star takes whatever a character may be; but it may be an end, too.
            texts += [cut_at_open(text) for text in texts]
        return all(_fits(self.path, f"{path}?{text}") for path in ways.paths for text in texts)

    def maybe(self, ways: Ways) -> bool:
        """Say whether a request is meant in any way that it can be taken."""
        if self.websocket and not ways.websocket:
            return False
        if (
            self.methods.isdisjoint(ways.methods)
            and self.methods
            and ANY_METHOD not in ways.methods
        ):
            return False
        if not self._may_lead_to(ways):
            return False
        if not self.path or not ways.whole:
            return True
        paths = (ways.sent, *ways.paths)
        if "?" not in self.path or not ways.queries:
            return any(_may_fit(self.path, path) for path in paths)
        return any(self._may_ask(paths, query) for query in ways.queries)

    def _may_ask(self, paths: tuple[str, ...], query: str) -> bool:
        found = query_readings(query)
        wanted, _, pairs = self.path.partition("?")
        if not found.whole:
            return any(_may_fit(wanted, path) for path in paths)
        # A star in its path may stand for more than a path.
        whole = (f"{path}?{text}" for path in paths for text in found.paths)
        return any(_may_fit(self.path, one) for one in whole) or (
            any(_may_fit(wanted, path) for path in paths)
            and any(_has_pairs(pairs, text) for text in found.paths)
        )

    def _may_lead_to(self, ways: Ways) -> bool:
        if ways.anywhere or any(self._leads_to(ways.scheme, place) for place in ways.places):
            return True
        return any(self._names(host) for host in ways.names)

    def _leads_to(self, scheme: str, place: Place) -> bool:
        if self.scheme and scheme != self.scheme:
            return False
        if self.port is not None and place.port != self.port:
            return False
        return self._names(place.host)

    def _names(self, name: str) -> bool:
        host = self.host
        if "*" not in host:
            return name == host
        return host == "*" or _glob(host).fullmatch(name) is not None


def _fits(pattern: str, path: str) -> bool:
    return any(glob.fullmatch(path) for glob in _globs(pattern))


def _fits_nearly(pattern: str, path: str) -> bool:
    """As `_fits`, with a slash at the end or without."""
    return _fits(pattern, path) or _fits(pattern, _other_end(path))


def _fits_loosely(pattern: str, path: str) -> bool:
    """As `_fits_nearly`, whatever the case."""
    return any(
        glob.fullmatch(path) or glob.fullmatch(_other_end(path)) for glob in _loose_globs(pattern)
    )


def _other_end(path: str) -> str:
    return (path.rstrip("/") or "/") if path.endswith("/") else f"{path}/"


def _may_fit(pattern: str, text: str) -> bool:
    """As `_fits_loosely`, where characters beyond ASCII may be anything."""
    if _fits_loosely(pattern, text):
        return True
    if _UNUSUAL.search(text) is None:
        return False
    bare = text.rstrip("/")
    return any(may_fit(one, bare) or may_fit(one, f"{bare}/") for one in _characters(pattern))


def _has_pairs(pattern: str, query: str) -> bool:
    """Say whether each pair of a query's pattern is somewhere in a query."""
    pairs = read_pairs(query)
    return all(
        any(_may_fit(wanted.replace("+", " "), pair) for pair in pairs)
        for wanted in split_pairs(pattern)
    )


@lru_cache(maxsize=1024)
def _characters(pattern: str) -> tuple[str, ...]:
    """Give what a glob matches as characters, in lower case, with `STAR` for its stars."""
    parts = pattern.split("*")
    decoded = [as_characters(decode(part)) or decode(part) for part in parts]
    return tuple(dict.fromkeys(STAR.join(way).lower() for way in (parts, decoded)))


@lru_cache(maxsize=1024)
def _globs(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Give what a glob matches: as written, and as servers take what is written, decoded or without trailing dots."""
    written = upper_triplets(pattern).split("*")
    decoded = [decode(part) for part in written]
    ways = [written, decoded]
    # A star stands for some character, and what follows it is no beginning of a segment.
    ways += [without_trailing(STAR.join(way)).split(STAR) for way in ways]
    return tuple(_compile(list(way)) for way in dict.fromkeys(map(tuple, ways)))


@lru_cache(maxsize=1024)
def _loose_globs(pattern: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(glob.pattern, glob.flags | re.IGNORECASE) for glob in _globs(pattern))


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return _compile(pattern.split("*"))


def _compile(parts: list[str]) -> re.Pattern[str]:
    first, *rest = map(re.escape, parts)
    if not rest:
        return re.compile(first, re.DOTALL)
    # What stands between two stars is taken where it comes first, for good: each text is gone through once,
    # however long it is and however often a part comes in it.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{between}.*{rest[-1]}", re.DOTALL)


def parse_match(text: str) -> Match:
    """Parse a pattern.

    Raises: ValueError, whose text says what would be right.
    """
    found = _PATTERN.match(text.strip())
    if not found:
        raise ValueError(
            f"{text!r} is no match pattern; expected [METHOD ]SCHEME://HOST[:PORT][/PATH],"
            " as 'POST https://api.example.com/v1/*'"
        )
    websocket = found["scheme"] in _SOCKETS
    methods = frozenset(m.upper() for m in (found["methods"] or "*").split(",")) - {"*"}
    for method in sorted(methods - _METHODS):
        if near := _find_method(method):
            raise ValueError(f"{text!r}: {method!r} is no method of HTTP; did you mean {near!r}?")
    if websocket and not methods:
        methods = frozenset({"GET"})  # its handshake is one
    scheme = "" if found["scheme"] == "*" else _SOCKETS.get(found["scheme"], found["scheme"])
    if found["port"] in (None, "*"):
        any_port = found["port"] == "*" or found["host"] == "*" or not scheme
        port = None if any_port else DEFAULT_PORTS[scheme]
    else:
        port = int(found["port"])
        if not 0 < port < 65536:
            raise ValueError(f"{text!r}: port {port} is not between 1 and 65535")
    host, path = _normal_glob(found["host"]), found["path"] or ""
    for part, better in (
        ("host", _find_better_host(found["host"])),
        ("path", _find_better_path(path)),
    ):
        if better is not None:
            start, end = found.span(part)
            normal = f"{found.string[:start]}{better}{found.string[end:]}"
            raise ValueError(
                f"{text!r} can never match: in normal form it is {normal!r}; write that, or * in the place of"
                " what is spelled in another way"
            )
    return Match(text.strip(), methods, scheme, host, port, path, websocket)


def _find_method(method: str) -> str:
    """Give the method that a word is a misspelling of; empty where it may be one of a server's own."""
    same = (one for one in sorted(_METHODS) if sorted(one) == sorted(method))
    near = difflib.get_close_matches(method, sorted(_METHODS), n=1, cutoff=_MISSPELLED)
    return next(same, next(iter(near), ""))


def _normal_glob(host: str) -> str:
    """Give the normal form of a pattern's host."""
    if "*" not in host:
        return normal_host(host)
    labels = host.lower().removesuffix(".").split(".")
    return ".".join(label if "*" in label else normal_host(label) for label in labels)


def _find_better_host(host: str) -> str | None:
    """Give the normal form of a host that no request has, as it is read in several ways; None of any other."""
    readings = host_readings(host) if "*" not in host else ()
    return readings[-1] if len(readings) > 1 else None


def _find_better_path(pattern: str) -> str | None:
    """Give the normal form of a path that no request has in normal form; None of any other."""
    path, mark, query = pattern.partition("?")
    if "#" in query:
        return pattern.partition("#")[0]
    if not path:
        return None
    normal, written = quote(normal_path(path), safe=_KEPT), upper_triplets(path)
    if written not in (normal, f"{normal}/"):
        return f"{normal}{mark}{query}"
    readings = path_readings(path)
    # Whoever takes it for something else takes the request for that, too. A pattern fits itself: most shipped ones need no glob for that.
    others = (one for one in readings.paths if one != written)
    other = next((one for one in others if not _fits_nearly(path, one)), None)
    if other is None:
        return None if readings.whole else f"{path[:_SHOWN]}*"
    return f"{other}{mark}{query}"
