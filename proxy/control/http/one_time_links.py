"""Links to pages: each is valid once, for ten minutes, and says what whoever opens it may do.

A link is signed, so that another process with the same key can make one: the proxy makes links for the process that serves its pages.
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

VALID_S = 600
KEY_BYTES = 32
_SIGNED = struct.Struct(">QB12s")
_MAC_BYTES = 20


class Rights(IntFlag):
    """What somebody may do."""

    READ = 1
    RULE = 2
    """Decide on gates, and stop runs."""
    RUN = 4
    """Let held agents go on, edit, and run the command that was given at the start."""


_ALL = Rights.READ | Rights.RULE | Rights.RUN


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
        return base64.urlsafe_b64encode(signed + self._sign(signed)).decode().rstrip("=")

    def take(self, token: str) -> Rights | None:
        """Use a token up; None for one that was used, is too old or is none."""
        try:
            padded = token.encode("ascii") + b"=" * (-len(token) % 4)
            data = base64.b64decode(padded, b"-_", validate=True)
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
        return Rights(rights) & _ALL

    def _sign(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, b"playhead link\n" + signed, sha256)[:_MAC_BYTES]
