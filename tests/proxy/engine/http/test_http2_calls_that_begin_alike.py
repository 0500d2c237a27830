"""Calls over HTTP/2 that begin alike, of which one is answered after its end and the next piece by piece."""

import asyncio
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.early import ask_by_halves
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.sockets import open_tunnel
from playhead.timeline import build

HALVES, PIPED = "answered piece by piece", "answered after its end"


def _ask_piped(running: Running, url: str, rest: bytes) -> bytes:
    """Post `wo` and the rest without waiting for an answer; give what was answered. Blocks."""
    with open_tunnel(running.url_for("tape"), url, running.ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask("POST", url, b"wo", kind="application/grpc", end=False)
        client.settle()
        client.end(stream, rest)
        client.read_until(lambda: client.got[stream][-1:] in (["end"], ["reset 2"], ["gone"]))
        return client.data(stream)


@pytest.mark.parametrize(
    ("rest", "order"),
    [
        pytest.param(b"rd and more words", (PIPED, HALVES), id="goes on longer"),
        pytest.param(b"lf", (PIPED, HALVES), id="goes on otherwise"),
        pytest.param(b"rd", (PIPED, HALVES), id="is the same"),
        pytest.param(b"lf", (HALVES, PIPED), id="comes second"),
    ],
)
async def test_calls_that_begin_alike_are_told_apart(
    tmp_path: Path, certificates: Certificates, rest: bytes, order: tuple[str, str]
) -> None:
    """By their next message, or by the silence of a client that waits for an answer."""
    streams: list[Stream] = []

    def begin(stream: Stream) -> None:
        streams.append(stream)
        if len(streams) == 2:
            stream.head(("content-type", "application/grpc"))
            stream.data(b"said")

    def end(stream: Stream) -> bool:
        if len(streams) == 1:
            stream.head(("content-type", "application/grpc"))
            stream.data(b"all of it")
        stream.data(b"", end=True)
        return True

    config = Config(store=tmp_path / "store", upstream_ca=certificates.root)
    with FramesOrigin(end, certificates, begin) as origin:
        url = f"{origin.url}/say"
        async with running_engine(config) as running:
            for run, calls in (("tape", (PIPED, HALVES)), ("tape@1", order)):
                for call in calls:
                    if call == HALVES:
                        await asyncio.to_thread(ask_by_halves, running, "tape", url, b"said")
                    else:
                        got = await asyncio.to_thread(_ask_piped, running, url, rest)
                        assert got == b"all of it"
                await running.end(run)
                running.play()
            receipt = build(running.store, running.store.runs.get(RunId("tape@1")))
    assert receipt.divergences == []
    assert receipt.counts["served"] == 2
