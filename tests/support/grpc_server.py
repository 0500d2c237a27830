"""A gRPC server of the `grpcio` package with generic handlers, as a process of its own.

It prints its two ports, over TLS and plain, and serves until its standard input ends.
"""

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives import serialization
from cryptography.x509 import load_pem_x509_certificate

from playhead.tests.support.certificates import Certificates

MESSAGES = tuple(f"message {number}".encode() for number in range(1, 6))
PACE_S = 0.06
"""Between two messages of the stream that keeps a pace."""
LARGE_BYTES = 5_000_000
_SLOW_S = 1.0
"""Longer than clients wait for the call that is too slow."""
_WITHOUT_LIMIT = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


class GrpcOrigin:
    """The server as a process. Use as a context manager."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self.ports: dict[str, int] = {}
        """By `tls` and `plain`."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", __name__, str(self._certificates.chain)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        tls, plain = self._process.stdout.readline().split()
        self.ports = {"tls": int(tls), "plain": int(plain)}
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process. Twice is once."""
        if self._process.returncode is None:
            self._process.communicate(timeout=20)


# ---- what it answers ---------------------------------------------------------------------------------


def _unary(request: bytes, context: Any) -> bytes:
    """Say it backwards, with metadata before and after."""
    context.send_initial_metadata((("x-initial", "first"), ("bytes-bin", bytes(range(256)))))
    asked = dict(context.invocation_metadata())
    told = (("x-trailing", asked.get("x-asked", "")), ("sum-bin", hashlib.sha256(request).digest()))
    context.set_trailing_metadata(told)
    return request[::-1]


def _large(request: bytes, _context: Any) -> bytes:
    return hashlib.sha256(request).digest() * (LARGE_BYTES // 32)


def _fail(_request: bytes, context: Any) -> bytes:
    """Fail without a message: its head is its trailers."""
    import grpc

    context.set_trailing_metadata((("x-reason", "none"), ("why-bin", b"\x00\xff")))
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing, grüße & 100%")
    return b""


def _slow(_request: bytes, _context: Any) -> bytes:
    threading.Event().wait(_SLOW_S)
    return b"late"


def _stream(_request: bytes, _context: Any) -> Iterator[bytes]:
    """Say every message, one after the other, at a pace."""
    for message in MESSAGES:
        yield message
        threading.Event().wait(PACE_S)


def _stream_then_fail(_request: bytes, context: Any) -> Iterator[bytes]:
    import grpc

    yield from MESSAGES[:2]
    context.set_trailing_metadata((("x-after", "2"),))
    context.abort(grpc.StatusCode.DATA_LOSS, "lost on the way")


def _endless(_request: bytes, context: Any) -> Iterator[bytes]:
    """Say two messages, and nothing more for a while."""
    yield from MESSAGES[:2]
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(_SLOW_S)


def _client_stream(requests: Iterable[bytes], _context: Any) -> bytes:
    got = list(requests)
    return f"{len(got)} {hashlib.sha256(b'|'.join(got)).hexdigest()}".encode()


def _bidi(requests: Iterable[bytes], context: Any) -> Iterator[bytes]:
    """Answer each message before the next is asked."""
    count = 0
    for count, request in enumerate(requests, 1):
        yield b"%d %s" % (count, hashlib.sha256(request).hexdigest()[:12].encode())
    context.set_trailing_metadata((("x-count", str(count)),))


def _greet(requests: Iterable[bytes], context: Any) -> Iterator[bytes]:
    """Speak first, and answer each message after that."""
    yield b"welcome"
    yield from _bidi(requests, context)


def _serve(chain: str) -> None:
    import grpc

    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(_unary),
        "Large": grpc.unary_unary_rpc_method_handler(_large),
        "Fail": grpc.unary_unary_rpc_method_handler(_fail),
        "Slow": grpc.unary_unary_rpc_method_handler(_slow),
        "Stream": grpc.unary_stream_rpc_method_handler(_stream),
        "StreamThenFail": grpc.unary_stream_rpc_method_handler(_stream_then_fail),
        "Endless": grpc.unary_stream_rpc_method_handler(_endless),
        "ClientStream": grpc.stream_unary_rpc_method_handler(_client_stream),
        "Bidi": grpc.stream_stream_rpc_method_handler(_bidi),
        "Heard": grpc.stream_stream_rpc_method_handler(_bidi),
        "Greet": grpc.stream_stream_rpc_method_handler(_greet),
    }
    server = grpc.server(futures.ThreadPoolExecutor(16), options=_WITHOUT_LIMIT)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", handlers),))
    pem = Path(chain).read_bytes()
    key = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    certificate = load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.PEM)
    credentials = grpc.ssl_server_credentials(((key, certificate),))
    tls = server.add_secure_port("127.0.0.1:0", credentials)
    plain = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(tls, plain, flush=True)
    sys.stdin.read()
    server.stop(0).wait()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
