"""A process of a store that takes connections and answers nothing, as one that was stopped."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from playhead.proxy.control.address import Address, publish


@dataclass(frozen=True)
class HungProcess:
    """What such a process has."""

    pid: int
    sock: socket.socket

    def read_requests(self) -> list[bytes]:
        """Give the requests that were sent to it, which it would answer once it goes on."""
        found = []
        self.sock.setblocking(False)
        try:
            while True:
                connection, _ = self.sock.accept()
                with connection:
                    connection.settimeout(10)
                    found.append(connection.recv(1 << 16))
        except BlockingIOError:
            return found


@contextmanager
def hung_process(store: Path) -> Iterator[HungProcess]:
    """Have the process that runs the tests' process look like a proxy of a store."""
    pid = os.getppid()
    with socket.create_server(("127.0.0.1", 0), backlog=100) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        file = publish(store, Address(pid, psutil.Process(pid).create_time(), url))
        try:
            yield HungProcess(pid, sock)
        finally:
            file.unlink(missing_ok=True)
