"""What happens on a small disk that fills: run inside a mount namespace of its own, see `tests/journeys/test_store_full.py`.

full_disk agent URL STORE ON_FULL     asks, fills the disk, asks, makes room, asks; prints what it saw as JSON
full_disk poller URL                  asks for what `player` asks for
full_disk player URL STORE            asks for the same as a tape has, on a disk that fills meanwhile
full_disk delete STORE                deletes runs where the disk is full to the last byte

Each is a process of its own, so each imports what it needs.
"""

import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.store import Store

SEEN_S = 20.0


def ask(url: str, body: bytes | None = None) -> int:
    """Ask through the proxy that the environment names; give the status, or 0 where it is not told."""
    try:
        with urllib.request.urlopen(url, body, timeout=60) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.read()
        return error.code
    except OSError:
        return 0


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill a disk to the last byte meanwhile."""
    file = folder / "filler"
    with open(file, "wb", buffering=0) as filler:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue
    yield
    file.unlink()


def until(condition: Callable[[], bool]) -> bool:
    """Wait until something is so; say whether it came to that."""
    end = time.monotonic() + SEEN_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def readable(store: Path) -> int:
    """Give how many exchanges the store shows."""
    from playhead.store import Store

    with Store.open(store, readonly=True) as opened:
        return sum(len(opened.exchanges.seqs(run)) for run in opened.runs.all())


def agent(url: str, store: Path, on_full: str) -> dict[str, object]:
    before = [ask(url, b"a=1"), ask(f"{url}?n=1")]
    with filled(store):
        # The first may still find room in the store's file.
        refused = until(lambda: ask(f"{url}?full=0") == 424) if on_full == "stop" else False
        end = time.monotonic() + 0.4
        while on_full == "pass" and time.monotonic() < end:
            ask(f"{url}?full=0")
        full = [ask(url, b"a=2"), ask(f"{url}?full=1")]
        shown = readable(store)
    again = until(lambda: ask(f"{url}?again=1") == 200 and readable(store) > shown)
    return {
        "before": before,
        "refused": refused,
        "full": full,
        "shown": shown,
        "again": again,
        "after": [ask(url, b"a=3")],
    }


def player(url: str, store: Path) -> dict[str, object]:
    seen = [ask(f"{url}?n=1")]
    with filled(store):
        end = time.monotonic() + 0.6
        while time.monotonic() < end:  # the tape answers this as often as it is asked
            seen.append(ask(f"{url}?poll=1"))
    return {"seen": sorted(set(seen))}


async def write(store: "Store", name: str) -> None:
    from playhead.tests.support import exchanges as made

    run = await store.runs.create(name, mode="record", at_ns=1)
    for seq in range(1, 21):
        exchange = made.make_exchange(seq, response=made.make_response(os.urandom(9000)))
        store.events.append_made(run.number, partial(made.make_intent, exchange))
        await store.exchanges.save(run.number, partial(made.make_record, exchange))
    await store.runs.seal(run, reason="test", at_ns=2)


def delete(path: Path) -> dict[str, object]:
    from playhead.config import Config, Retention
    from playhead.proxy.operations.retention import collect
    from playhead.store import Store, StoreUnwritable, put_ballast

    ballast = 1 << 20
    with Store.open(path) as store:
        put_ballast(path, ballast)
        for name in "abcde":
            asyncio.run(write(store, name))
    stood = (path / "ballast").stat().st_size
    with filled(path):
        with Store.open(path) as store:
            run = store.runs.get("a")
            try:
                store.removal.delete([run])
                without = "deleted"
            except StoreUnwritable:
                without = "refused"
        done = collect(Config(store=path, retention=Retention(keep_s=1.0)), dry_run=False)
        gone = sum(one.goes for one in done.sentences)
    with Store.open(path) as store:
        left = len(store.runs.all())
        asyncio.run(write(store, "z"))
        put_ballast(path, ballast)
    back = (path / "ballast").stat().st_size
    return {"stood": stood, "without": without, "gone": gone, "left": left, "back": back}


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "delete":
        told = delete(Path(rest[0]))
    elif what == "poller":
        told = {"seen": [ask(f"{rest[0]}?n=1"), ask(f"{rest[0]}?poll=1")]}
    elif what == "player":
        told = player(rest[0], Path(rest[1]))
    else:
        told = agent(rest[0], Path(rest[1]), rest[2])
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
