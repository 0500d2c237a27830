"""Listen where a browser of this machine looks for a name below `localhost`: at 127.0.0.1 and at ::1, on one port.

A browser asks ::1 first, and whoever listens there gets the link or the cookie. So both addresses are ours, or neither is. A machine without
IPv6 has the first alone, for its browsers, too.
Source: RFC 6761 section 6.3; Chromium, `net/dns/host_resolver_manager.cc`, `ResolveLocalHostname`.
"""

import errno
import socket
from contextlib import ExitStack

PAIR = ("127.0.0.1", "::1")
"""Both addresses of `localhost`."""
HOSTS = frozenset((*PAIR, "localhost"))
"""What a browser of this machine may ask for."""
_TRIES = 50
"""Ports that are tried, where any will do: the other address of each may be taken."""
_ABSENT = frozenset(
    (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
)
"""What a machine answers that does not have an address."""


def listen_at(host: str, port: int, backlog: int = 128) -> list[socket.socket]:
    """Listen at an address; at one of `PAIR` also at the other, on the same port.

    port: 0 takes one that is free at both.
    Gives sockets that do not block, the one of `host` first.
    Raises: OSError, which names the address that is taken; OverflowError.
    """
    for _ in range(_TRIES if port == 0 else 1):
        with ExitStack() as opened:
            first = _open(host, port, backlog)
            opened.callback(first.close)
            found, chosen = first.getsockname()[:2]
            others = [one for one in PAIR if one != found] if found in PAIR else []
            sockets = [first]
            try:
                for other in others:
                    sockets.append(_open(other, chosen, backlog))
            except OSError as error:
                if error.errno == errno.EADDRINUSE and port == 0:
                    continue
                if error.errno not in _ABSENT:
                    raise
            opened.pop_all()
            return sockets
    raise OSError(
        errno.EADDRINUSE, f"{_TRIES} free ports of {host} are taken at the other of {PAIR}"
    )


def _open(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ready = socket.create_server((host, port), family=family, backlog=backlog)
    ready.setblocking(False)
    return ready
