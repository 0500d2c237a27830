"""What one request carries from hook to hook, and to the streams that play or record it.

A flight belongs to the event loop. It lives in `flow.metadata` and ends with its flow.
"""

import asyncio
import contextlib
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from mitmproxy import http

from ..tape.cursor import Exhausted, Hit, Unknown
from ..tape.events import EventKind
from ..tape.model import (
    Chunk,
    Fault,
    FaultKind,
    Fingerprint,
    Gone,
    Headers,
    Phase,
    Redaction,
    Request,
    RequestClass,
    Seq,
    VerdictKind,
)
from ..tape.policy import Decision, Facts
from ..tape.script import Step
from .sessions import Session

if TYPE_CHECKING:
    from .websocket import Kept, Played

_KEY = "playhead"


class Flight:
    """One request on its way."""

    def __init__(self, session: Session, flow: http.HTTPFlow, seq: Seq, facts: Facts) -> None:
        """Begin at the request's head; `seq` is 0 where nothing is recorded."""
        self.session = session
        self.flow = flow
        self.seq = seq
        self.facts = facts
        self.decision: Decision | None = None
        self.fields: Headers = ()
        """Header fields as they stood when the request's head arrived."""
        self.request: Request | None = None
        """As it is compared and stored: redacted, before anything is changed for the upstream."""
        self.redactions: tuple[Redaction, ...] = ()
        self.raw: bytes = b""
        self.fingerprint: Fingerprint | None = None
        self.exact = False
        """Whether it was found by its bytes, without masking anything."""
        self.found: Hit | Exhausted | Unknown | None = None
        self.started_ns = time.time_ns()
        self.t0 = time.monotonic()
        self.conversation: Kept | Played | None = None
        """What it has become, where it has become a WebSocket."""
        # Playing.
        self.steps: list[Step] | None = None
        # Recording.
        self.recording = False
        self.forwarded = False
        self.head_us = 0
        self.head_sent = False
        self.pieces: list[bytes] = []
        self.chunks: list[Chunk] = []
        self.size = 0
        self.announced = -1
        """Length of the response's body as its head says, or -1."""
        self.event_stream = False
        """Whether the answer is one on which SDKs act before it has ended."""
        self.gone: Gone | None = None
        self.fault: Fault | None = None
        self.warnings: list[str] = []
        self.saved = False
        self._done = asyncio.Event()
        session.begin(self)

    def finish(self) -> None:
        """End the flight: nothing more comes of it. Twice is once."""
        if not self._done.is_set():
            self._done.set()
            self.session.finish(self)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    async def ended(self, timeout_s: float) -> None:
        """Wait until it has ended, or for so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done.wait(), timeout_s)

    @property
    def request_class(self) -> RequestClass:
        """Its class."""
        return self.facts.request_class

    @property
    def keep_reading(self) -> bool:
        """Whether the upstream is read on when the client leaves: it is for effects alone.

        An effect happens whether or not somebody waits; tokens of a model are burnt for nobody.
        """
        return self.request_class is RequestClass.EFFECT

    def now_us(self) -> int:
        """Microseconds since the request arrived."""
        return int((time.monotonic() - self.t0) * 1e6)

    def take(self, data: bytes) -> None:
        """Note a piece of the response's body."""
        self.pieces.append(data)
        self.chunks.append(Chunk(self.now_us(), len(data), self.session.last_seq))
        self.size += len(data)

    @property
    def whole(self) -> bool:
        """Whether all that the response's head announced has arrived."""
        return self.announced >= 0 and self.size >= self.announced

    def client_left(self) -> None:
        """Note that the client left, and what it had been sent by then."""
        if self.gone is None:
            self.gone = Gone(self.now_us(), len(self.chunks), self.head_sent)

    def failed(self, text: str, *, connected: bool) -> None:
        """Note that the upstream failed."""
        phase = self._phase(text, connected)
        self.fault = Fault(_kind(text, phase), phase, text.splitlines()[0][:300], self.now_us())

    def _phase(self, text: str, connected: bool) -> Phase:
        if self.chunks or self.head_sent:
            return Phase.BODY
        if connected:
            return Phase.HEAD
        tls = "tls" in text.lower() or "certificate" in text.lower() or "openssl" in text.lower()
        return Phase.TLS if tls else Phase.CONNECT


def _kind(text: str, phase: Phase) -> FaultKind:
    lower = text.lower()
    if "denied" in lower:
        return FaultKind.DENIED
    if phase is Phase.TLS:
        return FaultKind.TLS
    if phase is Phase.CONNECT:
        if "refused" in lower or "errno 111" in lower:
            return FaultKind.REFUSED
        if "name or service" in lower or "getaddrinfo" in lower or "name resolution" in lower:
            return FaultKind.DNS
        return FaultKind.TIMEOUT if "timed out" in lower else FaultKind.UNKNOWN
    if phase is Phase.BODY:
        return FaultKind.CUT
    if "cannot parse" in lower or "unexpected server response" in lower or "received" in lower:
        return FaultKind.MALFORMED
    return FaultKind.RESET


def find_flight(flow: http.HTTPFlow) -> Flight | None:
    """Find the flight of a flow."""
    found: Any = flow.metadata.get(_KEY)
    return found if isinstance(found, Flight) else None


def attach(flow: http.HTTPFlow, flight: Flight) -> None:
    """Bind a flight to its flow."""
    flow.metadata[_KEY] = flight


def detach(flow: http.HTTPFlow) -> Flight | None:
    """Take the flight off its flow, if there is one."""
    found = find_flight(flow)
    flow.metadata.pop(_KEY, None)
    return found


def note_verdict(
    flight: Flight, request: Request, verdict: VerdictKind, reason: str, **more: Any
) -> None:
    """Log what playback decided for a request; `more` is what served it."""
    flight.session.note(
        EventKind.VERDICT,
        seq=flight.seq,
        method=request.method,
        url=request.url,
        request_class=flight.request_class.value,
        verdict=verdict.value,
        reason=reason,
        fingerprint=flight.fingerprint or b"",
        key=idempotency_key(request),
        **more,
    )


def idempotency_key(request: Request) -> bytes | None:
    """Give 8 bytes that tell idempotency keys of a run apart, or None where there is no key."""
    value = request.header(b"idempotency-key")
    return blake2b(value, digest_size=8).digest() if value is not None else None
