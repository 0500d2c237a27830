"""Calls that may be answered before they have ended, as gRPC's: an origin that does, and a client over HTTP/2."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .certificates import Certificates
from .engine import Running
from .frames import FramesOrigin, Stream
from .http2 import Http2Client
from .sockets import open_tunnel

if TYPE_CHECKING:
    import httpx

Call = Callable[[str], Awaitable["httpx.Response"]]
"""Asks a URL for one word with one word."""


@contextmanager
def early_origin(certificates: Certificates) -> Iterator[tuple[str, list[str]]]:
    """Give the URL of an origin that says `said` at once, and the paths it has been asked for."""
    asked: list[str] = []

    def script(stream: Stream) -> bool:
        asked.append(stream.path)
        stream.head(("content-type", "application/grpc"))
        stream.data(b"said", end=True)
        return True

    with FramesOrigin(script, certificates) as origin:
        yield origin.url, asked


@contextmanager
def early_client(running: Running, run: str) -> Iterator[Call]:
    """Give a client of a run, whose requests say of themselves that they are gRPC's."""
    import httpx

    context = ssl.create_default_context(cafile=str(running.ca))
    with httpx.Client(proxy=running.url_for(run), verify=context, http2=True) as client:

        async def call(url: str) -> httpx.Response:
            kind = {"content-type": "application/grpc"}
            return await asyncio.to_thread(client.post, url, content=b"word", headers=kind)

        yield call


def ask_by_halves(running: Running, run: str, url: str, said: bytes) -> None:
    """Post `wo`, and `rd` once this much of the answer has come; wait for its end. Blocks."""
    with open_tunnel(running.url_for(run), url, running.ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask("POST", url, b"wo", kind="application/grpc", end=False)
        client.read_until(lambda: client.data(stream) == said)
        client.end(stream, b"rd")
        client.read_until(lambda: client.got[stream][-1] == "end")
