"""Run Playhead's command line, and leave out some of the fast paths that it puts into mitmproxy, as it is told.

    python benchmarks/patched.py SOCKET serve ...       `patches.py` does

A line that comes over the socket is a name of `PATCHES`, or empty for none: from then on that one is left out, and mitmproxy's own
code is there again. Whatever else the engine changes stays.
"""

import socket
import sys
import threading

from playhead.proxy.engine.mitmproxy_imports import lean

with lean():
    from mitmproxy import http
    from mitmproxy.net.http import http1
    from mitmproxy.proxy import context, layer
    from mitmproxy.proxy.layers.http import HttpLayer
    from mitmproxy.proxy.layers.tls import ServerTLSLayer, TLSLayer

_MISSING = object()
Place = tuple[object, str]
PATCHES: dict[str, list[Place]] = {
    "encrypting: pieces that are one": [
        (TLSLayer, "event_to_child"),
        (ServerTLSLayer, "event_to_child"),
    ],
    "encrypting: reading": [(TLSLayer, "tls_interact")],
    "encrypting: passing": [(TLSLayer, "_handle_event")],
    "routing": [(HttpLayer, "_handle_event"), (HttpLayer, "event_to_child")],
    "routing: events alone": [(HttpLayer, "_handle_event")],
    "1 type checks": [(http.MessageData, "__post_init__")],
    "2 fork": [(context.Context, "fork")],
    "3 headers": [(http.Headers, name) for name in ("__init__", "get_all", "get", "__contains__")],
    "4 body size": [(http1, "expected_http_body_size")],
    "5 layers": [(layer.Layer, "handle_event")],
}
"""By name: what a patch replaces."""


def _read() -> dict[tuple[int, str], object]:
    places = [one for some in PATCHES.values() for one in some]
    return {(id(owner), name): vars(owner).get(name, _MISSING) for owner, name in places}


_STOCK = _read()


def _put(places: list[Place], code: dict[tuple[int, str], object]) -> None:
    for owner, name in places:
        found = code[id(owner), name]
        if found is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, found)


def _listen(listener: socket.socket) -> None:
    with listener.accept()[0].makefile("rw") as lines:
        ours = _read()  # everything is in place by now
        left_out: list[Place] = []
        for line in lines:
            _put(left_out, ours)
            left_out = PATCHES.get(line.strip(), [])
            _put(left_out, _STOCK)
            lines.write(line)
            lines.flush()


if __name__ == "__main__":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv.pop(1))
    listener.listen()
    threading.Thread(target=_listen, args=(listener,), daemon=True).start()
    from playhead.proxy.cli import main

    sys.exit(main())
