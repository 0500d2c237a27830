"""A store that holds planted text in every place there is, and a look through its files for it."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from blake3 import blake3

from playhead.store import RunInfo, Store
from playhead.tape.exchange import (
    Alpn,
    Chunk,
    Exchange,
    Message,
    MessageKind,
    RedactedText,
    Spilled,
    WebSocketSummary,
)
from playhead.tape.records.events import Event, EventKind

from .exchanges import make_exchange, make_intent, make_record, make_response

WORD = b"zebra-confidential-4711"
"""What is planted."""
PIECES = [(b"%d " % index + WORD) * 1500 for index in range(6)]


def plant(store: Store, name: str = "", seal: bool = True) -> RunInfo:
    """Write a run whose name, host, texts, bodies and messages all hold WORD; blocks."""
    return asyncio.run(_plant(store, name or f"run {WORD.decode()}", seal))


async def _plant(store: Store, name: str, seal: bool) -> RunInfo:
    run = await store.runs.create(
        name, mode="record", at_ns=1, agent=RedactedText(f"agent {WORD.decode()}")
    )
    spool = store.bodies.spool()
    for index, piece in enumerate(PIECES):
        spool.write(piece, Chunk(index, len(piece)))
    for seq, exchange in enumerate(planted(await spool.keep()), start=1):
        await store.events.append_durably(run.number, make_intent(exchange))
        store.messages.append(run.number, seq, 0, Message(5, True, MessageKind.TEXT, WORD))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    store.events.append(run.number, Event(EventKind.NOTED, 3, {"text": f"noted {WORD.decode()}"}))
    return await store.runs.seal(run, reason=f"because {WORD.decode()}", at_ns=4) if seal else run


def planted(spilled: Spilled) -> list[Exchange]:
    """The exchanges of a planted run."""
    url = f"POST https://{WORD.decode()}.test/v1/{WORD.decode()}"
    return [
        make_exchange(1, url, body=b"small " + WORD, alpn=Alpn((b"h2",), b"h2")),
        make_exchange(2, url, body=WORD * 20_000, response=make_response(WORD)),
        make_exchange(3, url, response=make_response(b"", spilled=spilled), websocket=WebSocketSummary(1, len(WORD), None)),
    ]  # fmt: skip


def read_all(store: Store, name: str = "") -> tuple[object, ...]:
    """Everything that can be read of a planted run, to be compared."""
    run = store.runs.get(name or f"run {WORD.decode()}")
    exchanges = list(store.exchanges.all(run))
    spilled = exchanges[2].response.spilled if exchanges[2].response else None
    assert spilled is not None
    return (
        exchanges,
        [(event.kind, event.at_ns, event.data) for event in store.events.all(run)],
        [list(store.messages.all(run, exchange.seq)) for exchange in exchanges],
        list(store.bodies.read(spilled)),
        store.index.fingerprints(run),
        [store.index.find_fingerprint(run, make_record(one).raw) for one in exchanges],
        [store.index.next_use(run, one.fingerprint, 0) for one in exchanges],
        store.alpn.find(run, exchanges[0].request.host, 443, (b"h2",)),
        store.events.find_broken_link(run),
        (run.agent, run.end, run.status),
    )


def telling(store: Store, name: str = "") -> list[bytes]:
    """What must not be found in an encrypted store: the text, and hashes by which it could be confirmed."""
    run = store.runs.get(name or f"run {WORD.decode()}")
    exchanges = list(store.exchanges.all(run))
    body = blake3(b"".join(PIECES)).digest()
    hashes = [body, body.hex().encode(), *(one.fingerprint for one in exchanges)]
    return [WORD, WORD.hex().encode(), *hashes, *(make_record(one).raw for one in exchanges)]


def find_raw(folder: Path, needles: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Find byte strings in the files of a folder, and in their names."""
    for path in sorted(folder.rglob("*")):
        held = str(path.relative_to(folder)).encode()
        if path.is_file():
            held += b"\n" + path.read_bytes()
        for needle in needles:
            if needle in held:
                yield str(path), needle
