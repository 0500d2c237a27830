"""What a sweep, a bisection or an exploration has done so far, in a file, so that the next call goes on where this one stopped.

It has a line of JSON when a run begins, with what the run reserves of the caps, and another once the run has ended. A run without the
second was stopped: what it has used is to be found in the store. Another line has what the runs behind it depend on (`inputs.py`).
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...errors import EngineError
from .inputs import Inputs

SUFFIX = ".done"


class Journal:
    """The runs that are noted in one file, by one process at a time. Use as a context manager."""

    def __init__(self, path: Path, busy: str, hint: str) -> None:
        """Go on with what is noted in a file.

        busy, hint: what is said where another process works with it, and what there is to do.
        """
        self.path = path
        self._busy = busy, hint
        self.rows: list[dict[str, Any]] = []
        """Runs that have ended."""
        self._begun: dict[int, dict[str, Any]] = {}
        """Runs that have begun, by number."""
        self._depended: dict[str, dict[str, str]] = {}
        """By the digest of what runs have depended on, its parts."""
        self._inputs: Inputs | None = None

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise EngineError(
                f"{self.path} cannot be written: {error.strerror}",
                "its progress is noted there",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise EngineError(*self._busy) from error
        self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.rows and not self._begun:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def clear(self) -> None:
        """Forget what is noted."""
        os.ftruncate(self._descriptor, 0)
        self.rows.clear()
        self._begun.clear()
        self._depended.clear()

    def _read(self) -> None:
        data = self.path.read_bytes()
        if (whole := data.rfind(b"\n") + 1) < len(data):
            # A line that was cut as it was written: its run has not begun, or is one that was stopped.
            os.ftruncate(self._descriptor, whole)
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                row = json.loads(line)
                if "parts" in row:
                    self._depended[row["inputs"]] = dict(row["parts"])
                    continue
                row["key"]
                if "standing" not in row:
                    int(row["process"]), int(row["next_run"]), row["variant"]
                    self._begun[int(row["begun"])] = row
                    continue
                row["run"]
            except (ValueError, TypeError, KeyError):
                raise EngineError(
                    f"{self.path}, line {number}: no run of a sweep",
                    "remove the line, or the file, to do its runs again",
                ) from None
            self.rows.append(row)

    def depend(self, inputs: Inputs) -> None:
        """Note what the next runs depend on."""
        self._inputs = inputs
        if inputs.digest not in self._depended:
            self._depended[inputs.digest] = dict(inputs.parts)
            self._write({"inputs": inputs.digest, "parts": self._depended[inputs.digest]})

    def counts(self, row: Mapping[str, Any]) -> bool:
        """Say whether a run counts that was noted: one does not whose files are other ones now."""
        before = self._depended.get(row.get("inputs", ""))
        if before is None or self._inputs is None:
            return False
        return before == self._inputs.parts or not self._inputs.find_changed(before)

    def say_left(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Say of noted runs which of them do not count, and why.

        rows: those runs.
        """
        if self._inputs is None:
            return
        left = Counter(str(row.get("inputs", "")) for row in rows if not self.counts(row))
        for digest, count in left.items():
            what = f"{count} earlier run{'s do' if count != 1 else ' does'} not count"
            yield f"  {what}: {self._inputs.say_changed(self._depended.get(digest))}"

    @property
    def stopped(self) -> list[dict[str, Any]]:
        """The runs that have begun and have not ended."""
        ended = {row.get("begun") for row in self.rows}
        return [row for number, row in self._begun.items() if number not in ended]

    def number(self) -> int:
        """Give a number to a run that is going to begin."""
        number = max(self._begun, default=0) + 1
        self._begun[number] = {}
        return number

    def begin(self, row: dict[str, Any]) -> None:
        """Note a run before it begins; called in its own process."""
        self._write(self._with_inputs(row))

    def add(self, row: dict[str, Any]) -> None:
        """Note a run that has ended."""
        row = self._with_inputs(row)
        self.rows.append(row)
        self._write(row)

    def _with_inputs(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self._inputs is None else {**row, "inputs": self._inputs.digest}

    def _write(self, row: dict[str, Any]) -> None:
        os.write(self._descriptor, json.dumps(row).encode() + b"\n")
        os.fsync(self._descriptor)
