"""The canonical form of a URL, by which two are of one resource.

As in the canonical form of a request: percent-encodings one way, the query as pairs sorted by name. The case of scheme and host, a port
that is the scheme's own, and a fragment do not count. What a URL may not have as it is counts as encoded, since people type it.

Source: RFC 3986 section 6.2.2 and 6.2.3.
"""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from .canonical_request import normal_encodings

_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_OWN_PORTS = {"http": 80, "https": 443}


class CanonicalUrl(NamedTuple):
    """What counts of a URL."""

    scheme: str
    authority: str
    """Without a port that is the scheme's own."""
    path: str
    query: tuple[str, ...]
    """Pairs, sorted by name; the order of those with one name is kept."""

    def is_above(self, other: "CanonicalUrl") -> bool:
        """Say whether another path goes on behind this one."""
        same = self[:2] == other[:2]
        return same and other.path.startswith(self.path.rstrip("/") + "/")


@lru_cache(1024)
def canonical_url(url: str) -> CanonicalUrl:
    """Give what counts of a URL; of one that is broken, all of it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return CanonicalUrl("", "", url, ())
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    authority = host if port in (None, _OWN_PORTS.get(scheme)) else f"{host}:{port}"
    pairs = _encoded(parts.query).split("&") if parts.query else []
    query = tuple(sorted(pairs, key=lambda pair: pair.partition("=")[0]))
    return CanonicalUrl(scheme, authority, _encoded(parts.path) or "/", query)


def _encoded(text: str) -> str:
    return normal_encodings(quote(text, safe=_AS_IT_IS, errors="surrogatepass"))


def same_url(one: str, other: str) -> bool:
    """Say whether two URLs are of one resource."""
    return one == other or canonical_url(one) == canonical_url(other)
