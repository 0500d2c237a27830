"""Build an exchange from what was asked and what came of it: the one function that recordings, refusals, tunnels and imports use."""

from typing import NamedTuple

from ..exchange import (
    NO_ALPN,
    NO_TEXT,
    NO_TUNNEL,
    Alpn,
    Exchange,
    Fault,
    Fingerprint,
    Gone,
    Interim,
    Lane,
    RedactedText,
    Redaction,
    Repeat,
    Request,
    RequestClass,
    Response,
    Seq,
    Tunnel,
    VerdictKind,
    WebSocketSummary,
)


class Asked(NamedTuple):
    """A request as it is kept, and how it came."""

    seq: Seq
    request: Request
    request_class: RequestClass
    fingerprint: Fingerprint
    started_ns: int
    redactions: tuple[Redaction, ...] = ()
    repeat: Repeat | None = None
    alpn: Alpn = NO_ALPN
    tunnel: Tunnel = NO_TUNNEL
    lane: Lane | None = None


class Outcome(NamedTuple):
    """What came of a request, without its secrets."""

    end_us: int
    response: Response | None = None
    fault: Fault | None = None
    gone: Gone | None = None
    interim: tuple[Interim, ...] = ()
    websocket: WebSocketSummary | None = None
    redactions: tuple[Redaction, ...] = ()
    """Those of the answer."""
    warnings: tuple[str, ...] = ()
    withheld: RedactedText = NO_TEXT


def build_exchange(asked: Asked, verdict: VerdictKind, reason: str, outcome: Outcome) -> Exchange:
    """Build the exchange that is kept.

    reason: why the verdict was what it was, in one line.
    """
    return Exchange(
        seq=asked.seq,
        request_class=asked.request_class,
        verdict=verdict,
        reason=reason,
        request=asked.request,
        started_ns=asked.started_ns,
        end_us=outcome.end_us,
        fingerprint=asked.fingerprint,
        response=outcome.response,
        fault=outcome.fault,
        gone=outcome.gone,
        redactions=(*asked.redactions, *outcome.redactions),
        warnings=outcome.warnings,
        alpn=asked.alpn,
        websocket=outcome.websocket,
        repeat=asked.repeat,
        withheld=outcome.withheld,
        tunnel=asked.tunnel,
        lane=asked.lane,
        interim=outcome.interim,
    )
