"""A run of every sort of row, written straight into a store, and all that a store holds of one."""

from dataclasses import replace
from functools import partial
from typing import Any

from blake3 import blake3

from playhead.store import RunInfo, Store
from playhead.store.tables.folders import Content
from playhead.tape.exchange import (
    Chunk,
    Close,
    Message,
    MessageKind,
    RedactedText,
    RequestClass,
    WebSocketSummary,
)
from playhead.tape.folders.manifest import (
    SECRET,
    Entry,
    GitState,
    Kind,
    Manifest,
    find_saved,
    find_step,
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
    save_folder(store, info, name)
    return await store.runs.seal(info, reason="done", at_ns=99)


def save_folder(store: Store, info: RunInfo, name: str) -> None:
    """Save a folder with every kind of path, and two savepoints of it."""
    files = {
        b"a": b"one",
        b"own": name.encode(),
        b"sub/\xff": b"",
        b"sub/large": LARGE[: 1 << 20] + b"and more",
    }
    start = Manifest(
        b"/work",
        {
            b"sub": Entry(Kind.FOLDER, 0o755),
            **{path: file_entry(one) for path, one in files.items()},
        }
        | {
            b"link": Entry(Kind.LINK, 0o777, target=b"/etc"),
            b"secret": file_entry(b"x")._replace(unsaved=SECRET),
        },
        {b"build": "ignored"},
        1,
        git=GitState("ab" * 20, "main", ("a",), 1),
        saved=True,
    )
    then = replace(start, entries={**start.entries, b"a": file_entry(b"two")}, seq=3)
    last = {path: one for path, one in then.entries.items() if not path.startswith(b"sub")}
    end = replace(then, entries=last, seq=4)
    contents = [content(data) for data in files.values()]
    store.folders.save(info.number, start, contents)
    store.folders.save_step(info.number, 1, find_step(start, then), [content(b"two")])
    store.folders.save_step(info.number, 2, find_step(then, end), [])


def content(data: bytes) -> Content:
    """Give a content with its hash."""
    return Content(blake3(data).digest(), data)


def file_entry(data: bytes) -> Entry:
    """Give the entry of a file."""
    return Entry(Kind.FILE, 0o644, len(data), 7, blake3(data).digest())


def folder_of(store: Store, info: RunInfo) -> tuple[Any, ...]:
    """Give all that a store holds of a run's folder: manifest, savepoints, and every content."""
    start = store.folders.find(info)
    steps = store.folders.list_savepoints(info)
    entries = [start.entries if start else {}, *(step.written for step in steps)]
    digests = {one.digest for step in entries for one in find_saved(step).values()}
    read = {digest: store.folders.read(digest) for digest in digests}
    return start and replace(start, imported=False), steps, read


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
        folder_of(store, info),
    )
