"""A process of a store that takes connections and answers nothing, as one that was stopped."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from playhead.proxy.control.address import Address, publish
from playhead.store.paths import CONTROL, PRIVATE


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
def hung_process(store: Path, pid: int = 0) -> Iterator[HungProcess]:
    """Have a process look like a proxy of a store that hangs.

    pid: of one that is a proxy of it; 0 takes the process that runs the tests' process.
    """
    pid = pid or os.getppid()
    file = store / PRIVATE / CONTROL / f"{pid}.json"
    before = file.read_bytes() if file.exists() else None
    with socket.create_server(("127.0.0.1", 0), backlog=100) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        publish(store, Address(pid, psutil.Process(pid).create_time(), url))
        try:
            yield HungProcess(pid, sock)
        finally:
            if before is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(before)
