"""Build the intent and outcome events of an exchange."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from ...tape.canonical.target_overrides import Claims
from ...tape.exchange import Exchange, Repeat, Request, RequestClass
from ...tape.headers.trace_context import find_traces
from ...tape.matching.idempotency_keys import find_key
from ...tape.policy.decide import Decision
from ...tape.policy.limits import CountedUsage
from ...tape.records.events import Event, EventKind


def idempotency_key(
    request: Request, request_class: RequestClass = RequestClass.EFFECT
) -> bytes | None:
    """Give 8 bytes that tell idempotency keys of a run apart, or None where there is no key; of effects alone."""
    value = find_key(request) if request_class is RequestClass.EFFECT else None
    return hash_key(value) if value is not None else None


def hash_key(value: bytes) -> bytes:
    """Give the 8 bytes by which logs tell idempotency keys apart."""
    return blake2b(value, digest_size=8).digest()


def repeat_row(repeat: Repeat) -> list[Any]:
    """Give a repeat as it stands in an event."""
    return [repeat.of, repeat.kind.value, repeat.unseen]


def intent_row(
    seq: int,
    request: Request,
    request_class: RequestClass,
    fingerprint: bytes,
    *,
    repeat: Repeat | None = None,
) -> dict[str, Any]:
    """Give what the event says that tells of a request's arrival."""
    data: dict[str, Any] = {
        "seq": seq,
        "method": request.method,
        "url": request.url,
        "request_class": request_class.value,
        "fingerprint": fingerprint,
        "key": idempotency_key(request, request_class),
    }
    if repeat is not None:
        data["repeat"] = repeat_row(repeat)
    return data | traces_row(request)


def traces_row(request: Request) -> dict[str, tuple[str, ...]]:
    """Give the traces that a request names as they stand in an event."""
    traces = find_traces(request.headers)
    return {"traces": traces} if traces else {}


def claims_row(claims: Claims, words: Callable[[str], str]) -> dict[str, Any]:
    """Give the claims of a request as they stand in an event; nothing where it has none, as nearly all.

    words: takes secrets out of a text.
    """
    rows = [(kind.value, words(text)) for kind, text in claims]
    return {"claims": rows} if rows else {}


def verdict_row(
    seq: int,
    request: Request,
    request_class: RequestClass,
    decision: Decision,
    fingerprint: bytes,
    claims: dict[str, Any],
) -> dict[str, Any]:
    """Give what the event says of a request that was decided on in a playback, but for what served it.

    claims: made by `claims_row`.
    """
    return {
        "seq": seq,
        "method": request.method,
        "url": request.url,
        "request_class": request_class.value,
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "fingerprint": fingerprint,
        "key": idempotency_key(request, request_class),
        **claims,
        **traces_row(request),
    }


def outcome_event(
    exchange: Exchange,
    *,
    live: bool = False,
    usage: CountedUsage | None = None,
    uncounted: bool = False,
    replaced_message: bool = False,
) -> Event:
    """Give the event that closes an exchange.

    live: it left in a playback; the event says why it might.
    usage: the usage counted for the exchange, if it was counted.
    uncounted: it did not leave, and is no call that a limit counts.
    replaced_message: redaction replaced a value in a message of the server, on its WebSocket.
    """
    response, fault, gone = exchange.response, exchange.fault, exchange.gone
    data: dict[str, object] = {
        "seq": exchange.seq,
        "verdict": exchange.verdict.value,
        "status": response.status if response else 0,
        "complete": response.complete if response else False,
        "bytes_in": response.body_bytes if response else 0,
        "bytes_out": exchange.request.body_bytes,
        "end_us": exchange.end_us,
    }
    if live:
        data["reason"] = exchange.reason
    if uncounted:
        data["uncounted"] = True
    if usage is not None:
        data["usage"] = usage.to_row()
        if usage.estimated:
            data["estimated"] = usage.estimated
    websocket = exchange.websocket
    if websocket is not None:
        code, by_client = (
            (websocket.close.code, websocket.close.by_client) if websocket.close else (0, False)
        )
        data["conversation"] = [websocket.messages, websocket.size, code, by_client]
    if fault is not None:
        data["fault"] = [fault.kind.value, fault.phase.value, fault.text]
    if gone is not None:
        data["gone_us"] = gone.at_us
        if gone.aborted:
            data["aborted"] = True
    if exchange.has_replaced_answer or replaced_message:
        data["replaced"] = True
        if exchange.has_unloadable_key:
            data["unloadable_key"] = True
        if exchange.has_other_digest:
            data["other_digest"] = True
    if exchange.warnings:
        data["warnings"] = exchange.warnings
    return Event(EventKind.OUTCOME, exchange.started_ns + exchange.end_us * 1000, data)
