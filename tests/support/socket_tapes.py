"""Runs of an agent that asks its model over one WebSocket, and uses tools over HTTP between its calls."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from playhead.store import Store
from playhead.tape.exchange import Exchange, Message, MessageKind, RequestClass, WebSocketSummary
from playhead.timeline.state.calls_before import Exchanges

from .dialects import make_request, make_response
from .exchanges import fingerprint_of, make_exchange, make_record
from .in_memory import InMemory

BEGAN_NS = 1_700_000_000_000_000_000
STEP_US = 1_000_000
"""From one request to the next: 1.1, 2, 1.2, 3, 1.3."""
IBAN = "DE89370400440532013000"
Refund = tuple[list[Exchange], list[Message]]
"""Exchanges, and the messages of the first."""


def refund(views: int = 1, *, times: int = 1, iban: str = IBAN, known: bool = True) -> Refund:
    """A model call that looks an order up, one that pays it back, and one that says so.

    views: how often the order had been read.
    times: how often the code sends the refund.
    known: whether messages have the order of arrival; without it times alone say what was before.
    """
    order = {"id": "7", "amount": 4900, "iban": IBAN, "views": views}
    paid = {"order": "7", "amount": 4900, "iban": IBAN}
    exchanges, messages = [_handshake()], list[Message]()

    def ask(given: object, name: str, item: dict[str, Any], previous: str | None) -> None:
        after = len(exchanges) if known else 0
        messages.extend(_turn(now(), after, given, name, item, previous))

    def use(method: str, url: str, sent: object, answer: object) -> None:
        kind = RequestClass.READ if method == "GET" else RequestClass.EFFECT
        exchanges.append(
            make_exchange(
                len(exchanges) + 1,
                kind=kind,
                request=make_request(url, sent, method=method),
                response=make_response(answer),
                started_ns=BEGAN_NS + now() * 1000,
                end_us=STEP_US // 10,
                fingerprint=fingerprint_of(f"{method} {url}", repr(sent).encode()),
            )
        )

    def now() -> int:
        asked = sum(one.from_client for one in messages)
        return (asked + len(exchanges)) * STEP_US

    ask("Refund order 7.", "resp_1", _call("lookup", "call_1", {"order": "7"}), None)
    use("GET", "https://shop.test/orders/7", b"", order)
    given = _result("call_1", order)
    ask(given, "resp_2", _call("refund", "call_2", paid), "resp_1")
    for number in range(times):
        made = {"id": f"re_{views}5838{number}", "sent": 4900}
        use("POST", "https://shop.test/refunds", paid | {"iban": iban}, made)
    said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed"}
    text = {"type": "output_text", "text": "Refunded.", "annotations": []}
    ask(_result("call_2", made), "resp_3", said | {"content": [text]}, "resp_2")
    return exchanges, messages


def in_memory(run: Refund) -> InMemory:
    """Give such a run to whoever reads exchanges by seq."""
    return InMemory(run[0], messages={1: run[1]})


async def write_refund(store: Store, run: Refund) -> Exchanges:
    """Write such a run into a store."""
    info = await store.runs.create("run", mode="record", at_ns=1)
    for number, message in enumerate(run[1]):
        store.messages.append(info.number, 1, number, message)
    for one in run[0]:
        await store.exchanges.save(info.number, partial(make_record, one))
    return Exchanges(store, info)


def _handshake() -> Exchange:
    url = "https://api.openai.com/v1/responses"
    return make_exchange(
        1,
        kind=RequestClass.INFERENCE,
        request=make_request(url, b"", {"upgrade": "websocket"}, "GET"),
        response=make_response(b"", status=101),
        websocket=WebSocketSummary(9, 1, None),
        started_ns=BEGAN_NS,
        end_us=60 * STEP_US,
    )


def _call(name: str, id: str, arguments: object) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{id}",
        "call_id": id,
        "name": name,
        "arguments": json.dumps(arguments),
    }


def _result(id: str, answer: object) -> Sequence[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": id, "output": json.dumps(answer)}]


def _turn(
    at_us: int, after: int, given: object, name: str, item: dict[str, Any], previous: str | None
) -> list[Message]:
    body = {"type": "response.create", "model": "gpt-5", "input": given, "store": True}
    if previous:
        body["previous_response_id"] = previous
    begun = {"id": name, "object": "response", "model": "gpt-5", "output": []}
    whole = begun | {"output": [item], "status": "completed"}
    bodies: list[dict[str, Any]] = [
        body,
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [
        Message(
            at_us + number * STEP_US // 10,
            number == 0,
            MessageKind.TEXT,
            json.dumps(one).encode(),
            (),
            after,
        )
        for number, one in enumerate(bodies)
    ]
