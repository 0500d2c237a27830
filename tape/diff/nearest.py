"""Find the recorded request that a person would say was meant.

Nearness ranks recorded requests for a person. It never decides what is served. Work is bounded whatever the
requests hold: a cheap look at every candidate, a close one at a few.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, NamedTuple

from ..canonical.canonical_request import BodyKind, ContentType, open_body, without_boundary
from ..canonical.json import MASKED, is_number, light_tree
from ..exchange import Request, Seq
from .path_shape import path_shape
from .request_differences import common_prefix

_NEAR = 8
"""Candidates looked at closely."""
_MANY = 32
_SMALL_BODY = 4 * 1024
"""Bytes of a body up to which `_MANY` are."""
_CLOSE_BODY = 1024 * 1024
"""Bytes of a body that are compared closely when candidates are ranked."""
_SHORT_BODY = 256
"""Bytes of a body up to which the longest runs are looked for that two have in common."""
_GRAM = 3
_GRAM_BYTES = 64 * 1024
"""Bytes of a body up to which its runs of `_GRAM` bytes are compared."""
_ELSEWHERE = 1.5
"""A request of another path is so much farther."""
_DEEDS = (b"x-amz-target", b"soapaction")
"""Header fields in which protocols say what is to be done: another one is as far as another method."""
_BESIDE = 20_000
"""Endpoints of a tape that are looked through for one that differs in a single segment."""


def distance(recorded: Request, asked: Request) -> float:
    """Say how far two requests are apart: 0 for the same, about 20 for nothing in common.

    Method, host and path weigh more than everything else together; a shared beginning of a list, as of a
    conversation, counts for each of its items.
    """
    return _endpoint_distance(recorded, asked) + _content_distance(recorded, asked, _text_distance)


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


def _meant_distance(recorded: Request, asked: Request) -> float:
    """Say how far two requests of one host are apart for a person, who sees what a name or a message has in common.

    Unlike `distance`, it knows that `mp2` is nearer to `mp` than to `src2`, which has the same shape, that a deed of S3 is in the
    header fields, and that a longer message of gRPC begins with another length.
    """
    far = 4.0 * (recorded.method != asked.method)
    far += 1.0 * (recorded.port != asked.port or recorded.scheme != asked.scheme)
    far += _path_distance(recorded.path, asked.path)
    far += _share(
        {name.lower() for name, _ in recorded.headers}, {name.lower() for name, _ in asked.headers}
    )
    return far + _content_distance(recorded, asked, _loose_distance)


def _path_distance(old: str, new: str) -> float:
    if old == new:
        return 0.0
    one, other = old.split("/"), new.split("/")
    far = 2.0 * (1 - sum(map(str.__eq__, one, other)) / max(len(one), len(other)))
    if path_shape(old) != path_shape(new):
        if len(one) == len(other):
            pairs = zip(one, other, strict=True)
            far += 4.0 * min(
                1.0, sum(_text_distance(*pair) for pair in pairs if pair[0] != pair[1])
            )
        else:
            far += 4.0
    return far + _ELSEWHERE


def _loose_distance(old: bytes, new: bytes) -> float:
    """Weigh runs of bytes that two bodies share, wherever they are, more than a common beginning and end.

    In binary messages, a text that gets longer changes the lengths before it.
    """
    far, size = _text_distance(old, new), max(len(old), len(new))
    if size > _GRAM_BYTES:
        return far
    if size <= _SHORT_BODY:
        return max(0.02, 1 - SequenceMatcher(None, old, new, autojunk=False).ratio())
    one, other = (
        {body[at : at + _GRAM] for at in range(max(1, len(body) - _GRAM + 1))}
        for body in (old, new)
    )
    return 0.25 * far + 0.75 * len(one ^ other) / (len(one) + len(other))


def _share(one: set[Any], other: set[Any]) -> float:
    """Give the share of the members of two sets that only one of them has."""
    return len(one ^ other) / max(1, len(one | other))


def _query_distance(recorded: Request, asked: Request) -> float:
    """Give 0 for the same pairs to 1 for other names. Another value is nearer than none, and a value that is alike nearer still."""
    if recorded.target.partition("?")[2] == asked.target.partition("?")[2]:
        return 0.0
    old, new = _query_values(recorded), _query_values(asked)
    far = 0.0
    for name in {**old, **new}:
        one, other = old.get(name), new.get(name)
        if one is None or other is None:
            far += 1.0
        elif one != other:
            far += 0.4 + 0.5 * _text_distance(one, other)
    return far / max(1, len({**old, **new}))


def _query_values(request: Request) -> dict[str, str]:
    """Give what a query has by name; of a name that it has several times, the values together."""
    values: dict[str, str] = {}
    for pair in request.target.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        values[name] = f"{values[name]}&{value}" if name in values else value
    return values


def _count_query_places(recorded: Request, asked: Request) -> int:
    old, new = _query_values(recorded), _query_values(asked)
    return sum(old.get(name) != new.get(name) for name in {**old, **new})


def _content_distance(
    recorded: Request, asked: Request, of_bytes: Callable[[bytes, bytes], float]
) -> float:
    far = _query_distance(recorded, asked)
    if recorded.body != asked.body:
        far += 2.0 * _body_distance(recorded, asked, of_bytes)
    far += 4.0 * sum(recorded.header(name) != asked.header(name) for name in _DEEDS)
    return far + 0.25 * _count_header_places(recorded, asked)


def _count_header_places(recorded: Request, asked: Request) -> int:
    count = 0
    for name in (*_DEEDS, b"range", b"accept", b"content-type"):
        first, second = recorded.header(name), asked.header(name)
        count += first != second and (name != b"content-type" or _media(first) != _media(second))
    return count


def _media(value: bytes | None) -> bytes:
    return (value or b"").partition(b";")[0].strip().lower()


def _body_distance(
    recorded: Request, asked: Request, of_bytes: Callable[[bytes, bytes], float]
) -> float:
    (old, old_type), (new, new_type) = open_body(recorded), open_body(asked)
    if _is_close_json(old, old_type) and _is_close_json(new, new_type):
        try:
            return _tree_distance(light_tree(old.decode()), light_tree(new.decode()), 0)
        except (ValueError, RecursionError):
            # Broken, or nested too deep: as bytes.
            pass
    return of_bytes(old, new)


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


class _Candidate(NamedTuple):
    """A recorded request that may be meant; a greater one is likelier at a brief look."""

    near: float
    size: int
    order: int
    seq: Seq
    request: Request
    bare: Request
    """Without the boundary of its body, which is drawn at random."""


def nearest(
    asked: Request, candidates: Iterable[tuple[Seq, Request]], place: Seq | None = None
) -> tuple[Seq, Request] | None:
    """Find the recorded request a person would say was meant; of equals, the first.

    place: where the request came; then of equals the nearest to it.

    Those of the same host and the same path, its shape, or all but a segment of it go before those of the same
    path elsewhere, then those of the same host. Another host *and* another shape of path is not near.
    Looks at every candidate once, briefly, and closely at a few of each of the two.
    """
    tiers: list[list[_Candidate]] = [[], [], [], []]
    tier_of = _tier_finder(asked)
    asked = _without_boundary(asked)
    similar = _similarity_to(asked.body)
    whole = max(1, similar(asked.body))
    own = len(asked.body)
    most = _MANY if own <= _SMALL_BODY else _NEAR
    order = 0
    for seq, request in candidates:
        tier = tier_of(request)
        if tier is None:
            continue
        order -= 1
        bare = _without_boundary(request)
        near = 2 * similar(bare.body) / whole - _query_distance(request, asked)
        if tier:  # of one path this is hardly ever another
            near -= 4.0 * (request.method != asked.method) + _path_distance(
                request.path, asked.path
            )
        item = _Candidate(near, -abs(len(bare.body) - own), order, seq, request, bare)
        kept = tiers[tier]
        if len(kept) < most:
            heapq.heappush(kept, item)
        elif item[:3] > kept[0][:3]:
            heapq.heapreplace(kept, item)
    same, beside, *others = tiers
    for kept in (_find_same_body(same, asked) or [*same, *beside], *others):
        if kept:
            found = min(kept, key=lambda item: _rank(item, asked, place))
            return found.seq, found.request
    return None


def _rank(item: _Candidate, asked: Request, place: Seq | None) -> tuple[float, int, int]:
    far = round(_meant_distance(item.bare, asked), 9)
    return far, abs(item.seq - place) if place is not None else 0, -item.order


def _find_same_body(same: list[_Candidate], asked: Request) -> list[_Candidate]:
    """Give the requests to one endpoint that have the body that is asked with, if no other one differs in fewer places."""
    if not asked.body:
        return []
    places = {item.seq: _count_query_places(item.bare, asked) for item in same}
    found = [
        item
        for item in same
        if item.bare.body == asked.body and not _count_header_places(item.bare, asked)
    ]
    fewest = min((places[item.seq] for item in found), default=0)
    seqs = {item.seq for item in found}
    if any(places[item.seq] + 1 < fewest for item in same if item.seq not in seqs):
        return []
    return found


def _without_boundary(request: Request) -> Request:
    """Put a constant in the place of the boundary of a multipart body, where that is safe."""
    if not _media(request.header(b"content-type")).startswith(b"multipart/"):
        return request
    body, content = open_body(request)
    bare = without_boundary(body, content.boundary) if content is not None else None
    return request if bare is None else replace(request, body=bare)


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

        A few whose path differs in one segment are among them. Else the nearest endpoint of which there is any goes
        first, in it what has not been served: what comes next on the tape, and what is as long.
        """
        url = asked.url.partition("?")[0]
        host, path = _split(url)
        shape = path_shape(path)
        chosen: dict[Seq, None] = {}
        for beside in self._find_beside(asked.method, url, shape):
            if len(chosen) >= limit // 4:
                break
            few = [one for one in beside if not is_served(one.seq)] or beside
            chosen |= dict.fromkeys(_likely(few, asked.body_bytes, limit // 8))
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

    def _find_beside(self, method: str, url: str, shape: str) -> list[list[Known]]:
        """Give those of a method whose path differs from a URL's in a single segment, and so in its shape; the most alike first."""
        own, own_host = url.split("/"), _split(url)[0]
        found: list[tuple[float, list[Known]]] = []
        for (its_method, its_url), known in islice(self._same.items(), _BESIDE):
            if its_method != method or its_url.count("/") != len(own) - 1:
                continue
            others = [
                pair for pair in zip(its_url.split("/"), own, strict=True) if pair[0] != pair[1]
            ]
            if len(others) != 1:
                continue
            host, path = _split(its_url)
            if host == own_host and path_shape(path) != shape:
                found.append((_text_distance(*others[0]), known))
        return [known for _, known in sorted(found, key=lambda one: one[0])]


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


def _is_beside(path: str, asked: str, shape: str) -> bool:
    """Say whether a path is that which is asked for, has its shape, or differs from it in one segment."""
    if path == asked or path_shape(path) == shape:
        return True
    one, other = path.split("/"), asked.split("/")
    return len(one) == len(other) and sum(map(str.__ne__, one, other)) == 1


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
        elif same_host and _is_beside(its_path, path, shape):
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
