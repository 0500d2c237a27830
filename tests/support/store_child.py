"""A process that writes a store, for the tests that share one, watch one, or kill its writer.

    store_child runs STORE NAME RUNS EXCHANGES     write runs side by side and end; prints their names
    store_child endless STORE NAME [power]         write until killed; prints what it was told is durable
    store_child reindex STORE NAME EXCHANGES       replace a run's index until killed; prints each one's letter

It waits for a line on stdin first, so that starting it costs nothing when it matters.
"""

import asyncio
import itertools
import os
import sys
import time
from functools import partial
from pathlib import Path

from playhead.store import Store
from playhead.tape.exchange import Exchange, Fingerprint, RequestClass, Seq
from playhead.tape.matching.index import Entry, Index
from playhead.tests.support.conversations import words
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response


def nth(name: str, seq: int) -> Exchange:
    """The exchange that a child writes: the same for everybody who knows run and seq."""
    kind = RequestClass.EFFECT if seq % 2 else RequestClass.READ
    # Every other one is a step of a conversation, and is stored on another.
    body = f"{name} {seq} ".encode() * (1 + seq * 37 % 300)
    if seq % 2:
        body = words("system", 2500).encode() + body + b"the end of each of them" * 5
    what = f"POST https://api.test/v1/{seq % 5}"
    return make_exchange(seq, what, kind=kind, body=body, response=make_response(body[::-1]))


async def write_runs(store: Store, name: str, runs: int, exchanges: int) -> None:
    async def write(index: int) -> None:
        run = await store.runs.create(name, mode="record", at_ns=time.time_ns())
        for seq in range(1, exchanges + 1):
            exchange = nth(run.id, seq)
            store.events.append_made(run.number, partial(make_intent, exchange))
            await store.exchanges.save(run.number, partial(make_record, exchange))
        await store.runs.seal(run, reason=f"test {index}", at_ns=time.time_ns())
        say(run.id)

    await asyncio.gather(*(write(index) for index in range(runs)))


async def write_endless(store: Store, name: str) -> None:
    """Print `open NAME`, then `intent SEQ` and `outcome SEQ`, each only once it is durable."""
    run = await store.runs.create(name, mode="record", at_ns=time.time_ns())
    say(f"open {run.id}")
    numbers = iter(range(1, 1_000_000))

    async def lane() -> None:
        for seq in numbers:
            exchange = nth(run.id, seq)
            await store.events.append_durably(run.number, make_intent(exchange))
            say(f"intent {seq}")
            if seq % 3 == 0:  # first what has passed so far, then the whole
                await store.exchanges.save(run.number, partial(make_record, exchange, final=False))
            await store.exchanges.save(run.number, partial(make_record, exchange))
            say(f"outcome {seq}")

    await asyncio.gather(*(lane() for _ in range(4)))


def index_of(letter: str, count: int) -> Index:
    """An index of a run; a letter begins each of its keys."""
    one = letter.encode()
    entries = tuple(
        Entry(Seq(seq), Fingerprint(one + b"%015d" % seq), b"raw" + one + b"%012d" % seq)
        for seq in range(1, count + 1)
    )
    return Index(entries, b"rules " + one, 7)


def replace_endless(store: Store, name: str, count: int) -> None:
    for letter in itertools.cycle("ab"):
        store.index.replace(store.runs.get(name), index_of(letter, count))
        say(letter)


def say(line: str) -> None:
    """One write, so that a line is there whole or not at all, and at once."""
    os.write(1, line.encode() + b"\n")


def main() -> None:
    what, folder, name, *counts = sys.argv[1:]
    sys.stdin.readline()
    with Store.open(Path(folder), power=counts == ["power"]) as store:
        if what == "runs":
            asyncio.run(write_runs(store, name, *map(int, counts)))
        elif what == "reindex":
            replace_endless(store, name, *map(int, counts))
        else:
            asyncio.run(write_endless(store, name))


if __name__ == "__main__":
    main()
