"""The engine: mitmproxy's core with our hooks, our streams and the guard.

All surgery on mitmproxy's private parts lives in this package, one file a patch, each with its reason and
its test. Checked against mitmproxy 12.2.3, which is pinned exactly for that reason.

    dispatch.py   hooks by table; an exception in a hook refuses instead of forwarding
    guard.py      the two places that all egress passes, and the resolver; default deny
    streams.py    streams that record, hold back the last byte, play a tape, read on
    messages.py   trailers and interim answers of HTTP/1
    tls.py        our CA instead of a generated one
    loop.py       an event loop on which eager tasks work
    engine.py     all of it started, tested against itself, and stopped cleanly
"""

from .engine import Engine

__all__ = ["Engine"]
