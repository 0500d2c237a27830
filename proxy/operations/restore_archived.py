"""Restore archived runs when a command needs them; the caller need not know where a run is stored."""

import contextlib
import importlib.util
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ... import PlayheadError
from ...config import Config
from ...config.archive_url import parse_archive
from ...store import RunInfo, Store, StoreError
from ...tape.counted import counted
from ..progress import ProgressBar
from ..standard_streams import print_status
from .find_tape import choose_recording
from .open_store import open_store

if TYPE_CHECKING:
    from ...store.archive.storage import Place
    from ...timeline.archiving.move_runs import ArchivedStep

_PATIENCE_S = 120.0
"""How long a command waits for another that moves runs."""
_EVERY_S = 0.05


def restore_runs(config: Config, *names: str) -> None:
    """Restore archived runs and their tapes to the store; do nothing if none is archived.

    Raises: UnknownRun; StoreError, where an archive cannot be read; PlayheadError without pyarrow.
    """
    with open_store(config, readonly=True) as store:
        if not any(run.is_only_in_archive for name in names for run in _line(store, name)):
            return
    require_pyarrow()
    with open_store(config) as store, moving(store), ProgressBar("restoring") as progress:
        for name in names:
            for run in _line(store, name):
                _restore(store, run, progress)


def fetch_since(config: Config, since_ns: int) -> None:
    """Fetch the archived runs that went on since a time, and say on stderr which cannot be fetched."""
    with open_store(config, readonly=True) as store:
        _, away = choose_runs(store, (), since_ns)
    failed = _try_to_restore(config, [run.id for run in away]) if away else {}
    if failed:
        name, why = next(iter(failed.items()))
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        print_status(f"playhead: left out, since they cannot be fetched: {name!r}{more}: {why}")


def _try_to_restore(config: Config, names: Sequence[str]) -> dict[str, PlayheadError]:
    """Restore archived runs and their tapes, each as far as that can be done; give those that cannot be had, and why."""
    failed: dict[str, PlayheadError] = {}
    try:
        require_pyarrow()
        with open_store(config) as store, moving(store), ProgressBar("fetching") as progress:
            for done, name in enumerate(names):
                progress(done, len(names))
                try:
                    for run in _line(store, name):
                        _restore(store, run, lambda _done, _of: None)
                except StoreError as error:
                    failed[name] = error
    except PlayheadError as error:
        failed = dict.fromkeys(names, error)
    return failed


def choose_runs(
    store: Store, names: Sequence[str], since_ns: int
) -> tuple[list[RunInfo], list[RunInfo]]:
    """Give the runs that are named, else those that went on since a time; and those of them that only an archive has.

    Raises: UnknownRun; LogCorrupt.
    """
    if names:
        return list({run.number: run for run in map(store.runs.get, names)}.values()), []
    every = store.runs.all()
    by_number = {run.number: run for run in every}
    runs = [run for run in every if not run.sealed_ns or run.sealed_ns >= since_ns]
    away = [
        run
        for run in runs
        if run.is_only_in_archive
        or ((tape := by_number.get(run.parent_number)) is not None and tape.is_only_in_archive)
    ]
    gone = {run.number for run in away}
    return [run for run in runs if run.number not in gone], away


def find_none_since(store: Store, since_ns: int) -> StoreError:
    """Say that no run went on since a time, and when the newest did; or that there is none at all. Raises: LogCorrupt."""
    every = store.runs.all()
    if not every:
        return StoreError("there is no run to look at", "record one with: playhead record")
    since, newest = (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at // 1_000_000_000))
        for at in (since_ns, max(run.sealed_ns or run.created_ns for run in every))
    )
    return StoreError(
        f"none of {counted(len(every), 'run')} went on since {since}; the newest ended {newest}",
        "give an earlier time to --since",
    )


def restore_run(store: Store, run: RunInfo) -> None:
    """Restore an archived run to an open store; do nothing if it is already there. Blocks.

    Raises: StoreError, where its archive cannot be read; PlayheadError without pyarrow.
    """
    require_pyarrow()
    with moving(store):
        _restore(store, run, lambda _done, _of: None)


def _restore(store: Store, run: RunInfo, progress: Callable[[int, int], None]) -> None:
    from ...timeline.archiving.move_runs import restore

    now = store.runs.reload(run)
    if now.is_only_in_archive and now.archived is not None:
        restore(store, now, open_place(now.archived.place), time.time_ns(), progress)


def find_archived_step(config: Config, name: str, seq: int) -> "ArchivedStep | None":
    """Find one exchange of a recording that is archived, where it lies; None where the run has to be here for it.

    Raises: UnknownRun; StoreError, where the archive cannot be read; PlayheadError without pyarrow.
    """
    with open_store(config, readonly=True) as store:
        run = store.runs.get(name)
    if not run.is_only_in_archive or run.archived is None or run.parent is not None:
        return None
    require_pyarrow()
    from ...timeline.archiving.move_runs import find_step

    return find_step(run.archived, open_place(run.archived.place), seq)


def restore_tape(config: Config, name: str) -> None:
    """Put the tape that is to be replayed into the store again, if it was archived; `latest` is the newest.

    Raises: as `restore_runs`.
    """
    if name == "latest":
        with open_store(config, readonly=True) as store:
            latest = store.runs.find_latest()
        if latest is None:
            return
        name = latest.id
    with open_store(config, readonly=True) as store:
        name, _ = choose_recording(store, name)
    restore_runs(config, name)


def _line(store: Store, name: str) -> Iterator[RunInfo]:
    run: RunInfo | None = store.runs.get(name)
    seen: set[int] = set()
    while run is not None and run.number not in seen:
        seen.add(run.number)
        yield run
        run = store.runs.find_tape(run)


def open_place(text: str) -> "Place":
    """Open an archive by the text that a run carries.

    Raises: StoreError; PlayheadError without pyarrow.
    """
    require_pyarrow()
    from ...store.archive.storage import Place

    try:
        return Place(parse_archive(text, Path))
    except ValueError as error:
        raise StoreError(f"{text[:80]!r} is no archive: {error}") from error


def require_pyarrow() -> None:
    """Raise PlayheadError where pyarrow is not installed, with what to do."""
    if importlib.util.find_spec("pyarrow") is None:
        raise PlayheadError(
            "an archive needs pyarrow, which is not installed", "install playhead[archive]"
        )


def remove_from_archive(store: Store, runs: Sequence[RunInfo], progress: ProgressBar) -> None:
    """Delete archived runs, with their bytes in the archive, and what a kill left there. For who is `moving`.

    Raises: StoreError; PlayheadError without pyarrow.
    """
    require_pyarrow()
    from ...timeline.archiving.move_runs import remove_archived

    remove_archived(store, runs, open_place, platform.node(), time.time_ns, progress)


def check_removable(store: Store, runs: Sequence[RunInfo]) -> None:
    """Check that archived runs can be deleted from their archives: those are there, and are this store's.

    Raises: StoreError; PlayheadError without pyarrow.
    """
    if not runs:
        return
    require_pyarrow()
    from ...store.archive.reading import BatchReader
    from ...timeline.archiving.move_runs import by_batch

    store.archive.check_home()
    for place, batch in by_batch(runs):
        with BatchReader(open_place(place), batch):
            pass


def clear_archive(store: Store) -> None:
    """Remove from archives what runs were before they were rewritten, and what a kill left there. For who is `moving`.

    Raises: StoreError; PlayheadError without pyarrow.
    """
    if not (store.archive.outdated() or store.archive.unneeded()):
        return
    require_pyarrow()
    from ...timeline.archiving.move_runs import remove_unneeded, replace_outdated

    replace_outdated(store, open_place, platform.node(), time.time_ns)
    remove_unneeded(store, open_place)


@contextlib.contextmanager
def moving(store: Store) -> Iterator[None]:
    """Be the only one who moves runs of a store; waits for another.

    Raises: StoreError, naming who it is.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            lock = store.archive.hold()
            break
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_EVERY_S)
    with contextlib.closing(lock):
        yield
