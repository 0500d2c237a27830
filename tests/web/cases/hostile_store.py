"""A store in which hostile text stands wherever text can: in heads, bodies, names, words of people and of the agent."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from playhead.store import RunInfo, Store
from playhead.tape.exchange import (
    Close,
    Exchange,
    Fault,
    FaultKind,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    Request,
    RequestClass,
    Response,
    WebSocketSummary,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import S, Tape, call, chat_answer, said
from playhead.tests.support.counts import FULL, some
from playhead.tests.support.dialects import make_request, make_response, make_stream
from playhead.tests.support.exchanges import make_intent, make_record
from playhead.tests.support.looking_back import write_store

from .payloads import PAYLOADS, Payload

RUN, HEAVY = "hostile", "heavy"
"""Names of the runs with texts that stand in heads and names too, and of the one with large bodies."""
_LONGEST_NAME = 200
_AT_NS = 1_700_000_000_000_000_000
LIGHT = tuple(some([one for one in PAYLOADS if not one.is_heavy], lambda one: one.kind))
LARGE = tuple(one for one in PAYLOADS if one.is_heavy)[:: 1 if FULL else 4]
"""What stands in heads and names too, and large bodies; by default some of each kind."""
SEQS = {one.name: (2 * at + 1, 2 * at + 2) for at, one in enumerate(LIGHT)}
"""Seqs of the model call and of the effect with a payload, in the run `RUN`."""
HEAVY_SEQS = {one.name: at + 1 for at, one in enumerate(LARGE)}
"""Seqs in the run `HEAVY`."""


def can_be_a_name(text: str) -> bool:
    """Say whether a run may be called so. Source: docs/configuration.md, `runs`."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return text.isprintable() and ":" not in text and 0 < size <= _LONGEST_NAME


NAMES = tuple(one.text.strip() for one in LIGHT if can_be_a_name(one.text.strip()))
"""Payloads that are names of runs of their own."""


def write_hostile_store(folder: Path) -> Path:
    """Write the store; give its folder."""
    return write_store(folder, _write)


async def _write(store: Store) -> None:
    run = await _write_run(store, RUN, _light_tape().exchanges)
    for payload in LIGHT:
        _say(store, run, payload)
    await _write_websocket(store)
    await store.runs.seal(run, reason=LIGHT[0].text, at_ns=_AT_NS * 2)
    store.runs.mark(
        run, lambda _: _event(EventKind.MARKED, labels=_labels(), pinned=True, by=LIGHT[5].text)
    )
    heavy = await _write_run(store, HEAVY, _heavy_tape().exchanges)
    await store.runs.seal(heavy, reason="done", at_ns=_AT_NS * 2)
    for name in NAMES:
        named = await _write_run(store, name, _light_tape(LIGHT[:1]).exchanges, agent=name)
        await store.runs.seal(named, reason="done", at_ns=_AT_NS * 2)


async def _write_run(
    store: Store, name: str, exchanges: list[Exchange], agent: str = "python agent.py"
) -> RunInfo:
    run = await store.runs.create(name, mode="record", at_ns=_AT_NS, agent=RedactedText(agent))
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return run


def _event(kind: EventKind, **data: Any) -> Event:
    return Event(kind, _AT_NS, data)


def _labels() -> tuple[str, ...]:
    return tuple(one.text for one in LIGHT if one.kind in ("html", "scheme", "terminal"))[:20]


def _say(store: Store, run: RunInfo, payload: Payload) -> None:
    """Have people and the agent say it beside the exchanges: in notes, rulings, outcomes, stops and snapshots."""
    text = payload.text.encode("utf-8", "replace").decode()
    _, seq = SEQS[payload.name]
    url = f"https://pay.test/{payload.marker}"
    told = (
        _event(EventKind.ANNOTATED, seq=seq, text=text, by=text),
        _event(EventKind.NOTED, snapshot=json.dumps({text: [text]})),
        _event(EventKind.HELD, seq=seq, method="POST", url=url, digest="0" * 32, rule=text, reason=text, deadline_s=600),
        _event(EventKind.RULED, seq=seq, digest="0" * 32, ruling="approved", by=text, via="page", reason=text),
        _event(EventKind.INJECTED, seq=seq, rule=text, inject="reset", nth=1, seed=0),
        _event(EventKind.LIMITED, seq=seq, limit="calls", reason=text, calls=1, tokens=1, usd="0"),
        _event(EventKind.EGRESS, target=text, by=text, reason=text, protocol="tcp", process=text, count=1),
    )  # fmt: skip
    for event in told:
        store.events.append(run.number, event)


def _light_tape(payloads: tuple[Payload, ...] = LIGHT) -> Tape:
    tape = Tape(RUN)
    for at, payload in enumerate(payloads):
        fault = None
        if at % 10 == 9:
            words = RedactedText(payload.text.encode("utf-8", "replace").decode())
            fault = Fault(FaultKind.CUT, Phase.BODY, words, S)
        tape.model(_asked(payload), _answered(payload, is_stream=at % 2 == 1))
        tape.add(
            _effect(payload),
            _page(payload, is_cut=fault is not None),
            RequestClass.EFFECT,
            fault=fault,
        )
    return tape


def _asked(payload: Payload) -> Request:
    text = payload.text
    body = {
        "model": text,
        "messages": [
            said("system", f"{text} You are careful."),
            said("user", text),
            said("assistant", None, tool_calls=[call(text, text, **{text: text})]),
            said("tool", text, tool_call_id=text),
        ],
        "tools": [{"type": "function", "function": {"name": text, "description": text}}],
    }
    return make_request("https://api.openai.com/v1/chat/completions", body)


def _answered(payload: Payload, *, is_stream: bool) -> Response:
    text, wants = payload.text, call(payload.text, payload.text, **{payload.text: payload.text})
    if not is_stream:
        return chat_answer(text, wants, id=text)
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)][:200]
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces]
    deltas.append({"tool_calls": [{"index": 0, **wants}]})
    return make_stream(
        *({"id": text, "model": text, "choices": [{"index": 0, "delta": one}]} for one in deltas),
        done=True,
    )


def _target(payload: Payload) -> str:
    """Give it as it can stand in a target: without blanks and control characters, which end a line of HTTP."""
    kept = (one for one in payload.text if one.isprintable() and not one.isspace())
    return "".join(kept).replace("#", "%23")[:4000]


def _field(payload: Payload) -> bytes:
    return payload.data.translate(None, b"\r\n\0")[:4000]


def _effect(payload: Payload) -> Request:
    text, target = payload.text, _target(payload)
    made = make_request(
        "https://pay.test/v1",
        {"note": text, text: 1, "amount": 4900},
        {"content-type": "application/json", "x-marker": payload.marker},
    )
    fields = (*made.headers, (b"x-hostile", _field(payload)), (b"idempotency-key", _field(payload)))
    return replace(made, target=f"/v1/{target}?q={target}", headers=fields)


_TYPES = {"svg": "image/svg+xml", "json": "application/json", "css": "text/css"}


def _page(payload: Payload, *, is_cut: bool) -> Response:
    """Give an answer whose body is the payload, as a browser would run it."""
    kind = _TYPES.get(payload.kind, "text/html")
    made = make_response(
        payload.data,
        headers={
            "content-type": kind,
            "content-disposition": "inline",
            "link": "</x>; rel=preload",
        },
        complete=not is_cut,
    )
    return replace(
        made, reason=_field(payload)[:200], headers=(*made.headers, (b"x-hostile", _field(payload)))
    )


def _heavy_tape() -> Tape:
    tape = Tape(HEAVY)
    for payload in LARGE:
        coding = {"content-encoding": payload.coding} if payload.coding else {}
        headers = {"content-type": "application/json", "x-marker": payload.marker, **coding}
        asked = make_request("https://pay.test/v1/heavy", payload.data, headers)
        tape.add(asked, make_response(payload.data, headers=headers), RequestClass.EFFECT)
    return tape


async def _write_websocket(store: Store) -> None:
    """Write a run whose one exchange is a WebSocket, each message a payload."""
    tape = Tape("socket")
    messages = [
        Message(1000 * at, at % 2 == 0, MessageKind.BINARY if one.kind == "bytes" else MessageKind.TEXT, one.data)
        for at, one in enumerate(LIGHT)
    ]  # fmt: skip
    close = Close(S, True, 1000, RedactedText(LIGHT[3].text))
    size = sum(len(one.data) for one in messages)
    asked = make_request("https://chat.test/socket", b"", {"upgrade": "websocket"}, "GET")
    tape.add(
        asked,
        make_response(b"", 101),
        RequestClass.READ,
        websocket=WebSocketSummary(len(messages), size, close),
    )
    run = await store.runs.create("socket", mode="record", at_ns=_AT_NS)
    (exchange,) = tape.exchanges
    store.events.append(run.number, make_intent(exchange))
    for number, message in enumerate(messages):
        store.messages.append(run.number, 1, number, message)
    await store.exchanges.save(run.number, partial(make_record, exchange))
    await store.runs.seal(run, reason="done", at_ns=_AT_NS * 2)
