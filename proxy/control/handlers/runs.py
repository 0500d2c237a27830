"""Open runs: list, show, stop and end them."""

import asyncio
from typing import Any

from ....addons.run.run_state import OpenRun, Stopped
from ....addons.stop import stop_run
from ....config import parse_run_name
from ....store import RunInfo, RunStatus, UnknownRun
from ..http.error_body import ControlError
from ..http.route import Answer, Call, ProxyState, Text

REASON = Text(500, "Why; for the log and the agent.")
_PATIENCE_S = 10.0
"""Longest wait for a run to be sealed; it goes on afterwards."""


async def list_runs(call: Call) -> Answer:
    """List the open runs of this process."""
    return Answer({"runs": [_shown(open_run) for open_run in _open(call.proxy_state)]})


async def get_run(call: Call) -> Answer:
    """Give one run: an open one of this process, or any of the store as its list has it."""
    name = call.parameters["id"]
    open_run = _find(call.proxy_state, name)
    if open_run is not None:
        return Answer(_shown(open_run))
    return Answer(_kept(await _load(call.proxy_state, name)))


async def stop(call: Call) -> Answer:
    """Stop a run; of one that was stopped before, say who did it first."""
    open_run = await _get(call)
    caller = await call.find_caller()
    reason = call.body.get("reason", "")
    await stop_run(call.proxy_state.registry, open_run, by=caller.by, pid=caller.pid, reason=reason)
    return Answer(_shown(open_run))


async def seal(call: Call) -> Answer:
    """End a run, and wait a while for what is in flight."""
    open_run = await _get(call)
    caller = await call.find_caller()
    reason = call.body.get("reason", "")
    said = open_run.redactor.redact_text(reason)
    why = f"asked for by {caller}" + (f": {said}" if said else "")
    ending = call.proxy_state.registry.end(open_run, why)
    if ending is not None:
        await asyncio.wait([ending], timeout=_PATIENCE_S)
    shown = _shown(open_run)
    done = ending is not None and ending.done()
    shown["status"] = "sealed" if done else "ending"
    return Answer(shown, 200 if done else 202)


def _open(proxy_state: ProxyState) -> list[OpenRun]:
    return [open_run for open_run in proxy_state.registry.open if open_run.info is not None]


def _find(proxy_state: ProxyState, name: str) -> OpenRun | None:
    return next(
        (found for found in _open(proxy_state) if found.info and found.info.id == name), None
    )


async def _get(call: Call) -> OpenRun:
    """Get an open run of this process.

    Raises: ControlError, 404 or 409.
    """
    name = call.parameters["id"]
    open_run = _find(call.proxy_state, name)
    if open_run is not None:
        return open_run
    info = await _load(call.proxy_state, name)
    if info.status is not RunStatus.OPEN:
        raise ControlError(
            409,
            "the run has ended",
            expected="an open run",
            found=info.status.value,
            hint="GET /v1/runs lists those that are open",
        )
    pid = info.owner.pid if info.owner else 0
    raise ControlError(
        409,
        "this process does not write the run, or is just ending it",
        expected="a run of this process",
        found=f"one of process {pid}",
        hint="GET /v1/runs lists those that are open here",
    )


async def _load(proxy_state: ProxyState, name: str) -> RunInfo:
    try:
        return await asyncio.to_thread(proxy_state.store.runs.get, parse_run_name(name))
    except ValueError as error:
        raise ControlError(
            404, "no such run", expected="the name of a run", found="none", hint=str(error)
        ) from None
    except UnknownRun as error:
        raise ControlError(
            404, "no such run", expected="the name of a run", found=name, hint=error.hint
        ) from None


def _shown(open_run: OpenRun) -> dict[str, Any]:
    assert open_run.info is not None
    return {
        "id": open_run.info.id,
        "mode": open_run.mode.value,
        "status": "ending" if open_run.lifetime.ending else "open",
        "tape": open_run.tape.id if open_run.tape else None,
        "agent": open_run.info.agent,
        "created_ns": open_run.info.created_ns,
        "requests": open_run.on_the_way.requests,
        "in_flight": len(open_run.on_the_way.pending_exchanges),
        "stopped": _stopped(open_run.lifetime.stopped),
    }


def _kept(info: RunInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "mode": info.mode,
        "status": info.status.value,
        "tape": info.parent,
        "agent": info.agent,
        "created_ns": info.created_ns,
        "requests": info.exchanges,
        "in_flight": 0,
        "stopped": None,
    }


def _stopped(stopped: Stopped | None) -> dict[str, Any] | None:
    if stopped is None:
        return None
    return {
        "by": stopped.by,
        "pid": stopped.pid,
        "reason": stopped.reason,
        "at_ns": stopped.at_ns,
    }
