"""`playhead note`: write notes on a run."""

import os
import pwd
import time

from ...config import Config
from ...timeline.receipts.user_notes import Note, add_note, notes_of
from .open_store import open_store
from .restore_archived import restore_runs


def list_notes(config: Config, run: str) -> list[Note]:
    """Read what was written beside a run.

    Raises: UnknownRun, LogCorrupt.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        return notes_of(store, store.runs.get(run))


def write_note(config: Config, run: str, text: str, seq: int) -> Note:
    """Write something beside a run.

    Raises: UnknownRun; StoreError, where there is no such exchange, or too much or nothing to write.
    """
    restore_runs(config, run)  # which also sees that a mistyped store is not made
    with open_store(config) as store:
        info = store.runs.get(run)
        return add_note(store, info, text, seq=seq, by=user_name(), at_ns=time.time_ns())


def user_name() -> str:
    """Give who we are on this machine."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container
        return f"uid {os.getuid()}"
