"""Exchanges as msgpack: one self-contained value each, with a format version.

A value is `[version, meta, response body, request body]`, in that order because neighbouring steps of a
conversation share their requests and differ in their answers. `meta` is a map of plain msgpack types.
Reading trusts nothing: a value of another version or shape raises `BadRecord`, never anything else.
"""

from collections.abc import Mapping
from typing import Any

import msgpack

from .model import (
    Chunk,
    Exchange,
    Fault,
    FaultKind,
    Fingerprint,
    Gone,
    Headers,
    Phase,
    Redaction,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)

EXCHANGE_VERSION = 1


class BadRecord(Exception):
    """A stored value cannot be read; the text says what was expected and what was found."""


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
    if exchange.fault is not None:
        fault = exchange.fault
        meta["fault"] = (fault.kind.value, fault.phase.value, fault.text, fault.at_us)
    if exchange.gone is not None:
        meta["gone"] = (exchange.gone.at_us, exchange.gone.chunks, exchange.gone.head)
    if exchange.redactions:
        meta["redactions"] = exchange.redactions
    if exchange.warnings:
        meta["warnings"] = exchange.warnings
    if exchange.alpn_offers:
        meta["alpn"] = (exchange.alpn_offers, exchange.alpn)
    return _pack(
        [EXCHANGE_VERSION, meta, response.body if response else b"", exchange.request.body]
    )


def decode_exchange(data: bytes | memoryview) -> Exchange:
    """Unpack an exchange.

    Raises: BadRecord.
    """
    value = unpack(data)
    try:
        version, meta, response_body, request_body = value
        if version != EXCHANGE_VERSION:
            raise BadRecord(
                f"exchange of format {version!r}; this version reads {EXCHANGE_VERSION}"
            )
        response = meta.get("response")
        fault = meta.get("fault")
        gone = meta.get("gone")
        offers, alpn = meta.get("alpn", ((), None))
        return Exchange(
            seq=Seq(meta["seq"]),
            request_class=RequestClass(meta["class"]),
            verdict=VerdictKind(meta["verdict"]),
            reason=meta["reason"],
            request=decode_request_head(meta["request"], request_body),
            started_ns=meta["started_ns"],
            end_us=meta["end_us"],
            fingerprint=Fingerprint(meta["fingerprint"]),
            response=_response(response, response_body) if response is not None else None,
            fault=Fault(FaultKind(fault[0]), Phase(fault[1]), fault[2], fault[3])
            if fault
            else None,
            gone=Gone(*gone) if gone else None,
            redactions=tuple(Redaction(*item) for item in meta.get("redactions", ())),
            warnings=tuple(meta.get("warnings", ())),
            alpn_offers=tuple(offers),
            alpn=alpn,
        )
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise BadRecord(f"not an exchange: {error!r}") from error


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
    ]


def decode_request_head(value: Any, body: bytes = b"") -> Request:
    """Rebuild a request from what `encode_request_head` gave.

    Raises: TypeError or ValueError on another shape.
    """
    method, scheme, host, port, target, http_version, headers, trailers = value
    return Request(
        method, scheme, host, port, target, http_version, _pairs(headers), body, _pairs(trailers)
    )


def pack_map(value: Mapping[str, Any]) -> bytes:
    """Pack a map of plain msgpack types."""
    return _pack(dict(value))


def unpack(data: bytes | memoryview) -> Any:
    """Unpack one msgpack value; arrays become tuples.

    Raises: BadRecord on anything that is not exactly one value.
    """
    try:
        return msgpack.unpackb(data, use_list=False, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise BadRecord(f"not a msgpack value: {error}") from error


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return packed


def _response(value: Any, body: bytes) -> Response:
    return Response(
        status=value["status"],
        reason=value["reason"],
        http_version=value["http_version"],
        headers=_pairs(value["headers"]),
        body=body,
        head_us=value["head_us"],
        chunks=tuple(Chunk(*item) for item in value["chunks"]),
        trailers=_pairs(value["trailers"]),
        complete=value["complete"],
    )


def _pairs(value: Any) -> Headers:
    return tuple((bytes(name), bytes(text)) for name, text in value)
