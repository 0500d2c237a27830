"""tinyproxy as somebody else's proxy: on loopback, with basic authentication."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Self

from .needs import need
from .process import wait_until


class Tinyproxy:
    """A running tinyproxy. Use as a context manager."""

    def __init__(self, folder: Path, user: str, password: str) -> None:
        self._program = need("tinyproxy")
        folder.mkdir()
        self._folder = folder
        # It opens its port itself: one that was free a moment before.
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        lines = [f"Port {self.port}", "Listen 127.0.0.1", "MaxClients 20", "Timeout 20"]
        lines += [f'LogFile "{folder}/log"', "LogLevel Connect", f"BasicAuth {user} {password}"]
        lines += ["User root", "Group root"] if os.geteuid() == 0 else []
        (folder / "conf").write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Self:
        command = [self._program, "-d", "-c", str(self._folder / "conf")]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def log(self) -> str:
        """Give what it has said so far."""
        return (self._folder / "log").read_text()

    def _listens(self) -> bool:
        assert self._process.poll() is None, "tinyproxy did not start"
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0
