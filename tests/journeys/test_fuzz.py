"""Anything at all: answers and requests with bytes inserted, left out, repeated and cut off.

Whatever comes, it comes to an end, in record and in playback; nothing is left on its way, nothing is logged
with a traceback, and a neighbour is answered. For half a minute and more in the full count.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from struct import pack

import pytest
from hpack import Encoder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from playhead.config import Config, Mode
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.logs import Logged
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import Answer, Frame, H2Wire, Wire, tunnel

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
pytestmark = pytest.mark.timeout(300 if FULL else 60)

_HEAD = b"HTTP/1.1 200 OK\r\n"
_FINE = _HEAD + b"Content-Length: 4\r\n\r\nfine"


class Stage:
    """An engine, origins that say what they are told once a connection, and a neighbour's."""

    def __init__(self, deck: Deck, certificates: Certificates, logged: Logged) -> None:
        self.deck = deck
        self.logged = logged
        self.said: bytes = _FINE
        self.once = RawOrigin(self._say)
        self.beside = RawOrigin(self._say_fine)
        self.frames = FramesOrigin(self._say_frames, certificates)

    async def _say(self, conversation: Conversation) -> None:
        await conversation.say(self.said)

    def _say_frames(self, stream: Stream) -> bool:
        stream.raw(self.said)
        return True

    async def _say_fine(self, conversation: Conversation) -> None:
        await conversation.say(_FINE)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stage]:
    """Start an engine and the origins."""
    store = tmp_path_factory.mktemp("fuzz") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with ExitStack() as stack:
        logged = stack.enter_context(Logged())
        deck = stack.enter_context(Deck(config))
        made = Stage(deck, certificates, logged)
        for origin in (made.once, made.beside, made.frames):
            stack.enter_context(origin)
        yield made


FUZZED = settings(
    max_examples=400 if FULL else 10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FUZZED_TLS = settings(FUZZED, max_examples=200 if FULL else 5)
BATCH = 4
"""Cases of one example: each has a connection of its own, all of them one run."""

_SPICE = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"-1", b"f" * 17, b"\xff"),
    *(b"\r\n\r\n", b"HTTP/1.1 ", b"HTTP/1.0 ", b"HTTP/1.1 103 Early\r\n\r\n", b"0\r\n\r\n"),
    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
    *(
        b"Transfer-Encoding: identity\r\n",
        b" folded\r\n",
        b"Expect: 100-continue\r\n",
        b"\x16\x03\x01",
    ),
]
_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "repeat", "cut"]),
        st.integers(0, 1 << 16),
        st.sampled_from(_SPICE) | st.binary(max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def _edited(wire: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for kind, place, spice in edits:
        at = place % (len(wire) + 1)
        end = at + len(spice)
        match kind:
            case "insert":
                wire = wire[:at] + spice + wire[at:]
            case "replace":
                wire = wire[:at] + spice + wire[end:]
            case "delete":
                wire = wire[:at] + wire[end:]
            case "repeat":
                wire = wire[:at] + wire[max(0, at - 20) : at] + wire[at:]
            case "cut":
                wire = wire[:at]
    return wire


_GOOD_ANSWERS = (
    _FINE,
    _HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n10;a=b\r\n0123456789abcdef\r\n0\r\nX-Sum: 7\r\n\r\n",
    _HEAD + b"X-A: b\r\nConnection: close\r\n\r\nuntil the end",
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + _FINE,
    b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n",
)
_GOOD_REQUESTS = (
    b"GET /fuzz?a=b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
    b"POST /fuzz HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
    (
        b"POST /fuzz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n3;a=b\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"
    ),
    b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PUT /fuzz HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
)


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    return pack(">I", len(payload))[1:] + bytes([kind, flags]) + pack(">I", 1) + payload


def _head(*fields: tuple[bytes, bytes], end: bool = False) -> bytes:
    return _frame(1, 4 | end, bytes(Encoder().encode(list(fields), huffman=False)))


_OK = (b":status", b"200")
_GOOD_FRAMES = (
    _head(_OK, (b"content-length", b"4")) + _frame(0, 1, b"fine"),
    _head(_OK, (b"x-a", b"b")) + _frame(0, 0, b"fi") + _frame(0, 1, b"ne"),
    _head(_OK) + _frame(0, 0, b"fine") + _head((b"x-sum", b"7"), end=True),
    _head((b":status", b"103"), (b"link", b"a")) + _head(_OK, end=True),
    _head(_OK) + _frame(7, 0, pack(">II", 1, 0)) + _frame(0, 1, b"fine"),
)


def _fuzzed(goods: tuple[bytes, ...]) -> st.SearchStrategy[list[bytes]]:
    return st.lists(
        st.builds(_edited, st.sampled_from(goods), _EDITS), min_size=BATCH, max_size=BATCH
    )


_numbers = iter(range(1 << 30))


@FUZZED
@given(answers=_fuzzed(_GOOD_ANSWERS))
def test_whatever_an_origin_says_comes_to_an_end_and_is_played(
    stage: Stage, answers: list[bytes]
) -> None:
    """The client gets an answer or its connection ends; the same on a replay; no traceback, no neighbour."""
    before = len(stage.logged.records)
    run = f"answers-{next(_numbers)}"

    def ask() -> list[Answer]:
        found = []
        for index, answer in enumerate(answers):
            stage.said = answer
            with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.once.port}", run)) as wire:
                found.append(wire.ask(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % index))
        return found

    stage.deck.record()
    recorded = ask()
    stage.deck.end(run)
    stage.deck.play()
    played = ask()
    stage.deck.end(f"{run}@1")
    stage.deck.record()
    tape = {exchange.request.target: exchange for exchange in stage.deck.tape(run)}
    for index, (was, now) in enumerate(zip(recorded, played, strict=True)):
        response = tape[f"/{index}"].response
        if response is None or response.status != 101:  # it switches to something else
            assert now == was
    _check_logs(stage, before, 1)


@FUZZED_TLS
@given(answers=_fuzzed(_GOOD_FRAMES))
def test_whatever_frames_an_origin_sends_come_to_an_end_and_are_played(
    stage: Stage, answers: list[bytes]
) -> None:
    """Each stream ends or is reset; the same on a replay; no traceback, no neighbour disturbed."""
    before = len(stage.logged.records)
    run = f"frames-{next(_numbers)}"
    authority = f"127.0.0.1:{stage.frames.port}"

    def ask() -> list[list[Frame]]:
        found = []
        for index, answer in enumerate(answers):
            stage.said = answer
            ca = stage.deck.running.ca
            with H2Wire(
                tunnel(stage.deck.proxy, authority, run, ca=ca, alpn="h2"), authority
            ) as wire:
                found.append(wire.ask("GET", f"/{index}"))
        return found

    stage.deck.record()
    recorded = ask()
    stage.deck.end(run)
    stage.deck.play()
    assert ask() == recorded
    stage.deck.end(f"{run}@1")
    stage.deck.record()
    _check_logs(stage, before, 1)


@FUZZED
@given(requests=_fuzzed(_GOOD_REQUESTS))
@example(requests=[b"T /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_whatever_a_client_says_comes_to_an_end(stage: Stage, requests: list[bytes]) -> None:
    """It is answered or closed, and nothing is left on its way; no traceback, no neighbour disturbed."""
    before = len(stage.logged.records)
    run = f"requests-{next(_numbers)}"
    stage.said = _FINE
    for record in (True, False):
        (stage.deck.record if record else stage.deck.play)()
        for request in requests:
            with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.once.port}", run)) as wire:
                wire.send(request)
                with contextlib.suppress(OSError):  # it is closed already
                    wire.sock.shutdown(socket.SHUT_WR)
                wire.rest()
        stage.deck.end(run if record else f"{run}@1")
    stage.deck.record()
    _check_logs(stage, before, 2)


def _check_logs(stage: Stage, before: int, each: int) -> None:
    """Check that nothing was logged but one line for a case and phase, and that a neighbour is fine."""
    records = stage.logged.records[before:]
    assert len(records) <= each * BATCH
    for record in records:
        assert (record.exc_info, record.levelname) == (None, "WARNING"), record.getMessage()
        assert "\n" not in record.getMessage()
    with Wire(tunnel(stage.deck.proxy, f"127.0.0.1:{stage.beside.port}", "neighbour")) as wire:
        answer = wire.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.head + answer.body == _FINE
