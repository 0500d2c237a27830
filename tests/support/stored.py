"""A run of every sort of row, written straight into a store, and all that a store holds of one."""

from dataclasses import replace
from functools import partial
from typing import Any

from playhead.store import RunInfo, Store
from playhead.tape.exchange import (
    Chunk,
    Close,
    Message,
    MessageKind,
    RedactedText,
    RequestClass,
    WebSocketSummary,
)

from .exchanges import make_exchange, make_intent, make_record, make_response

LARGE = bytes(range(256)) * 8192


async def record_all(store: Store, name: str = "night") -> RunInfo:
    """A run with a plain exchange, an effect with a spilled answer, and a WebSocket."""
    info = await store.runs.create(name, mode="record", at_ns=7, agent=RedactedText("agent.py"))
    spool = store.bodies.spool()
    for at in range(4):
        part = LARGE[at * 524288 : (at + 1) * 524288]
        spool.write(part, Chunk(at * 10, len(part)))
    spilled = await spool.keep()
    spool.drop()
    messages = [
        Message(1, True, MessageKind.TEXT, b"hello"),
        Message(2, False, MessageKind.BINARY, b"\0"),
    ]
    told = [
        make_exchange(1),
        make_exchange(
            3,
            "POST https://api.test/v1/refunds",
            kind=RequestClass.EFFECT,
            body=b'{"amount": 1}',
            response=replace(make_response(b""), spilled=spilled),
        ),
        make_exchange(
            4,
            response=make_response(b"", 101),
            websocket=WebSocketSummary(2, 6, Close(3, True, 1000, RedactedText(""))),
        ),
    ]
    for exchange in told:
        store.events.append(info.number, make_intent(exchange))
        if exchange.websocket is not None:
            for number, message in enumerate(messages):
                store.messages.append(info.number, exchange.seq, number, message)
        await store.exchanges.save(info.number, partial(make_record, exchange))
    return await store.runs.seal(info, reason="done", at_ns=99)


def all_of(store: Store, name: str) -> tuple[Any, ...]:
    """Give all that a store holds of a run but its number."""
    info = store.runs.get(name)
    exchanges = list(store.exchanges.all(info))
    large = exchanges[1].response
    assert large is not None
    assert large.spilled is not None
    return (
        replace(info, number=0, owner=None),
        exchanges,
        list(store.events.raw(info)),
        list(store.messages.all(info, 4)),
        list(store.bodies.read(large.spilled)),
        store.index.fingerprints(info),
    )
