"""A client of the `grpcio` package: makes every sort of call and says what came of each, as JSON.

Arguments: `tls` or `plain`, HOST:PORT, and how: `as-recorded`, or on replay `another-order` (parallel calls
are made in another order) or `another-word` (the dialogue says something else).
"""

import contextlib
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import grpc

from playhead.tests.journeys.clients.transcript import say

DEADLINE_S = 0.4
_LONG_S = 15.0
_WITHOUT_LIMIT = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
PAYLOADS = tuple(f"payload {number}".encode() * (number + 1) for number in range(8))
LARGE = b"0123456789" * 500_000
ROUNDS = 5


def tell(case: str, call: Any, messages: list[bytes]) -> None:
    """Say how a call ended and what came."""
    say(
        case,
        code=call.code().name,
        # Of a deadline that has passed the library says now this, now that.
        details=re.sub(r"^Stream removed \((.*)\)$", r"\1", call.details()),
        initial=_metadata(call.initial_metadata()),
        trailing=_metadata(call.trailing_metadata()),
        messages=[_outline(message) for message in messages],
    )


def _metadata(found: Any) -> list[list[str]]:
    return [[key, value.hex() if isinstance(value, bytes) else value] for key, value in found or ()]


def _outline(message: bytes) -> str:
    if len(message) < 100:
        return message.decode("latin-1")
    return f"{len(message)} {hashlib.sha256(message).hexdigest()}"


def result(call: Any) -> list[bytes]:
    """Wait for the one answer of a call, if one comes."""
    try:
        return [call.result()]
    except grpc.RpcError:
        return []  # the call tells


def read(call: Any) -> list[bytes]:
    """Read a stream to its end, whatever that is."""
    messages = []
    with contextlib.suppress(grpc.RpcError):  # the call tells
        for message in call:
            messages.append(message)
    return messages


class Client:
    """Makes calls on one channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def unary(self, case: str, method: str, request: bytes, **given: Any) -> None:
        """Make a call with one request and one answer."""
        given = {"timeout": _LONG_S, **given}
        call = self._channel.unary_unary(f"/test.Test/{method}").future(request, **given)
        tell(case, call, result(call))

    def parallel(self, payloads: tuple[bytes, ...]) -> None:
        """Make calls at the same time; the answers are told by payload."""
        ask = self._channel.unary_unary("/test.Test/Unary")
        calls = {payload: ask.future(payload, timeout=_LONG_S) for payload in payloads}
        for payload in PAYLOADS:
            tell(f"parallel {payload[:9].decode()}", calls[payload], result(calls[payload]))

    def stream(self, case: str, method: str) -> None:
        """Read a stream to its end."""
        call = self._channel.unary_stream(f"/test.Test/{method}")(case.encode(), timeout=_LONG_S)
        begun = time.monotonic()
        messages = read(call)
        say(f"{case}, time", took_s=time.monotonic() - begun)
        tell(case, call, messages)

    def leave(self) -> None:
        """Read two messages and cancel."""
        call = self._channel.unary_stream("/test.Test/Endless")(b"leave", timeout=_LONG_S)
        messages: list[bytes] = []
        with contextlib.suppress(grpc.RpcError):  # the call tells
            messages += [next(call), next(call)]
        call.cancel()
        tell("cancelled", call, messages)

    def upload(self) -> None:
        """Send a stream of messages."""
        messages = iter([b"one", b"", b"three" * 30_000, b"four"])
        call = self._channel.stream_unary("/test.Test/ClientStream").future(
            messages, timeout=_LONG_S
        )
        tell("client stream", call, result(call))

    def break_off(self) -> None:
        """Give up in the middle of a stream of messages."""
        more: SimpleQueue[bytes | None] = SimpleQueue()
        more.put(b"one")
        call = self._channel.stream_unary("/test.Test/ClientStream").future(
            iter(more.get, None), timeout=0.3
        )
        tell("left open", call, result(call))
        more.put(None)

    def talk(self, last: bytes) -> None:
        """Have a dialogue in which every message depends on the answer before it."""
        asked: SimpleQueue[bytes | None] = SimpleQueue()

        def requests() -> Iterator[bytes]:
            while (message := asked.get()) is not None:
                yield message

        call = self._channel.stream_stream("/test.Test/Bidi")(requests(), timeout=_LONG_S)
        answers: list[bytes] = []
        asked.put(b"hello")
        try:
            for answer in call:
                answers.append(answer)
                done = len(answers) == ROUNDS
                final = len(answers) == ROUNDS - 1
                asked.put(None if done else last if final else b"after " + answer)
        except grpc.RpcError:
            pass  # the call tells
        asked.put(None)
        tell("bidi", call, answers)

    def hear(self) -> None:
        """Say all there is to say, hear the answer, and only then end the call."""
        asked: SimpleQueue[bytes | None] = SimpleQueue()
        call = self._channel.stream_stream("/test.Test/Heard")(
            iter(asked.get, None), timeout=_LONG_S
        )
        answers: list[bytes] = []
        asked.put(b"hello")
        with contextlib.suppress(grpc.RpcError):  # the call tells
            answers.append(next(call))
            asked.put(None)
            answers += call
        asked.put(None)
        tell("heard", call, answers)

    def listen(self) -> None:
        """Wait for the server to speak first, answer it twice, and end the call."""
        asked: SimpleQueue[bytes | None] = SimpleQueue()
        call = self._channel.stream_stream("/test.Test/Greet")(
            iter(asked.get, None), timeout=_LONG_S
        )
        answers: list[bytes] = []
        with contextlib.suppress(grpc.RpcError):  # the call tells
            for _ in range(2):
                answers.append(next(call))
                asked.put(b"after " + answers[-1])
            answers.append(next(call))
            asked.put(None)
            answers += call
        asked.put(None)
        tell("greeted", call, answers)


def main() -> None:
    """Make every call."""
    over, target, how = sys.argv[1:]
    options = (("grpc.enable_retries", 0), *_WITHOUT_LIMIT)
    if over == "tls":
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(), options)
    else:
        channel = grpc.insecure_channel(target, options)
    with channel:
        client = Client(channel)
        asked = (("x-asked", "this, that"), ("asked-bin", b"\x00\x01\xff"))
        client.unary("unary", "Unary", b"abc", metadata=asked)
        client.unary("empty", "Unary", b"")
        client.unary("compressed", "Unary", b"a" * 5000, compression=grpc.Compression.Gzip)
        client.unary("large", "Large", LARGE)
        client.unary("trailers only", "Fail", b"x")
        client.unary("unimplemented", "Nothing", b"x")
        client.stream("server stream", "Stream")
        client.stream("error after data", "StreamThenFail")
        client.upload()
        client.break_off()
        client.talk(b"goodbye" if how != "another-word" else b"farewell")
        client.hear()
        client.listen()
        client.parallel(PAYLOADS if how != "another-order" else PAYLOADS[::-1])
        client.unary("deadline", "Slow", b"x", timeout=DEADLINE_S)
        client.leave()
    print(json.dumps({"case": "end"}))


main()
