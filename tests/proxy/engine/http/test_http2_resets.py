"""Streams of HTTP/2 that an upstream resets."""

import asyncio
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from playhead.config import Config
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.sockets import open_tunnel


def _ask(running: Running, url: str) -> None:
    with open_tunnel(running.url_for("tape"), url, running.ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask("GET", url)
        client.read_until(lambda: str(client.got[stream][-1:]).startswith("['reset"))


@pytest.mark.parametrize("begun", [False, True], ids=["before its answer", "within it"])
async def test_a_fault_says_that_the_upstream_reset_the_stream(
    tmp_path: Path, certificates: Certificates, begun: bool
) -> None:
    """And not the client, which did nothing."""

    def reset(stream: Stream) -> bool:
        if begun:
            stream.head()
            stream.data(b"some")
        stream.reset(ErrorCodes.ENHANCE_YOUR_CALM)
        return False

    config = Config(store=tmp_path / "store", upstream_ca=certificates.root)
    with FramesOrigin(reset, certificates) as origin:
        async with running_engine(config) as running:
            await asyncio.to_thread(_ask, running, f"{origin.url}/x")
            await running.end("tape")
            (found,) = running.store.exchanges.all(running.store.runs.get(RunId("tape")))
    assert found.fault is not None
    assert found.fault.text == "stream reset by server (ENHANCE_YOUR_CALM)"
    assert found.fault.code == ErrorCodes.ENHANCE_YOUR_CALM
