"""Made-up exchanges, and the events that tell of them."""

from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from playhead.config import Classes
from playhead.store import Record, RunInfo, Store
from playhead.tape.classify.by_method_and_url import classes_digest
from playhead.tape.exchange import (
    Exchange,
    Fingerprint,
    HttpRequest,
    HttpResponse,
    RawRequest,
    RawResponse,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)
from playhead.tape.records.events import Event, EventKind

NO_CLASSES = classes_digest(Classes())
"""Of a run that was recorded without patterns of its own: its requests have the classes that are written down."""

_PORTS = {"http": 80, "https": 443}


def make_request(what: str = "GET https://api.test/v1/things", body: bytes = b"") -> Request:
    """A request; `what` is METHOD URL."""
    method, _, text = what.partition(" ")
    url = urlsplit(text)
    return Request(
        method=method,
        scheme=url.scheme,
        host=url.hostname or "",
        port=url.port or _PORTS[url.scheme],
        target=(url.path or "/") + (f"?{url.query}" if url.query else ""),
        http_version="HTTP/1.1",
        headers=((b"Host", url.netloc.encode()), (b"Accept", b"*/*")),
        body=body,
    )


def make_response(body: bytes = b"ok", status: int = 200, **changes: Any) -> Response:
    fields: dict[str, Any] = {
        "status": status,
        "reason": b"OK",
        "http_version": "HTTP/1.1",
        "headers": ((b"Content-Type", b"text/plain"), (b"Content-Length", b"%d" % len(body))),
        "body": body,
        "head_us": 1000,
    }
    return Response(**fields | changes)


def make_exchange(
    seq: int = 1,
    what: str = "GET https://api.test/v1/things",
    *,
    kind: RequestClass = RequestClass.READ,
    body: bytes = b"",
    response: Response | None = make_response(),  # noqa: B008, frozen
    **changes: Any,
) -> Exchange:
    """An exchange; the same request has the same fingerprint."""
    fields: dict[str, Any] = {
        "seq": Seq(seq),
        "request_class": kind,
        "verdict": VerdictKind.RECORDED,
        "reason": "mode record",
        "request": make_request(what, body),
        "started_ns": 1_700_000_000_000_000_000 + seq,
        "end_us": 2000,
        "fingerprint": fingerprint_of(what, body),
        "response": response,
    }
    return Exchange(**fields | changes)


def fingerprint_of(what: str, body: bytes = b"") -> Fingerprint:
    return Fingerprint(blake2b(what.encode() + body, digest_size=16).digest())


def raw_of(exchange: Exchange) -> bytes:
    request = exchange.request
    head = f"{request.method} {request.url}".encode("utf-8", "surrogatepass")
    return blake2b(head + request.body, digest_size=16).digest()


def make_intent(exchange: Exchange, key: bytes | None = None) -> Event:
    """The event that goes before an exchange."""
    return Event(
        EventKind.INTENT,
        exchange.started_ns,
        {
            "seq": exchange.seq,
            "method": exchange.request.method,
            "url": exchange.request.url,
            "request_class": exchange.request_class.value,
            "fingerprint": exchange.fingerprint,
            "key": key,
            "rule": "mode",
        },
    )


def make_outcome(exchange: Exchange) -> Event:
    """The event that comes with an exchange."""
    response, fault, gone = exchange.response, exchange.fault, exchange.gone
    data: dict[str, Any] = {
        "seq": exchange.seq,
        "verdict": exchange.verdict.value,
        "status": response.status if response else 0,
        "complete": response.complete if response else False,
        "bytes_in": len(response.body) if response else 0,
        "bytes_out": len(exchange.request.body),
        "end_us": exchange.end_us,
    }
    if fault is not None:
        data["fault"] = (fault.kind.value, fault.phase.value, fault.text)
    if gone is not None:
        data["gone_us"] = gone.at_us
    if exchange.warnings:
        data["warnings"] = exchange.warnings
    return Event(EventKind.OUTCOME, exchange.started_ns + exchange.end_us * 1000, data)


def make_record(exchange: Exchange, *, final: bool = True) -> Record:
    """An exchange as it goes into the store."""
    return Record(exchange, raw_of(exchange), make_outcome(exchange) if final else None)


async def write_run(store: Store, name: str, exchanges: Iterable[Exchange]) -> RunInfo:
    """Write a sealed run, one exchange after another."""
    run = await store.runs.create(name, mode="record", at_ns=1, classes=NO_CLASSES)
    for exchange in exchanges:
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="enough", at_ns=9)


def raw_request(request: HttpRequest) -> RawRequest:
    """Give a request as what came over a wire."""
    return RawRequest(*[getattr(request, one.name) for one in fields(HttpRequest)])


def raw_response(response: HttpResponse) -> RawResponse:
    """Give a response as what came over a wire."""
    return RawResponse(*[getattr(response, one.name) for one in fields(HttpResponse)])
