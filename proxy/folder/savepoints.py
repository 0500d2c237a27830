"""Savepoints of a recording's folder: one before each effect, while its request waits, and one at the end.

A savepoint is how the folder differs from the one before it. The folder is listed anew each time; read is only what was touched.
A file that is being written to while it is read is listed without its content, which a later savepoint has. Where the folder cannot be
read, there is a savepoint all the same: it says that nothing is known, and why.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ...store import Store, StoreError
from ...tape.folders.manifest import Entry, Manifest, Step, find_step
from ..standard_streams import print_status
from .recording import FolderRecording

if TYPE_CHECKING:
    from ...addons.run.pending_exchange import PendingExchange

END = (1 << 32) - 1
"""In the place of a seq: when the command had ended."""


class Savepoints:
    """The savepoints of one recording."""

    def __init__(self, recording: FolderRecording, store: Store) -> None:
        """Prepare; the recording has looked at its folder."""
        self._recording = recording
        self._store = store
        self._last: Manifest | None = None
        self._number = 0
        self._lock = asyncio.Lock()

    async def before_effect(self, pending: "PendingExchange") -> None:
        """Make one before an effect is forwarded. The effect goes on where that cannot be done, too."""
        open_run = pending.open_run
        if open_run.info is None or not pending.seq:
            return
        async with self._lock:
            try:
                await asyncio.to_thread(self.take, open_run.info.number, pending.seq)
            except StoreError as error:
                print_status(f"playhead: no savepoint before exchange {pending.seq}: {error}")

    def take(self, run: int, seq: int) -> None:
        """Make one. Blocks, some 30 ms for 10,000 files. Raises: StoreUnwritable."""
        recording = self._recording
        recording.adopt(run)
        try:
            self._take(run, seq)
        except OSError as error:
            why = recording.explain(error)
            which = "at the end" if seq == END else f"before exchange {seq}"
            print_status(f"playhead: the savepoint {which} is empty, because {why}")
            self._number += 1
            step = Step(seq, {}, (), frozenset([b""]), 1, why)
            self._store.folders.save_step(run, self._number, step, ())

    def _take(self, run: int, seq: int) -> None:
        recording = self._recording
        last = self._last or recording.manifest
        touched: dict[bytes, Entry] = {}
        now = recording.look_again(last, touched)
        saver = recording.make_saver(trusted=True)
        contents = list(saver.read(touched))
        made = replace(now, entries={**now.entries, **saver.entries}, seq=seq)
        self._number += 1
        step = recording.hide(find_step(last, made, touched))
        self._store.folders.save_step(run, self._number, step, contents)
        # What was not listed this time is what it was, as in what is stored.
        before = {path: one for path, one in last.entries.items() if not made.knows(path)}
        self._last = replace(made, entries={**before, **made.entries}) if before else made
