"""What was recorded over HTTP/2 is played to a client that speaks HTTP/1.1 only, framed as that has to be."""

import asyncio
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Ending, RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.sockets import get, open_tunnel, read_to_end
from playhead.timeline import Receipt, build

PIECES = (b"one, ", b"two\n", b"three")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
CHUNKS = b"5\r\none, \r\n4\r\ntwo\n\r\n5\r\nthree\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
EXPECTED = {
    # By path: what a client of HTTP/1.1 is sent, and how its connection ends (None: it does not).
    "pieces": (CHUNKED + CHUNKS + b"0\r\n\r\n", None),
    "trailers": (CHUNKED + CHUNKS + b"0\r\ngrpc-status: 0\r\nx-sum: 7\r\n\r\n", None),
    "length": (HEAD + b"content-length: 14\r\n\r\n" + b"".join(PIECES), None),
    "nothing": (CHUNKED + b"0\r\n\r\n", None),
    "cut": (CHUNKED + CHUNKS[:10], Ending.RST),
}


def _answer(stream: Stream) -> bool:
    name = stream.path.rpartition("/")[2]
    length = (("content-length", "14"),) if name == "length" else ()
    stream.head(("content-type", "text/plain"), *length, end=name == "nothing")
    if name == "cut":
        stream.data(PIECES[0])
        stream.reset(2)
    elif name == "trailers":
        for piece in PIECES:
            stream.data(piece)
        stream.trailers(("grpc-status", "0"), ("x-sum", "7"))
    elif name != "nothing":
        for piece in PIECES:
            stream.data(piece, end=piece is PIECES[-1])
    return False


def _ask_all(proxy: str, base: str, ca: Path) -> None:
    """Ask for everything over one connection of HTTP/2."""
    with open_tunnel(proxy, base, ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        for name in EXPECTED:
            stream = client.ask("GET", f"{base}/{name}")
            client.read_until(lambda: client.got[stream][-1:] in (["end"], ["reset 2"]))  # noqa: B023


def _ask_one(proxy: str, url: str, ca: Path, expected: int) -> tuple[bytes, Ending | None]:
    """Ask over HTTP/1.1; read as much as is expected, and where that does not come, to the end."""
    with open_tunnel(proxy, url, ca) as tunnel:
        get(tunnel, url)
        received = b""
        while len(received) < expected and (data := tunnel.recv(expected - len(received))):
            received += data
        if not url.endswith("/cut"):
            return received, None
        rest, ending = read_to_end(tunnel)
        return received + rest, ending


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> tuple[dict[str, tuple[bytes, Ending | None]], Receipt]:
    """Record over HTTP/2, stop the origin, replay over HTTP/1.1."""
    store = tmp_path_factory.mktemp("other") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)

    async def tell() -> tuple[dict[str, tuple[bytes, Ending | None]], Receipt]:
        async with running_engine(config) as running:
            proxy = running.url_for("tape")
            await asyncio.to_thread(_ask_all, proxy, origin.url, running.ca)
            await running.end("tape")
            origin.stop()
            running.play()
            got = {}
            for name, (expected, _) in EXPECTED.items():
                url = f"{origin.url}/{name}"
                got[name] = await asyncio.to_thread(_ask_one, proxy, url, running.ca, len(expected))
            await running.end("tape@1")
            return got, build(running.store, running.store.get_run(RunId("tape@1")))

    with FramesOrigin(_answer, certificates) as origin:
        return asyncio.run(tell())


@pytest.mark.parametrize("name", EXPECTED)
def test_an_answer_of_http2_is_framed_for_http1(
    played: tuple[dict[str, tuple[bytes, Ending | None]], Receipt], name: str
) -> None:
    """In chunks where it has no length, one a piece, with its trailers; cut where it was cut."""
    assert played[0][name] == EXPECTED[name]


def test_the_protocol_makes_no_divergence(
    played: tuple[dict[str, tuple[bytes, Ending | None]], Receipt],
) -> None:
    """Every recorded answer was served."""
    receipt = played[1]
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.counts["served"] == len(EXPECTED)
