"""The ways in which one request can be taken: each method, each place and each path that it may have for a server."""

from functools import lru_cache
from typing import NamedTuple

from .host_interpretations import Place, host_readings
from .path_interpretations import path_readings

_LONG_PATH = 1000
"""Characters of a path beyond which its ways are not remembered."""

ANY_METHOD = "*"
"""Among the methods of a request that may claim any: what it claims could not be read."""

ANY_PATH = "\x00any"
"""Among the paths that a head claims: what it claims could not be read."""


class More(NamedTuple):
    """What a request's head claims beside its own method, place and path."""

    methods: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    paths: tuple[str, ...] = ()
    """With their queries."""
    schemes: tuple[str, ...] = ()
    anywhere: bool = False
    """Whether a name is spelled so that it may be any."""
    websocket: bool = False
    """Whether it asks for a WebSocket."""
    handshake: bool = False
    """Whether every server takes it for the handshake of one."""


NO_MORE = More()


class Ways(NamedTuple):
    """What a request can be taken for; `Match.surely`, `Match.clearly` and `Match.maybe` look at all of it."""

    methods: tuple[str, ...]
    """Its own first, in upper case; `ANY_METHOD` among them where it may have any."""
    scheme: str
    places: tuple[Place, ...]
    """Where it goes first; more than one where its names do not agree, or a host can be read in several ways."""
    sent: str
    """The path as it was sent."""
    paths: tuple[str, ...]
    """What that can be taken for: itself, or what servers make of it where it is spelled in an unusual way."""
    whole: bool
    """Whether these are all paths."""
    query: str | None
    """As sent; None without a `?`."""
    plain: bool
    """Whether there is one way."""
    clear: bool = True
    """Whether no path holds a character that may be taken for a slash, a dot or an end."""
    queries: tuple[str, ...] = ()
    """All that it can have, its own first."""
    names: frozenset[str] = frozenset()
    """Hosts that it names and that do not agree with its place: servers choose by a name alone, whatever the port."""
    agreed: bool = True
    """Whether its schemes agree, and each name can be read."""
    anywhere: bool = False
    """Whether a name is spelled so that it may be any."""
    websocket: bool = False
    """Whether it asks for a WebSocket."""
    handshake: bool = False
    """Whether every server takes it for the handshake of one."""


def find_ways(
    method: str, scheme: str, host: str, port: int, target: str, more: More = NO_MORE
) -> Ways:
    """Give the ways of a request; `target` is path and query as sent."""
    path, mark, query = target.partition("?")
    find = _find if len(path) <= _LONG_PATH else _find.__wrapped__
    found = find(method, scheme, host, port, path, more)
    return found._replace(query=query, queries=(query, *found.queries)) if mark else found


@lru_cache(maxsize=4096)
def _find(method: str, scheme: str, host: str, port: int, path: str, more: More) -> Ways:
    own = [Place(reading, port) for reading in host_readings(host)]
    (sent, *others), whole, clear = path_readings(path)
    paths, queries = others or [sent], []
    for claimed in more.paths:
        if claimed == ANY_PATH:
            whole = clear = False
            continue
        target, mark, query = claimed.partition("?")
        queries += [query] if mark else []
        found = path_readings(target)
        paths += found.paths
        whole, clear = whole and found.whole, clear and found.clear
    methods = tuple(dict.fromkeys((method, *more.methods)))
    places = tuple(dict.fromkeys((*own, *more.places)))
    every = tuple(dict.fromkeys(paths))
    names = {place.host for place in more.places}
    if any(other != scheme for other in more.schemes):
        names |= {place.host for place in own}
    agreed = not more.schemes and not more.anywhere
    plain = len(methods) == len(places) == 1 and every == (sent,) and whole and clear and agreed
    return Ways(
        methods,
        scheme,
        places,
        sent,
        every,
        whole,
        None,
        plain,
        clear,
        tuple(queries),
        frozenset(names),
        agreed,
        more.anywhere,
        more.websocket,
        more.handshake,
    )
