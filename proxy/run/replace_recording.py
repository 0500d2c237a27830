"""`playhead record --replace`: remove the recording whose name the new one gets, with what plays it."""

import errno
import os
import shutil
from collections.abc import Sequence

from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError
from ...tape.shell_words import shell_word
from ..processes.unstartable_command import explain_start


def find_replaced(store: Store, name: str) -> list[RunInfo]:
    """Give the run of exactly this name, and what plays it; nothing where the name is free.

    Raises: RunOpen; StoreError, where one of them is to be kept, or holds what was recorded nowhere else.
    """
    found: dict[int, RunInfo] = {}
    for run in store.runs.all():  # what plays a run comes after it
        if run.id == name or run.parent_number in found:
            found[run.number] = run
    for run in found.values():
        _require_replaceable(run, name)
    return list(found.values())


def _require_replaceable(run: RunInfo, name: str) -> None:
    start = f"{name!r} cannot be replaced: run {run.id!r}"
    other = "record under another name"
    if run.status is RunStatus.OPEN:
        raise RunOpen(f"{start} has not ended", f"end it first: playhead seal {shell_word(run.id)}")
    if run.pinned:
        raise StoreError(
            f"{start} is pinned", f"{other}, or let it go: playhead pin --off {shell_word(run.id)}"
        )
    if run.archived is not None:
        raise StoreError(
            f"{start} is in an archive", f"{other}, or erase it: playhead erase {shell_word(name)}"
        )
    if run.has_resumed:
        raise StoreError(
            f"{start} has sent requests of its own",
            f"{other}, or erase it: playhead erase {shell_word(name)}",
        )


def remove_replaced(store: Store, runs: Sequence[RunInfo]) -> None:
    """Delete runs; their space is given back by `playhead gc`. Blocks.

    Raises: StoreError, where one was marked, archived or played meanwhile; StoreUnwritable.
    """
    store.removal.delete(runs)
    if left := next((run for run in runs if store.runs.exists(run)), None):
        raise StoreError(f"run {left.id!r} was marked, archived or played meanwhile", "try again")


def require_startable(command: Sequence[str]) -> None:
    """Refuse a command that is not there, before the recording that it is to replace is gone. Raises: CannotStart."""
    if shutil.which(command[0]) is not None:
        return
    there = os.path.exists(command[0]) if "/" in command[0] else False
    number = errno.EACCES if there else errno.ENOENT
    raise explain_start(command, number, os.strerror(number))
