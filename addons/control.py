"""The control host: what an agent or its operator may ask Playhead through the proxy itself."""

import json

from mitmproxy import http

from ..tape.policy.decide import Action
from .run.pending import find_flight
from .wire.http import make_answer


class Control:
    """Answer requests to `playhead.internal`; they are no part of the tape."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Say which run this connection belongs to."""
        flight = find_flight(flow)
        if flight is None or flight.decision is None:
            return
        if flight.decision.action is not Action.CONTROL:
            return
        session = flight.session
        known = flow.request.method in ("GET", "HEAD") and flight.facts.target in ("/", "/run")
        body = {
            "run": session.run.id if session.run else None,
            "mode": session.mode.value,
            "tape": session.tape.id if session.tape else None,
            "requests": session.requests,
            "problem": session.problem or None,
        }
        answer = body if known else {"error": "unknown; GET / tells the run of this connection"}
        flow.response = make_answer(
            200 if known else 404,
            ((b"content-type", b"application/json"),),
            json.dumps(answer).encode() + b"\n",
        )
