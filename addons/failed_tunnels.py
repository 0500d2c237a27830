"""Record and replay failed tunnels as exchanges.

Where the upstream of a tunnel cannot be connected, its TLS fails or the client gives up over it, no request
has been seen. What is kept is an exchange with the method CONNECT and without a target. While playing it
fails again at its place:

* not before as many tunnels to this origin have been asked for as then, and
* not before all that had been asked of this origin by then has been asked again.

An agent may keep a connection for longer while it is played, and so never ask for the tunnel that failed.
Then the request that came through the next tunnel fails in its place: `deciding/due_failed_tunnels.py`.
"""

import asyncio
import time
from collections.abc import Awaitable

from mitmproxy import connection, tls

from ..config import Mode
from ..tape.exchange import (
    Exchange,
    VerdictKind,
)
from ..tape.policy.decide import CONTROL_HOST
from ..tape.records.events import EventKind
from .deciding.due_failed_tunnels import class_of, find_due, take_missed
from .recording.save_tunnel import Attempt, OpenTunnel, save_tunnel
from .run.playback_state import PlaybackState
from .run.registry import RunRegistry
from .run.run_state import OpenRun


class Tunnels:
    """Keep the tunnels that fail, and have them fail again."""

    def __init__(self, registry: RunRegistry) -> None:
        """Look after the tunnels of the open runs of `registry`."""
        self._registry = registry
        registry.hooks.on_ending.append(self.give_up)
        self._opening: dict[str, OpenTunnel] = {}
        self._saving: set[asyncio.Task[None]] = set()

    # ---- hooks ---------------------------------------------------------------------------------

    def tls_clienthello(self, data: tls.ClientHelloData) -> Awaitable[None] | None:
        """Note that a client waits; in playback let it wait for what it waited for then."""
        client, address = data.context.client, data.context.server.address
        open_run = self._registry.of(client)
        if open_run is None or open_run.info is None or address is None:
            return None
        if open_run.lifetime.stopped is not None:
            return None  # nothing is connected, and the request in it is refused
        host, port = address[0], address[1]
        tunnel = open_run.connections.next_tunnel(client, host, port, open_run.on_the_way.last_seq)
        opening = OpenTunnel(
            open_run, host, port, tunnel, time.time_ns(), time.monotonic(), asyncio.Event()
        )
        if open_run.mode is Mode.RECORD:
            self._begin(client, opening)
        elif open_run.playback is not None and host != CONTROL_HOST:
            missed = find_due(open_run, open_run.playback, host, port)
            if missed is not None and tunnel.number >= missed.tunnel.number:
                return self._play(client, opening, open_run.playback, missed)
        return None

    def _begin(self, client: connection.Client, opening: OpenTunnel) -> None:
        self._opening[client.id] = opening
        client.handshaking = True  # type: ignore[attr-defined]  # read by the handler

    def _find(self, client: connection.Client) -> OpenTunnel | None:
        client.handshaking = False  # type: ignore[attr-defined]  # read by the handler
        return self._opening.pop(client.id, None)

    def tls_established_server(self, data: tls.TlsData) -> None:
        """Forget a client whose upstream has been reached."""
        self._find(data.context.client)

    async def playhead_tunnel(self, attempt: Attempt) -> None:
        """Keep an attempt that failed; its client is reset after this."""
        opening = self._find(attempt.client)
        if opening is not None and not opening.given_up:
            await save_tunnel(opening, attempt)

    def client_disconnected(self, client: connection.Client) -> None:
        """Keep a tunnel that its client gave up."""
        opening = self._find(client)
        if opening is None:
            return
        opening.left.set()
        if opening.open_run.mode is Mode.RECORD and not opening.given_up:
            task = asyncio.get_running_loop().create_task(save_tunnel(opening, None))
            self._saving.add(task)
            task.add_done_callback(self._saving.discard)

    async def give_up(self, open_run: OpenRun) -> None:
        """Keep the tunnels over which a run ends, before it is sealed."""
        for opening in list(self._opening.values()):
            if opening.open_run is open_run and open_run.mode is Mode.RECORD:
                opening.given_up = True
                await save_tunnel(opening, None)
        if self._saving:
            await asyncio.wait(list(self._saving))

    # ---- playing -------------------------------------------------------------------------------

    async def _play(
        self,
        client: connection.Client,
        opening: OpenTunnel,
        playback: PlaybackState,
        recorded: Exchange,
    ) -> None:
        open_run = opening.open_run
        self._begin(client, opening)
        client.fails_as_recorded = True  # type: ignore[attr-defined]  # read where TLS that fails is noted
        take_missed(open_run, playback, recorded)
        seq = open_run.next_seq()
        open_run.note(
            EventKind.VERDICT,
            seq=seq,
            method=recorded.request.method,
            url=recorded.request.url,
            request_class=class_of(open_run, recorded.request).value,
            verdict=VerdictKind.SERVED.value,
            reason="on tape",
            fingerprint=recorded.fingerprint,
            key=None,
            tape_seq=recorded.seq,
            match="exact",
        )
        # Until the client leaves, where it was left waiting.
        at_s = recorded.end_us / 1e6 * open_run.config.playback.pace
        patience_s = at_s if recorded.fault is not None else None
        try:
            await asyncio.wait_for(opening.left.wait(), patience_s)
        except TimeoutError:
            if self._registry.hooks.on_reset is not None:
                self._registry.hooks.on_reset(client)
