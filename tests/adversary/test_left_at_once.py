"""A client of HTTP/2 whose reset comes with its request has taken nothing of the answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.sockets import open_tunnel
from playhead.timeline import build
from playhead.timeline.receipts.render_text import render_receipt

Leave = Callable[[Http2Client, str], None]


def _answer(stream: Stream) -> bool:
    stream.head(("content-type", "text/plain"))
    stream.data(b"refunded", end=True)
    return False


def _take(client: Http2Client, url: str) -> None:
    stream = client.ask("POST", url, b"{}")
    client.read_until(lambda: client.got[stream][-1:] == ["end"])


def _cancel_with_it(client: Http2Client, url: str) -> None:
    client.ask("POST", url, b"{}", cancel=True)
    client.settle()


def _ask(proxy: str, base: str, ca: Path, leave: Leave) -> None:
    with open_tunnel(proxy, base, ca, alpn="h2") as tunnel:
        leave(Http2Client(tunnel), f"{base}/refunds")


@pytest.mark.parametrize(("leave", "is_whole"), [(_take, True), (_cancel_with_it, False)])
async def test_a_client_that_takes_nothing_has_left(
    tmp_path: Path, certificates: Certificates, leave: Leave, *, is_whole: bool
) -> None:
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    with FramesOrigin(_answer, certificates) as origin:
        async with running_engine(config) as running:
            proxy = running.url_for("tape")
            await asyncio.to_thread(_ask, proxy, origin.url, running.ca, _take)
            await running.end("tape")
            origin.stop()
            running.play()
            await asyncio.to_thread(_ask, proxy, origin.url, running.ca, leave)
            await running.end("tape@1")
            receipt = build(running.store, running.store.runs.get(RunId("tape@1")))
    told = render_receipt(receipt)
    assert receipt.faithful is is_whole, told
    assert ("left before it began" in told) is not is_whole
