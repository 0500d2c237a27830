"""Find the proxy of the run that a server belongs to.

MCP's SDKs start servers with few of their own variables (PATH, HOME ...), so the proxy stands in the variables of a
process above: the agent's. Its name in `PLAYHEAD_PROXY` is ours for certain; that in `HTTPS_PROXY` may be anybody's.
"""

import base64
import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import psutil

from ...tape.policy.decide import CONTROL_HOST
from ..errors import EngineError
from ..processes.proc import find_process
from ..trust.variables import OURS
from .http import Proxy, ask

_VARIABLES = (OURS, "HTTPS_PROXY", "https_proxy")
_MOST_ANCESTORS = 64


class Place(NamedTuple):
    """The run that a server belongs to."""

    proxy: Proxy
    mode: str
    sockets: str = ""
    """While recording: the folder for the socket at which the server's answers are fetched."""
    instance: str = ""
    """Which of the servers of its name it is in this run."""


async def find_place(name: str) -> Place | None:
    """Give the run of the proxy that this process, or one above it, is led to; None where there is none of ours.

    name: of the server, as in a URL.
    Raises: EngineError, where it has to be there and is not.
    """
    for environ in _environments():
        for variable in _VARIABLES:
            if url := environ.get(variable):
                return await _ask(url, name, certain=variable == OURS)
    return None


def _environments() -> Iterator[Mapping[str, str]]:
    """Yield the variables of this process and of those above it, as far as they may be read."""
    yield os.environ
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 0:
            return
        with contextlib.suppress(psutil.Error, OSError):
            yield psutil.Process(pid).environ()
        process = find_process(pid)
        pid = process.parent if process is not None else 0


def _read_url(url: str) -> Proxy | None:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        return None
    if parts.scheme != "http" or not host:
        return None
    authorization = b""
    if parts.username is not None:
        text = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = b"Basic " + base64.b64encode(text.encode())
    return Proxy(host, port, authorization)


async def _ask(url: str, name: str, *, certain: bool) -> Place | None:
    proxy = _read_url(url)
    if proxy is None:
        return None
    try:
        answer = await ask(proxy, "GET", f"http://{CONTROL_HOST}/stdio/{name}")
        told = json.loads(answer.body) if answer.status == 200 else {}
        if isinstance(told, dict) and "mode" in told and "tape" in told:
            sockets, instance = (str(told.get(key, "")) for key in ("sockets", "instance"))
            return Place(proxy, str(told["mode"]), sockets, instance)
        problem = f"it answered {answer.status}"
    except (OSError, ValueError) as error:
        problem = str(error)
    if not certain:
        return None
    raise EngineError(
        f"the proxy of this run at {proxy.host}:{proxy.port} cannot be asked: {problem}",
        "the run may have ended; start the server within record or replay",
    )
