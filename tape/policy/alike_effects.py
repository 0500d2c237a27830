"""The keys of an effect by which another that may be the same is found, however either is spelled. Pure.

A gate on duplicates holds what may be the request that has left already, for any server. So each way in which an effect
can be taken has a key: method, place, path in normal form and without case, query and body. One that can be taken in more
ways than can be listed is the same as any with its body.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import product
from typing import NamedTuple

from ...config.targets.path_interpretations import (
    normal_path,
    query_readings,
    split_pairs,
    without_accents,
    without_trailing,
)
from ...config.targets.request_interpretations import ANY_METHOD, Ways
from ..headers.shipped_lists import is_key_of_effect

_BODY_AT = 16
"""Where the body's own bytes begin in an effect key."""
_MOST = 512
"""Ways of an effect beyond which they are not listed."""


class AlikeKeys(NamedTuple):
    """Keys of one effect, 16 bytes each."""

    asks: frozenset[bytes]
    """Under which an earlier one may be the same."""
    leaves: frozenset[bytes]
    """Under which a later one finds it."""


def find_alike_keys(effect_key: bytes, ways: Ways) -> AlikeKeys:
    """Give the keys of an effect.

    effect_key: as `canonical_request.effect_key` gives it.
    """
    body = effect_key[_BODY_AT:]
    any_body, unlisted = _key(b"body", body), _key(b"unlisted", body)
    own = {effect_key[:_BODY_AT], any_body}
    found = list_ways(ways)
    if found is None:
        return AlikeKeys(frozenset({*own}), frozenset({*own, unlisted}))
    asks, leaves = {effect_key[:_BODY_AT], unlisted}, own
    claimed = ways.names
    for method, path, query in found:
        told = (method.encode(), path, query, body)
        for host, port in ways.places:
            if host in claimed:
                # By its name alone: it may be where any port leads.
                asks |= {_key(b"name", host, *told), _key(b"claimed", host, *told)}
                leaves.add(_key(b"claimed", host, *told))
            else:
                asks |= {_key(b"place", host, port, *told), _key(b"claimed", host, *told)}
                leaves |= {_key(b"place", host, port, *told), _key(b"name", host, *told)}
    # Its own place is one, too, where a claim names the same host with another port.
    host, port = ways.places[0]
    if host in claimed:
        for method, path, query in found:
            told = (method.encode(), path, query, body)
            leaves |= {_key(b"place", host, port, *told), _key(b"name", host, *told)}
    return AlikeKeys(frozenset(asks), frozenset(leaves))


def find_form_keys(rest: bytes, ways: Ways) -> frozenset[bytes]:
    """Give a key for each way in which a request can be taken; none where they cannot be listed.

    rest: what else counts of the request: header fields and body.
    """
    return frozenset(
        _key(b"form", *way, host, port, rest)
        for way in list_ways(ways) or ()
        for host, port in ways.places
    )


def list_ways(ways: Ways) -> list[tuple[str, str, str]] | None:
    """Give method, path and query of each way; None where they cannot be listed."""
    if not (ways.whole and ways.clear) or ways.anywhere or ANY_METHOD in ways.methods:
        return None
    every = {ways.sent, *ways.paths}
    every |= {bare for path in every for bare in without_accents(path)}
    paths = {without_trailing(normal_path(path)).lower() for path in every}
    queries = set[str]() if ways.queries and ways.query is not None else {""}
    for query in ways.queries:
        found = query_readings(query)
        if not (found.whole and found.clear):
            return None
        texts = {*found.paths, *(bare for text in found.paths for bare in without_accents(text))}
        queries |= {"&".join(sorted(_pairs(text))) for text in texts}
    if len(ways.methods) * len(ways.places) * len(paths) * len(queries) > _MOST:
        return None
    return list(product(ways.methods, sorted(paths), sorted(queries)))


def _pairs(query: str) -> Iterator[str]:
    for pair in split_pairs(query.lower().replace("+", " ")):
        name, mark, value = pair.partition("=")
        if is_key_of_effect(name.strip()):
            continue
        yield f"{name.strip()}{mark}{value.strip()}"


def _key(*parts: str | bytes | int) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()
