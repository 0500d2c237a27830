"""A tunnel whose upstream is not reached is recorded as an exchange."""

import asyncio
import time
from dataclasses import dataclass

from mitmproxy import connection

from ...store import Record, StoreUnwritable
from ...tape.canonical.canonical_request import raw_key
from ...tape.exchange import Ending, Fault, Gone, Phase, Tunnel, VerdictKind
from ...tape.records.build_exchange import Asked, Outcome, build_exchange
from ...tape.records.events import EventKind
from ..deciding.due_failed_tunnels import class_of, tunnel_request
from ..run.exchange_events import outcome_event
from ..run.run_state import OpenRun
from ..wire.upstream_failure import find_fault


@dataclass(frozen=True, slots=True)
class Attempt:
    """An upstream that could not be reached."""

    client: connection.Client
    server: connection.Server
    error: str


@dataclass(slots=True)
class OpenTunnel:
    """A tunnel whose client waits for its handshake."""

    open_run: OpenRun
    host: str
    port: int
    tunnel: Tunnel
    started_ns: int
    t0: float
    left: asyncio.Event
    given_up: bool = False
    """Whether its run ended over it, so that it is kept already."""


async def save_tunnel(opening: OpenTunnel, attempt: Attempt | None) -> None:
    """Write a tunnel that failed, or that its client gave up.

    attempt: how it failed; None where its client gave it up.
    """
    open_run = opening.open_run
    end_us = int((time.monotonic() - opening.t0) * 1e6)
    seq = open_run.next_seq()
    request = tunnel_request(opening.host, opening.port)
    kind = class_of(open_run, request)
    found = open_run.identifier.fingerprint(request, kind)
    asked = Asked(seq, request, kind, found, opening.started_ns, tunnel=opening.tunnel)
    fault = _fault(open_run, attempt, end_us) if attempt is not None else None
    outcome = Outcome(
        end_us, fault=fault, gone=Gone(end_us, 0, head=False) if attempt is None else None
    )
    exchange = build_exchange(asked, VerdictKind.RECORDED, "mode record", outcome)
    logged = {
        "seq": seq,
        "method": request.method,
        "url": request.url,
        "request_class": kind.value,
        "fingerprint": exchange.fingerprint,
        "key": None,
    }
    open_run.note(EventKind.INTENT, **logged)
    record = Record(exchange, raw_key(request, kind), outcome_event(exchange))
    try:
        await open_run.store.exchanges.save(open_run.number, lambda: record)
    except StoreUnwritable as error:
        open_run.miss(error, exchanges=1)


def _fault(open_run: OpenRun, attempt: Attempt, at_us: int) -> Fault:
    phase = Phase.TLS if attempt.server.timestamp_tcp_setup else Phase.CONNECT
    said = open_run.redactor.redact_text(attempt.error)
    return find_fault(said, phase, Ending.RST, 0, at_us)
