"""The pages under the control API: another process serves them, so that nobody who looks delays an agent.

It is started by the first request for a page, reads the store by itself, and listens on a path socket in a folder of its own. What a
browser asks is passed on as it came, and so is the answer.
"""

import asyncio
import contextlib
import pickle
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from ...config import Config
from .http.access import Guard
from .http.error_body import ControlError
from .http.one_time_links import KEY_BYTES, Links, Rights

PATHS = ("/", "/runs", "/diff", "/gates", "/destinations", "/data", "/parts", "/static")
"""First parts of the paths of pages."""
_START_S = 60.0
_HEAD = 64 * 1024
_PIECE = 64 * 1024
_HOPS = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"))


class PagesProcess:
    """The process that serves the pages, once somebody asks for one."""

    def __init__(self, config: Config, guard: Guard) -> None:
        self._config = config
        self._guard = guard
        self._key = secrets.token_bytes(KEY_BYTES)
        self._links = Links(self._key, lambda: time.time_ns() / 1e9)
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def is_page(self, path: str) -> bool:
        """Say whether a path is one of the pages'."""
        return path in PATHS or path.startswith(tuple(f"{one}/" for one in PATHS[1:]))

    def make_link(self) -> str:
        """Give the path of the page of gates, with a token with which one may rule."""
        return f"/gates?token={self._links.make(Rights.READ | Rights.RULE)}"

    async def pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        """Have a request answered by the process.

        Raises: ControlError, where it cannot be started, or has gone.
        """
        path = await self._start()
        try:
            reader, writer = await asyncio.open_unix_connection(str(path))
        except OSError as error:
            raise _gone() from error
        try:
            body = await request.read()
            fields = [
                (name, value)
                for name, value in request.headers.items()
                if name.lower() not in _HOPS
            ]
            head = "".join(f"{name}: {value}\r\n" for name, value in fields)
            line = f"{request.method} {request._message.path} HTTP/1.0\r\n"
            writer.write(f"{line}{head}\r\n".encode("utf-8", "surrogateescape") + body)
            return await _answer(request, reader)
        finally:
            writer.close()

    async def close(self) -> None:
        """End the process. Twice is once."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _start(self) -> Path:
        async with self._lock:
            if self._process is not None and self._process.returncode is None:
                assert self._folder is not None
                return Path(self._folder.name) / "pages"
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="playhead-pages-")
            path = Path(self._folder.name) / "pages"
            path.unlink(missing_ok=True)
            self._process = process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "playhead.proxy.pages.serve_beside_proxy", str(path)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            given = pickle.dumps((self._config, self._guard, self._key))
            process.stdin.write(len(given).to_bytes(8, "big") + given)
            try:
                async with asyncio.timeout(_START_S):
                    ready = await process.stdout.readline()
            except TimeoutError:
                ready = b""
            if ready != b"ready\n":
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                self._process = None
                raise _gone()
            return path


def _gone() -> ControlError:
    return ControlError(
        503,
        "the process that serves the pages cannot be started, or has ended",
        hint="the log of the proxy says more; playhead ui serves the same pages",
    )


async def _answer(request: web.BaseRequest, reader: asyncio.StreamReader) -> web.StreamResponse:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise _gone() from error
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers: Mapping[str, Any] = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
        if name.lower() not in _HOPS
    }
    response = web.StreamResponse(status=int(first.split()[1]), headers=headers)
    if "content-length" not in headers:
        response.enable_chunked_encoding()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(_PIECE):
            if request.method != "HEAD":
                await response.write(piece)
    return response
