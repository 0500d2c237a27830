"""Sessions: what the cookie of a browser may do. A cookie is a random number that this process alone knows, and ends with it."""

import secrets
from collections import OrderedDict
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

from ..control.http.one_time_links import Links, Rights

__all__ = ["COOKIE", "Links", "Rights", "Sessions"]

COOKIE = "playhead"
_MOST = 1000
"""Sessions that are known; the oldest ends for a new one."""


class Sessions:
    """The sessions of this process."""

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, Rights] = OrderedDict()

    def begin(self, rights: Rights) -> str:
        """Begin a session; give the header field that sets its cookie."""
        value = secrets.token_urlsafe(32)
        self._open[_digest(value)] = rights
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict"

    def find(self, field: str) -> Rights | None:
        """Find the rights of a session.

        field: the header field `cookie`.
        """
        try:
            given = SimpleCookie(field).get(COOKIE)
        except CookieError:
            return None
        return self._open.get(_digest(given.value)) if given is not None else None


def _digest(value: str) -> bytes:
    """Give what is looked up, so that how long that takes tells nothing of a value that is known."""
    return sha256(value.encode("utf-8", "surrogatepass")).digest()
