"""The control host: the queries that an agent or its operator can send to Playhead through the proxy."""

import json

from mitmproxy import http

from ..config import Mode
from ..tape.dialects.common.untrusted_json import find_json
from ..tape.policy.decide import Action
from ..tape.records.events import EventKind
from .run.pending_exchange import find_pending
from .run.run_state import OpenRun
from .wire.convert_http_messages import make_answer
from .wire.stdio_servers import StdioServers

_KNOWN = ("/", "/run", "/stdio")
_OUTCOMES = ("ok", "failed")
_MOST = 4096
"""Bytes of an outcome that is told."""
_MOST_SNAPSHOT = 64 * 1024
"""Bytes of a snapshot: it is a row of the log, which whoever shows the run reads."""
_TEXT = 500
"""Characters of its text that are kept."""
_INSTANCE = "/stdio/"
"""Begins what a server on a pipe asks at its start; its name comes behind it."""
_MOST_NAMES = 1000
"""Of servers of one run whose starts are counted."""


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
        if flow.request.method == "POST" and pending.facts.target == "/outcome":
            flow.response = _note_outcome(open_run, flow.request.raw_content or b"")
            return
        if flow.request.method == "POST" and pending.facts.target == "/snapshot":
            flow.response = _note_snapshot(open_run, flow.request.raw_content or b"")
            return
        target = pending.facts.target
        starts = target.startswith(_INSTANCE)
        known = flow.request.method in ("GET", "HEAD") and (starts or target in _KNOWN)
        body: dict[str, object] = {
            "run": open_run.info.id if open_run.info else None,
            "mode": open_run.mode.value,
            "tape": open_run.tape.id if open_run.tape else None,
            "requests": open_run.on_the_way.requests,
            "problem": open_run.lifetime.problem or None,
        }
        if known and target.startswith("/stdio") and open_run.mode is Mode.RECORD:
            body["sockets"] = str(self._stdio_servers.folder)
        if known and starts and flow.request.method == "GET":
            name, counts = target.removeprefix(_INSTANCE), open_run.connections.stdio_servers
            if name in counts or len(counts) < _MOST_NAMES:
                counts[name] += 1
                body["instance"] = f"{name}/{counts[name]}"
        answer = body if known else {"error": "unknown; GET / gives the run of this connection"}
        flow.response = _answer(200 if known else 404, answer)


def _answer(status: int, body: object) -> http.Response:
    kind = (b"content-type", b"application/json")
    return make_answer(status, (kind,), json.dumps(body).encode() + b"\n")


def _note_outcome(open_run: OpenRun, body: bytes) -> http.Response:
    """Keep what an agent says of its run's outcome."""
    told = find_json(body) if len(body) <= _MOST else None
    word = told.get("outcome") if isinstance(told, dict) else None
    text = told.get("text", "") if isinstance(told, dict) else ""
    if word not in _OUTCOMES or not isinstance(text, str):
        expected = 'expected {"outcome": "ok" or "failed", "text": why}, at most 4096 bytes of JSON'
        return _answer(422, {"error": expected})
    said = open_run.redactor.redact_text(text[:_TEXT])
    open_run.note(EventKind.NOTED, outcome=word, why=said)
    return _answer(200, {"outcome": word})


def _note_snapshot(open_run: OpenRun, body: bytes) -> http.Response:
    """Keep what an agent says of its state, between the exchanges that it came between."""
    told = find_json(body) if len(body) <= _MOST_SNAPSHOT else None
    if told is None:
        expected = f"expected any JSON but null, at most {_MOST_SNAPSHOT} bytes, and found {len(body)} bytes"
        return _answer(422, {"error": expected})
    text = open_run.redactor.redact_text(json.dumps(told, ensure_ascii=False))
    open_run.note(EventKind.NOTED, snapshot=text)
    return _answer(200, {"snapshot": len(body)})
