"""Exchanges as msgpack: one self-contained value each, with a format version.

A value is `[version, meta, response body, request body]`, in that order because neighbouring steps of a
conversation share their requests and differ in their answers. `meta` is a map of plain msgpack types.
Reading trusts nothing: a value of another version or shape raises `BadRecord`, never anything else.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, starmap
from typing import Any, NamedTuple

import msgpack

from ..exchange import (
    NO_ALPN,
    NO_TUNNEL,
    Alpn,
    Chunk,
    Close,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Fingerprint,
    Gone,
    Headers,
    Interim,
    Lane,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    Redaction,
    Repeat,
    RepeatKind,
    Request,
    RequestClass,
    Response,
    Secret,
    Seq,
    Spilled,
    Tunnel,
    VerdictKind,
    WebSocketSummary,
)

EXCHANGE_VERSION = 1
MESSAGE_VERSION = 1
_FOUR = b"\x94"
"""Begins an array of four in msgpack."""
_BIN_8, _BIN_16, _BIN_32 = (struct.Struct(form) for form in (">BB", ">BH", ">BI"))
_BINS = {
    0xC4: (struct.Struct(">B"), 2),
    0xC5: (struct.Struct(">H"), 3),
    0xC6: (struct.Struct(">I"), 5),
}
"""How msgpack writes the length of bytes, and in how many bytes of its own, by the first of them."""
_FIELD_BYTES = 8192
"""Most exchanges have less beside their bodies."""
_PIECE = struct.Struct(">QIQQ")
PIECE_BYTES = _PIECE.size
_HEADERS_AT = 6
"""Place of the header fields in what `encode_request_head` gives."""
DIGEST_BYTES = 32
"""Of a hash that names a spilled body."""
_INTS = frozenset((int,))
_UNICODE_ERRORS = "surrogatepass"
"""Text may hold lone surrogates, out of JSON or a command line; they come back as they were."""


class BadRecord(Exception):
    """A stored value cannot be read; the text says what was expected and what was found."""


class Apart(NamedTuple):
    """The parts of an exchange that are stored apart from its record."""

    request_headers: Headers
    request_body: bytes
    response_headers: Headers | None
    """None without a response."""
    response_body: bytes | None


class EncodedExchange(NamedTuple):
    """An exchange that is still packed, and where its bodies are: to look for bytes without unpacking it."""

    value: bytes
    answer_at: int
    """Where the body of the response begins, with its head of msgpack; before it are the other fields."""
    body_at: int
    """Where the body of the request begins; it goes to the end."""


def _skip_fields(value: bytes) -> int:
    """Find where the version and the fields of a packed exchange end; most of it need not be copied for that."""
    for size in (_FIELD_BYTES, len(value)):
        reader = msgpack.Unpacker(max_buffer_size=1 << 28, strict_map_key=False)
        reader.feed(memoryview(value)[:size])
        try:
            reader.read_array_header()
            reader.skip()
            reader.skip()
            return int(reader.tell())
        except msgpack.OutOfData:
            continue
    raise BadRecord(f"an exchange that ends after {len(value)} bytes")


def split_exchange(value: bytes) -> EncodedExchange:
    """Find the bodies of a packed exchange.

    Raises: BadRecord.
    """
    try:
        if value[:1] != _FOUR:
            raise BadRecord("not an exchange: expected four parts")
        answer_at = _skip_fields(value)
        form, head = _BINS[value[answer_at]]
        (size,) = form.unpack_from(value, answer_at + 1)
        body_at = answer_at + head + size
        if body_at >= len(value):
            raise BadRecord(f"an exchange that ends after {len(value)} bytes")
        return EncodedExchange(value, answer_at, body_at)
    except (ValueError, TypeError, KeyError, IndexError, struct.error) as error:
        raise BadRecord(f"not an exchange: {str(error)[:200]}") from error


def encode_exchange(exchange: Exchange) -> bytes:
    """Pack an exchange."""
    response = exchange.response
    meta: dict[str, Any] = {
        "seq": exchange.seq,
        "class": exchange.request_class.value,
        "verdict": exchange.verdict.value,
        "reason": exchange.reason,
        "request": encode_request_head(exchange.request),
        "started_ns": exchange.started_ns,
        "end_us": exchange.end_us,
        "fingerprint": exchange.fingerprint,
    }
    if response is not None:
        meta["response"] = {
            "status": response.status,
            "reason": response.reason,
            "http_version": response.http_version,
            "headers": response.headers,
            "head_us": response.head_us,
            "chunks": response.chunks,
            "trailers": response.trailers,
            "complete": response.complete,
        }
        if response.spilled is not None:
            meta["response"]["spilled"] = _spilled_row(response.spilled)
        if response.head_need is not None:
            meta["response"]["need"] = response.head_need
        if response.end_need is not None:
            meta["response"]["end_need"] = response.end_need
        if response.end_after:
            meta["response"]["end_after"] = response.end_after
        if response.ragged:
            meta["response"]["ragged"] = True
        if response.secrets:
            meta["response"]["secrets"] = _secret_rows(response.secrets)
    if exchange.fault is not None:
        fault = exchange.fault
        meta["fault"] = (
            fault.kind.value,
            fault.phase.value,
            fault.text,
            fault.at_us,
            fault.ending.value,
            fault.code,
        )
    if exchange.gone is not None:
        gone = exchange.gone
        meta["gone"] = (gone.at_us, gone.chunks, gone.head, *([True] if gone.aborted else ()))
    if exchange.redactions:
        meta["redactions"] = exchange.redactions
    if exchange.request.secrets:
        meta["secrets"] = _secret_rows(exchange.request.secrets)
    if exchange.warnings:
        meta["warnings"] = exchange.warnings
    if exchange.alpn != NO_ALPN:
        meta["alpn"] = exchange.alpn
    if exchange.request.spilled is not None:
        meta["spilled"] = _spilled_row(exchange.request.spilled)
        if exchange.request.spilled.replaced:
            meta["spilled_replaced"] = exchange.request.spilled.replaced
    if exchange.websocket is not None:
        meta["conversation"] = _websocket_row(exchange.websocket)
    if exchange.repeat is not None:
        repeat = exchange.repeat
        meta["repeat"] = (repeat.of, repeat.kind.value, repeat.unseen)
    if exchange.withheld:
        meta["withheld"] = exchange.withheld
    if exchange.tunnel.number:
        meta["tunnel"] = exchange.tunnel
    if exchange.lane is not None:
        meta["lane"] = exchange.lane
    if exchange.interim:
        meta["interim"] = exchange.interim
    body = response.body if response else b""
    asked = exchange.request.body
    # Put together here: a packer copies what is in a body twice.
    head = _pack([EXCHANGE_VERSION, meta])[1:]
    return b"".join((_FOUR, head, _bin_head(len(body)), body, _bin_head(len(asked)), asked))


def encode_rest(exchange: Exchange) -> bytes:
    """Pack an exchange without the parts that `Apart` has; `decode_exchange` needs them to read it."""
    response = exchange.response
    if response is not None:
        response = replace(response, headers=(), body=b"")
    request = replace(exchange.request, headers=(), body=b"")
    return encode_exchange(replace(exchange, request=request, response=response))


def decode_exchange(data: bytes | memoryview, apart: Apart | None = None) -> Exchange:
    """Unpack an exchange.

    apart: of what `encode_rest` gave, the parts that it left out. They are put back before anything is checked: the
        sizes of a stream's pieces fit its body, not the lack of one.
    Raises: BadRecord.
    """
    value = unpack(data)
    try:
        version, meta, response_body, request_body = value
        if version != EXCHANGE_VERSION:
            raise BadRecord(
                f"exchange of format {version!r}; this version reads {EXCHANGE_VERSION}"
            )
        head, response = meta["request"], meta.get("response")
        if apart is not None:
            head = (*head[:_HEADERS_AT], apart.request_headers, *head[_HEADERS_AT + 1 :])
            request_body, response_body = apart.request_body, apart.response_body
            if response is not None:
                response = {**response, "headers": apart.response_headers}
        fault = meta.get("fault")
        gone = meta.get("gone")
        offers, alpn = meta.get("alpn", ((), None))
        spilled = meta.get("spilled")
        websocket = meta.get("conversation")
        repeat = meta.get("repeat")
        return Exchange(
            seq=Seq(_int(meta["seq"])),
            request_class=RequestClass(meta["class"]),
            verdict=VerdictKind(meta["verdict"]),
            reason=_text(meta["reason"]),
            request=decode_request_head(
                head,
                request_body,
                _spilled(spilled, meta.get("spilled_replaced", ()))
                if spilled is not None
                else None,
                _secrets(meta.get("secrets", ())),
            ),
            started_ns=_int(meta["started_ns"]),
            end_us=_int(meta["end_us"]),
            fingerprint=Fingerprint(_bytes(meta["fingerprint"])),
            response=_response(response, response_body) if response is not None else None,
            fault=_fault(fault) if fault is not None else None,
            gone=_gone(gone) if gone is not None else None,
            redactions=tuple(
                Redaction(_text(place), _text(kind)) for place, kind in meta.get("redactions", ())
            ),
            warnings=tuple(_text(warning) for warning in meta.get("warnings", ())),
            alpn=Alpn(
                tuple(_bytes(offer) for offer in offers),
                _bytes(alpn) if alpn is not None else None,
            ),
            websocket=_websocket(websocket) if websocket is not None else None,
            repeat=_repeat(repeat) if repeat is not None else None,
            withheld=RedactedText(_text(meta.get("withheld", ""))),
            tunnel=Tunnel(*map(_int, meta["tunnel"])) if "tunnel" in meta else NO_TUNNEL,
            lane=_lane(*meta["lane"]) if "lane" in meta else None,
            interim=tuple(_interim(*one) for one in meta.get("interim", ())),
        )
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise BadRecord(f"not an exchange: {str(error)[:200]}") from error


def encode_request_head(request: Request) -> list[Any]:
    """Give a request without its body as plain msgpack types."""
    return [
        request.method,
        request.scheme,
        request.host,
        request.port,
        request.target,
        request.http_version,
        request.headers,
        request.trailers,
        *((request.names,) if request.names else ()),
    ]


def decode_request_head(
    value: Any,
    body: bytes = b"",
    spilled: Spilled | None = None,
    secrets: tuple[Secret, ...] = (),
) -> Request:
    """Rebuild a request from what `encode_request_head` gave.

    Raises: TypeError or ValueError on another shape.
    """
    method, scheme, host, port, target, http_version, headers, trailers, *names = value
    if len(names) > 1:
        raise ValueError(f"a request of {len(value)} parts")
    return Request(
        method=_text(method),
        scheme=_text(scheme),
        host=_text(host),
        port=_int(port),
        target=_text(target),
        http_version=_text(http_version),
        headers=_pairs(headers),
        body=_bytes(body),
        trailers=_pairs(trailers),
        spilled=spilled,
        secrets=secrets,
        names=_names(names[0]) if names else (),
    )


def encode_message(message: Message) -> bytes:
    """Pack a message of a WebSocket."""
    return _pack(
        [
            MESSAGE_VERSION,
            message.at_us,
            message.from_client,
            message.kind.value,
            message.frames,
            message.after,
            message.data,
            *([_secret_rows(message.secrets)] if message.secrets else ()),
        ]
    )


def encode_message_rest(message: Message) -> bytes:
    """Pack a message of a WebSocket without its bytes; `decode_message` needs them to read it."""
    return encode_message(replace(message, data=b""))


def decode_message(data: bytes | memoryview, apart: bytes | None = None) -> Message:
    """Unpack a message of a WebSocket.

    apart: of what `encode_message_rest` gave, the bytes that it left out.
    Raises: BadRecord.
    """
    value = unpack(data)
    try:
        version, at_us, from_client, kind, frames, after, content, *more = value
        if apart is not None:
            content = apart
        if version != MESSAGE_VERSION:
            raise BadRecord(f"message of format {version!r}; this version reads {MESSAGE_VERSION}")
        sizes = tuple(_int(size) for size in frames)
        if sizes and (min(sizes) < 0 or sum(sizes) != len(content)):
            raise ValueError(f"frames of {sum(sizes)} bytes in a message of {len(content)}")
        return Message(
            _int(at_us),
            _flag(from_client),
            MessageKind(kind),
            _bytes(content),
            sizes,
            _int(after),
            _secrets(more[0]) if more else (),
        )
    except (TypeError, ValueError, KeyError) as error:
        raise BadRecord(f"not a message: {str(error)[:200]}") from error


def pack_piece(chunk: Chunk) -> bytes:
    """Pack a chunk as it stands in the list of a spilled body: `PIECE_BYTES` bytes."""
    return _PIECE.pack(chunk.at_us, chunk.size, chunk.after, chunk.need)


def unpack_pieces(data: bytes) -> list[Chunk]:
    """Unpack chunks that were packed one after another.

    Raises: BadRecord, where there is a part of one at the end.
    """
    if len(data) % PIECE_BYTES:
        raise BadRecord(f"a list of pieces that ends after {len(data)} bytes")
    return [Chunk(*values) for values in _PIECE.iter_unpack(data)]


def pack_map(value: Mapping[str, Any]) -> bytes:
    """Pack a map of plain msgpack types."""
    return _pack(dict(value))


def unpack(data: bytes | memoryview) -> Any:
    """Unpack one msgpack value; arrays become tuples.

    Raises: BadRecord on anything that is not exactly one value.
    """
    try:
        return msgpack.unpackb(
            data, use_list=False, strict_map_key=False, unicode_errors=_UNICODE_ERRORS
        )
    except (ValueError, TypeError, RecursionError, OverflowError, msgpack.UnpackException) as error:
        raise BadRecord(f"not a msgpack value: {error}") from error


def _bin_head(size: int) -> bytes:
    """Give what msgpack puts before so many bytes."""
    if size < 1 << 8:
        return _BIN_8.pack(0xC4, size)
    return _BIN_16.pack(0xC5, size) if size < 1 << 16 else _BIN_32.pack(0xC6, size)


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors=_UNICODE_ERRORS)
    return packed


def _response(value: Any, body: bytes) -> Response:
    if not _INTS.issuperset(map(type, chain.from_iterable(value["chunks"]))):
        raise TypeError("expected whole numbers in the pieces of a body")
    chunks = tuple(starmap(Chunk, value["chunks"]))
    spilled = value.get("spilled")
    need, end_need = value.get("need"), value.get("end_need")
    sizes = [chunk.size for chunk in chunks]
    if sizes and (min(sizes) < 0 or sum(sizes) != len(body)):
        raise ValueError(f"pieces of {sum(sizes)} bytes in a body of {len(body)}")
    return Response(
        status=_int(value["status"]),
        reason=_bytes(value["reason"]),
        http_version=_text(value["http_version"]),
        headers=_pairs(value["headers"]),
        body=_bytes(body),
        head_us=_int(value["head_us"]),
        chunks=chunks,
        trailers=_pairs(value["trailers"]),
        complete=_flag(value["complete"]),
        spilled=_spilled(spilled) if spilled is not None else None,
        head_need=_int(need) if need is not None else None,
        end_need=_int(end_need) if end_need is not None else None,
        end_after=_int(value.get("end_after", 0)),
        ragged=_flag(value.get("ragged", False)),
        secrets=_secrets(value.get("secrets", ())),
    )


def _secret_rows(secrets: Iterable[Secret]) -> list[tuple[str | int, ...]]:
    """Give places of placeholders as they are stored: most values are written in a way that their placeholders show."""
    return [tuple(one) if one.coded else one[:4] for one in secrets]


def _secrets(value: Any) -> tuple[Secret, ...]:
    found = tuple(
        Secret(_text(p), _int(at), _int(size), _text(kind), *map(_text, coded))
        for p, at, size, kind, *coded in value
    )
    ends: dict[str, int] = {}
    for one in found:
        if one.at < ends.get(one.part, 0) or one.size < 0:
            raise ValueError("places of placeholders that are not in order")
        ends[one.part] = one.at + one.size
    return found


def _spilled_row(spilled: Spilled) -> tuple[bytes, int, bytes, bytes]:
    return (spilled.digest, spilled.size, spilled.match, spilled.pieces)


def _spilled(value: Any, replaced: Any = ()) -> Spilled:
    digest, size, match, pieces = value
    return Spilled(
        _digest(digest),
        _int(size),
        _digest(match),
        _digest(pieces) if pieces else b"",
        tuple((_bytes(one), _flag(own)) for one, own in replaced),
    )


def _digest(value: Any) -> bytes:
    if len(_bytes(value)) != DIGEST_BYTES:  # it becomes the name of a file
        raise ValueError(f"expected {DIGEST_BYTES} bytes of a hash, found {len(value)}")
    return _bytes(value)


def _websocket_row(websocket: WebSocketSummary) -> list[Any]:
    close = websocket.close
    row = None
    if close is not None:
        row = (close.at_us, close.by_client, close.code, close.reason, *(close.answer or ()))
    return [websocket.messages, websocket.size, row]


def _websocket(value: Any) -> WebSocketSummary:
    messages, size, row = value
    close = None
    if row is not None:
        at_us, by_client, code, reason, *answer = row
        answered = None
        if answer:
            answer_code, answer_reason = answer
            answered = _int(answer_code), RedactedText(_text(answer_reason))
        close = Close(
            _int(at_us), _flag(by_client), _int(code), RedactedText(_text(reason)), answered
        )
    return WebSocketSummary(_int(messages), _int(size), close)


def _lane(number: object, overlaps: object) -> Lane:
    if not isinstance(overlaps, (list, tuple)):
        raise TypeError("a lane's overlaps are a list")
    return Lane(_int(number), tuple(Seq(_int(seq)) for seq in overlaps))


def _interim(at_us: object, status: object, reason: object, headers: object) -> Interim:
    return Interim(_int(at_us), _int(status), _bytes(reason), _pairs(headers))


def _repeat(value: Any) -> Repeat:
    of, kind, unseen = value
    return Repeat(Seq(_int(of)), RepeatKind(kind), _flag(unseen))


def _fault(value: Any) -> Fault:
    kind, phase, text, at_us, ending, code = value
    return Fault(
        FaultKind(kind),
        Phase(phase),
        RedactedText(_text(text)),
        _int(at_us),
        Ending(ending),
        _int(code),
    )


def _gone(value: Any) -> Gone:
    at_us, chunks, head, *aborted = value
    return Gone(_int(at_us), _int(chunks), _flag(head), aborted == [True])


def _names(value: Any) -> tuple[tuple[str, str], ...]:
    """Check the names of a request's host that do not agree."""
    return tuple((_text(kind), _text(name)) for kind, name in value)


def _pairs(value: Any) -> Headers:
    """Check header fields: most of the values of an exchange."""
    if type(value) is not tuple:
        raise TypeError(f"expected pairs, found {value!r:.80}")
    for pair in value:
        name, text = pair
        if type(pair) is not tuple or type(name) is not bytes or type(text) is not bytes:
            raise TypeError(f"expected a pair of bytes, found {pair!r:.80}")
    return value


# A value of another type is told of here, not where somebody computes with it later. Never converted:
# bytes(2**40) is a number that became a terabyte.


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {value!r:.80}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected text, found {value!r:.80}")
    return value


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise TypeError(f"expected bytes, found {value!r:.80}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"expected true or false, found {value!r:.80}")
    return value
