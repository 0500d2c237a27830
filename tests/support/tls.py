"""TLS of a client that sees a reset as a reset, on every version of Python."""

import errno
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

_CLOSED = 7
"""First byte of Linux's `tcp_info`, when neither side can send any more."""


class _TlsSocket(ssl.SSLSocket):
    """Raise ConnectionResetError for a reset.

    Before CPython 3.12.3 that was SSLEOFError, as for the end of a stream: https://github.com/python/cpython/issues/115627.
    """

    suppress_ragged_eofs: bool

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        ragged, self.suppress_ragged_eofs = self.suppress_ragged_eofs, False
        try:
            return super().read(len, buffer)
        except ssl.SSLEOFError as error:
            self._raise_reset(error)
            if not ragged:
                raise
            return b"" if buffer is None else 0
        finally:
            self.suppress_ragged_eofs = ragged

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except ssl.SSLEOFError as error:
            self._raise_reset(error)
            raise

    def _raise_reset(self, error: ssl.SSLEOFError) -> None:
        closed = self.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED
        # A reset that comes after the end of the stream is still to be read here, as EPIPE.
        if closed and self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error


def client_context(ca: Path, *protocols: str) -> ssl.SSLContext:
    """Give a context for sockets of clients.

    ca: file with the certificates that are trusted.
    protocols: that are offered by ALPN; none offers none.
    """
    context = ssl.create_default_context(cafile=str(ca))
    if protocols:
        context.set_alpn_protocols([*protocols])
    if sys.version_info < (3, 12, 3):
        context.sslsocket_class = _TlsSocket
    return context
