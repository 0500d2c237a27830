"""Send what a branch routes to a sandbox there, and to nowhere else. Recorded is what the agent asked."""

from mitmproxy import http

from ..run.pending_exchange import find_pending
from ..wire.convert_http_messages import keep_scheme


class SendToSandbox:
    """Change where a request goes, once its intent is logged."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Have it go to the sandbox that was decided on."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or not pending.leaves:
            return
        route, message = pending.decision.route, flow.request
        if route is None or not pending.progress.forwarded:
            return
        message.scheme, message.port, message.host = route.scheme, route.port, route.host
        message.path = route.target(message.path)
        keep_scheme(message)
