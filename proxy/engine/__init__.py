"""The engine: mitmproxy's core with our hooks, our streams and the guard.

All changes to mitmproxy's private parts are in this package, one file per patch, each with its reason and
its test. They are checked against mitmproxy 12.2.3, which is pinned exactly for that reason.

    engine.py               starts everything, tests it, and stops it cleanly
    egress_guard.py         the two places that all egress passes, and the resolver; default deny
    guard_selftest.py       tests the guard before anything is listened on
    connection_handler.py   a connection handler that creates a task only where it must wait
    transparent.py          clients without proxy settings
    tls.py, tls_closing.py  our CA instead of a generated one; a proper close of TLS
    lingering_close.py      a close of a client's connection after which it reads all it was sent
    unreachable_upstream.py unreachable upstreams of a tunnel
    mitmproxy_imports.py    mitmproxy without the parts that are never used here
    event_loop.py           an event loop on which eager tasks work
    hooks/                  hooks by table, failing closed; our own hooks
    http/                   streams that record, play and upload; HTTP/1 messages, HTTP/2, request heads
    websocket/              frames, recording and playback of WebSockets
    fast/                   fast paths for what mitmproxy does for every request
"""

from . import mitmproxy_imports as imports

with imports.lean():  # before anything of `mitmproxy.addons` is imported
    from .engine import Engine

__all__ = ["Engine"]
