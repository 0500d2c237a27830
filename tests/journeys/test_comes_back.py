"""Runs that the proxy recorded come back, whatever was done to the store that holds them, byte for byte."""

from pathlib import Path

from click.testing import CliRunner

from playhead.config import Config, Mode
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import Wire, tunnel

PIECES = (b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n")


async def _stream(conversation: Conversation) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    await conversation.say(head)
    for piece in PIECES:
        await conversation.say(b"%x\r\n%s\r\n" % (len(piece), piece))
    await conversation.say(b"0\r\n\r\n")


def _do(config: Path, *words: str) -> str:
    done = CliRunner().invoke(
        cli, [*words, "-c", str(config)], standalone_mode=False, catch_exceptions=False
    )
    assert not done.return_value, done.output
    return done.stdout


def test_a_stream_comes_back_from_the_archive(tmp_path: Path) -> None:
    """Its answer was recorded in pieces, which the archive keeps apart from its bytes."""
    store = tmp_path / "store"
    with RawOrigin(_stream) as origin, Deck(Config(mode=Mode.RECORD, store=store)) as deck:
        target = f"127.0.0.1:{origin.port}"
        with Wire(tunnel(deck.proxy, target, "night")) as wire:
            wire.ask(f"GET /stream HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        deck.end("night")
        (recorded,) = deck.tape("night")
    assert recorded.response is not None
    assert recorded.response.chunks
    config = tmp_path / "playhead.yaml"
    config.write_text("store: store\nretention: {hot: 0s, archive: archive}\n")
    assert "1 archived, 0 stay" in _do(config, "archive")
    assert "1 exchange" in _do(config, "verify", "night")
    with Store.open(store, readonly=True) as opened:
        assert list(opened.exchanges(opened.get_run("night"))) == [recorded]
