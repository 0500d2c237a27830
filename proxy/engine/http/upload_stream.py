"""Stream requests that are too large to be held, and those whose answer begins before they have ended.

1. A request is read to its end before anything is decided; past a limit its body goes to a file, and is sent
   on from there as fast as the upstream takes it.
2. A request of a streaming protocol (gRPC) is sent on piece by piece. In playback its bytes are compared as
   they come, so that the answer can begin.
"""

import logging
import time

from mitmproxy import flow as mflow
from mitmproxy.proxy import events
from mitmproxy.proxy.layers.http import (
    ErrorCode,
    HttpRequestHook,
    HttpResponseHeadersHook,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    RequestTrailers,
    SendHttp,
)

from ....addons.run.pending_exchange import HELD_BYTES, PendingExchange
from ....store import StoreError
from ..hooks.own_hooks import Fetch, PlayheadUploadedHook
from .base_stream import BaseStream, Commands

logger = logging.getLogger(__name__)

_FETCH_BYTES = 256 * 1024
"""Read from the file at a time."""


class UploadingStream(BaseStream):
    """A stream that can read and send requests of any size."""

    _fetch: Fetch | None = None
    """What is being read to be sent on."""
    _sent = 0

    def state_consume_request_body(self, event: events.Event) -> Commands:
        """Take a piece of a request that is read to its end first."""
        pending = self._pending
        if pending is not None and isinstance(event, RequestData):
            return self._consume(pending, event.data)
        if (
            pending is not None
            and isinstance(event, RequestEndOfMessage)
            and pending.body.upload is not None
        ):
            return self._upload_ended(pending, event)
        return super().state_consume_request_body(event)

    def state_stream_request_body(self, event: events.Event) -> Commands:
        """Take a piece of a request that is sent on as it comes."""
        pending = self._pending
        if pending is not None and isinstance(event, RequestData):
            try:
                pending.take_sent(event.data)
            except StoreError as error:
                yield from self._cannot_keep(error)
            else:
                yield SendHttp(RequestData(self.stream_id, event.data), self.context.server)
            return
        if pending is not None and isinstance(event, RequestEndOfMessage):
            pending.body.end()
        yield from super().state_stream_request_body(event)

    def _consume(self, pending: PendingExchange, data: bytes) -> Commands:
        try:
            if pending.body.upload is not None:
                if (
                    pending.body.upload.is_aside
                    and pending.body.upload.size + len(data) > HELD_BYTES
                ):
                    pending.body.upload.outgrow()
                pending.body.upload.write(data)
                return
            self.request_body_buf += data
            size = len(self.request_body_buf)
            pending.hold(len(data))
            is_too_large = size > HELD_BYTES
            # A stream that is answered while it comes is compared in memory.
            aside = not pending.body.bidirectional and pending.is_to_be_set_aside(size)
            if is_too_large or aside:
                held = bytes(self.request_body_buf)
                self.request_body_buf.clear()
                pending.hold(-size)
                pending.begin_upload(held, aside=not is_too_large)
        except StoreError as error:
            yield from self._cannot_keep(error)

    def _cannot_keep(self, error: StoreError) -> Commands:
        """End the client's connection: what cannot be kept does not go on."""
        logger.error("%s", error)
        self.flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
        yield from self.check_killed(True)

    # ---- sending it on -------------------------------------------------------------------------

    def _upload_ended(self, pending: PendingExchange, event: RequestEndOfMessage) -> Commands:
        yield PlayheadUploadedHook(pending)
        if (yield from self.check_killed(True)):
            return
        if pending.body.upload is None:
            self.request_body_buf += pending.body.take_sent()
            yield from super().state_consume_request_body(event)
            return
        self.flow.request.timestamp_end = time.time()  # noqa: TID251  # mitmproxy's own field
        self.flow.request.data.content = b""
        self.client_state = self.state_done
        yield HttpRequestHook(self.flow)
        if (yield from self.check_killed(True)):
            return
        if self.flow.response is not None:
            yield HttpResponseHeadersHook(self.flow)
            if not (yield from self.check_killed(True)):
                yield from self.send_response()
        elif (yield from self.make_server_connection()):
            head = RequestHeaders(self.stream_id, self.flow.request, end_stream=False)
            yield SendHttp(head, self.context.server)
            yield from self._fetch_more(pending)

    def _fetch_more(self, pending: PendingExchange) -> Commands:
        self._fetch = Fetch(pending, self.context.server, self._sent, _FETCH_BYTES)
        yield self._fetch

    def _send_fetched(self, fetch: Fetch) -> Commands:
        """Send on what was read."""
        pending, self._fetch = self._pending, None
        if pending is None or self.server_state in (self.state_done, self.state_errored):
            # It was answered, or failed, before all was sent.
            gone = RequestProtocolError(self.stream_id, "answered early", ErrorCode.CANCEL)
            yield SendHttp(gone, self.context.server)
            return
        assert pending.body.uploaded is not None
        self._sent += len(fetch.data)
        if fetch.data:
            yield SendHttp(RequestData(self.stream_id, fetch.data), self.context.server)
        if self._sent >= pending.body.uploaded.size:
            if self.flow.request.trailers:
                trailers = RequestTrailers(self.stream_id, self.flow.request.trailers)
                yield SendHttp(trailers, self.context.server)
            yield SendHttp(RequestEndOfMessage(self.stream_id), self.context.server)
        elif fetch.data:
            yield from self._fetch_more(pending)
