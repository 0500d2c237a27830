"""The control host: the queries that an agent or its operator can send to Playhead through the proxy."""

import json

from mitmproxy import http

from ..config import Mode
from ..tape.policy.decide import Action
from .run.pending_exchange import find_pending
from .wire.http import make_answer
from .wire.stdio import StdioServers

_KNOWN = ("/", "/run", "/stdio")


class Control:
    """Answer requests to `playhead.internal`; they are no part of the tape."""

    def __init__(self, stdio_servers: StdioServers) -> None:
        """Tell also where servers over standard input and output are reached."""
        self._stdio_servers = stdio_servers

    def request(self, flow: http.HTTPFlow) -> None:
        """Say which run this connection belongs to."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None:
            return
        if pending.decision.action is not Action.CONTROL:
            return
        open_run = pending.open_run
        known = flow.request.method in ("GET", "HEAD") and pending.facts.target in _KNOWN
        body: dict[str, object] = {
            "run": open_run.info.id if open_run.info else None,
            "mode": open_run.mode.value,
            "tape": open_run.tape.id if open_run.tape else None,
            "requests": open_run.on_the_way.requests,
            "problem": open_run.lifetime.problem or None,
        }
        if known and pending.facts.target == "/stdio" and open_run.mode is Mode.RECORD:
            body["sockets"] = str(self._stdio_servers.folder)
        answer = body if known else {"error": "unknown; GET / tells the run of this connection"}
        flow.response = make_answer(
            200 if known else 404,
            ((b"content-type", b"application/json"),),
            json.dumps(answer).encode() + b"\n",
        )
