"""An exchange as JSON types: text if the bytes are UTF-8, else base64."""

import base64
import codecs
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ...tape.exchange import (
    IMPORTED,
    Exchange,
    Headers,
    Message,
    Repeat,
    Request,
    Secret,
    Spilled,
    WebSocketSummary,
)
from .contract_row import ContractRow


def exchange_json(
    exchange: Exchange, messages: Iterable[Message] = (), contracts: Iterable[ContractRow] = ()
) -> dict[str, Any]:
    """Give an exchange as JSON types; `docs/exchange.md` describes them.

    messages: those of a WebSocket, which do not lie in its exchange.
    contracts: what checks have found, which stands in the log.
    """
    request, response, websocket = exchange.request, exchange.response, exchange.websocket
    document: dict[str, Any] = {
        "seq": exchange.seq,
        "class": exchange.request_class.value,
        "verdict": exchange.verdict.value,
        "reason": exchange.reason,
        "fingerprint": exchange.fingerprint.hex(),
        "started_ns": exchange.started_ns,
        "end_us": exchange.end_us,
        "request": {
            "method": request.method,
            "url": request.url,
            "http_version": request.http_version,
            "headers": _headers(request.headers),
            "trailers": _headers(request.trailers),
            "names": [list(pair) for pair in request.names],
            "secrets": secrets_json(request.secrets),
            **_whole(request.body, request.spilled),
        },
        "interim": [
            {
                "status": one.status,
                "reason": one.reason.decode("latin-1"),
                "headers": _headers(one.headers),
                "at_us": one.at_us,
            }
            for one in exchange.interim
        ],
        "response": None,
        "fault": None,
        "gone": None,
        "client_gone_at": exchange.gone.at_us if exchange.gone is not None else None,
        "late_response": came_late(exchange),
        "repeat": _repeat(exchange.repeat) if exchange.repeat is not None else None,
        "tunnel": exchange.tunnel.number or None,
        "lane": exchange.lane.number or None if exchange.lane is not None else None,
        "inference": _inference(exchange),
        "websocket": _websocket(websocket, messages) if websocket is not None else None,
        "withheld": exchange.withheld or None,
        "contracts": [asdict(row) for row in contracts],
        "redactions": [item.place for item in exchange.redactions],
        "warnings": list(exchange.warnings),
    }
    if response is not None:
        document["response"] = {
            "status": response.status,
            "reason": response.reason.decode("latin-1"),
            "http_version": response.http_version,
            "headers": _headers(response.headers),
            "trailers": _headers(response.trailers),
            "complete": response.complete,
            "head_us": response.head_us,
            "head_need": response.head_need,
            "end_need": response.end_need,
            "end_after": response.end_after,
            "ragged": response.ragged,
            "chunks": [list(chunk) for chunk in response.chunks],
            "secrets": secrets_json(response.secrets),
            **_whole(response.body, response.spilled),
        }
    if exchange.fault is not None:
        fault = exchange.fault
        document["fault"] = {
            "kind": fault.kind.value,
            "phase": fault.phase.value,
            "text": fault.text,
            "at_us": fault.at_us,
            "ending": fault.ending.value,
            "code": fault.code,
        }
    if exchange.gone is not None:
        gone = exchange.gone
        document["gone"] = {"at_us": gone.at_us, "chunks": gone.chunks, "head": gone.head}
        if gone.aborted:
            document["gone"]["aborted"] = True
    return document


def came_late(exchange: Exchange) -> bool:
    """Say whether the response, or some of it, came after the client had left.

    Its end alone does not count: SDKs leave a stream once they have read `data: [DONE]`.
    """
    response, gone = exchange.response, exchange.gone
    if response is None or gone is None:
        return False
    if response.spilled is not None:  # its pieces are not counted here
        return response.complete or not gone.head
    return not gone.head or len(response.chunks) > gone.chunks


def is_without_times(exchange: Exchange | None) -> bool:
    """Say whether it was made of lines that do not state when it was, so that only their order is known."""
    return exchange is not None and exchange.reason == IMPORTED and exchange.lane is None


def _inference(exchange: Exchange) -> dict[str, Any] | None:
    from .inference import (
        find_inference,
    )  # reads every dialect: for one exchange, not for a listing

    found = find_inference(exchange)
    return None if found is None else asdict(found)


def _repeat(repeat: Repeat) -> dict[str, Any]:
    return {"of": repeat.of, "kind": repeat.kind.value, "unseen": repeat.unseen}


def _websocket(websocket: WebSocketSummary, messages: Iterable[Message]) -> dict[str, Any]:
    close = websocket.close
    told = None
    if close is not None:
        told = {
            "at_us": close.at_us,
            "by_client": close.by_client,
            "code": close.code,
            "reason": close.reason,
            "answer": list(close.answer) if close.answer is not None else None,
        }
    listed = [
        {
            "at_us": message.at_us,
            "from_client": message.from_client,
            "kind": message.kind.value,
            "frames": list(message.frames),
            "after": message.after,
            "secrets": secrets_json(message.secrets),
            **_body(message.data),
        }
        for message in messages
    ]
    # Of a run whose process died the messages are there, and their sum is not.
    count = max(websocket.messages, len(listed))
    return {"count": count, "size": websocket.size, "close": told, "messages": listed}


def secrets_json(secrets: Sequence[Secret]) -> list[dict[str, str | int]]:
    """Give the places of placeholders as JSON types."""
    return [
        {name: value for name, value in one._asdict().items() if name != "coded" or value}
        for one in secrets
    ]


def _headers(headers: Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _whole(body: bytes, spilled: Spilled | None) -> dict[str, Any]:
    if spilled is None:
        return _body(body)
    name = spilled.digest.hex()
    return {"body_bytes": spilled.size, "body_file": f"bodies/{name[:2]}/{name}"}


def body_json(request: Request, limit: int) -> dict[str, Any]:
    """Give the body of a request as JSON types, of a long one its beginning.

    limit: most bytes that are shown.
    """
    whole = _whole(request.body[:limit], request.spilled)
    cut = request.spilled is None and len(request.body) > limit
    if cut and "body_base64" in whole:
        # The limit may fall into the middle of a character.
        text = request.body[:limit]
        with contextlib.suppress(UnicodeDecodeError):
            whole = {"body": codecs.getincrementaldecoder("utf-8")().decode(text)}
    return {"body_bytes": request.body_bytes, "body_cut": cut, **whole}


def _body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode("ascii")}
