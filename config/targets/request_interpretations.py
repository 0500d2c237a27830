"""The ways in which one request can be taken: each method, each place and each path that it may have for a server."""

from functools import lru_cache
from typing import NamedTuple

from .host_interpretations import Place, host_readings
from .path_interpretations import path_readings

_LONG_PATH = 1000
"""Characters of a path beyond which its ways are not remembered."""


class More(NamedTuple):
    """What a request's head claims beside its own method, place and path."""

    methods: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    paths: tuple[str, ...] = ()


NO_MORE = More()


class Ways(NamedTuple):
    """What a request can be taken for; `Match.surely`, `Match.clearly` and `Match.maybe` look at all of it."""

    methods: tuple[str, ...]
    """Its own first, in upper case."""
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


def find_ways(
    method: str, scheme: str, host: str, port: int, target: str, more: More = NO_MORE
) -> Ways:
    """Give the ways of a request; `target` is path and query as sent."""
    path, mark, query = target.partition("?")
    find = _find if len(path) <= _LONG_PATH else _find.__wrapped__
    found = find(method, scheme, host, port, path, more)
    return found._replace(query=query) if mark else found


@lru_cache(maxsize=4096)
def _find(method: str, scheme: str, host: str, port: int, path: str, more: More) -> Ways:
    own = [Place(reading, port) for reading in host_readings(host)]
    (sent, *others), whole = path_readings(path)
    paths = others or [sent]
    for claimed in more.paths:
        found = path_readings(claimed.partition("?")[0])
        paths += found.paths
        whole = whole and found.whole
    methods = tuple(dict.fromkeys((method, *more.methods)))
    places = tuple(dict.fromkeys((*own, *more.places)))
    every = tuple(dict.fromkeys(paths))
    plain = len(methods) == len(places) == 1 and every == (sent,) and whole
    return Ways(methods, scheme, places, sent, every, whole, None, plain)
