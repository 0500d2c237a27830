"""Make the archive that `tests/proxy/operations/archive-of-pieces.tar.gz` holds, as the version did that could not read it back.

    python -m playhead.tests.support.old_archive FILE

Run by that version. Its runs were recorded by the proxy: `plain`, which it could read back; `stream`, whose answer came
in pieces; `talk`, a WebSocket with a message in frames. The file holds the store, the archive, and beside them each run
as it was exported before it was archived.
"""

import asyncio
import gzip
import io
import sys
import tarfile
import tempfile
from pathlib import Path

from click.testing import CliRunner

from playhead.config import Config, Mode
from playhead.proxy.cli import cli
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.websocket import TEXT, Peer, RawServer, closing, frame
from playhead.tests.support.wire import Wire, tunnel

NAMES = ("plain", "stream", "talk")
PIECES = (b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n")


async def _answer(conversation: Conversation) -> None:
    if conversation.path == "/talk":
        server = RawServer(conversation)
        await server.accept()
        await server.hear()
        await server.say(frame(TEXT, b"hel", fin=False, masked=False))
        await server.say(frame(0, b"lo", masked=False), closing(1000, "enough", masked=False))
        await server.left()
    elif conversation.path == "/stream":
        await conversation.say(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in PIECES:
            await conversation.say(b"%x\r\n%s\r\n" % (len(piece), piece))
        await conversation.say(b"0\r\n\r\n")
    else:
        await conversation.say(
            b"HTTP/1.1 200 OK\r\nX-Twice: 1\r\nx-twice: 2\r\ncontent-length: 0\r\n\r\n"
        )


async def _talk(proxy: tuple[str, int], target: str) -> None:
    peer = await Peer.open(f"{proxy[0]}:{proxy[1]}", target, "/talk", run="talk")
    peer.send(frame(TEXT, b"hi"))
    said = [str(await peer.read()) for _ in range(3)]
    assert said == ["text hel", "more lo", "close 1000 enough"]
    peer.send(closing(1000, "enough"))
    await peer.close()


def write(folder: Path) -> None:
    """Record the runs, export and archive them."""
    store = folder / "store"
    with RawOrigin(_answer) as origin, Deck(Config(mode=Mode.RECORD, store=store)) as deck:
        target = f"127.0.0.1:{origin.port}"
        for name in ("plain", "stream"):
            with Wire(tunnel(deck.proxy, target, name)) as wire:
                wire.ask(f"GET /{name} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            deck.end(name)
        asyncio.run(_talk(deck.proxy, target))
        deck.end("talk")
    config = folder / "playhead.yaml"
    config.write_text("store: store\nretention: {hot: 0s, archive: archive}\n")
    for name in NAMES:
        _command("export", name, "--tape", str(folder / f"{name}.tape"), "-c", str(config))
    _command("archive", "-c", str(config))


def _command(*words: str) -> None:
    CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)


def main() -> None:
    made = io.BytesIO()
    with tempfile.TemporaryDirectory() as name, tarfile.open(fileobj=made, mode="w") as tar:
        folder = Path(name)
        write(folder)
        for path in (folder / "store/log.lmdb/data.mdb", *sorted(folder.glob("*.tape"))):
            tar.add(path, path.relative_to(folder))
        for path in sorted((folder / "archive").rglob("*.parquet")):
            tar.add(path, path.relative_to(folder))
    Path(sys.argv[1]).write_bytes(gzip.compress(made.getvalue(), mtime=0))


if __name__ == "__main__":
    main()
