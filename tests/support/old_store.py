"""Make the store that `tests/store/format-1.mdb.gz` holds, as the version did that wrote format 1.

    python -m playhead.tests.support.old_store FILE

Run by that version; the exchanges are those that `written` gives here.
"""

import asyncio
import gzip
import sys
import tempfile
from functools import partial
from pathlib import Path

from playhead.store import Store
from playhead.tape.exchange import Exchange, Message, MessageKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response

MESSAGES = (
    Message(1, True, MessageKind.TEXT, b"hello"),
    Message(2, False, MessageKind.BINARY, bytes(range(256)) * 3),
)


def written(name: str) -> list[Exchange]:
    """The exchanges of a run: small ones, which were kept as they are, and large ones, which were frames."""
    large = f"{name} says it all again. ".encode() * 20_000
    return [
        make_exchange(1),
        make_exchange(2, "POST https://api.test/v1/messages", body=large),
        make_exchange(3, "POST https://api.test/v1/messages", body=large[:3000]),
        make_exchange(4, response=make_response(large)),
        make_exchange(5, response=None),
    ]


async def write(folder: Path) -> None:
    with Store.open(folder) as store:
        for name in ("first", "second"):
            run = await store.create_run(name, mode="record", at_ns=1)
            for exchange in written(name):
                store.append(run.number, make_intent(exchange))
                await store.save(run.number, partial(make_record, exchange))
            for number, message in enumerate(MESSAGES):
                store.append_message(run.number, 5, number, message)
            await store.seal(run, reason="enough", at_ns=9)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(write(Path(folder)))
        data = (Path(folder) / "log.lmdb" / "data.mdb").read_bytes()
    Path(sys.argv[1]).write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()
