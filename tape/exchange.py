"""The vocabulary of a tape: requests, responses, faults, WebSockets and exchanges, as frozen values.

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

RedactedText = NewType("RedactedText", str)
"""A text that may be kept and shown: the secrets of what came over a wire, or of what a person or another program said, are replaced
in it. `Redactor.redact_text` makes it, the store's codec reads it, and it may be made of words that are ours alone."""

NO_TEXT = RedactedText("")

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
    DISCARDED = "discarded"
    """Telemetry that is not on the tape: taken for delivered, or failed as on a machine that is offline."""
    LIVE = "live"
    SANDBOXED = "sandboxed"
    """Of a branch: sent to a copy of its service instead of its upstream."""
    HYPOTHETICAL = "hypothetical"
    """Of a branch: answered with what a person gave it, and nobody has answered."""
    HELD = "held"
    REFUSED = "refused"


SENT_OUT = frozenset({VerdictKind.LIVE, VerdictKind.SANDBOXED})
"""What was sent on in a playback."""


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


class Ending(StrEnum):
    """How a connection or stream was ended, as read from the transport."""

    RST = "rst"
    """TCP reset."""
    FIN = "fin"
    """End of the TCP stream; under TLS without its close_notify, so that it may be a cut."""
    CLOSE = "close"
    """TLS was closed properly first."""
    STREAM = "stream"
    """RST_STREAM of HTTP/2: the connection goes on."""


class Chunk(NamedTuple):
    """One piece of a body as it passed."""

    at_us: int
    """Since the request arrived."""
    size: int
    """Bytes; the pieces of a body in order add up to it."""
    after: int = 0
    """Highest seq of the run that had arrived by then: this piece may be what that request caused."""
    need: int = 0
    """Bytes of the request that had been sent by then; 0 where the request had ended."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """A body that is too large to be held: it lies in a file of its own in the store."""

    digest: bytes
    """32 bytes of BLAKE3 over what passed; names the file."""
    size: int
    match: bytes
    """The same without the boundary of a multipart body: what is compared."""
    pieces: bytes = b""
    """Digest of the file that lists the pieces (`codec.pack_piece`), or empty where there is no list."""
    replaced: tuple[tuple[bytes, bool], ...] = ()
    """Of a request: the placeholders in it, in order, and whether each is in a place of credentials. The last of many stands for the rest."""

    @property
    def files(self) -> tuple[bytes, ...]:
        """Digests of its files."""
        return (self.digest, self.pieces) if self.pieces else (self.digest,)


UNSEARCHED = "unsearched"
"""Kind of what was not searched for secrets and so is not kept; the keyed hash of the bytes follows behind a colon."""
ANOTHER = f"{UNSEARCHED}:another"
"""A kind that no value has, and that is compared: with it in a place, a request is another one where that place counts."""


PIECE = "piece"
"""How a placeholder of an answer is written that goes on from an earlier event of its stream, as `Secret.coded` has it."""
UNLOADABLE = "key that cannot be loaded"
"""Kind of a place in which the placeholder of a private key is no key."""
DIGEST = "digest of the body"
"""Kind of a header field that was computed anew, or left out, because a value was replaced in its body."""

TARGET, BODY = "target", "body"
"""Parts of a request in which placeholders are."""


HEADER = "header "
"""Begins the part of a secret in a header field, before its lower-case name."""
_ELSEWHERE = (b"content-", b"host", b"upgrade", b"connection", b"transfer-encoding")
"""Begin the names of fields that say how a request is read: they are compared as they are."""


def find_header_part(name: bytes) -> str | None:
    """Give the part of secrets in a header field; None where they have none."""
    name = name.lower()
    return None if name.startswith(_ELSEWHERE) else HEADER + name.decode("latin-1")


class Secret(NamedTuple):
    """A place where a placeholder stands; in comparison it counts by its kind alone."""

    part: str
    """`target`, `body`, or `header` with a field's lower-case name behind a blank."""
    at: int
    """Characters of the target, or bytes of the body or of the field's values, before it."""
    size: int
    kind: str
    coded: str = ""
    """`base64` or `hex` if the value was written so, and in which alphabet or letters; empty where its placeholder shows how it was.

    In an answer also where in base64 it is (`tell_place` in `records/redacted_value_spelling.py`), and `PIECE`."""


class MessageKind(StrEnum):
    """What a message of a WebSocket is."""

    TEXT = "text"
    BINARY = "binary"
    PING = "ping"


@dataclass(frozen=True, slots=True)
class WebSocketMessage:
    """One message of a WebSocket, whether its secrets are still in it or not; see `HttpRequest`."""

    at_us: int
    """Since the handshake's request arrived."""
    from_client: bool
    kind: MessageKind
    data: bytes
    """Text as UTF-8."""
    frames: tuple[int, ...] = ()
    """Sizes of the frames it came in, in bytes of `data`; empty for one."""
    after: int = 0
    """Highest seq of the run that had arrived by then."""
    secrets: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True)
class RawMessage(WebSocketMessage):
    """One message of a WebSocket as it came over the wire: it may hold secrets, so it is neither kept nor shown."""


@dataclass(frozen=True, slots=True)
class Message(WebSocketMessage):
    """One message of a WebSocket as it is kept, compared and shown: its secrets are replaced."""


@dataclass(frozen=True, slots=True)
class RawClose:
    """How a WebSocket ended, as it came over the wire: its reasons may hold secrets."""

    at_us: int
    by_client: bool
    code: int
    """1005 where no code was given, 1006 where the connection ended without a closing frame."""
    reason: str
    answer: tuple[int, str] | None = None
    """Code and reason of the other side's closing frame; None where it was not waited for."""

    @property
    def reasons(self) -> tuple[str, str]:
        """The reasons of both closing frames."""
        return self.reason, self.answer[1] if self.answer is not None else ""


@dataclass(frozen=True, slots=True)
class Close:
    """How a WebSocket ended, as it is kept, played and shown; see `RawClose`."""

    at_us: int
    by_client: bool
    code: int
    reason: RedactedText
    answer: tuple[int, RedactedText] | None = None

    @property
    def reasons(self) -> tuple[str, str]:
        """The reasons of both closing frames."""
        return self.reason, self.answer[1] if self.answer is not None else ""


@dataclass(frozen=True, slots=True)
class RawWebSocketSummary:
    """A WebSocket as it came over the wire; its messages are read one by one, they may be many."""

    messages: int
    size: int
    """Bytes of all messages."""
    close: RawClose | None
    """None where it was still open when reading stopped."""


@dataclass(frozen=True, slots=True)
class WebSocketSummary:
    """A WebSocket as it is kept and shown; see `RawWebSocketSummary`."""

    messages: int
    size: int
    close: Close | None


class RepeatKind(StrEnum):
    """What an effect is that was asked for before in its run."""

    POSSIBLE_DUPLICATE = "possible duplicate"
    SAFE_RETRY = "safe retry"


@dataclass(frozen=True, slots=True)
class Repeat:
    """An effect with the effect key of an earlier one of its run."""

    of: Seq
    kind: RepeatKind
    unseen: bool
    """Whether the client had seen no completed answer to the earlier one."""

    @property
    def is_duplicate(self) -> bool:
        """Whether it may do something a second time: a safe retry does not."""
        return self.kind is RepeatKind.POSSIBLE_DUPLICATE

    def without_first(self, first: "Repeat | None") -> "Repeat | None":
        """Give what is repeated if the earlier one was never sent: what that one repeats itself.

        first: what the earlier one repeats; None for nothing.
        """
        if first is None:
            return None
        is_duplicate = self.is_duplicate or first.is_duplicate
        kind = RepeatKind.POSSIBLE_DUPLICATE if is_duplicate else RepeatKind.SAFE_RETRY
        return Repeat(first.of, kind, first.unseen)


class Tunnel(NamedTuple):
    """The tunnel that a request came through."""

    number: int
    """Place among the tunnels to this origin in its run, from 1; 0 where there was none."""
    after: int = 0
    """Highest seq of the run that had arrived when it was asked for."""


NO_TUNNEL = Tunnel(0)


class Alpn(NamedTuple):
    """The protocol of a client's connection, as it was negotiated in TLS."""

    offers: tuple[bytes, ...] = ()
    """What the client offered; the key under which the negotiated protocol is found again."""
    chosen: bytes | None = None
    """What was negotiated between client and proxy, mirroring the upstream."""


NO_ALPN = Alpn()
IMPORTED = "imported"
"""Reason of an exchange that was made of JSON lines. It has a lane where they state when it was, and no client process."""
IMPORT_RULE = "import"
"""What the log has of it in the place of a rule: none decided on it."""


class Lane(NamedTuple):
    """The agent or sub-agent that a request came from, and what of its run was on its way when it came."""

    number: int
    """Place among the client processes of its run, from 1; 0 where the process could not be seen."""
    overlaps: tuple[Seq, ...] = ()
    """Requests of the run, of any lane, that had come and were not answered yet; of very many the first."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, whether its secrets are still in it or not.

    Whoever takes this may look at it and may neither keep nor show it: that takes a `Request`.
    """

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
    spilled: Spilled | None = None
    """Where the body is when it is too large to be held; `body` is empty then."""
    secrets: tuple[Secret, ...] = ()
    """Where placeholders stand that nothing but this tells; in order."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of its host that do not agree with `host` and stand in none of its fields: kind (`sni`, `authority` or
    `target`) and text."""

    @property
    def body_bytes(self) -> int:
        """Length of the body, wherever it is."""
        return len(self.body) if self.spilled is None else self.spilled.size

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
        return find_header(self.headers, name)


@dataclass(frozen=True, slots=True)
class RawRequest(HttpRequest):
    """One request as it came over the wire: it may hold secrets, so it is neither kept nor shown."""


@dataclass(frozen=True, slots=True)
class Request(HttpRequest):
    """One request as it is kept, compared and shown: its secrets are replaced.

    `Redactor` makes it of a `RawRequest`, and a store reads it.
    """


def find_header(headers: Headers, name: bytes) -> bytes | None:
    """Find the first value of a header field, by lower-case name."""
    size = len(name)
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value
    return None


class RawInterim(NamedTuple):
    """One interim answer (1xx) as it came over the wire: a head that comes before the response, and has no body."""

    at_us: int
    """When it arrived."""
    status: int
    reason: bytes
    headers: Headers


class Interim(NamedTuple):
    """One interim answer as it is kept, played and shown: its secrets are replaced."""

    at_us: int
    status: int
    reason: bytes
    headers: Headers


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response, whether its secrets are still in it or not; see `HttpRequest`.

    `body` is what passed, which is all of it unless the exchange carries a fault.
    """

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
    spilled: Spilled | None = None
    """Where the body and its chunks are when it is too large to be held; both are empty here then."""
    head_need: int | None = None
    """Bytes of the request that had been sent when the head arrived; None where it had ended."""
    end_need: int | None = None
    """The same for its end."""
    end_after: int = 0
    """Of a stream of events, the highest seq of the run that had arrived by its end: that request may have ended it."""
    ragged: bool = False
    """Whether a body that ends with its connection ended without TLS's close_notify."""
    secrets: tuple[Secret, ...] = ()
    """Where placeholders stand in its body; in order."""

    @property
    def body_bytes(self) -> int:
        """Length of the body, wherever it is."""
        return len(self.body) if self.spilled is None else self.spilled.size

    @property
    def is_events(self) -> bool:
        """Whether it is a stream of server-sent events."""
        kind = self.header(b"content-type") or b""
        return kind.strip().lower().startswith(b"text/event-stream")

    def header(self, name: bytes) -> bytes | None:
        """First value of a header field, by lower-case name, or None."""
        return find_header(self.headers, name)


@dataclass(frozen=True, slots=True)
class RawResponse(HttpResponse):
    """One response as it came over the wire: it may hold secrets, so it is neither kept nor shown."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """Everything that answered a request, as it came: it may be given to an agent, and be kept in an encrypted store alone."""

    response: RawResponse | None = None
    interim: tuple[RawInterim, ...] = ()
    pieces: tuple[tuple[int, bytes], ...] = ()
    """Of a body that lies in a file, what stands there in the place of placeholders: bytes before it, and itself."""
    close: tuple[str, str] | None = None
    """Of a WebSocket that was closed, the reasons of the two closing frames."""


@dataclass(frozen=True, slots=True)
class Response(HttpResponse):
    """One response as it is kept, played and shown: its secrets are replaced."""

    def find_unsearched(self) -> Secret | None:
        """Find the part that was not searched for secrets, and so was not kept."""
        for secret in self.secrets:
            if secret.kind.startswith(UNSEARCHED):
                return secret
        return None


@dataclass(frozen=True, slots=True)
class Fault:
    """How and where an exchange failed below HTTP."""

    kind: FaultKind
    phase: Phase
    text: RedactedText
    """The engine's words, one line."""
    at_us: int
    ending: Ending = Ending.RST
    """What the client was given: the upstream's own ending, or a reset where it gave none."""
    code: int = 0
    """Error code of an RST_STREAM (RFC 9113, section 7)."""

    @property
    def is_unreached(self) -> bool:
        """Whether no connection was made, so that nothing was sent."""
        return is_unreached(self.kind, self.phase)


def is_unreached(kind: FaultKind, phase: Phase) -> bool:
    """Say of a fault whether no connection was made, so that nothing was sent."""
    return kind is FaultKind.DENIED or phase in (Phase.CONNECT, Phase.TLS)


@dataclass(frozen=True, slots=True)
class Gone:
    """The client left before the exchange was complete."""

    at_us: int
    chunks: int
    """How many chunks of the response it had been sent by then."""
    head: bool
    """Whether it had been sent the response's head."""
    aborted: bool = False
    """Whether it did not leave by itself: it was reset, since its run was stopped."""

    @property
    def text(self) -> str:
        """In a few words."""
        after = f"after {self.at_us / 1e6:.1f} s"
        return (
            f"reset {after}, when the run was stopped" if self.aborted else f"client left {after}"
        )


class Redaction(NamedTuple):
    """One place whose value was replaced before anything was written."""

    place: str
    """As `request.header.authorization`, `request.query.key`, `response.header.set-cookie`."""
    kind: str
    """What sort of secret: `authorization`, `cookie`, `key`, `token`, `signature`, `configured`, `secret`."""


NOT_ASKED = "the upstream was not asked"
"""Warning beside that which names a fault on purpose that stands for the outcome."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its outcome, immutable once known.

    Exactly one of these holds: `response` alone (an answer), `fault` with or without a partial
    `response` (a failure), or neither (the client left before any answer, and none was read on).
    `gone` may stand beside any of them; what arrived after the client left is part of `response`.
    A tunnel whose upstream could not be reached, or left its client waiting, is an exchange with the
    method CONNECT and without a target.
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
    alpn: Alpn = NO_ALPN
    websocket: WebSocketSummary | None = None
    """Of a WebSocket; `response` is the end of its handshake."""
    repeat: Repeat | None = None
    withheld: RedactedText = NO_TEXT
    """Why its client was sent a refusal in the place of the response; empty where it was not."""
    tunnel: Tunnel = NO_TUNNEL
    lane: Lane | None = None
    """None where that was not written down, as on tapes of older versions and imported ones."""
    interim: tuple[Interim, ...] = ()
    """Interim answers, in order; there may be some without a response, as before a fault."""

    @property
    def has_replaced_answer(self) -> bool:
        """Whether redaction replaced a value in its answer; the messages of a WebSocket tell for themselves."""
        inside = self.response is not None and self.response.secrets
        return bool(inside) or any(one.place.startswith("response.") for one in self.redactions)

    @property
    def saw_nothing(self) -> bool:
        """Whether its client left before it was sent anything, whatever was read on after that."""
        return self.gone is not None and not self.gone.head

    @property
    def is_unsent(self) -> bool:
        """Whether it is known that its upstream was sent nothing: it was refused, or no connection was made for it."""
        if self.verdict is VerdictKind.REFUSED:
            # A contract may withhold an answer that came all the same.
            return not (self.withheld and self.response is not None)
        return self.fault is not None and self.fault.is_unreached

    @property
    def is_injected(self) -> bool:
        """Whether a fault on purpose answered it, so that its upstream was not asked."""
        return NOT_ASKED in self.warnings

    @property
    def has_unloadable_key(self) -> bool:
        """Whether its answer has a placeholder of a private key that no library loads."""
        return any(one.kind == UNLOADABLE for one in self.redactions)

    @property
    def has_other_digest(self) -> bool:
        """Whether a digest of its answer's body was computed anew, or left out."""
        return any(one.kind == DIGEST for one in self.redactions)

    @property
    def spilled(self) -> tuple[Spilled, ...]:
        """Its bodies that lie in files."""
        found = [self.request.spilled, self.response.spilled if self.response is not None else None]
        return tuple(one for one in found if one is not None)
