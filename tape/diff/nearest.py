"""Find the recorded request that a person would say was meant.

Nearness ranks recorded requests for a person. It never decides what is served. Work is bounded whatever the
requests hold: a cheap look at every candidate, a close one at a few.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..canonical.canonical_request import BodyKind, ContentType, open_body
from ..canonical.json import MASKED, is_number, light_tree
from ..exchange import Request, Seq
from .difference import common_prefix
from .path_shape import path_shape

_NEAR = 8
"""Candidates looked at closely."""
_CLOSE_BODY = 1024 * 1024
"""Bytes of a body that are compared closely when candidates are ranked."""


def distance(recorded: Request, asked: Request) -> float:
    """Say how far two requests are apart: 0 for the same, about 20 for nothing in common.

    Method, host and path weigh more than everything else together; a shared beginning of a list, as of a
    conversation, counts for each of its items.
    """
    return _endpoint_distance(recorded, asked) + _content_distance(recorded, asked)


def _endpoint_distance(recorded: Request, asked: Request) -> float:
    far = 4.0 * (recorded.method != asked.method)
    far += 4.0 * (recorded.host.lower() != asked.host.lower())
    far += 1.0 * (recorded.port != asked.port or recorded.scheme != asked.scheme)
    old, new = recorded.path, asked.path
    if old != new:
        far += 4.0 * (path_shape(old) != path_shape(new))
        one, other = old.split("/"), new.split("/")
        same = sum(a == b for a, b in zip(one, other, strict=False))
        far += 2.0 * (1 - same / max(len(one), len(other)))
    return far


def _content_distance(recorded: Request, asked: Request) -> float:
    far = 0.0
    old, new = recorded.target.partition("?")[2], asked.target.partition("?")[2]
    if old != new:
        one, other = set(old.split("&")), set(new.split("&"))
        far += len(one ^ other) / max(1, len(one | other))
    if recorded.body != asked.body:
        far += 2.0 * _body_distance(recorded, asked)
    for name in (b"range", b"x-amz-target", b"soapaction", b"accept", b"content-type"):
        first, second = recorded.header(name), asked.header(name)
        if first != second and (name != b"content-type" or _media(first) != _media(second)):
            far += 0.25
    return far


def _media(value: bytes | None) -> bytes:
    return (value or b"").partition(b";")[0].strip().lower()


def _body_distance(recorded: Request, asked: Request) -> float:
    (old, old_type), (new, new_type) = open_body(recorded), open_body(asked)
    if _is_close_json(old, old_type) and _is_close_json(new, new_type):
        try:
            return _tree_distance(light_tree(old.decode()), light_tree(new.decode()), 0)
        except (ValueError, RecursionError):
            # Broken, or nested too deep: as bytes.
            pass
    return _text_distance(old, new)


def _is_close_json(body: bytes, content: ContentType | None) -> bool:
    return content is not None and content.kind is BodyKind.JSON and len(body) <= _CLOSE_BODY


def _text_distance(old: Any, new: Any) -> float:
    """Give the share of the longer text that is neither in a common beginning nor in a common end."""
    if old == new:
        return 0.0
    size = max(len(old), len(new))
    prefix = common_prefix(old, new)
    rest = min(len(old), len(new)) - prefix
    suffix = 0
    if rest:
        suffix = common_prefix(old[-rest:][::-1], new[-rest:][::-1])
    # Never zero: different is different.
    return max(0.02, 1 - (prefix + suffix) / size)


_CLOSE_DEPTH = 6
_HEAVY = 100
"""Members beyond which a value weighs no more."""


def _tree_distance(old: Any, new: Any, depth: int) -> float:
    """Give 0 for equal values to 1 for nothing in common."""
    if old == new:
        return 0.0
    if isinstance(old, dict) and isinstance(new, dict) and depth < _CLOSE_DEPTH:
        total, far = 0.0, 0.0
        for name in dict.fromkeys([*old, *new]):
            one, other = old.get(name, MASKED), new.get(name, MASKED)
            # What holds more weighs more: one setting is less than a conversation.
            weight = 1.0 + max(_size(one), _size(other))
            total += weight
            far += weight * _tree_distance(one, other, depth + 1)
        return far / total
    if isinstance(old, list) and isinstance(new, list) and depth < _CLOSE_DEPTH:
        size = max(len(old), len(new))
        short = min(len(old), len(new))
        prefix = _count(old, new, range(short))
        suffix = _count(old, new, range(-1, prefix - short - 1, -1))
        far = float(size - short)
        for at in range(prefix, short - suffix):
            far += _tree_distance(old[at], new[at], depth + 1)
        return far / size
    if isinstance(old, str) and isinstance(new, str) and not is_number(old) and not is_number(new):
        return _text_distance(old, new)
    return 1.0


def _size(value: Any) -> int:
    return min(len(value), _HEAVY) if isinstance(value, dict | list) else 0


def _count(old: list[Any], new: list[Any], indexes: range) -> int:
    count = 0
    for at in indexes:
        if old[at] != new[at]:
            break
        count += 1
    return count


def nearest(
    asked: Request, candidates: Iterable[tuple[Seq, Request]]
) -> tuple[Seq, Request] | None:
    """Find the recorded request a person would say was meant; of equals, the first.

    Those of the same endpoint go before those of the same host and shape of path, then those of the same
    path elsewhere, then those of the same host. Another host *and* another shape of path is not near.
    Looks at every candidate once, briefly, and closely at eight.
    """
    tiers: list[list[tuple[int, int, int, Seq, Request]]] = [[], [], [], []]
    tier_of = _tier_finder(asked)
    similar = _similarity_to(asked.body)
    own = len(asked.body)
    order = 0
    for seq, request in candidates:
        tier = tier_of(request)
        if tier is None:
            continue
        order -= 1
        item = (similar(request.body), -abs(len(request.body) - own), order, seq, request)
        kept = tiers[tier]
        if len(kept) < _NEAR:
            heapq.heappush(kept, item)
        elif item[:3] > kept[0][:3]:
            heapq.heapreplace(kept, item)
    for kept in tiers:
        if kept:
            found = min(kept, key=lambda item: (distance(item[4], asked), -item[2]))
            return found[3], found[4]
    return None


class Known(NamedTuple):
    """What is known of a recorded request without reading it."""

    seq: Seq
    size: int
    """Bytes of its body."""


class Endpoints:
    """The requests of a tape by endpoint, so that those that may be near are found without reading any."""

    def __init__(self) -> None:
        """Begin without any; `add` them in order of seq."""
        self._same: dict[tuple[str, str], list[Known]] = {}
        self._shape: dict[tuple[str, str], list[Known]] = {}
        self._path: dict[str, list[Known]] = {}
        self._host: dict[str, list[Known]] = {}
        self._deed: dict[tuple[str, str, str], list[Known]] = {}

    def add(self, seq: Seq, method: str, url: str, size: int) -> None:
        """Take in a request; `url` without its query."""
        known = Known(seq, size)
        host, path = _split(url)
        shape = path_shape(path)
        self._same.setdefault((method, url), []).append(known)
        self._shape.setdefault((host, shape), []).append(known)
        self._path.setdefault(shape, []).append(known)
        self._host.setdefault(host, []).append(known)
        self._deed.setdefault((method, host, shape), []).append(known)

    def similar(self, asked: Request, limit: int) -> list[Seq]:
        """Give those of the same method, host and shape of path, the likeliest first."""
        host, path = _split(asked.url.partition("?")[0])
        return _likely(
            self._deed.get((asked.method, host, path_shape(path)), []), asked.body_bytes, limit
        )

    def candidates(self, asked: Request, is_served: Callable[[Seq], bool], limit: int) -> list[Seq]:
        """Give those that may be meant, the likeliest first.

        The nearest endpoint of which there is any goes first, in it what has not been served: what comes
        next on the tape, and what is as long.
        """
        url = asked.url.partition("?")[0]
        host, path = _split(url)
        shape = path_shape(path)
        chosen: dict[Seq, None] = {}
        for tier in (
            self._same.get((asked.method, url)),
            self._shape.get((host, shape)),
            self._path.get(shape),
            self._host.get(host),
        ):
            if not tier:
                continue
            unserved = [one for one in tier if not is_served(one.seq)]
            chosen |= dict.fromkeys(_likely(unserved or tier, asked.body_bytes, limit))
            if len(chosen) >= limit:
                break
        return list(chosen)[:limit]


def _likely(tier: list[Known], size: int, limit: int) -> list[Seq]:
    """Give half by their place on the tape, half by their length."""
    if len(tier) <= limit:
        return [one.seq for one in tier]
    similar = heapq.nsmallest(limit // 2, tier, key=lambda one: (abs(one.size - size), one.seq))
    return [one.seq for one in (*tier[: limit // 2], *similar)]


def _split(url: str) -> tuple[str, str]:
    """Give a URL's host without its port, and its path."""
    authority, slash, path = url.partition("://")[2].partition("/")
    host, _, port = authority.rpartition(":")
    return (host if port.isdigit() and host else authority).lower().strip("[]"), slash + path


def _tier_finder(asked: Request) -> Callable[[Request], int | None]:
    """Give a function that says how near a request's endpoint is: 0 the same, 3 the same host, else None."""
    host, path = asked.host.lower(), asked.path
    shape = path_shape(path)
    known: dict[tuple[str, str, str], int | None] = {}

    def tier_of(request: Request) -> int | None:
        key = (request.method, request.host, request.target.partition("?")[0])
        if key in known:
            return known[key]
        same_host, its_path = request.host.lower() == host, key[2]
        tier: int | None
        if same_host and its_path == path and request.method == asked.method:
            tier = 0
        elif same_host and (its_path == path or path_shape(its_path) == shape):
            tier = 1
        elif its_path == path or path_shape(its_path) == shape:
            tier = 2
        else:
            tier = 3 if same_host else None
        known[key] = tier
        return tier

    return tier_of


def _similarity_to(asked: bytes) -> Callable[[bytes], int]:
    """Give a function that counts how much of its beginning and end a body shares, in powers of four."""
    sizes = [4**power * 16 for power in range(10) if 4**power * 16 < len(asked)] + [len(asked)]
    starts = [asked[:size] for size in sizes]
    ends = [asked[-size:] for size in sizes] if asked else [b""]

    def similar(body: bytes) -> int:
        count = 0
        for start in starts:
            if not body.startswith(start):
                break
            count += 1
        for end in ends:
            if not body.endswith(end):
                break
            count += 1
        return count

    return similar
