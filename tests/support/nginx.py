"""nginx as another implementation of HTTP: on loopback, with a folder and a configuration of its own."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Self

from .certificates import Certificates
from .needs import need

_CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log stderr crit;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    types {{ text/html html; text/plain txt; application/json json; }}
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{plain};
        listen 127.0.0.1:{secure} ssl http2;
        ssl_certificate {chain};
        ssl_certificate_key {chain};
        root {folder}/root;
        {server}
    }}
}}
"""


class Nginx:
    """A running nginx, plain and over TLS. Use as a context manager.

    server: lines of its `server` block. Files in `root` are served.
    """

    def __init__(self, folder: Path, certificates: Certificates, server: str) -> None:
        self.root = folder / "root"
        self.root.mkdir(parents=True)
        self._program = need("nginx")
        self._folder = folder
        # It takes over sockets that listen already, as in its own upgrade: no port is guessed.
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=64) for _ in range(2)]
        self.plain: int = self._sockets[0].getsockname()[1]
        self.secure: int = self._sockets[1].getsockname()[1]
        (folder / "nginx.conf").write_text(
            _CONFIGURATION.format(
                folder=folder,
                user="user root;"
                if os.geteuid() == 0
                else "",  # else nobody, who sees no files here
                plain=self.plain,
                secure=self.secure,
                chain=certificates.chain,
                server=server,
            )
        )

    def __enter__(self) -> Self:
        handed = [sock.fileno() for sock in self._sockets]
        self._process = subprocess.Popen(
            [self._program, "-e", "stderr", "-p", self._folder, "-c", self._folder / "nginx.conf"],
            env={**os.environ, "NGINX": "".join(f"{number};" for number in handed)},
            pass_fds=handed,
            stderr=subprocess.PIPE,
        )
        for sock in self._sockets:
            sock.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it. Twice is once."""
        if self._process.returncode is None:
            self._process.terminate()
            _, said = self._process.communicate(timeout=20)
            lines = [line for line in said.decode().splitlines() if "inherited sockets" not in line]
            assert not lines, lines
