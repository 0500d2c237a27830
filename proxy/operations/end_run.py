"""`playhead seal`: end a run; a live owner does it itself."""

import time

from ...addons.run.registry import SEAL
from ...config import Config
from ...store import RunInfo, RunStatus, StoreError
from ...tape.counted import counted
from .open_store import open_store

_PATIENCE_S = 15.0


def seal_run(config: Config, name: str) -> str:
    """End a run and say what was done.

    A run that another process writes is sealed by that process, which ends what is in flight first.
    Raises: UnknownRun; StoreError, when the owner does not answer.
    """
    with open_store(config, readonly=True) as store:
        store.runs.get(name)  # so that a mistyped store is not made
    with open_store(config) as store:
        info = store.runs.get(name)
        if info.status is not RunStatus.OPEN:
            return f"run {info.id} is {info.status.value} already"
        if not store.runs.owner_alive(info):
            sealed = store.runs.seal_blocking(info, reason="playhead seal", at_ns=time.time_ns())
            return _tell(sealed)
        store.owner_requests.ask(info, SEAL)
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            now = store.runs.reload(info)
            if now.status is not RunStatus.OPEN:
                return _tell(now)
            time.sleep(0.05)
    raise StoreError(
        f"run {name!r} is not sealed yet: its process still has requests in flight",
        "it will be as soon as that is done; ask again, or stop the proxy",
    )


def _tell(sealed: RunInfo) -> str:
    """Say that a run has ended; its requests are those that were refused, too, as by a gate."""
    requests = counted(sealed.exchanges, "request")
    return f"run {sealed.id}: sealed, {requests}"
