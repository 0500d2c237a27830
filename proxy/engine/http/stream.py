"""The stream class that records and plays: one class, since a run may do both.

    base_stream.py       their pending exchange, hooks run where they stand, endings as they were
    upload_stream.py     requests of any size, and those that are answered before they have ended
    recording_stream.py  answers on their way from the upstream
    playback_stream.py   answers from the tape

Replaces by name: `HttpStream` in `mitmproxy.proxy.layers.http`, where `HttpLayer.make_stream` looks it up.
Checked against 12.2.3. Test: tests/proxy/engine/http/test_stream.py, tests/journeys.
"""

from mitmproxy.proxy import events
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)

from ....addons.run.pending_exchange import PendingExchange
from ....addons.wire.convert_http_messages import make_interim
from ..hooks.own_hooks import Fetch
from .base_stream import Commands
from .playback_stream import PlayingStream, Quiet
from .recording_stream import find_cut

_OF_REQUEST = frozenset((RequestHeaders, RequestData, RequestTrailers, RequestEndOfMessage))
_OF_ANSWER = frozenset((ResponseHeaders, ResponseData, ResponseTrailers, ResponseEndOfMessage))


class PlayheadStream(PlayingStream):
    """One exchange on a client connection."""

    def _handle_event(self, event: events.Event) -> Commands:
        kind = type(event)
        if kind in _OF_REQUEST:
            return self._inline(self.client_state(event))
        if kind in _OF_ANSWER:
            if isinstance(event, ResponseEndOfMessage) and self._is_unheard:
                return self._keep_unsaid(event)
            return self._inline(self.server_state(event))
        if isinstance(event, events.Wakeup) and self.child_layer is None:
            return self._inline(self._wake(event))
        return self._inline(super()._handle_event(event))

    def _wake(self, event: events.Wakeup) -> Commands:
        if isinstance(event.command, Fetch):
            yield from self._send_fetched(event.command)
        elif isinstance(event.command, Quiet):
            yield from self._note_quiet(event.command)
        elif self._playing:
            yield from self._play()

    def send_response(self, already_streamed: bool = False) -> Commands:
        """End an answer: release what was held, or play the tape."""
        pending = self._pending
        if pending is not None and pending.playing.steps is not None and not already_streamed:
            return self._begin_playing()
        cut = find_cut(pending) if pending is not None and pending.progress.recording else None
        if pending is not None and cut is not None and pending.answer.size >= cut.rule.after_bytes:
            return self._cut_off(pending, cut, b"")  # an answer without a body
        if pending is not None and already_streamed:
            return self._finish_recorded(pending)
        if pending is not None and pending.playing.played_interim:
            return self._send_after_interim(pending)
        return super().send_response(already_streamed)

    def _send_after_interim(self, pending: PendingExchange) -> Commands:
        """Accept a WebSocket as recorded: after the interim answers that came before."""
        for one in pending.playing.played_interim:
            yield from self._send_interim(pending, make_interim(one))
        yield from super().send_response()

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        """Take note of who failed, and let the client see just that."""
        pending = self._pending if hasattr(self, "flow") else None
        if pending is not None and self._playing:
            return self._left_while_playing(pending, event)
        return super().handle_protocol_error(event)


def install() -> None:
    """Have mitmproxy make these streams, for the whole process."""
    http_layer.HttpStream = PlayheadStream  # type: ignore[misc]
