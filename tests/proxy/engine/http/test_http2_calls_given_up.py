"""Calls over HTTP/2 that their client gives up: all messages that it had sent by then count in a replay."""

import asyncio
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.sockets import open_tunnel
from playhead.timeline import Receipt, build

_ANN, _BOB, _EVE = (b"\0\0\0\0\7pay " + name for name in (b"ann", b"bob", b"eve"))
ALL = (_ANN, _BOB, _EVE)


def _give_up(running: Running, url: str, messages: tuple[bytes, ...], answered: bool) -> None:
    """Send messages, the rest once the first was answered; then give the call up. Blocks."""
    with open_tunnel(running.url_for("tape"), url, running.ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask("POST", url, messages[0], kind="application/grpc", end=False)
        if answered:
            client.read_until(lambda: client.data(stream) == b"ok")
        for message in messages[1:]:
            client.settle()
            if client.got[stream][-1:] == ["reset 2"]:
                return  # it was another one
            client.say(stream, message)
        client.settle()
        if client.got[stream][-1:] != ["reset 2"]:
            client.cancel(stream)
            client.settle()


@pytest.fixture(scope="module", params=[True, False], ids=["answered", "unanswered"])
def answered(request: pytest.FixtureRequest) -> bool:
    """Whether the answer begins after the first message."""
    return bool(request.param)


async def _replay(
    folder: Path, certificates: Certificates, messages: tuple[bytes, ...], answered: bool
) -> Receipt:
    """Record a call of three messages that is given up, and replay it with these."""

    def begin(stream: Stream) -> None:
        if answered:
            stream.head(("content-type", "application/grpc"))
            stream.data(b"ok")

    config = Config(store=folder / "store", upstream_ca=certificates.root)
    with FramesOrigin(lambda _: False, certificates, begin) as origin:
        url = f"{origin.url}/t.S/Pay"
        async with running_engine(config) as running:
            await asyncio.to_thread(_give_up, running, url, ALL, answered)
            await running.end("tape")
            running.play()
            await asyncio.to_thread(_give_up, running, url, messages, answered)
            await running.end("tape@1")
            return build(running.store, running.store.runs.get(RunId("tape@1")))


async def test_the_same_messages_before_it_is_given_up_are_faithful(
    tmp_path: Path, certificates: Certificates, answered: bool
) -> None:
    """And the same in all: method, target and body."""
    receipt = await _replay(tmp_path, certificates, ALL, answered)
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.to_json()["matched"] == {"exact": 1}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((_ANN,), id="fewer"),
        pytest.param((_ANN, _BOB), id="one fewer"),
        pytest.param((*ALL, _ANN), id="more"),
        pytest.param((_ANN, _BOB, _EVE[:-1]), id="a shorter one"),
        pytest.param((_ANN, _BOB, _BOB), id="another one"),
    ],
)
async def test_other_messages_before_it_is_given_up_are_a_divergence(
    tmp_path: Path, certificates: Certificates, answered: bool, messages: tuple[bytes, ...]
) -> None:
    """It is listed with the recorded call and the first difference, and nothing of it matches exactly."""
    receipt = await _replay(tmp_path, certificates, messages, answered)
    told = receipt.to_json()
    assert receipt.faithful is False
    assert told["matched"] == {}
    assert [(one["kind"], one["nearest_seq"]) for one in told["divergences"]] == [("changed", 1)]
    assert told["divergences"][0]["differences"][0]["place"].startswith("body byte")
