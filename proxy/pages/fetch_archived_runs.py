"""Fetch archived runs for a page: another process does it, since this one has the store open for reading."""

import subprocess
import sys
import threading
from typing import Any

from ...store import RunInfo, StoreError
from ..control.http.error_body import ControlError
from ..operations.restore_archived import open_place
from .request_and_reply import Asked, Reply, reply_json
from .store_reader import Library

_TEXT = 600
_NOBODY = "Nobody fetches it: the page of the run does."


class Fetches:
    """What is being fetched."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._failed: dict[str, str] = {}
        """Why runs could not be fetched, by their names, until that is tried again."""

    def begin(self, info: RunInfo) -> None:
        """Have a run fetched, if nobody does yet.

        Raises: ControlError, where its archive cannot be read.
        """
        assert info.archived is not None
        from ...timeline.archiving.move_runs import find_step  # late: few runs are archived

        try:
            find_step(info.archived, open_place(info.archived.place), 1)
        except StoreError as error:
            with self._lock:
                self._failed[info.id] = " ".join(filter(None, (str(error), error.hint)))[:_TEXT]
            raise ControlError(
                503,
                f"Run {info.id!r} cannot be fetched from its archive",
                found=str(error)[:_TEXT],
                hint=error.hint or "have the archive where it was, and load this page again",
            ) from error
        with self._lock:
            running = self._running.get(info.id)
            if running is not None and running.poll() is None:
                return
            self._failed.pop(info.id, None)
            # Printing the receipt restores the run and its tape.
            words = ("receipt", info.id, *self._library.words)
            self._running[info.id] = subprocess.Popen(
                [sys.executable, "-m", "playhead.proxy.cli", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )

    def look(self, asked: Asked) -> Reply:
        """Say how far a run has come."""
        info = self._library.store.runs.get(asked.parameters["run"])
        told: dict[str, Any] = {"done": not info.is_only_in_archive, "error": None}
        with self._lock:
            running = self._running.get(info.id)
            if running is not None and running.poll() is not None:
                del self._running[info.id]
                said = running.stderr.read() if running.stderr is not None else b""
                self._failed[info.id] = (
                    said.decode("utf-8", "replace")[-_TEXT:] or "It could not be fetched."
                )
                told["done"] = not self._library.store.runs.get(info.id).is_only_in_archive
            if not told["done"] and info.id not in self._running:
                told["error"] = self._failed.get(info.id, _NOBODY)
        return reply_json(told)

    def close(self) -> None:
        """Leave what is being fetched to its own process."""
        self._running.clear()
