"""Let pass what a command says over loopback to programs of its own.

Such a program is part of what is run: a browser that an agent drives, a daemon of a CLI. It runs in a playback as it did while
recording, so what is said to it is neither recorded nor answered from a tape, and leads nowhere else.

1. It is so only if it is proved: who listens at the port belongs to the command, and nobody else does (`run/registry.py`, `OwnPorts`).
2. It is asked for each tunnel, and for each request without one. Bytes of a tunnel pass as they are.
3. Everything else that is asked of loopback is recorded and played as any other host.
"""

import weakref

from mitmproxy import connection, http
from mitmproxy.proxy import layer, layers

from ...config.parse_values import is_loopback
from ...tape.records.events import EventKind
from ..run.registry import RunRegistry
from ..run.run_state import OpenRun

_OWN = "playhead_own"
"""Attribute of a client connection: the host and port that it may be led to."""
_MOST_TOLD = 100
_MARK = "playhead-own"
"""In the metadata of a flow that passes."""


def is_own(client: connection.Client, host: str, port: int) -> bool:
    """Say whether a client was found to speak to a program of its own command there."""
    return (host, port) in getattr(client, _OWN, ())


def passes(flow: http.HTTPFlow) -> bool:
    """Say whether a request is none of ours."""
    return bool(flow.metadata.get(_MARK))


class PassOwnPorts:
    """Find what is for the command's own programs, before anybody else looks at it."""

    def __init__(self, registry: RunRegistry) -> None:
        """Ask the `own_ports` of `registry`."""
        self._registry = registry
        self._told: weakref.WeakKeyDictionary[OpenRun, set[str]] = weakref.WeakKeyDictionary()
        """What each run's log says already."""

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """Look where a tunnel leads."""
        self._look(flow)

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Look where a request leads that has no tunnel: at once, since its command may be about to end."""
        self._look(flow)

    def next_layer(self, data: layer.NextLayer) -> None:
        """Have the bytes of such a tunnel pass."""
        address = data.context.server.address
        if address is not None and is_own(data.context.client, address[0], address[1]):
            data.layer = layers.TCPLayer(data.context, ignore=True)

    def _look(self, flow: http.HTTPFlow) -> None:
        if self._registry.own_ports is None or flow.response is not None:
            return
        if is_loopback(flow.request.host):
            self._find(flow)

    def _find(self, flow: http.HTTPFlow) -> None:
        ports, request, client = self._registry.own_ports, flow.request, flow.client_conn
        if ports is None or not ports.listens(request.host, request.port):
            setattr(client, _OWN, ())
            return
        setattr(client, _OWN, ((request.host, request.port),))
        flow.metadata[_MARK] = True
        open_run = self._registry.of(client)
        if open_run is not None:
            self._tell(open_run, request.host, request.port)

    def _tell(self, open_run: OpenRun, host: str, port: int) -> None:
        """Note once what passes: it is on no tape."""
        told = self._told.setdefault(open_run, set())
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if place not in told and len(told) < _MOST_TOLD:
            told.add(place)
            open_run.note(EventKind.NOTED, own_program=place)
