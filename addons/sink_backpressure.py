"""Report effects to the sinks in order: hold an effect back, before it is sent or answered, while a sink is full.

`run/effect_row.py` builds the row that is reported once the effect has ended; `run/effect_sinks.py` delivers it.
"""

from collections.abc import Awaitable

from mitmproxy import http

from ..tape.exchange import RequestClass
from .run.pending_exchange import find_pending


class ReportEffect:
    """Hold effects back while a sink is full."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Wait until there is room, as long as the sink's patience lasts."""
        pending = find_pending(flow)
        if pending is None or pending.open_run.sink_queue is None or pending.finished:
            return None
        if pending.request_class is RequestClass.EFFECT and pending.open_run.sink_queue.full:
            return pending.open_run.sink_queue.room()
        return None
