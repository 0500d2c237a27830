"""What RFC 6455 and RFC 7692 ask for, case by case, through the proxy: recorded, and again from the tape.

The cases are those of the Autobahn test suite, under its numbers: a client whose every byte is ours drives an
echo server of another implementation. Both times the outcome has to be what the standards ask for, and both
times the same. Sizes are reduced unless PLAYHEAD_FULL is set.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

import pytest

from playhead.config import Config, Mode, parse_match
from playhead.config.schema import Classes
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    NAMES,
    PING,
    PONG,
    TEXT,
    Deflate,
    Peer,
    WebsocketOrigin,
    closing,
    frame,
)
from playhead.timeline import build

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
PARALLEL = 16
LONG_S = 300 if FULL else 15

Step = bytes | int
"""Bytes to send, or how many frames there have to have come before going on."""
Outcome = list[str | tuple[str, bytes]]


@dataclass(frozen=True)
class Case:
    """What the client sends, and what it may see.

    Outcomes are lists of what came: ("text", ...), ("pong", ...), and in the end "close CODE" or "end".
    """

    steps: tuple[Step, ...]
    outcomes: tuple[Outcome, ...]
    chop: int = 0
    """Bytes in a write; 0 writes each step at once."""
    extensions: str = ""


def echoed(*messages: tuple[str, bytes]) -> tuple[Outcome, ...]:
    """These and a proper end."""
    return ([*messages, "close 1000"],)


def failed(code: int, *messages: tuple[str, bytes]) -> tuple[Outcome, ...]:
    """The connection is failed with a code, after none or some of these: at once, or not."""
    counts = range(len(messages) + 1)
    return tuple([*messages[:count], f"close {code}"] for count in counts)


CASES: dict[str, Case] = {}


def case(name: str, *steps: Step, outcomes: tuple[Outcome, ...], chop: int = 0) -> None:
    """Add a case; one that is to end well closes in the end."""
    assert name not in CASES
    CASES[name] = Case(steps, outcomes, chop)


def well(name: str, *steps: Step, got: Iterable[tuple[str, bytes]], chop: int = 0) -> None:
    """Add a case that ends well: all that is to come is waited for, then the client closes."""
    expected = list(got)
    case(name, *steps, len(expected), closing(), outcomes=echoed(*expected), chop=chop)


def t(payload: bytes, *, fin: bool = True, rsv: int = 0) -> bytes:
    return frame(TEXT, payload, fin=fin, rsv=rsv)


def c(payload: bytes, *, fin: bool = True) -> bytes:
    return frame(CONTINUATION, payload, fin=fin)


# 1 Framing

for number, size in enumerate((0, 125, 126, 127, 128, 65535, 65536), 1):
    well(f"1.1.{number}", t(b"*" * size), got=[("text", b"*" * size)])
    well(f"1.2.{number}", frame(BINARY, b"\xfe" * size), got=[("binary", b"\xfe" * size)])
well("1.1.8", t(b"*" * 65536), got=[("text", b"*" * 65536)], chop=997)
well("1.2.8", frame(BINARY, b"\xfe" * 65536), got=[("binary", b"\xfe" * 65536)], chop=997)

# 2 Pings and pongs

BYTES = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
well("2.1", frame(PING), got=[("pong", b"")])
well("2.2", frame(PING, b"Hello, world!"), got=[("pong", b"Hello, world!")])
well("2.3", frame(PING, BYTES), got=[("pong", BYTES)])
well("2.4", frame(PING, b"\xfe" * 125), got=[("pong", b"\xfe" * 125)])
case("2.5", frame(PING, b"\xfe" * 126), outcomes=failed(1002))
well("2.6", frame(PING, b"\xfe" * 125), got=[("pong", b"\xfe" * 125)], chop=1)
well("2.7", frame(PONG), got=[])
well("2.8", frame(PONG, b"unsolicited"), got=[])
well("2.9", frame(PONG, b"unsolicited"), frame(PING, b"p"), got=[("pong", b"p")])
TEN = [b"payload-%d" % number for number in range(10)]
well("2.10", *(frame(PING, one) for one in TEN), got=[("pong", one) for one in TEN])
well("2.11", *(frame(PING, one) for one in TEN), got=[("pong", one) for one in TEN], chop=1)

# 3 Reserved bits

HELLO = ("text", b"Hello, world!")
case("3.1", t(HELLO[1], rsv=1), outcomes=failed(1002))
for number, chop in ((2, 0), (3, 21), (4, 1)):
    case(
        f"3.{number}",
        t(HELLO[1]),
        t(HELLO[1], rsv=number),
        frame(PING),
        outcomes=failed(1002, HELLO),
        chop=chop,
    )
case("3.5", frame(BINARY, BYTES, rsv=5), outcomes=failed(1002))
case("3.6", frame(PING, b"Hello, world!", rsv=6), outcomes=failed(1002))
case("3.7", frame(CLOSE, b"\x03\xe8", rsv=7), outcomes=failed(1002))

# 4 Opcodes

for number, opcode in enumerate((*range(3, 8), *range(11, 16))):
    group, place = (1, number + 1) if opcode < 8 else (2, number - 4)
    first = (t(HELLO[1]),) if place >= 3 else ()
    case(
        f"4.{group}.{place}",
        *first,
        frame(opcode, b"reserved" if place != 1 else b""),
        frame(PING),
        outcomes=failed(1002, *([HELLO] if first else [])),
        chop=1 if place == 4 else 0,
    )

# 5 Fragments

FRAGS = [b"fragment%d" % number for number in range(1, 6)]
TWO = ("text", b"fragment1fragment2")
case(
    "5.1",
    frame(PING, FRAGS[0], fin=False) + c(FRAGS[1]),
    outcomes=failed(1002),
)
case("5.2", frame(PONG, FRAGS[0], fin=False) + c(FRAGS[1]), outcomes=failed(1002))
for number, chop in ((3, 0), (4, 15), (5, 1)):
    well(f"5.{number}", t(FRAGS[0], fin=False) + c(FRAGS[1]), got=[TWO], chop=chop)
for number, chop in ((6, 0), (7, 15), (8, 1)):
    well(
        f"5.{number}",
        t(FRAGS[0], fin=False) + frame(PING, b"ping") + c(FRAGS[1]),
        got=[("pong", b"ping"), TWO],
        chop=chop,
    )
for number, (fin, chop) in enumerate(((True, 0), (True, 12), (True, 1), (False, 0), (False, 12), (False, 1)), 9):  # fmt: skip
    case(f"5.{number}", c(b"nothing", fin=fin) + t(b"Hello"), outcomes=failed(1002), chop=chop)
case(
    "5.15",
    t(FRAGS[0], fin=False) + c(FRAGS[1]) + c(FRAGS[2], fin=False) + t(FRAGS[3]),
    outcomes=failed(1002, TWO),
)
for number, fin in ((16, False), (17, True)):
    case(
        f"5.{number}",
        (c(FRAGS[0], fin=fin) + t(FRAGS[1], fin=False) + c(FRAGS[2])) * 2,
        outcomes=failed(1002),
    )
case("5.18", t(FRAGS[0], fin=False) + t(FRAGS[1]), outcomes=failed(1002))
for number, chop in ((19, 0), (20, 13)):
    well(
        f"5.{number}",
        t(FRAGS[0], fin=False) + c(FRAGS[1], fin=False) + frame(PING, b"one"),
        1,
        c(FRAGS[2], fin=False) + c(FRAGS[3], fin=False) + frame(PING, b"two") + c(FRAGS[4]),
        got=[("pong", b"one"), ("pong", b"two"), ("text", b"".join(FRAGS))],
        chop=chop,
    )

# 6 UTF-8

KOSME = "κόσμε".encode()
HELLO_UTF8 = "Hello-µ@ßöäüàá-UTF-8!!".encode()
well("6.1.1", t(b""), got=[("text", b"")])
well("6.1.2", t(b"", fin=False) + c(b"", fin=False) + c(b""), got=[("text", b"")])
well("6.1.3", t(b"", fin=False) + c(b"middle", fin=False) + c(b""), got=[("text", b"middle")])
well("6.2.1", t(HELLO_UTF8), got=[("text", HELLO_UTF8)])
well("6.2.2", t(HELLO_UTF8[:12], fin=False) + c(HELLO_UTF8[12:]), got=[("text", HELLO_UTF8)])


def bytewise(data: bytes) -> bytes:
    """A text whose every byte is a fragment."""
    rest = (c(data[at : at + 1], fin=False) for at in range(1, len(data)))
    return t(data[:1], fin=False) + b"".join(rest) + c(b"")


well("6.2.3", bytewise(HELLO_UTF8), got=[("text", HELLO_UTF8)])
well("6.2.4", bytewise(KOSME), got=[("text", KOSME)])
BROKEN = KOSME + b"\xed\xa0\x80" + b"edited"
case("6.3.1", t(BROKEN), outcomes=failed(1007))
case("6.3.2", bytewise(BROKEN), outcomes=failed(1007))
# Fail fast: the rest of the message never comes.
case("6.4.1", t(KOSME, fin=False), c(b"\xf4\x90\x80\x80", fin=False), outcomes=failed(1007))
case("6.4.2", t(KOSME + b"\xf4", fin=False), c(b"\x90", fin=False), outcomes=failed(1007))
case("6.4.3", t(KOSME + b"\xf4\x90\x80\x80" + bytes(50))[:25], outcomes=failed(1007))
case("6.4.4", t(KOSME + b"\xf4" + b"\x90" + bytes(50))[:19], outcomes=failed(1007), chop=1)

VALID: dict[str, list[str]] = {
    "6.5": ["κόσμε", "hello$world", "hello¢world", "hello€world", "hello𤭢world"],
    "6.7": ["\x00", "\x80", "\u0800", "\U00010000"],
    "6.9": ["\x7f", "\u07ff", "\uffff", "\U0010ffff"],
    "6.11": ["\ud7ff", "\ue000", "\ufffd", "\U0010ffff"],
    "6.22": [
        *("\ufffe", "\uffff"),
        *(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF)),
    ],
    "6.23": ["\ufff9", "\ufffa", "\ufffb", "\ufffc", "\ufffd"],
}
INVALID: dict[str, list[bytes]] = {
    # Beginnings of a character
    "6.6": [KOSME[:cut] for cut in (1, 3, 5, 7, 9)],
    # Five and six bytes
    "6.8": [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    "6.10": [
        b"\xf7\xbf\xbf\xbf",
        b"\xfb\xbf\xbf\xbf\xbf",
        b"\xfd\xbf\xbf\xbf\xbf\xbf",
    ],
    "6.12": [b"\xf4\x90\x80\x80"],
    # Continuations of nothing
    "6.13": [b"\x80", b"\xbf", b"\x80\xbf", b"\x80\xbf\x80\xbf\x80", bytes(range(0x80, 0xC0))],
    # Beginnings, each followed by a space
    "6.14": [
        b"".join(bytes([first, 0x20]) for first in range(start, end))
        for start, end in ((0xC0, 0xE0), (0xE0, 0xF0), (0xF0, 0xF8), (0xF8, 0xFC), (0xFC, 0xFE))
    ],
    # The last byte is missing
    "6.15": [b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf"],
    # Bytes that never stand there
    "6.16": [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    # Longer than needed
    "6.17": [b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf"],
    "6.18": [b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"],
    "6.19": [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"],
    # Halves of a pair, one alone and both
    "6.20": [b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xb0\x80", b"\xed\xbf\xbf"],
    "6.21": [b"\xed\xa0\x80\xed\xb0\x80", b"\xed\xaf\xbf\xed\xbf\xbf"],
}
for name, texts in VALID.items():
    for number, said in enumerate(texts, 1):
        encoded = said.encode()
        well(f"{name}.{number}", t(encoded), got=[("text", encoded)])
for name, sequences in INVALID.items():
    for number, data in enumerate(sequences, 1):
        case(f"{name}.{number}", t(data), outcomes=failed(1007))

# 7 Closing

ECHO = ("text", b"Hello World!")
case("7.1.1", t(ECHO[1]), 1, closing(), outcomes=echoed(ECHO))
case("7.1.2", closing() + closing(), outcomes=echoed())
case("7.1.3", closing() + frame(PING), outcomes=echoed())
case("7.1.4", closing() + t(ECHO[1]), outcomes=echoed())
# A message that is never ended: servers differ on whether that breaks the protocol.
case("7.1.5", t(b"a", fin=False) + closing() + c(b"b"), outcomes=(*echoed(), *failed(1002)))
BIG = ("text", b"BAsd7&jh23" * 26 * 1024)
case("7.1.6", t(BIG[1]), t(ECHO[1]), 2, closing() + frame(PING), outcomes=echoed(BIG, ECHO))
case("7.3.1", closing(None), outcomes=(["close 1005"], ["close 1000"]))
case("7.3.2", frame(CLOSE, b"a"), outcomes=failed(1002))
case("7.3.3", closing(1000), outcomes=echoed())
case("7.3.4", closing(1000, "Hello World!"), outcomes=echoed())
case("7.3.5", closing(1000, "*" * 123), outcomes=echoed())
case("7.3.6", closing(1000, "*" * 124), outcomes=failed(1002))
case("7.5.1", closing(1000, BROKEN), outcomes=failed(1007))
for number, code in enumerate((1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999), 1):  # fmt: skip
    case(f"7.7.{number}", closing(code), outcomes=([f"close {code}"], ["close 1000"]))
for number, code in enumerate((0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535), 1):
    case(f"7.9.{number}", closing(code), outcomes=failed(1002))

# 9 Limits and 10 fragments of a large message

KIB = 1024
SIZES = [64, 256, 1024, 4096, 8192, 16384] if FULL else [64, 256]
WHOLE = 4096 if FULL else 64


def in_frames(opcode: int, data: bytes, size: int) -> bytes:
    """A message in frames of a size."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(
        frame(CONTINUATION if number else opcode, piece, fin=number == len(pieces) - 1)
        for number, piece in enumerate(pieces)
    )


for number, size in enumerate(SIZES, 1):
    body = b"*" * (size * KIB)
    well(f"9.1.{number}", t(body), got=[("text", body)])
    well(f"9.2.{number}", frame(BINARY, body), got=[("binary", body)])
for number, size in enumerate((64, 256, 1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB), 1):
    body = b"*" * min(WHOLE * KIB, 2 * KIB * size)  # the origin takes no more fragments
    well(f"9.3.{number}", in_frames(TEXT, body, size), got=[("text", body)])
    well(f"9.4.{number}", in_frames(BINARY, body, size), got=[("binary", body)])
for number, size in enumerate((64, 128, 256, 512, 1024, 2048), 1):
    body = b"*" * (WHOLE // 4 * KIB)
    well(f"9.5.{number}", t(body), got=[("text", body)], chop=size)
    well(f"9.6.{number}", frame(BINARY, body), got=[("binary", body)], chop=size)
for number, size in enumerate((0, 16, 64, 256, 1024, 4096), 1):
    body = b"*" * size
    for group, opcode in ((7, TEXT), (8, BINARY)):
        rounds: list[Step] = []
        for count in range(1, 1001 if FULL else 11):
            rounds += [frame(opcode, body), count]
        got = [(NAMES[opcode], body)] * (len(rounds) // 2)
        case(f"9.{group}.{number}", *rounds, closing(), outcomes=echoed(*got))
well("10.1.1", in_frames(TEXT, b"*" * 65536, 1300), got=[("text", b"*" * 65536)])

# 12 Compression, and 13 what may be agreed on for it; messages are made while talking

COMPRESSED_SIZES = (16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072)
OFFERS = [
    "permessage-deflate",
    "permessage-deflate; server_no_context_takeover",
    "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
    "permessage-deflate; server_max_window_bits=9",
    "permessage-deflate; server_max_window_bits=15",
    "permessage-deflate; server_no_context_takeover; server_max_window_bits=9",
    "permessage-deflate; client_max_window_bits=12, permessage-deflate",
]


@dataclass(frozen=True)
class Compressed:
    """Messages that are sent and come back compressed."""

    extensions: str
    size: int
    count: int
    frames: int = 1


COMPRESSED = {
    f"12.{group}.{number}": Compressed(OFFERS[0], size, 1000 if FULL else 3, frames)
    for group, frames in ((1, 1), (2, 4))
    for number, size in enumerate(COMPRESSED_SIZES if FULL else COMPRESSED_SIZES[::3], 1)
} | {
    f"13.{group}.{number}": Compressed(extensions, size, 1000 if FULL else 5)
    for group, extensions in enumerate(OFFERS, 1)
    for number, size in enumerate((16, 1024, 8192) if FULL else (1024,), 1)
}


# ---- driving them --------------------------------------------------------------------------------------


@dataclass
class Driven:
    """What came of each case, while recording and from the tape."""

    recorded: dict[str, Outcome] = field(default_factory=dict)
    played: dict[str, Outcome] = field(default_factory=dict)
    divergences: list[object] = field(default_factory=list)
    unused: int = 0
    requests: int = 0
    seen_upstream: int = 0


async def _drive(name: str, origin: WebsocketOrigin, proxy: str) -> Outcome:
    plain = CASES.get(name)
    peer = await Peer.open(
        proxy,
        origin.target,
        f"/{name}",
        headers=""
        if plain is not None
        else f"Sec-WebSocket-Extensions: {COMPRESSED[name].extensions}\r\n",
    )
    assert peer.status == 101
    seen: Outcome = []
    try:
        async with asyncio.timeout(LONG_S):
            if plain is not None:
                await _say(peer, plain, seen)
            else:
                await _say_compressed(peer, COMPRESSED[name], seen)
            while await _hear(peer, seen):
                pass
    except TimeoutError:
        seen.append("nothing more")
    except OSError:
        seen.append("reset")
    finally:
        await peer.close()
    return seen


async def _say(peer: Peer, case: Case, seen: Outcome) -> None:
    for step in case.steps:
        if isinstance(step, bytes):
            if case.chop:
                await peer.send_chopped(step, case.chop)
            else:
                peer.send(step)
            continue
        while len(seen) < step and await _hear(peer, seen):
            pass


async def _hear(peer: Peer, seen: Outcome) -> bool:
    """Read a frame; False at the end of the connection."""
    came = await peer.read()
    if came is None:
        return False
    if came.opcode == CLOSE:
        code = int.from_bytes(came.payload[:2], "big") if came.payload else 1005
        seen.append(f"close {code}")
    else:
        assert came.fin
        assert came.rsv == 0
        seen.append((NAMES[came.opcode], came.payload))
    return True


async def _say_compressed(peer: Peer, case: Compressed, seen: Outcome) -> None:
    agreed = peer.head.decode().lower()
    assert "permessage-deflate" in agreed
    deflate = Deflate(agreed)
    for number in range(case.count):
        body = (b'{"number": %d, "text": "the same words again"}' % number) * (case.size // 40 + 1)
        body = body[: case.size]
        packed = deflate.compress(body)
        step = -(-len(packed) // case.frames)
        pieces = [packed[at : at + step] for at in range(0, len(packed), step)]
        for place, piece in enumerate(pieces):
            opcode = CONTINUATION if place else TEXT
            last = place == len(pieces) - 1
            peer.send(frame(opcode, piece, fin=last, rsv=0 if place else 4))
        came = await peer.read()
        assert came is not None
        assert came.opcode == TEXT
        assert came.rsv == 4
        assert deflate.decompress(came.payload) == body
        seen.append(("text", body[:40]))
    peer.send(closing())


async def _all(origin: WebsocketOrigin, running: Running, outcomes: dict[str, Outcome]) -> None:
    free = asyncio.Semaphore(PARALLEL)

    async def one(name: str) -> None:
        async with free:
            outcomes[name] = await _drive(name, origin, str(running.address))

    async with asyncio.TaskGroup() as group:
        for name in chain(CASES, COMPRESSED):
            group.create_task(one(name))


async def _drive_all(config: Config) -> Driven:
    driven = Driven()
    with WebsocketOrigin() as origin:
        async with running_engine(config) as running:
            await _all(origin, running, driven.recorded)
            await running.end("tape")
            driven.seen_upstream = len(origin.paths)
            origin.stop()
            running.play()
            await _all(origin, running, driven.played)
            await running.end("tape@1")
            receipt = build(running.store, running.store.runs.get("tape@1"))
            driven.divergences = list(receipt.divergences)
            driven.unused = receipt.counts["unused"]
            driven.requests = receipt.requests
    return driven


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Driven:
    # As conversations with a model: none of them waits for a request that belongs to another.
    classes = Classes(inference=(parse_match("*://127.0.0.1"),))
    config = Config(mode=Mode.RECORD, store=tmp_path_factory.mktemp("store"), classes=classes)
    return asyncio.run(_drive_all(config))


@pytest.mark.timeout(900 if FULL else 60)
@pytest.mark.parametrize("name", CASES)
def test_a_case_ends_as_the_standard_asks(driven: Driven, name: str) -> None:
    """While recording; and from the tape with the same frames and the same end."""
    assert driven.recorded[name] in CASES[name].outcomes
    assert driven.played[name] == driven.recorded[name]


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_compressed_case_ends_well(driven: Driven, name: str) -> None:
    """All messages come back, and the end is proper; from the tape too."""
    assert len(driven.recorded[name]) == COMPRESSED[name].count + 1
    assert driven.recorded[name][-1] == "close 1000"
    assert driven.played[name] == driven.recorded[name]


def test_no_case_diverges(driven: Driven) -> None:
    """What breaks the protocol in the same way again is what is on the tape."""
    assert driven.seen_upstream == driven.requests == len(CASES) + len(COMPRESSED)
    assert driven.divergences == []
    assert driven.unused == 0
