"""Bring one file, a tape or a Parquet file of an archive, to the current version of its format.

The new file is written beside the old one, step by step. The old file gets a second name, `FILE.version-N`, before the new
file replaces it in one move. So a kill leaves one complete file, and you can run the same command again.

To change a format: raise `VERSION` in `tape/records/tape_file.py` or `store/archive/schema.py`, add the step from the version
before to its table here, and add a golden file (`tests/golden/make.py`).
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...store.errors import StoreError, StoreTooNew, StoreUnwritable
from ...store.spill.partial_file import sync_folder
from ...tape.records import tape_file
from ...tape.records.codec import BadRecord

FileStep = Callable[[Path, Path], None]
"""Writes a file in the next version of its format: source, target, which is not there. Raises: BadRecord, OSError."""

TAPE_STEPS: Mapping[int, FileStep] = {}
"""By the version that a step starts from."""


def _add_seal(source: Path, target: Path) -> None:
    from ...store.archive.upgrading import add_seal  # needs pyarrow

    add_seal(source, target)


ARCHIVE_STEPS: Mapping[int, FileStep] = {1: _add_seal}
_PARQUET = b"PAR1"
_ADVICE = "use a newer Playhead; nothing was changed"


class UpgradedFile(NamedTuple):
    """What was done."""

    kind: str
    """`tape` or `archive`."""
    before: int
    after: int
    backup: Path | None
    """None where the version was the current one."""


class _Known(NamedTuple):
    """The format of a file, as it was found."""

    kind: str
    version: int
    current: int
    steps: Mapping[int, FileStep]


def upgrade_file(path: Path) -> UpgradedFile:
    """Bring a file to the current version of its format. Blocks.

    Raises: StoreError: it is neither a tape nor of an archive, or its version cannot be upgraded; StoreTooNew;
        StoreUnwritable. The file is then as it was.
    """
    try:
        known = _know(path)
        if known.version == known.current:
            return UpgradedFile(known.kind, known.version, known.current, None)
        numbers = range(known.version, known.current)
        if any(number not in known.steps for number in numbers):
            raise StoreError(
                f"{path} has version {known.version} of its format; this version of Playhead reads {known.current}",
                "no released version wrote that: export it again",
            )
        return UpgradedFile(known.kind, known.version, known.current, _write(path, known, numbers))
    except tape_file.TapeTooNewRecord as error:
        raise StoreTooNew(f"{path}: {error}", _ADVICE) from error
    except BadRecord as error:
        raise StoreError(f"{path}: {error}", "nothing was changed") from error
    except OSError as error:
        raise StoreUnwritable(
            f"cannot upgrade {path}: {error.strerror or error}", "nothing was changed; try again"
        ) from error


def _know(path: Path) -> _Known:
    with path.open("rb") as file:
        head = file.read(tape_file.HEAD_BYTES)
    if not head.startswith(_PARQUET):
        version = tape_file.read_version(head)
        return _Known("tape", version, tape_file.VERSION, TAPE_STEPS)
    from ...store.archive.reading import read_versions  # needs pyarrow

    version, current = read_versions(path)
    if version > current:
        raise StoreTooNew(
            f"{path} has format {version}; this version reads up to {current}", _ADVICE
        )
    return _Known("archive", version, current, ARCHIVE_STEPS)


def _write(path: Path, known: _Known, numbers: range) -> Path:
    made = [path.with_name(f"{path.name}.upgrading-{number + 1}") for number in numbers]
    backup = path.with_name(f"{path.name}.version-{known.version}")
    try:
        for number, source, target in zip(numbers, (path, *made), made, strict=False):
            target.unlink(missing_ok=True)
            known.steps[number](source, target)
        with made[-1].open("rb") as file:
            os.fsync(file.fileno())
        if backup.exists() and not backup.samefile(path):
            raise StoreError(
                f"there is a file {str(backup)!r} already", "move it away and try again"
            )
        if not backup.exists():
            os.link(path, backup)
        os.replace(made[-1], path)
        sync_folder(path.parent)
    finally:
        for one in made:
            one.unlink(missing_ok=True)
    return backup
