"""What was recorded over HTTP/2 is played to a client that speaks HTTP/1.1 only, framed as that has to be, and the other way round."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Ending, RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.engine import running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.needs import need
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import get, open_tunnel, read_to_end
from playhead.tests.support.tls import client_context
from playhead.tests.support.wire import tunnel
from playhead.timeline import Receipt, build
from playhead.timeline.receipts.render_text import render_receipt

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
            return got, build(running.store, running.store.runs.get(RunId("tape@1")))

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


def test_the_receipt_lists_the_other_protocol(
    played: tuple[dict[str, tuple[bytes, Ending | None]], Receipt],
) -> None:
    """How many were served over another than on the tape; none of them is `exact`."""
    receipt = played[1]
    assert receipt.protocols_differ == {"HTTP/2.0 -> HTTP/1.1": len(EXPECTED)}
    assert receipt.matched == {"canonical": len(EXPECTED)}
    assert f"protocols differ: HTTP/2.0 -> HTTP/1.1 ({len(EXPECTED)})" in render_receipt(receipt)


# ---- real clients, either way ------------------------------------------------------------------------


def _httpx(deck: Deck, url: str, *, http2: bool) -> tuple[str, int, bytes]:
    context = client_context(deck.running.ca)
    proxy = deck.running.url_for("clients")
    import httpx  # not at collection

    with httpx.Client(proxy=proxy, verify=context, http2=http2, http1=not http2) as client:
        answer = client.post(url, json={"question": "which protocol"})
        return answer.http_version, answer.status_code, answer.content


def _curl(deck: Deck, url: str, *, http2: bool) -> tuple[str, int, bytes]:
    given = [
        "curl",
        "--http2" if http2 else "--http1.1",
        "--proxy",
        deck.running.url_for("clients"),
    ]
    trust = [
        "--cacert",
        str(deck.running.ca),
        "--silent",
        "--json",
        '{"question": "which protocol"}',
    ]
    written = ["--write-out", "\\n%{http_version} %{response_code}"]
    found = subprocess.run([*given, *trust, *written, url], capture_output=True, check=True)
    body, _, end = found.stdout.rpartition(b"\n")
    version, status = end.decode().split()
    return f"HTTP/{version}", int(status), body


CASES = [("httpx", "HTTP/1.1"), ("httpx", "HTTP/2"), ("curl", "HTTP/2")]
"""Client, and the protocol that it records with; curl never offers HTTP/2 alone."""
CLIENTS = {"httpx": _httpx, "curl": _curl}


def _skip_without(client: str) -> None:
    """Skip where curl is not there, or does not speak HTTP/2."""
    if client == "curl":
        need("curl")


def _say_h2(stream: Stream) -> bool:
    stream.head((b"content-type", b"application/json"), (b"content-length", b"8"))
    stream.data(b'{"a": 1}', end=True)
    return False


async def _say_h1(conversation: Conversation) -> None:
    await conversation.say(
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'
    )


@pytest.mark.parametrize(("client", "recorded"), CASES)
def test_a_client_that_offers_the_other_protocol_alone_is_answered(
    tmp_path: Path, certificates: Certificates, client: str, recorded: str
) -> None:
    """httpx with `http2=True`, then without, and the other way round; so curl. The receipt says so."""
    _skip_without(client)
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    speaks_h2 = recorded == "HTTP/2"
    with Deck(config) as deck, _origin(certificates, http2=speaks_h2) as origin:
        url = f"{origin.url}/v1/ask"
        first = CLIENTS[client](deck, url, http2=speaks_h2)
        deck.end("clients")
        origin.stop()
        deck.play()
        second = CLIENTS[client](deck, url, http2=not speaks_h2)
        deck.end("clients@1")
        receipt = deck.receipt("clients@1")
    assert first[0] != second[0]
    assert first[1:] == second[1:] == (200, b'{"a": 1}')
    assert receipt.faithful is True, receipt.to_json()
    assert sum(receipt.protocols_differ.values()) == 1
    assert receipt.matched == {"canonical": 1}


def test_a_client_that_offers_more_is_given_the_protocol_of_the_tape(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Recorded with HTTP/1.1 alone; who offers HTTP/2 first, and HTTP/1.1, is not given HTTP/2."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    with Deck(config) as deck, _origin(certificates, http2=False) as origin:
        url = f"{origin.url}/v1/ask"
        _httpx(deck, url, http2=False)
        deck.end("clients")
        origin.stop()
        deck.play()
        authority = url.split("/")[2]
        with tunnel(deck.proxy, authority, "clients") as opened:
            context = client_context(deck.running.ca, "h2", "http/1.1")
            with context.wrap_socket(opened, server_hostname="127.0.0.1") as wrapped:
                assert wrapped.selected_alpn_protocol() is None  # as the origin, which chose none


def test_grpc_over_http1_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    """It was recorded over HTTP/2, which it needs; the refusal says so."""
    import httpx  # not at collection

    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    call = {"content-type": "application/grpc", "te": "trailers"}
    with Deck(config) as deck, _origin(certificates, http2=True) as origin:
        url, context = f"{origin.url}/pkg.Service/Call", client_context(deck.running.ca)

        def ask(*, http2: bool) -> httpx.Response:
            proxy = deck.running.url_for("clients")
            with httpx.Client(proxy=proxy, verify=context, http2=http2, http1=not http2) as client:
                return client.post(url, content=b"\0\0\0\0\x01a", headers=call)

        ask(http2=True)
        deck.end("clients")
        origin.stop()
        deck.play()
        refused = ask(http2=False)
        deck.end("clients@1")
        receipt = deck.receipt("clients@1")
    assert refused.headers["x-playhead"].startswith("refused")
    assert "gRPC needs HTTP/2" in refused.headers["x-playhead"]
    assert receipt.to_json()["exit_code"] == 121


def _origin(certificates: Certificates, *, http2: bool) -> FramesOrigin | RawOrigin:
    """Make an origin of one protocol, with TLS."""
    if http2:
        return FramesOrigin(_say_h2, certificates)
    return RawOrigin(_say_h1, certificates, lasting=True)
