"""What changes while somebody looks: how it is now, and as server-sent events: `run`, `step`, `gate`, and `alive` every two seconds.

A page asks how it is now, twice a second: a stream would keep one of the six connections that a browser has to a server, and the seventh
tab would wait for ever. The streams are for scripts. The store is looked at, not the proxy: who records has nothing to do for whoever watches, but for the list of held requests.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from ... import PlayheadError
from ...store import RunInfo, RunStatus
from ..control.ask_processes import list_held
from ..control.http.error_body import ControlError
from .request_and_reply import Asked, Reply, reply_json
from .store_reader import Library, sum_up

_EVERY_S = 0.5
_ALIVE = 4
"""Looks between two signs of life."""
_GATES = 2
"""Looks between two at what is held."""
_STREAMS = 32
_HELD_S = 0.9
"""How long is believed what proxies said that they hold."""
_SOON_S = 0.2
"""How long a tab waits for what they say."""


class _Streams:
    open = 0


async def stream_events(
    request: web.BaseRequest,
    library: Library,
    now: "Now",
    asked: Asked,
    fields: Mapping[str, str],
) -> web.StreamResponse:
    """Tell what changes until the client leaves."""
    if _Streams.open >= _STREAMS:
        raise ControlError(503, "Too many pages watch", hint="close some of them")
    loop = asyncio.get_running_loop()
    name = asked.query.get("run")
    if name is not None:
        await loop.run_in_executor(library.threads, library.store.runs.get, name)
    response = web.StreamResponse(headers={**fields, "content-type": "text/event-stream"})
    await response.prepare(request)
    watch = _Watch(library, now, name)
    _Streams.open += 1
    try:
        with contextlib.suppress(ConnectionError):
            for number in range(1 << 62):
                told = await loop.run_in_executor(library.threads, watch.look, number)
                for kind, value in told:
                    data = json.dumps(value, separators=(",", ":"))
                    await response.write(f"event: {kind}\ndata: {data}\n\n".encode())
                await asyncio.sleep(_EVERY_S)
    except RuntimeError:  # it is being closed
        pass
    finally:
        _Streams.open -= 1
    return response


class Now:
    """Says how it is: of two answers that differ in a part, that part has changed."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._held: tuple[int, list[str]] | None = None
        self._looked = -_HELD_S
        self._asking: threading.Thread | None = None

    def look(self, asked: Asked) -> Reply:
        """Give the state of all runs or of one, and of what is held. Blocks.

        Raises: UnknownRun.
        """
        library, name = self._library, asked.query.get("run")
        told: dict[str, Any] = {}
        if name is None:
            told["run"] = {"version": library.find_version_of_all()}
        else:
            info = library.store.runs.get(name)
            told["run"] = {"id": info.id, "status": info.status.value}
            if not info.is_only_in_archive:
                told["step"] = _read_step(library, info)
            told["run"]["version"] = library.find_version(info)
        found = self.find_held()
        if found is not None:
            told["gate"] = {"held": found[0], "of": sum_up(found[1])}
        return reply_json(told)

    def find_held(self) -> tuple[int, list[str]] | None:
        """Give what proxies last said that they hold, None before they did; they are asked once for all tabs, and one that hangs keeps nobody waiting."""
        with self._lock:
            asking = self._asking
            if asking is None and time.monotonic() - self._looked >= _HELD_S:
                asking = self._asking = threading.Thread(target=self._ask, daemon=True)
                asking.start()
        if asking is not None:
            asking.join(_SOON_S)
        return self._held

    def _ask(self) -> None:
        try:
            self._held = _find_held(self._library)
        finally:
            self._looked, self._asking = time.monotonic(), None


def _list_rows(library: Library) -> list[Any]:
    runs = library.store.runs.all()[-200:]
    return [(one.number, one.status, one.exchanges, one.labels) for one in runs]


def _read_step(library: Library, info: RunInfo) -> dict[str, Any]:
    index = library.open_run(info.id).index
    if info.status is RunStatus.OPEN and index.info.exchanges != info.exchanges:
        index.info = info
    return {
        "run": info.id,
        "seq": index.seqs[-1] if len(index) else 0,
        "total": len(index),
        "read": index.stepped,
        "logged": index.logged,
        "complete": index.complete,
        "revision": index.revision,
    }


def _find_held(library: Library) -> tuple[int, list[str]]:
    """Give how many requests gates and breakpoints hold, and what names them; a process that does not answer is named, too."""
    found = list_held(library.config)
    ids = [f"{one['id']} {one['digest']}" for one in found.gates]
    ids += [f"{one['id']} {one['since_ns']}" for one in found.breaks]
    return found.held + len(found.breaks), [*ids, *map(str, found.silent)]


class _Watch:
    """What one stream has been told."""

    def __init__(self, library: Library, now: Now, run: str | None) -> None:
        self._library = library
        self._now = now
        self._run = run
        self._runs: object = None
        self._step: object = None
        self._gates: object = None

    def look(self, number: int) -> list[tuple[str, Any]]:
        """Give what has changed. Blocks."""
        told: list[tuple[str, Any]] = []
        with contextlib.suppress(PlayheadError):
            told += self._look_at_run() if self._run is not None else self._look_at_runs()
        if not number % _GATES:
            told += self._look_at_gates()
        if not number % _ALIVE:
            told.append(("alive", {"every_ms": int(_EVERY_S * _ALIVE * 1000)}))
        return told

    def _look_at_run(self) -> list[tuple[str, Any]]:
        assert self._run is not None
        info = self._library.store.runs.get(self._run)
        told: list[tuple[str, Any]] = []
        row = info.status.value, info.sealed_ns, info.labels
        if row != self._runs:
            if self._runs is not None:
                told.append(("run", {"id": info.id, "status": info.status.value}))
            self._runs = row
        state = _read_step(self._library, info)
        if state != self._step:
            self._step = state
            told.append(("step", state))
        return told

    def _look_at_runs(self) -> list[tuple[str, Any]]:
        rows = _list_rows(self._library)
        if rows == self._runs:
            return []
        first, self._runs = self._runs is None, rows
        return [] if first else [("run", {"total": len(rows)})]

    def _look_at_gates(self) -> list[tuple[str, Any]]:
        found = self._now.find_held()
        if found is None or found == self._gates:
            return []
        self._gates = found
        return [("gate", {"held": found[0]})]
