"""What changes while somebody looks, as server-sent events: `run`, `step`, `gate`, and `alive` every two seconds.

The store is looked at, not the proxy: who records has nothing to do for whoever watches, but for the list of held requests.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from ... import PlayheadError
from ...store import RunStatus
from ..control.address import find_addresses
from ..control.client import ask
from ..control.http.error_body import ControlError
from .asked import Asked
from .library import Library

_EVERY_S = 0.5
_ALIVE = 4
"""Looks between two signs of life."""
_GATES = 2
"""Looks between two at what is held."""
_STREAMS = 32


class _Streams:
    open = 0


async def stream_events(
    request: web.BaseRequest, library: Library, asked: Asked, fields: Mapping[str, str]
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
    watch = _Watch(library, name)
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


class _Watch:
    """What one page has been told."""

    def __init__(self, library: Library, run: str | None) -> None:
        self._library = library
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
        is_open = info.status is RunStatus.OPEN
        run = self._library.open_run(info.id)
        index = run.index
        if is_open and index.info.exchanges != info.exchanges:
            index.info = info
        state = len(index), index.stepped, index.complete
        if state != self._step:
            self._step = state
            last = index.seqs[-1] if len(index) else 0
            told.append(
                (
                    "step",
                    {
                        "run": info.id,
                        "seq": last,
                        "total": len(index),
                        "read": index.stepped,
                        "logged": index.logged,
                        "complete": index.complete,
                    },
                )
            )
        return told

    def _look_at_runs(self) -> list[tuple[str, Any]]:
        rows = [
            (one.number, one.status, one.exchanges, one.labels)
            for one in self._library.store.runs.all()[-200:]
        ]
        if rows == self._runs:
            return []
        first, self._runs = self._runs is None, rows
        return [] if first else [("run", {"total": len(rows)})]

    def _look_at_gates(self) -> list[tuple[str, Any]]:
        config, ids, held = self._library.config, list[str](), 0
        for address in find_addresses(config.store):
            with contextlib.suppress(PlayheadError):
                found = ask(config, address, "GET", "/v1/gates")
                held += found["held"]
                ids += [f"{one['id']} {one['digest']}" for one in found["gates"]]
        if (held, ids) == self._gates:
            return []
        self._gates = held, ids
        return [("gate", {"held": held})]
