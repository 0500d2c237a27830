"""Run Playhead's command line without some of the fast paths that it puts into mitmproxy.

    python benchmarks/patched.py NAME[,NAME...] serve ...       `patches.py` does; NAME is one of `PATCHES`, or `none`

A fast path that is left out is mitmproxy's own code again. Whatever else the engine changes stays.
"""

import sys

from playhead.proxy.engine.mitmproxy_imports import lean

with lean():
    from mitmproxy import connection, flow, hooks, http, optmanager
    from mitmproxy.net.http import http1
    from mitmproxy.proxy import commands, context, events, layer
    from mitmproxy.proxy.layers.http import HttpLayer
    from mitmproxy.proxy.layers.tls import ServerTLSLayer, TLSLayer

    from playhead.proxy.engine.fast import mitmproxy_messages

_MISSING = object()
PATCHES: dict[str, list[tuple[object, str]]] = {
    "encrypting": [
        (TLSLayer, "_handle_event"),
        (TLSLayer, "tls_interact"),
        (TLSLayer, "event_to_child"),
        (ServerTLSLayer, "event_to_child"),
    ],
    "routing": [(HttpLayer, "_handle_event"), (HttpLayer, "event_to_child")],
    "type-checks": [(http.MessageData, "__post_init__")],
    "fork": [(context.Context, "fork")],
    "headers": [(http.Headers, name) for name in ("__init__", "get_all", "get", "__contains__")],
    "equal": [(connection.Connection, "__eq__")],
    "options": [(optmanager._Option, "current")],
    "body-size": [(http1, "expected_http_body_size")],
    "layers": [(layer.Layer, "handle_event")],
    "kinds": [
        (hooks.Hook, "__new__"),
        (commands.StartHook, "__new__"),
        (events.CommandCompleted, "__new__"),
    ],
    "ids": [(flow, "uuid")],
}
"""By name: what a patch replaces."""
_STOCK = {
    (id(owner), name): vars(owner).get(name, _MISSING)
    for places in PATCHES.values()
    for owner, name in places
}


def _leave_out(names: list[str]) -> None:
    """Have the engine put mitmproxy's own code back once it has installed everything."""
    install = mitmproxy_messages.install

    def put_back() -> None:
        install()
        for place, name in (place for one in names for place in PATCHES[one]):
            stock = _STOCK[id(place), name]
            if stock is _MISSING:
                delattr(place, name)
            else:
                setattr(place, name, stock)

    mitmproxy_messages.install = put_back


if __name__ == "__main__":
    given = sys.argv.pop(1)
    _leave_out([] if given == "none" else given.split(","))
    from playhead.proxy.cli import main

    sys.exit(main())
