"""Read exchanges from JSON lines; `docs/import.md` describes a line, and the JSON of `playhead show RUN SEQ` is one.

Rules:

1. A line says what was asked and what came of it. What it leaves out gets the plainest value: HTTP/1.1, one piece,
   no time at all.
2. A key that is not known is an error: a mistyped one would be a body that is silently empty. What is the writer's
   own goes under `note`.
3. Of what `show` prints, that which follows from the rest, as `fingerprint` or `late_response`, is read over.
"""

import json
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ...tape.exchange import (
    Chunk,
    Ending,
    Fault,
    FaultKind,
    Gone,
    Headers,
    MessageKind,
    Phase,
    RawClose,
    RawInterim,
    RawMessage,
    RawRequest,
    RawResponse,
    RawWebSocketSummary,
    RedactedText,
    RequestClass,
    Secret,
    find_header_part,
)

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Longest line that is read."""
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_FIRST_CONTROL = 0x20


class BadLine(Exception):
    """A line is no exchange; the text says where in it, what was expected and what was found."""


class ParsedLine(NamedTuple):
    """What a line tells of one exchange; what the rules say of it comes later."""

    run: str
    """Empty where it names none."""
    seq: int
    """0 where it names none."""
    request: RawRequest
    request_class: RequestClass | None
    response: RawResponse | None
    fault: Fault | None
    """Without its text."""
    fault_text: str
    """As it came."""
    gone: Gone | None
    websocket: RawWebSocketSummary | None
    messages: tuple[RawMessage, ...]
    started_ns: int
    end_us: int
    warnings: tuple[str, ...]
    withheld: str
    """Why its client was sent a refusal in the place of the response; empty where it was not."""
    interim: tuple[RawInterim, ...] = ()
    replaced: tuple[str, ...] = ()
    """Places where secrets were replaced before it was exported."""


_Fields = list[tuple[str, str]] | dict[str, str | list[str]]
_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Secret(msgspec.Struct, forbid_unknown_fields=True):
    part: str
    at: _Number
    size: _Number
    kind: str
    coded: str = ""


class _Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    http_version: str = "HTTP/1.1"
    headers: _Fields = []
    trailers: _Fields = []
    body: str | None = None
    body_base64: bytes | None = None
    body_bytes: int | None = None
    body_file: str | None = None
    secrets: list[_Secret] = []


class _Request(_Part, kw_only=True):
    method: str
    url: str
    names: list[tuple[Literal["sni", "authority", "target"], str]] = []


class _Response(_Part, kw_only=True):
    status: int
    reason: str = ""
    complete: bool = True
    head_us: int | None = None
    head_need: _Number | None = None
    end_need: _Number | None = None
    end_after: _Number = 0
    ragged: bool = False
    chunks: list[list[int]] = []


class _Interim(msgspec.Struct, forbid_unknown_fields=True):
    status: int
    reason: str = ""
    headers: _Fields = []
    at_us: _Number = 0


class _Fault(msgspec.Struct, forbid_unknown_fields=True):
    kind: FaultKind
    phase: Phase
    text: str = ""
    at_us: _Number = 0
    ending: Ending = Ending.RST
    code: _Number = 0


class _Gone(msgspec.Struct, forbid_unknown_fields=True):
    at_us: _Number
    chunks: _Number = 0
    head: bool = False
    aborted: bool = False


class _Close(msgspec.Struct, forbid_unknown_fields=True):
    at_us: _Number
    by_client: bool
    code: _Number
    reason: str = ""
    answer: tuple[_Number, str] | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    at_us: int = 0
    from_client: bool
    kind: MessageKind = MessageKind.TEXT
    frames: list[int] = []
    after: int = 0
    secrets: list[_Secret] = []
    body: str | None = None
    body_base64: bytes | None = None


class _WebSocket(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[_Message]
    close: _Close | None = None
    count: int = 0
    size: int = 0


class _Derived(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What `show` prints of an exchange and follows from the rest: it is read over."""

    verdict: Any = None
    reason: Any = None
    fingerprint: Any = None
    client_gone_at: Any = None
    late_response: Any = None
    repeat: Any = None
    tunnel: Any = None
    lane: Any = None
    inference: Any = None
    contracts: Any = None


class _Line(_Derived, forbid_unknown_fields=True, kw_only=True):
    request: _Request
    response: _Response | None = None
    fault: _Fault | None = None
    gone: _Gone | None = None
    websocket: _WebSocket | None = None
    run: str = ""
    seq: int = 0
    class_: RequestClass | None = msgspec.field(name="class", default=None)
    started_ns: int = 0
    end_us: int = 0
    warnings: list[str] = []
    withheld: str | None = None
    interim: list[_Interim] = []
    redactions: list[str] = []
    note: Any = None


_DECODER = msgspec.json.Decoder(_Line)


def read_line(data: bytes) -> ParsedLine:
    """Read a line.

    Raises: BadLine.
    """
    line = _decode(data)
    request = _request(line.request)
    response = _response(line.response) if line.response is not None else None
    fault = gone = None
    if line.fault is not None:
        told = line.fault
        fault = Fault(told.kind, told.phase, RedactedText(""), told.at_us, told.ending, told.code)
    if line.gone is not None:
        gone = Gone(line.gone.at_us, line.gone.chunks, line.gone.head, line.gone.aborted)
    if response is None and fault is None and gone is None:
        raise BadLine("expected `response`, `fault` or `gone`; found none")
    websocket, messages = (
        _read_websocket(line.websocket) if line.websocket is not None else (None, ())
    )
    for name, number in (
        ("seq", line.seq),
        ("started_ns", line.started_ns),
        ("end_us", line.end_us),
    ):
        _check_number(number, f"$.{name}")
    stated = line.response is not None and line.response.head_us is not None
    if response is not None and gone is not None and not gone.head and not stated:
        # Its client left before the head: this was there with the first piece, or at the end.
        came_us = response.chunks[0].at_us if response.chunks else line.end_us
        response = replace(response, head_us=came_us)
    return ParsedLine(
        run=line.run,
        seq=line.seq,
        request=request,
        request_class=line.class_,
        response=response,
        fault=fault,
        fault_text=line.fault.text if line.fault is not None else "",
        gone=gone,
        websocket=websocket,
        messages=messages,
        started_ns=line.started_ns,
        end_us=line.end_us,
        warnings=tuple(line.warnings),
        withheld=line.withheld or "",
        interim=tuple(_interim(one, f"$.interim[{at}]") for at, one in enumerate(line.interim)),
        replaced=tuple(line.redactions),
    )


def _decode(data: bytes) -> _Line:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if b"\\ud" not in data.lower():
            raise BadLine(str(error)) from error
    try:  # half of a pair of surrogates, which is kept where the standard library reads it
        return msgspec.convert(json.loads(data), _Line)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise BadLine(str(error)) from error


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str


def _request(told: _Request) -> RawRequest:
    where = "$.request"
    origin = _origin(told.url, told.method == "CONNECT")
    body = _body(told, where)
    if not told.method or not told.method.isascii() or " " in told.method:
        raise BadLine(f"expected a method, found {told.method!r:.40} - at `{where}.method`")
    headers = _headers(told.headers, f"{where}.headers")
    sizes = {"target": len(origin.target), "body": len(body)}
    for name, value in headers:
        part = find_header_part(name)
        if part is not None:
            sizes[part] = sizes.get(part, 0) + len(value)
    return RawRequest(
        method=told.method,
        scheme=origin.scheme,
        host=origin.host,
        port=origin.port,
        target=origin.target,
        http_version=told.http_version,
        headers=headers,
        body=body,
        trailers=_headers(told.trailers, f"{where}.trailers"),
        secrets=_secrets(told.secrets, sizes, where),
        names=tuple((kind, text) for kind, text in told.names),
    )


def _origin(url: str, tunnel: bool) -> _Origin:
    where = "- at `$.request.url`"
    if any(ord(letter) <= _FIRST_CONTROL for letter in url):
        raise BadLine(f"expected an absolute URL, found {url!r:.80} {where}")
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError as error:
        raise BadLine(f"expected an absolute URL, found {url!r:.80}: {error} {where}") from error
    scheme = _SCHEMES.get(split.scheme)
    if scheme is None or not host:
        raise BadLine(
            f"expected an absolute URL of http, https, ws or wss, found {url!r:.80} {where}"
        )
    if split.username is not None or split.password is not None:
        raise BadLine(f"expected a URL without a user, found one: put it into `headers` {where}")
    # As sent: what urlsplit makes of it drops an empty query.
    rest = url.partition("://")[2]
    at = min((found for mark in "/?#" if (found := rest.find(mark)) >= 0), default=len(rest))
    target = rest[at:].partition("#")[0]
    if not target.startswith("/"):
        target = target if tunnel else "/" + target
    return _Origin(scheme, host, port or _DEFAULT_PORTS[split.scheme], target)


def _response(told: _Response) -> RawResponse:
    where = "$.response"
    body = _body(told, where)
    chunks = tuple(_chunk(values, f"{where}.chunks[{at}]") for at, values in enumerate(told.chunks))
    if chunks and sum(chunk.size for chunk in chunks) != len(body):
        total = sum(chunk.size for chunk in chunks)
        raise BadLine(
            f"expected pieces that add up to the body's {len(body)} bytes, found {total} - at `{where}.chunks`"
        )
    if not 100 <= told.status <= 999:
        raise BadLine(
            f"expected a status of three digits, found {told.status} - at `{where}.status`"
        )
    _check_number(told.head_us or 0, f"{where}.head_us")
    reason = _reason(told.reason, where)
    return RawResponse(
        status=told.status,
        reason=reason,
        http_version=told.http_version,
        headers=_headers(told.headers, f"{where}.headers"),
        body=body,
        head_us=told.head_us or 0,
        chunks=chunks,
        trailers=_headers(told.trailers, f"{where}.trailers"),
        complete=told.complete,
        head_need=told.head_need,
        end_need=told.end_need,
        end_after=told.end_after,
        ragged=told.ragged,
        secrets=_secrets(told.secrets, {"body": len(body)}, where),
    )


def _secrets(told: list[_Secret], sizes: dict[str, int], where: str) -> tuple[Secret, ...]:
    """Read the places of placeholders.

    sizes: by part; bytes of a body, characters of a target.
    Raises: BadLine where one is outside of its part, or shares a place with the one before it.
    """
    ends = dict.fromkeys(sizes, 0)
    for at, one in enumerate(told):
        end = one.at + one.size
        if (
            one.part not in ends
            or not one.size
            or not ends[one.part] <= one.at < end <= sizes[one.part]
        ):
            raise BadLine(
                f"expected places of {' or '.join(list(sizes)[:3])}, in order and inside of it, found {one.part} {one.at} to {end}"
                f" - at `{where}.secrets[{at}]`"
            )
        ends[one.part] = end
    return tuple(Secret(one.part, one.at, one.size, one.kind, one.coded) for one in told)


def _interim(told: _Interim, where: str) -> RawInterim:
    if not 100 <= told.status < 200 or told.status == 101:
        raise BadLine(
            f"expected 100 or a status from 102 to 199, found {told.status} - at `{where}.status`"
        )
    headers = _headers(told.headers, f"{where}.headers")
    return RawInterim(told.at_us, told.status, _reason(told.reason, where), headers)


def _reason(told: str, where: str) -> bytes:
    try:
        return told.encode("latin-1")
    except UnicodeEncodeError as error:
        raise BadLine(f"expected Latin-1 - at `{where}.reason`") from error


def _chunk(values: list[int], where: str) -> Chunk:
    if not 2 <= len(values) <= len(Chunk._fields) or min(values) < 0 or max(values) >= 1 << 63:
        raise BadLine(
            f"expected [at_us, bytes], then perhaps after and need, found {values!r:.60} - at `{where}`"
        )
    return Chunk(*values)


def _headers(told: _Fields, where: str) -> Headers:
    pairs = told if isinstance(told, list) else _flat(told)
    try:
        found = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    except UnicodeEncodeError as error:
        raise BadLine(f"expected Latin-1, found {error.object!r:.60} - at `{where}`") from error
    for name, value in found:
        if not name or any(mark in name + value for mark in (b"\r", b"\n", b"\0")):
            raise BadLine(
                f"expected a header field, found {name + b': ' + value!r:.60} - at `{where}`"
            )
    return found


def _flat(told: dict[str, str | list[str]]) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, values in told.items()
        for value in ([values] if isinstance(values, str) else values)
    ]


def _body(told: _Part | _Message, where: str) -> bytes:
    if isinstance(told, _Part) and told.body_file is not None:
        raise BadLine(
            f"its body is a file of another store; use `export --tape` to move the run - at `{where}.body_file`"
        )
    if told.body is not None and told.body_base64 is not None:
        raise BadLine(f"expected `body` or `body_base64`, found both - at `{where}`")
    if told.body is not None:
        return told.body.encode("utf-8", "surrogatepass")
    return told.body_base64 or b""


def _read_websocket(told: _WebSocket) -> tuple[RawWebSocketSummary, tuple[RawMessage, ...]]:
    messages = []
    for at, row in enumerate(told.messages):
        where = f"$.websocket.messages[{at}]"
        data = _body(row, where)
        frames = tuple(row.frames)
        if frames and (min(frames) < 0 or sum(frames) != len(data)):
            raise BadLine(f"expected frames that add up to {len(data)} bytes - at `{where}.frames`")
        _check_number(row.at_us, f"{where}.at_us")
        _check_number(row.after, f"{where}.after")
        secrets = _secrets(row.secrets, {"body": len(data)}, where)
        message = RawMessage(row.at_us, row.from_client, row.kind, data, frames, row.after, secrets)
        messages.append(message)
    close = None
    if told.close is not None:
        end = told.close
        close = RawClose(end.at_us, end.by_client, end.code, end.reason, end.answer)
    size = sum(len(message.data) for message in messages)
    return RawWebSocketSummary(len(messages), size, close), tuple(messages)


def _check_number(value: int, where: str) -> None:
    if not 0 <= value < 1 << 63:
        raise BadLine(f"expected a whole number from 0 to 2**63 - 1, found {value} - at `{where}`")
