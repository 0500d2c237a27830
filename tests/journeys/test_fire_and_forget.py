"""Effects whose clients leave as soon as they have asked: each is sent while it is recorded, and is the same in playback.

They leave with FIN: a reset takes along what the kernel has not handed to the proxy yet.
"""

import socket
import threading
from base64 import b64encode
from functools import partial
from pathlib import Path

import pytest

from playhead.addons.run import pending_exchange
from playhead.config import Config, Mode, Runs
from playhead.tape.exchange import RequestClass
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.process import wait_until
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import H2Wire, tunnel

_COUNT = 10
_RUN = "forget"


def _ask(deck: Deck, url: str, number: int) -> None:
    """Ask for an effect, and leave."""
    authority, body = url.partition("//")[2], b'{"emit": %d}' % number
    secure = url.startswith("https")
    target = f"/v1/emit/{number}" if secure else f"{url}/v1/emit/{number}"
    given = b64encode(f"{_RUN}:x".encode()).decode()
    lines = [f"POST {target} HTTP/1.1", f"Host: {authority}", f"Content-Length: {len(body)}"]
    lines += ["Content-Type: application/json"]
    lines += [] if secure else [f"Proxy-Authorization: Basic {given}"]
    opened = (
        tunnel(deck.proxy, authority, _RUN, ca=deck.running.ca)
        if secure
        else socket.create_connection(deck.proxy, timeout=10)
    )
    with opened:
        opened.sendall("\r\n".join([*lines, "", ""]).encode() + body)


@pytest.mark.parametrize("way", ["plain", "tls"])
def test_an_effect_whose_client_leaves_at_once_is_sent(
    tmp_path: Path, certificates: Certificates, way: str
) -> None:
    """The origin gets each once, the tape has its answer, and a replay of the same client is no divergence."""
    came: list[str] = []
    lock = threading.Lock()

    async def say(conversation: Conversation) -> None:
        with lock:
            came.append(conversation.path)
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    trust = certificates if way == "tls" else None
    with Deck(config) as deck, RawOrigin(say, trust, lasting=True) as origin:
        for number in range(_COUNT):
            _ask(deck, origin.url, number)
            wait_until(partial(_are, came, number + 1))
        deck.end(_RUN)
        origin.stop()
        tape = deck.tape(_RUN)
        deck.play()
        for number in range(_COUNT):
            _ask(deck, origin.url, number)
            wait_until(partial(_has_asked, deck, f"{_RUN}@1", number + 1))
        deck.end(f"{_RUN}@1")
        receipt = deck.receipt(f"{_RUN}@1")
    assert sorted(path[-1] for path in came) == [str(number) for number in range(_COUNT)]
    assert [one.response is not None and one.gone is not None for one in tape] == [True] * _COUNT
    assert receipt.divergences == []
    assert receipt.counts["served"] == _COUNT


def test_an_answer_without_an_end_does_not_keep_a_run_open(tmp_path: Path) -> None:
    """The answer to an effect is read on after its client has left, until its run ends; tape and receipt say so."""
    asked = threading.Event()

    async def say(conversation: Conversation) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        await conversation.say(head + b"9\r\ndata: 1\n\n\r\n")
        asked.set()
        await conversation.left()

    runs = Runs(grace_s=0.2)
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", runs=runs)
    with Deck(config) as deck, RawOrigin(say) as origin:
        _ask(deck, origin.url, 0)
        assert asked.wait(10)
        deck.do(deck.running.end, _RUN)
        origin.stop()
        (kept,) = deck.tape(_RUN)
        receipt = deck.receipt(_RUN)
    assert kept.request_class is RequestClass.EFFECT
    assert kept.response is not None
    assert (kept.response.body, kept.response.complete) == (b"data: 1\n\n", False)
    assert (receipt.status, receipt.unfinished) == ("sealed", [1])
    assert "seq 1: its run ended before the answer did" in receipt.warnings


def test_an_answer_without_an_end_is_given_up_on_a_connection_that_stays(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP/2 a client gives up one stream and keeps its connection: its answer is read on for ten minutes, and no longer."""
    monkeypatch.setattr(pending_exchange, "LATE_ANSWER_S", 0.0)
    over = threading.Event()

    def say(stream: Stream) -> bool:
        stream.head(("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n")
        over.wait(20)
        return False

    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    with Deck(config) as deck, FramesOrigin(say, certificates) as origin:
        target = f"127.0.0.1:{origin.port}"
        opened = tunnel(deck.proxy, target, _RUN, ca=deck.running.ca, alpn="h2")
        with H2Wire(opened, target) as wire:
            stream = wire.send("POST", "/v1/emit", body=[b"{}"])
            wire.begin(stream)
            wire.reset(stream)
            wait_until(partial(_has_left, deck))
            deck.do(deck.running.registry.tick)
            assert not deck.running.open_run(_RUN).on_the_way.pending_exchanges
            over.set()
            deck.end(_RUN)
        (kept,) = deck.tape(_RUN)
    assert kept.response is not None
    assert (kept.response.body, kept.response.complete) == (b"data: 1\n\n", False)
    assert kept.gone is not None
    assert any("after its client had left" in text for text in kept.warnings)


def _has_left(deck: Deck) -> bool:
    waiting = deck.running.open_run(_RUN).on_the_way.pending_exchanges
    return not waiting or all(one.progress.gone for one in waiting)


def _are(came: list[str], count: int) -> bool:
    return len(came) >= count


def _has_asked(deck: Deck, run: str, count: int) -> bool:
    """Say whether so many requests of a run have come."""
    found = [one for one in deck.running.registry.open if one.info and one.info.id == run]
    return bool(found) and found[0].on_the_way.requests >= count
