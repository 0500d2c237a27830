"""Answers without a body over HTTP/2 are over with their head, while they are recorded and played."""

import time
from pathlib import Path
from typing import NamedTuple

import pytest
from hyperframe.frame import Frame, HeadersFrame

from playhead.config import Config, Mode
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.wire import H2Wire, tunnel


class Empty(NamedTuple):
    """An answer without a body."""

    status: int = 200
    method: str = "GET"
    length: str = ""
    at_once: bool = True
    """Whether the origin ends the stream with the head, or later with an empty piece."""


EMPTY = {
    "204": Empty(204, "DELETE"),
    "204-later": Empty(204, "DELETE", at_once=False),
    "304-later": Empty(304, at_once=False),
    "head": Empty(method="HEAD", length="7"),
    "head-later": Empty(method="HEAD", length="7", at_once=False),
    "length-0": Empty(length="0"),
    "length-0-later": Empty(length="0", at_once=False),
    "no-length": Empty(),
}


def _answer(stream: Stream) -> bool:
    empty = EMPTY[stream.path.rpartition("/")[2]]
    fields = [("content-length", empty.length)] if empty.length else []
    stream.head(*fields, status=empty.status, end=empty.at_once)
    if not empty.at_once:
        stream.data(b"", end=True)
    return True


def _leave_with_the_head(deck: Deck, authority: str, name: str) -> bool:
    """Ask, and leave as soon as the head is there; say whether it ended the stream."""
    opened = tunnel(deck.proxy, authority, "empty", ca=deck.running.ca, alpn="h2")
    with H2Wire(opened, authority) as wire:
        stream = wire.send(EMPTY[name].method, f"/{name}")
        came = b""
        while True:
            came += opened.recv(4096)
            while len(came) >= 9:
                frame, length = Frame.parse_frame_header(memoryview(came[:9]))
                if len(came) < 9 + length:
                    break
                came = came[9 + length :]
                if isinstance(frame, HeadersFrame) and frame.stream_id == stream:
                    return "END_STREAM" in frame.flags


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_answer_ends_with_its_head(
    name: str, store_dir: Path, certificates: Certificates
) -> None:
    """Its client may leave then, and has had the whole answer: nothing waits on replay, and nothing is warned of."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(_answer, certificates) as origin:
        authority = f"127.0.0.1:{origin.port}"
        assert _leave_with_the_head(deck, authority, name)
        deck.end("empty")
        (recorded,) = deck.tape("empty")
        origin.stop()
        deck.play()
        began = time.monotonic()
        assert _leave_with_the_head(deck, authority, name)
        deck.end("empty@1")
        took_s = time.monotonic() - began
        receipt = deck.receipt("empty@1")
    assert recorded.gone is None
    assert recorded.fault is None
    assert receipt.faithful, receipt.to_json()
    assert receipt.warnings == []
    assert took_s < 5
