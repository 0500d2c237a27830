"""The preload bundle: the preloads, seed and journal given to a command, and the events stored about them.

The command writes into a folder of ours while it runs. When it has ended the journal goes into the log of its run,
and the folder away. Some of it goes there before (`journal_keeper.py`): a recording that never came to its end has that much.
"""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...store import RunInfo, RunStatus, Store
from ...tape.records.codec import BadRecord
from ...tape.records.events import Event, EventKind
from ..errors import EngineError
from .clock_journal import Intake, write_journals
from .libc.preload_library import NoLibrary, place_library
from .preload_report import Report, read_contexts, read_report

OFF, SEED, FULL = "off", "seed", "full"
_HERE = Path(__file__).resolve().parent
_PYTHON = _HERE / "python"
_NODE = _HERE / "node" / "preload.cjs"
_BUN = _HERE / "bun" / "preload.mjs"
_LESS = "{} was asked for, but the tape was recorded with {}"
_NO_END = "the recording did not come to its end: its journal may lack the last clock reads"
_NO_LIBRARY = "programs that are neither Python nor Node were covered, and are not now: {}"


@dataclass(frozen=True, slots=True)
class Basis:
    """What a recording and its replays have in common."""

    level: str
    seed: bytes
    hash_seed: str
    """Of Python, decimal."""
    start_ns: int
    libc: bool = False
    """Whether programs that are linked with a C library are covered."""


class PreloadBundle:
    """A folder, and the variables that make preloads use it. Close it in the end."""

    def __init__(
        self, basis: Basis, *, recorded: bool, short_sleeps: bool = False, library: bool = True
    ) -> None:
        """Make the folder.

        recorded: whether the clock is to be that of a recording.
        library: whether programs that are neither Python nor Node are to be covered, where they can be.
        """
        self.basis = basis
        self.short_sleeps = short_sleeps
        self.missing = ""
        """What was asked for and is not there; a text for people."""
        self.no_library = ""
        """Why programs that are linked with a C library are not covered; a text for people, empty where they are."""
        self._recorded = recorded
        # Nobody else may enter the outer one, whatever the inner one has to be open for.
        self._outer = Path(tempfile.mkdtemp(prefix="playhead-clock-")).resolve()
        self.folder = self._outer / "preloads"
        self.folder.mkdir()
        self._notes = self.folder / "notes"
        self._tape = self.folder / "tape"
        self._notes.mkdir()
        self._tape.mkdir()
        self._library = self._place_library() if self._wants_library(library) else None
        self._intake = Intake(self._notes, partial(read_contexts, self._notes))

    def _wants_library(self, wanted: bool) -> bool:
        if self._recorded and not self.basis.libc:
            self.no_library = "the recording was made without"
        elif not wanted:
            self.no_library = "it is switched off; libc_preload: auto loads it"
        return not self.no_library

    def _place_library(self) -> Path | None:
        """Put the library where the command sees it, which may not see the user's cache."""
        try:
            placed = place_library(self.folder)
        except NoLibrary as error:
            self.no_library = str(error)
            return None
        self.basis = replace(self.basis, libc=True)
        return placed

    @classmethod
    def for_recording(
        cls, level: str | None, environ: Mapping[str, str], *, library: bool = False
    ) -> "PreloadBundle | None":
        """Give what a recording is made with; None where it is made without.

        Raises: EngineError, where there is no place for a journal.
        """
        if level in (None, OFF):
            return None
        seed = secrets.token_bytes(32)
        given = environ.get("PYTHONHASHSEED", "")
        hash_seed = given if given.isdecimal() else str(int.from_bytes(seed[:4]) or 1)
        try:
            return cls(
                Basis(level, seed, hash_seed, time.time_ns()), recorded=False, library=library
            )
        except OSError as error:
            raise EngineError(
                f"no folder for the journal can be made in {tempfile.gettempdir()!r}: {error.strerror}",
                "make room there, or set TMPDIR to a folder that can be written",
            ) from error

    @classmethod
    def for_replay(
        cls,
        level: str | None,
        store: Store,
        tape: RunInfo,
        *,
        short_sleeps: bool = False,
        library: bool = True,
    ) -> "PreloadBundle | None":
        """Give what a replay is made with, as its recording was; None where that was made without.

        level: the most that is wanted; None for all there is.
        Raises: EngineError, where the journal cannot be laid out, or short sleeps have no clock; LogCorrupt.
        """
        preload_bundle = None
        try:
            basis, journal = _read(store, tape) if level != OFF else (None, [])
            recorded = OFF if basis is None else basis.level
            if basis is not None and level == SEED:
                basis = replace(basis, level=SEED)
            if short_sleeps and (basis is None or basis.level != FULL):
                raise EngineError(
                    f"sleeps are kept short on a recorded clock only, and this replay of run {str(tape.id)!r} has none",
                    "record with --determinism full, or replay without --sleeps and playback.sleeps",
                )
            if basis is None:
                return None
            preload_bundle = cls(basis, recorded=True, short_sleeps=short_sleeps, library=library)
            if level == FULL and recorded == SEED:
                preload_bundle.missing = _LESS.format(level, recorded)
            elif preload_bundle.basis.level == FULL and tape.status is RunStatus.RECOVERED:
                preload_bundle.missing = _NO_END
            elif basis.libc and preload_bundle.no_library:
                preload_bundle.missing = _NO_LIBRARY.format(preload_bundle.no_library)
            if preload_bundle.basis.level == FULL:
                write_journals(journal, preload_bundle._tape)
        except (BadRecord, OSError) as error:
            if preload_bundle is not None:
                preload_bundle.close()
            raise EngineError(
                f"clock and randomness of run {str(tape.id)!r} cannot be repeated: {error}",
                "replay it with --determinism off",
            ) from error
        return preload_bundle

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
        if self.short_sleeps:
            made["PLAYHEAD_SLEEPS"] = "short"
        paths = [str(_PYTHON), *filter(None, [environ.get("PYTHONPATH")])]
        made["PYTHONPATH"] = os.pathsep.join(paths)
        require = f'--require "{_NODE}"'
        made["NODE_OPTIONS"] = " ".join([*filter(None, [environ.get("NODE_OPTIONS")]), require])
        if " " not in str(_BUN):  # Bun knows no quotes
            theirs = filter(None, [environ.get("BUN_OPTIONS")])
            made["BUN_OPTIONS"] = " ".join([*theirs, f"--preload={_BUN}"])
        if self._library is not None:
            made["PLAYHEAD_LIBRARY"] = str(self._library)
            preloads = [made["PLAYHEAD_LIBRARY"], *filter(None, [environ.get("LD_PRELOAD")])]
            made["LD_PRELOAD"] = ":".join(preloads)
            # Programs that are built with the sanitizer refuse to start behind any library, else.
            theirs = filter(None, [environ.get("ASAN_OPTIONS")])
            made["ASAN_OPTIONS"] = ":".join([*theirs, "verify_asan_link_order=0"])
        # For children that are given other variables.
        made |= {"PLAYHEAD_PYTHON": str(_PYTHON), "PLAYHEAD_NODE": require}
        return made

    def serve_container(self) -> None:
        """Be used by a command in a container: by somebody else, with a C library that may be no match for ours.

        Who may enter the folder above is up to whoever hands this one on.
        """
        self.folder.chmod(0o755)
        self._notes.chmod(0o777)
        for path in (self._tape, *self._tape.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self._library = None
        self.no_library = "not in containers, whose C library may be another"
        self.basis = replace(self.basis, libc=False)

    def report(self, command: Sequence[str]) -> Report:
        """Read what was told, once the command has ended."""
        return read_report(self._notes, os.path.basename(command[0]))

    def clock_reads(self, *, ended: bool = True) -> Iterator[dict[str, Any]]:
        """Give what was not given yet of the journal, as data of events. Blocks.

        ended: whether the command has.
        """
        return self._intake.take_rest() if ended else self._intake.take()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._outer, ignore_errors=True)


def _read(store: Store, tape: RunInfo) -> tuple[Basis | None, list[Mapping[str, Any]]]:
    """Read what a run was recorded with, and its journal; None where it was made without, or has no end."""
    basis = None
    journal: list[Mapping[str, Any]] = []
    for event in store.events.all(tape):
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
            return Basis(level, seed, hash_seed, start_ns, row.get("libc") is True)
    raise BadRecord("not what a recording was made with")


def begun(preload_bundle: PreloadBundle) -> Event:
    """Give what the log of a recording has of it from the start, for the case that it has no end."""
    return _noted(preload_bundle, Report(), _NO_END)


def lacking(level: str) -> Event:
    """Give what the log of a replay has where this level was asked for, and nothing of it was recorded."""
    summary = _summary(OFF, _LESS.format(level, OFF), "real", Report())
    return Event(EventKind.NOTED, time.time_ns(), {"determinism": summary})


def journal(preload_bundle: PreloadBundle, *, ended: bool) -> Iterator[Event]:
    """Yield what the log has not got yet of the journal; nothing in a replay. Blocks."""
    at_ns = time.time_ns()
    for row in preload_bundle.clock_reads(ended=ended):
        yield Event(EventKind.JOURNAL, at_ns, row)


def events(preload_bundle: PreloadBundle, command: Sequence[str]) -> Iterator[Event]:
    """Yield what the log of a run keeps in the end of its clock and randomness. Once the command has ended; blocks."""
    yield from journal(preload_bundle, ended=True)
    yield _noted(preload_bundle, preload_bundle.report(command), preload_bundle.missing)


def _noted(preload_bundle: PreloadBundle, report: Report, missing: str) -> Event:
    sleeps = "short" if preload_bundle.short_sleeps else "real"
    summary = _summary(preload_bundle.basis.level, missing, sleeps, report) | {
        "libc": preload_bundle.no_library
    }
    data: dict[str, Any] = {"determinism": summary, "basis": asdict(preload_bundle.basis)}
    return Event(EventKind.NOTED, time.time_ns(), data)


def _summary(level: str, missing: str, sleeps: str, report: Report) -> dict[str, Any]:
    """Give it as receipts have it."""
    return {
        "level": level,
        "missing": missing,
        "sleeps": sleeps,
        "libc": "",
        **report.to_json(),
    }
