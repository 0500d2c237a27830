"""A fake provider: TLS 1.3 on loopback, as little CPU as Python allows.

Prints `ready PORT` and serves until its standard input ends, so it cannot outlive who started it.
Writes `upstream-ca.pem` (what a proxy is to trust) and `upstream.pem` (its own key) into a folder.
What it answers is written in `workloads.py`. `sse` sends 200 events, 5 ms apart, one chunk each, unless
the query says otherwise (`&events=N&gap_ms=N`).
"""

import argparse
import asyncio
import datetime
import ipaddress
import ssl
import sys
import threading
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs

import uvloop
import workloads
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from workloads import WORKLOADS, Workload

_SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_MOST_EVENTS = 2000
_MOST_GAP_S = 1.0


class Provider(asyncio.Protocol):
    """One connection: requests with a Content-Length, one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._end = 0
        """Where the request in the buffer ends; 0 until its head is there."""
        self._body_at = 0
        self._target = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._buffer += data
        while self._buffer:
            if not self._end and not self._head():
                return
            if len(self._buffer) < self._end:
                return
            at = self._body_at + workloads.TOKEN_AT
            token = bytes(self._buffer[at : at + workloads.TOKEN_BYTES])
            del self._buffer[: self._end]
            self._end = 0
            self._serve(token)

    def _head(self) -> bool:
        stop = self._buffer.find(b"\r\n\r\n")
        if stop < 0:
            return False
        head = bytes(self._buffer[:stop])
        self._target = head.split(b" ", 2)[1]
        self._body_at = stop + 4
        _, found, rest = head.lower().partition(b"\r\ncontent-length:")
        self._end = self._body_at + (int(rest.split(b"\r\n", 1)[0]) if found else 0)
        return True

    def _serve(self, token: bytes) -> None:
        work, query = _route(self._target)
        if work is None or not token.isdigit():
            self._transport.write(_BAD)
            self._transport.close()
        elif work.name == "sse":
            options = parse_qs(query)
            events = int(options.get("events", [str(workloads.SSE_EVENTS)])[0])
            gap_s = float(options.get("gap_ms", [str(workloads.SSE_GAP_S * 1000)])[0]) / 1000
            self._stream(token, 0, min(events, _MOST_EVENTS), min(gap_s, _MOST_GAP_S))
        else:
            content = workloads.answer_body(work, token)
            wire = workloads.answer_head(len(content)) + content
            if work.name == "slow":
                self._loop.call_later(workloads.SLOW_S, self._transport.write, wire)
            else:
                self._transport.write(wire)

    def _stream(self, token: bytes, number: int, events: int, gap_s: float) -> None:
        if self._transport.is_closing():
            return
        event = workloads.event(token, number)
        wire = b"%x\r\n%b\r\n" % (len(event), event)
        last = number + 1 >= events
        self._transport.write(
            (b"" if number else _SSE_HEAD) + wire + (b"0\r\n\r\n" if last else b"")
        )
        if not last:
            self._loop.call_later(gap_s, self._stream, token, number + 1, events, gap_s)


def _route(target: bytes) -> tuple[Workload | None, str]:
    """Find the workload of a target, and the target's query."""
    path, _, query = target.decode("latin-1").partition("?")
    if path == workloads.CHAT:
        return WORKLOADS.get(query.partition("&")[0].removeprefix("as=")), query
    return next((work for work in WORKLOADS.values() if work.target == path), None), query


def make_certificates(folder: Path) -> ssl.SSLContext:
    """Write a throwaway CA and a certificate for loopback, and give a server context with them."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark upstream CA")])
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = [
        x509.DNSName(workloads.HOST),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, workloads.HOST)])
    leaf = (
        _certificate(name, ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "upstream-ca.pem").write_bytes(ca.public_bytes(pem))
    own = folder / "upstream.pem"
    own.touch(mode=0o600)
    own.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(pem)
    )
    return server_context(folder, ["http/1.1"])


def server_context(folder: Path, alpn: list[str]) -> ssl.SSLContext:
    """Give a server context with the certificate that was written to a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(alpn)
    context.load_cert_chain(folder / "upstream.pem")
    return context


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


async def serve(folder: Path, port: int) -> None:
    """Serve on loopback until standard input ends; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def watch() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    context = make_certificates(folder)
    for work in WORKLOADS.values():
        workloads.answer_body(work, workloads.token(0))
    server = await loop.create_server(Provider, "127.0.0.1", port, ssl=context)
    threading.Thread(target=watch, daemon=True).start()
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await over.wait()
    server.close()


def main() -> None:
    """Run the provider from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write the certificates")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    uvloop.run(serve(arguments.folder, arguments.port))


if __name__ == "__main__":
    main()
