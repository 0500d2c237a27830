"""An upstream over TLS that counts what it is sent, an agent that asks for named things, and runs that crashed."""

import asyncio
import base64
import contextlib
import http.client
import itertools
import json
import ssl
import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from .certificates import Certificates
from .origins import Origin

CHAT = "/v1/chat/completions"
SECRET = "gho_16C7e42F292c6912E7710c838347Ae178B4a"
"""What the upstream answers to effects that begin with `s`."""
TELEMETRY = "telemetry"
"""Begins the path of telemetry."""
_FRESH = itertools.count(1)
"""For keys that are another in each run."""
_LONG_S = 30.0
_IMPATIENT_S = 1.0
"""How long a client waits that then dies."""


class Wanted(NamedTuple):
    """One request of a situation: what is asked for, and what becomes of it."""

    name: str
    fate: str
    """Of a log how the upstream answers; of an agent from where its answer comes."""


def read_log(text: str) -> list[Wanted]:
    """Read the log of a situation."""
    return [Wanted(word[:2], word[2:].removeprefix(":")) for word in text.split()]


def read_asks(text: str) -> list[Wanted]:
    """Read what an agent asks."""
    return [Wanted(*word.split("=")) for word in text.split()]


class Asked(NamedTuple):
    """A request as it is sent."""

    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]

    @classmethod
    def of(cls, name: str) -> "Asked":
        """Give the request that a letter and a number stand for."""
        kind = name[0]
        if kind == "m":
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": name}]}
            return cls("POST", CHAT, json.dumps(body).encode(), {})
        if kind == "r":
            return cls("GET", f"/reads/{name}", None, {})
        if kind == "t":
            return cls("POST", f"/{TELEMETRY}/{name}", b'{"n": 1}', {})
        headers = {}
        if kind == "k":
            headers = {"Idempotency-Key": f"key-of-{name}"}
        elif kind == "n":
            headers = {"Idempotency-Key": f"fresh-{next(_FRESH)}-{name}"}
        return cls("POST", f"/effects/{name}", json.dumps({"do": name}).encode(), headers)


class Said(NamedTuple):
    """An answer; status 0 where the connection broke."""

    status: int
    body: bytes


class Upstream:
    """Counts what it is sent by name, over TLS."""

    def __init__(self, certificates: Certificates) -> None:
        """Prepare."""
        self.sent: Counter[str] = Counter()
        self.fate = ""
        """How the next requests are answered: see `resume_cases`."""
        self._origin = Origin({"/{tail:.*}": self._answer}, certificates)
        self._changed = threading.Condition()
        self.stopped = threading.Event()
        """Set once it has been sent as much as `stop_at` says."""
        self._left: int | None = None
        """Requests until then; None without."""
        self._answers_last = True
        self.failing: Container[int] = ()
        """Which requests are answered with 503, counted from 1 over all."""

    def stop_at(self, count: int, *, answered: bool) -> None:
        """Say so once so many requests have come.

        answered: whether the last one of them is answered; nothing behind it is.
        """
        self.stopped.clear()
        self._left, self._answers_last = count, answered

    def go_on(self) -> None:
        """Answer everything again."""
        self._left = None

    @property
    def url(self) -> str:
        """Where it is."""
        return self._origin.url

    def __enter__(self) -> "Upstream":
        """Begin to listen."""
        self._origin.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._origin.stop()

    def wait_for(self, name: str, count: int) -> None:
        """Wait until something has been sent so often. Blocking."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.sent[name] >= count, _LONG_S), name

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        name = request.path.rpartition("/")[2]
        if request.path == CHAT:
            name = json.loads(body)["messages"][-1]["content"][:80]
        with self._changed:
            self.sent[name] += 1
            self._changed.notify_all()
        if self.sent.total() in self.failing:
            return web.json_response({"error": name}, status=503)
        if self.fate == ">":
            await asyncio.sleep(2 * _IMPATIENT_S)
        if self._is_behind_the_end() or self.fate in ("?", "~"):
            for _ in range(6000):
                if request.transport is None or request.transport.is_closing():
                    break
                await asyncio.sleep(0.01)
        if self.fate == "!" and request.transport is not None:
            request.transport.abort()
        if self.fate == "5":
            return web.json_response({"error": name}, status=500)
        if name[0] == "s":
            return web.json_response({"access_token": SECRET})
        return web.json_response(answer(name, request.path == CHAT))

    def _is_behind_the_end(self) -> bool:
        """Count a request, and say whether it gets no answer."""
        if self._left is None:
            return False
        self._left -= 1
        if self._left <= 0:
            self.stopped.set()
        return self._left < 0 or (self._left == 0 and not self._answers_last)


def answer(name: str, is_model: bool) -> dict[str, Any]:
    """Give what the upstream answers."""
    if not is_model:
        return {"id": f"id-{name}"}
    message = {"role": "assistant", "content": f"said {name}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": name, "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice], "usage": usage}


class Client:
    """Asks by way of a proxy, one connection a request."""

    def __init__(self, address: str, run: str, ca: Path, upstream: str) -> None:
        """Prepare.

        address: HOST:PORT of the proxy.
        """
        self._proxy = address
        self._upstream = urlsplit(upstream)
        told = base64.b64encode(f"{run}:x".encode()).decode()
        self._tunnel = {"proxy-authorization": f"Basic {told}"}
        self._context = ssl.create_default_context(cafile=str(ca))

    def forget_run(self) -> None:
        """Ask without credentials from now on."""
        self._tunnel.clear()

    def ask(self, name: str, timeout_s: float = _LONG_S) -> Said:
        """Ask for something. Blocking."""
        return self.send(Asked.of(name), timeout_s)

    def send(self, asked: Asked, timeout_s: float = _LONG_S) -> Said:
        """Send a request. Blocking."""
        place = self._upstream
        connection = http.client.HTTPSConnection(
            self._proxy, timeout=timeout_s, context=self._context
        )
        assert place.hostname is not None
        connection.set_tunnel(place.hostname, place.port, self._tunnel)
        fields = {"content-type": "application/json", **asked.headers}
        try:
            connection.request(asked.method, asked.path, asked.body, fields)
            response = connection.getresponse()
            return Said(response.status, response.read())
        except (OSError, http.client.HTTPException):
            return Said(0, b"")
        finally:
            connection.close()


def ask_all(client: Client, upstream: Upstream, log: Iterable[Wanted]) -> list[threading.Thread]:
    """Ask for the requests of a log, each as soon as the one before is answered, or is with the upstream; give who still waits."""
    waiting = []
    for name, fate in log:
        upstream.fate = fate
        if fate in ("~", ">"):
            client.ask(name, _IMPATIENT_S)
            continue
        if fate != "?":
            client.ask(name)
            continue
        before = upstream.sent[name]
        asking = threading.Thread(target=client.ask, args=(name,), daemon=True)
        asking.start()
        waiting.append(asking)
        upstream.wait_for(name, before + 1)
    upstream.fate = ""
    return waiting


@contextlib.contextmanager
def answering(upstream: Upstream) -> Iterator[Counter[str]]:
    """Have the upstream answer everything; give what is sent meanwhile."""
    upstream.fate = ""
    upstream.sent.clear()
    yield upstream.sent
