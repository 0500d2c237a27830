"""Match patterns: which requests a rule speaks of.

Grammar:  [METHOD[,METHOD...] ]SCHEME://HOST[:PORT][/PATH]

* METHOD is an HTTP method or `*`; without one any method matches.
* SCHEME is `http`, `https` or `*`.
* HOST may hold `*` (any run of characters): `*.openai.com`, `*`.
* PORT is a number or `*`; without one it is the scheme's own port, or any where HOST is `*` or SCHEME is `*`.
* PATH may hold `*`, which also stands for slashes; without one every path matches. A pattern with a
  `?` is matched against path and query, one without against the path alone.

Host and scheme match without regard to case, path and method as written.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_PATTERN = re.compile(
    r"^(?:(?P<methods>[A-Za-z*]+(?:,[A-Za-z]+)*)\s+)?"
    r"(?P<scheme>https?|\*)://"
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^/:?#\s]+)"
    r"(?::(?P<port>\d{1,5}|\*))?"
    r"(?P<path>/\S*)?$"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Match:
    """One parsed pattern; `text` is what the person wrote."""

    text: str
    methods: frozenset[str]
    """Upper case; empty for any."""
    scheme: str
    """`http`, `https`, or empty for any."""
    host: str
    """Lower case glob."""
    port: int | None
    path: str
    """Glob; empty for any."""

    def matches(self, method: str, scheme: str, host: str, port: int, target: str) -> bool:
        """Say whether a request is meant; `target` is path and query as sent."""
        if self.methods and method not in self.methods:
            return False
        if self.scheme and scheme != self.scheme:
            return False
        if self.port is not None and port != self.port:
            return False
        if self.host != "*" and not _glob(self.host).fullmatch(host.lower()):
            return False
        if not self.path:
            return True
        if "?" not in self.path:
            target = target.partition("?")[0]
        return _glob(self.path).fullmatch(target) is not None


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    first, *rest = map(re.escape, pattern.split("*"))
    if not rest:
        return re.compile(first)
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
    methods = frozenset(m.upper() for m in (found["methods"] or "*").split(",")) - {"*"}
    scheme = "" if found["scheme"] == "*" else found["scheme"]
    host = found["host"].strip("[]").lower()
    if found["port"] in (None, "*"):
        any_port = found["port"] == "*" or host == "*" or not scheme
        port = None if any_port else _DEFAULT_PORTS[scheme]
    else:
        port = int(found["port"])
        if not 0 < port < 65536:
            raise ValueError(f"{text!r}: port {port} is not between 1 and 65535")
    return Match(text.strip(), methods, scheme, host, port, found["path"] or "")
