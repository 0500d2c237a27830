"""Recordings that are written straight into a store, for what reads tapes without a proxy."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any

from playhead.config import Config, IgnoreRule
from playhead.store import Record, RunInfo, Store
from playhead.tape.canonical.canonical_request import (
    CANONICAL_VERSION,
    canonical,
    fingerprint,
    raw_key,
    rules_of,
)
from playhead.tape.exchange import Message, Request, RequestClass, Response, WebSocketSummary
from playhead.tape.records.events import Event, EventKind

from .dialects import make_request
from .exchanges import NO_CLASSES, make_exchange, make_intent, make_outcome, make_response

Asked = tuple[Request, Response]


def ask(body: object = b"", answer: object = b"ok", url: str = "https://api.test/v1/runs") -> Asked:
    """Give a request with its answer; what is no bytes is JSON."""
    said = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return make_request(url, body), make_response(said)


def record_run(
    store: Store,
    name: str,
    asked: Iterable[Asked],
    ignore: tuple[IgnoreRule, ...] = (),
    *,
    seal: bool = True,
    kind: RequestClass = RequestClass.INFERENCE,
    websockets: Mapping[int, Sequence[Message]] = MappingProxyType({}),
    noted: Mapping[str, Any] | None = None,
    between_ns: tuple[int, int] | None = None,
    **info: Any,
) -> RunInfo:
    """Write a recording as the proxy does, under some rules; blocks.

    websockets: messages of those that became a WebSocket, by seq.
    noted: of the command, and how it ended.
    between_ns: when it began, and when its requests came and it ended; now without.
    """
    rules = rules_of(Config(ignore=ignore))
    begun_ns, at_ns = between_ns or (time.time_ns(), None)

    async def write() -> RunInfo:
        told = {
            "rules": rules.digest,
            "canonical": CANONICAL_VERSION,
            "classes": NO_CLASSES,
            **info,
        }
        run = await store.runs.create(name, mode="record", at_ns=begun_ns, **told)
        for seq, (request, response) in enumerate(asked, start=1):
            said = websockets.get(seq)
            for number, message in enumerate(said or ()):
                store.messages.append(run.number, seq, number, message)
            size = sum(len(message.data) for message in said or ())
            exchange = make_exchange(
                seq,
                websocket=None if said is None else WebSocketSummary(len(said), size, None),
                kind=kind,
                response=response,
                request=request,
                started_ns=at_ns or time.time_ns(),
                fingerprint=fingerprint(canonical(request, kind, rules)),
            )
            store.events.append_made(run.number, partial(make_intent, exchange))
            record = Record(exchange, raw_key(request, kind), make_outcome(exchange))
            await store.exchanges.save(run.number, partial(_same, record))
        if noted is not None:
            store.events.append(run.number, Event(EventKind.NOTED, time.time_ns(), dict(noted)))
        if seal:
            run = await store.runs.seal(run, reason="test", at_ns=at_ns or time.time_ns())
        return run

    # On a thread, so that a test with a loop of its own can call this too.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(write())).result()


def _same(record: Record) -> Record:
    return record
