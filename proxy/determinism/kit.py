"""What a command is given so that a replay repeats its clock and its randomness, and what is kept of it.

The command writes into a folder of ours while it runs. When it has ended the journal goes into the log of its run,
and the folder away; a recording that never came to its end has no journal, and is replayed without one.
"""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...store import RunInfo, Store
from ...tape.codec import BadRecord
from ...tape.events import Event, EventKind
from ..errors import EngineError
from .journal import cut, sort_looks, write_journals
from .report import Report, read_report, read_told

OFF, SEED, FULL = "off", "seed", "full"
_HERE = Path(__file__).resolve().parent
_PYTHON = _HERE / "python"
_NODE = _HERE / "node" / "preload.cjs"
_MOST_RECORDS = 64 << 20
"""Bytes of what one process wrote down; preloads end before."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a recording and its replays have in common."""

    level: str
    seed: bytes
    hash_seed: str
    """Of Python, decimal."""
    start_ns: int


class Kit:
    """A folder, and the variables that make preloads use it. Close it in the end."""

    def __init__(self, basis: Basis, *, recorded: bool) -> None:
        """Make the folder.

        recorded: whether the clock is to be that of a recording.
        """
        self.basis = basis
        self._recorded = recorded
        self.folder = Path(tempfile.mkdtemp(prefix="playhead-clock-")).resolve()
        self._notes = self.folder / "notes"
        self._tape = self.folder / "tape"
        self._notes.mkdir()
        self._tape.mkdir()

    @classmethod
    def for_recording(cls, level: str | None, environ: Mapping[str, str]) -> "Kit | None":
        """Give what a recording is made with; None where it is made without.

        Raises: EngineError, where there is no place for a journal.
        """
        if level in (None, OFF):
            return None
        seed = secrets.token_bytes(32)
        given = environ.get("PYTHONHASHSEED", "")
        hash_seed = given if given.isdecimal() else str(int.from_bytes(seed[:4]) or 1)
        try:
            return cls(Basis(level, seed, hash_seed, time.time_ns()), recorded=False)
        except OSError as error:
            raise EngineError(
                f"no folder for the journal can be made in {tempfile.gettempdir()!r}: {error.strerror}",
                "make room there, or set TMPDIR to a folder that can be written",
            ) from error

    @classmethod
    def for_replay(cls, level: str | None, store: Store, tape: RunInfo) -> "Kit | None":
        """Give what a replay is made with, as its recording was; None where that was made without.

        level: the most that is wanted; None for all there is.
        Raises: EngineError, where the journal cannot be laid out; LogCorrupt.
        """
        if level == OFF:
            return None
        kit = None
        try:
            basis, journal = _read(store, tape)
            if basis is None:
                return None
            kit = cls(basis if level != SEED else replace(basis, level=SEED), recorded=True)
            if kit.basis.level == FULL:
                write_journals(journal, kit._tape)
        except (BadRecord, OSError) as error:
            if kit is not None:
                kit.close()
            raise EngineError(
                f"clock and randomness of run {str(tape.id)!r} cannot be repeated: {error}",
                "replay it with --determinism off",
            ) from error
        return kit

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Give a command's variables with ours among them."""
        clock = OFF if self.basis.level != FULL else "read" if self._recorded else "write"
        made = {
            **environ,
            "PLAYHEAD_CLOCK": clock,
            "PLAYHEAD_SEED": self.basis.seed.hex(),
            "PLAYHEAD_NOTES": str(self._notes),
            "PLAYHEAD_TAPE": str(self._tape),
            "PLAYHEAD_START": str(self.basis.start_ns),
            "PLAYHEAD_LANE": "0",
            "PYTHONHASHSEED": self.basis.hash_seed,
        }
        paths = [str(_PYTHON), *filter(None, [environ.get("PYTHONPATH")])]
        made["PYTHONPATH"] = os.pathsep.join(paths)
        require = f'--require "{_NODE}"'
        made["NODE_OPTIONS"] = " ".join([*filter(None, [environ.get("NODE_OPTIONS")]), require])
        # For children that are given other variables.
        made |= {"PLAYHEAD_PYTHON": str(_PYTHON), "PLAYHEAD_NODE": require}
        return made

    def report(self, command: Sequence[str]) -> Report:
        """Read what was told, once the command has ended."""
        return read_report(self._notes, os.path.basename(command[0]))

    def looks(self, report: Report) -> Iterator[dict[str, Any]]:
        """Give the journal as data of events; nothing unless it was written."""
        if self._recorded:
            return
        for path in sorted(self._notes.glob("*.looks")):
            process = path.name.removesuffix(".looks")
            records = read_told(path, _MOST_RECORDS)
            yield from cut(process, sort_looks(records, report.lanes.get(process, {})))

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _read(store: Store, tape: RunInfo) -> tuple[Basis | None, list[Mapping[str, Any]]]:
    """Read what a run was recorded with, and its journal; None where it was made without, or has no end."""
    basis = None
    journal: list[Mapping[str, Any]] = []
    for event in store.log(tape):
        if event.kind is EventKind.JOURNAL:
            journal.append(event.data)
        elif event.kind is EventKind.NOTED and "basis" in event.data:
            basis = _basis(event.data["basis"])
    return basis, journal


def _basis(row: Any) -> Basis:
    """Read what the log keeps of it. Raises: BadRecord."""
    match row:
        case {
            "level": "seed" | "full" as level,
            "seed": bytes(seed),
            "hash_seed": str(hash_seed),
            "start_ns": int(start_ns),
        }:
            return Basis(level, seed, hash_seed, start_ns)
    raise BadRecord("not what a recording was made with")


def events(kit: Kit, command: Sequence[str]) -> Iterator[Event]:
    """Yield what the log of a run keeps of its clock and randomness. Once the command has ended; blocks."""
    at_ns = time.time_ns()
    report = kit.report(command)
    for row in kit.looks(report):
        yield Event(EventKind.JOURNAL, at_ns, row)
    told = {"level": kit.basis.level, **report.to_json()}
    noted: dict[str, Any] = {"determinism": told, "basis": asdict(kit.basis)}
    yield Event(EventKind.NOTED, at_ns, noted)
