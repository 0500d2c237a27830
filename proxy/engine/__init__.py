"""The engine: mitmproxy's core with our hooks, our streams and the guard.

All surgery on mitmproxy's private parts lives in this package, one file a patch, each with its reason and
its test. Checked against mitmproxy 12.2.3, which is pinned exactly for that reason.

    dispatch.py   hooks by table; an exception in a hook refuses instead of forwarding
    guard.py      the two places that all egress passes, and the resolver; default deny
    handler.py    a connection handler that spends a task only where something is waited for
    fast/       fast paths for what mitmproxy does for every request
    streams.py    streams that record, hold back the last byte, play a tape, read on
    websocket*.py WebSockets passed on and kept, and WebSockets from the tape
    frames.py     their frames
    messages.py   messages of HTTP/1: trailers, interim answers, what is ambiguous, limits
    http2.py      interim answers of HTTP/2, and answers of HTTP/1 made to fit it
    tls.py        our CA instead of a generated one
    heads.py      what is no request at all is answered or closed at once
    imports.py    mitmproxy without what is never used here
    loop.py       an event loop on which eager tasks work
    selftest.py   a denied request and a denied connection are tried before anything is listened on
    engine.py     all of it started, tested against itself, and stopped cleanly
"""

from . import mitmproxy_imports as imports

with imports.lean():  # before anything of `mitmproxy.addons` is imported
    from .engine import Engine

__all__ = ["Engine"]
