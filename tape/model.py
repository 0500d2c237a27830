"""The vocabulary of a tape: what was asked, what came of it, and what was decided.

Values only. Bytes are bytes until someone shows them; header fields are ordered pairs as they stood on
the wire. Times inside an exchange are microseconds since its request arrived; `started_ns` alone is wall
clock (nanoseconds since the epoch), for people: order is `seq`, never time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType

RunId = NewType("RunId", str)
Seq = NewType("Seq", int)
Fingerprint = NewType("Fingerprint", bytes)
"""16 bytes."""

Headers = tuple[tuple[bytes, bytes], ...]


class RequestClass(StrEnum):
    """What kind of call a request is; decides what playback may do with it."""

    INFERENCE = "inference"
    READ = "read"
    EFFECT = "effect"
    TELEMETRY = "telemetry"


class VerdictKind(StrEnum):
    """What was decided for one request."""

    RECORDED = "recorded"
    SERVED = "served"
    STUBBED = "stubbed"
    LIVE = "live"
    HELD = "held"
    REFUSED = "refused"


class FaultKind(StrEnum):
    """How an exchange failed below HTTP."""

    REFUSED = "refused"
    DNS = "dns"
    TLS = "tls"
    RESET = "reset"
    CUT = "cut"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    """How far an exchange had come when it failed."""

    CONNECT = "connect"
    TLS = "tls"
    REQUEST = "request"
    HEAD = "head"
    BODY = "body"


class Chunk(NamedTuple):
    """One piece of a body as it passed."""

    at_us: int
    """Since the request arrived."""
    size: int
    """Bytes; the pieces of a body in order add up to it."""
    after: int = 0
    """Highest seq of the run that had arrived by then: this piece may be what that request caused."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the agent sent it, redactions aside."""

    method: str
    scheme: str
    host: str
    port: int
    target: str
    """Path and query as sent, in origin form."""
    http_version: str
    headers: Headers
    body: bytes = b""
    trailers: Headers = ()

    @property
    def authority(self) -> str:
        """`host`, with the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        own = (self.scheme, self.port) in (("http", 80), ("https", 443))
        return host if own else f"{host}:{self.port}"

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def url(self) -> str:
        """Absolute URL."""
        return f"{self.scheme}://{self.authority}{self.target}"

    def header(self, name: bytes) -> bytes | None:
        """First value of a header field, by lower-case name, or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `body` is what passed, which is all of it unless the exchange carries a fault."""

    status: int
    reason: bytes
    http_version: str
    headers: Headers
    body: bytes
    head_us: int
    """When its head arrived."""
    chunks: tuple[Chunk, ...] = ()
    """Empty where the body was not streamed, or is empty."""
    trailers: Headers = ()
    complete: bool = True
    """False where the body ended before its framing said so, or was still coming when reading stopped."""

    def header(self, name: bytes) -> bytes | None:
        """First value of a header field, by lower-case name, or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Fault:
    """How and where an exchange failed below HTTP."""

    kind: FaultKind
    phase: Phase
    text: str
    """The engine's words, one line."""
    at_us: int


@dataclass(frozen=True, slots=True)
class Gone:
    """The client left before the exchange was complete."""

    at_us: int
    chunks: int
    """How many chunks of the response it had been sent by then."""
    head: bool
    """Whether it had been sent the response's head."""


class Redaction(NamedTuple):
    """One place whose value was replaced before anything was written."""

    place: str
    """As `request.header.authorization`, `request.query.key`, `response.header.set-cookie`."""
    kind: str
    """What sort of secret: `authorization`, `cookie`, `key`, `token`, `signature`, `configured`."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its outcome, immutable once known.

    Exactly one of these holds: `response` alone (an answer), `fault` with or without a partial
    `response` (a failure), or neither (the client left before any answer, and none was read on).
    `gone` may stand beside any of them; what arrived after the client left is part of `response`.
    """

    seq: Seq
    request_class: RequestClass
    verdict: VerdictKind
    reason: str
    """Why the verdict was what it was: one line."""
    request: Request
    started_ns: int
    end_us: int
    """When the outcome was known."""
    fingerprint: Fingerprint
    response: Response | None = None
    fault: Fault | None = None
    gone: Gone | None = None
    redactions: tuple[Redaction, ...] = ()
    warnings: tuple[str, ...] = ()
    alpn_offers: tuple[bytes, ...] = ()
    """What the client offered; the key under which the negotiated protocol is found again."""
    alpn: bytes | None = None
    """What was negotiated between client and proxy, mirroring the upstream."""
