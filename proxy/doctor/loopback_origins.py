"""Loopback origins that note their clients, for the doctor."""

import asyncio
import contextlib
import ipaddress
import ssl
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ..trust.atomic_files import write_new
from ..trust.ca import CertificateAuthority, certificate_store


class Origins:
    """Listens at one place for each client. Use as `async with`."""

    def __init__(self, ca: CertificateAuthority, folder: Path) -> None:
        """Prepare; each has a certificate of our own CA."""
        self.reached: set[str] = set()
        """HOST:PORT to which somebody connected."""
        self.asked: set[str] = set()
        """Those that were asked for something, over TLS."""
        self.refused: set[str] = set()
        """Those whose certificate was refused."""
        self._stack = contextlib.AsyncExitStack()
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        leaf = certificate_store(ca).get_cert("127.0.0.1", names)
        key = leaf.privatekey.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = folder / "origin.pem"
        write_new(chain, key + leaf.cert.to_pem(), 0o600)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(chain)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self) -> str:
        """Open one more; give its address."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._stack.callback(server.close)
        return f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("sockname")[:2]
        place = f"{host}:{port}"
        self.reached.add(place)
        try:
            await writer.start_tls(self._context)
            await reader.readuntil(b"\r\n\r\n")
            self.asked.add(place)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n"
            writer.write(head + b'Connection: close\r\n\r\n{"ok": true}')
            await writer.drain()
        except ssl.SSLError:
            self.refused.add(place)
        except (OSError, EOFError):
            pass  # what it made of the certificate is told by its own words
        finally:
            writer.close()
