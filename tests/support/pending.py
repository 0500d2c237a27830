"""Requests on their way without a proxy or a store: what addons decide on them, as tables."""

from typing import Any, cast

from mitmproxy import connection, http

from playhead.addons.run.pending_exchange import PendingExchange, attach
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.decide import Action, Decision, Facts
from playhead.tape.records.events import EventKind
from playhead.tape.redaction.redactor import Redactor

from .exchanges import make_request, raw_request


class NotedRun(OpenRun):
    """An open run whose log is a list; it has no store."""

    def __init__(self, config: Config | None = None, mode: Mode = Mode.RECORD) -> None:
        super().__init__(mode, config or Config(), Redactor(b"key"), cast("Store", None), None)
        self.noted: list[tuple[EventKind, dict[str, Any]]] = []

    def note(self, kind: EventKind, **data: Any) -> None:
        self.noted.append((kind, data))


def make_pending(
    open_run: OpenRun,
    what: str = "GET https://api.test/x",
    kind: RequestClass = RequestClass.READ,
    *,
    body: bytes = b"",
    seq: int = 1,
    prepared: bool = True,
    action: Action | None = None,
    reason: str = "why",
) -> PendingExchange:
    """A request whose head has come, with its flow.

    what: METHOD URL.
    prepared: whether it has been read whole.
    action: what was decided on it, if anything.
    """
    method, _, url = what.partition(" ")
    flow = http.HTTPFlow(
        connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2)),
        connection.Server(address=None),
    )
    flow.request = http.Request.make(method, url, body)
    asked = make_request(what, body)
    facts = Facts(method, asked.scheme, asked.host, asked.port, asked.target, kind)
    pending = PendingExchange(open_run, flow, Seq(seq), facts)
    attach(flow, pending)
    if prepared:
        pending.prepare(raw_request(asked), with_body=True)
    if action is not None:
        pending.decide(Decision(action, reason, "rule"))
    return pending
