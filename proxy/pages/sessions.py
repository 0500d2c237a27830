"""Who may look at pages: a link that is valid once is exchanged for the cookie of a session.

A link is signed, so that another process with the same key can make one: the proxy makes links for the process that serves its pages.
It says what whoever opens it may do. A cookie is a random number, known to this process alone, and ends with it.
"""

import base64
import binascii
import hmac
import secrets
import struct
from collections import OrderedDict
from collections.abc import Callable
from enum import IntFlag
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

COOKIE = "playhead"
VALID_S = 600
_MOST = 1000
"""Sessions that are known; the oldest ends for a new one."""
_SIGNED = struct.Struct(">QB12s")
_MAC_BYTES = 20


class Rights(IntFlag):
    """What somebody may do."""

    READ = 1
    RULE = 2
    """Decide on gates, and stop runs."""
    RUN = 4
    """Let held agents go on, edit, and run the command that was given at the start."""


class Links:
    """Makes links, and takes each once."""

    def __init__(self, key: bytes, clock: Callable[[], float]) -> None:
        """Begin.

        key: signs links.
        clock: seconds since the epoch.
        """
        self._key = key
        self._clock = clock
        self._used: OrderedDict[bytes, int] = OrderedDict()

    def make(self, rights: Rights) -> str:
        """Make the token of a link."""
        until = int(self._clock()) + VALID_S
        signed = _SIGNED.pack(until, rights, secrets.token_bytes(12))
        return base64.urlsafe_b64encode(signed + self._sign(signed)).decode()

    def take(self, token: str) -> Rights | None:
        """Use a token up; None for one that was used, is too old or is none."""
        try:
            data = base64.b64decode(token.encode("ascii"), b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        signed, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
        if len(signed) != _SIGNED.size or not hmac.compare_digest(mac, self._sign(signed)):
            return None
        until, rights, number = _SIGNED.unpack(signed)
        now = self._clock()
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if until < now or number in self._used:
            return None
        self._used[number] = until
        return Rights(rights & int(Rights.READ | Rights.RULE | Rights.RUN))

    def _sign(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, b"playhead link\n" + signed, sha256)[:_MAC_BYTES]


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
