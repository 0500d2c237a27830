"""What a sweep has done so far: a file beside its own, a line of JSON for each run, so that the next call goes on where this one stopped."""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import EngineError

SUFFIX = ".done"


class Journal:
    """The runs of one sweep, of one process at a time. Use as a context manager."""

    def __init__(self, file: Path) -> None:
        """Go on with what was done for a file of variants."""
        self.path = file.with_name(file.name + SUFFIX)
        self.rows: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise EngineError(
                f"{self.path} cannot be written: {error.strerror}",
                "what has been done is noted there",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise EngineError(
                f"another sweep works on {self.path}", "wait for it, or copy the file of variants"
            ) from error
        self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.rows:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _read(self) -> None:
        for number, line in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                row = json.loads(line)
                row["key"], row["run"], row["standing"]
            except (ValueError, TypeError, KeyError):
                raise EngineError(
                    f"{self.path}, line {number}: no run of a sweep",
                    "remove the line, or the file, to do its runs again",
                ) from None
            self.rows.append(row)

    def add(self, row: dict[str, Any]) -> None:
        """Note a run that has ended."""
        self.rows.append(row)
        os.write(self._descriptor, json.dumps(row).encode() + b"\n")
        os.fsync(self._descriptor)
