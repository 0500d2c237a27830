"""Where servers that speak over standard input and output are reached while they are recorded.

`playhead stdio` starts such a server and asks it over HTTP, through the proxy, at the host `stdio.playhead.internal`. It answers
those requests itself, at a path socket in a folder that is made here; a header field says which socket, and is taken out
before anybody else sees it. So a server's messages are recorded and played like those of any other.

A name is a file of that folder and nothing else, so that no client can have the proxy connect to another socket.
"""

import re
import shutil
import tempfile
from pathlib import Path

from mitmproxy import connection, http

from ...tape.canonical.json_rpc_client_ids import STDIO_HOST

SOCKET_FIELD = "playhead-stdio"
"""Names the socket at which a request is answered."""
_NAME = re.compile(r"[0-9a-z]{1,32}")


class StdioServers:
    """Know the socket of each connection that asks such a server."""

    def __init__(self) -> None:
        """Begin with none."""
        self._folder: Path | None = None
        self._sockets: dict[str, str] = {}

    @property
    def folder(self) -> Path:
        """The folder for sockets, made when it is first asked for."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="playhead-stdio-"))
        return self._folder

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def find(self, client: connection.Client) -> Path | None:
        """Give the socket for the requests of a client; None where it named none."""
        name = self._sockets.get(client.id)
        return None if name is None or self._folder is None else self._folder / name

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Take out which socket is meant."""
        if flow.request.host != STDIO_HOST:
            return
        name = flow.request.headers.pop(SOCKET_FIELD, None)
        if name is not None and _NAME.fullmatch(name):
            self._sockets[flow.client_conn.id] = name

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget a client."""
        self._sockets.pop(client.id, None)
