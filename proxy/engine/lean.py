"""Cheaper twins of what mitmproxy does for every request, with the same results.

1. `MessageData.__post_init__` checks the type of every field of every message. Ours are made from parsed bytes
   or by `addons/wire.py`, which is type-checked before it runs; there are no addons but ours.
2. `Context.fork` makes an upstream connection, with an id from the system's randomness, and throws it away.
3. `Headers` looks a name up by lower-casing every name through two Python calls.

Measured with 2 KB bodies: 15 % of the CPU of recording a request. Replaces by name: the three above. Checked
against 12.2.3. Test: tests/proxy/engine/test_lean.py, which compares each with its twin.
"""

from mitmproxy import http
from mitmproxy.proxy import context


def skip_type_checks(_: http.MessageData) -> None:
    """Do nothing where every field's type was checked."""


def fork(self: context.Context) -> context.Context:
    """Give a copy with a layer stack of its own."""
    copy = object.__new__(context.Context)
    copy.client = self.client
    copy.options = self.options
    copy.server = self.server
    copy.layers = self.layers.copy()
    return copy


def get_all(self: http.Headers, name: str | bytes) -> list[str]:
    """Give all values of a header field, in order; the name in any case."""
    wanted = _lower(name)
    return [
        value.decode("utf-8", "surrogateescape")
        for key, value in self.fields
        if key.lower() == wanted
    ]


def get(self: http.Headers, name: str | bytes, default: str | None = None) -> str | None:
    """Give a header field's values folded into one, or the default."""
    values = get_all(self, name)
    return ", ".join(values) if values else default


def contains(self: http.Headers, name: object) -> bool:
    """Say whether there is such a header field."""
    if not isinstance(name, str | bytes):
        return False
    wanted = _lower(name)
    return any(key.lower() == wanted for key, _ in self.fields)


def _lower(name: str | bytes) -> bytes:
    return (name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name).lower()


def install() -> None:
    """Put the twins in place, for the whole process."""
    twins: tuple[tuple[type, str, object], ...] = (
        (http.MessageData, "__post_init__", skip_type_checks),
        (context.Context, "fork", fork),
        (http.Headers, "get_all", get_all),
        (http.Headers, "get", get),
        (http.Headers, "__contains__", contains),
    )
    for owner, name, twin in twins:
        setattr(owner, name, twin)
