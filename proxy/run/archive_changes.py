"""Whether the archive that the configuration names is after a run what it was before.

A sandbox hides it from the command. Outside of one the command may write to it as the user may. Another command may archive, erase
or collect runs meanwhile: a file that is new, or gone and needed by no run, is no difference. No file of an archive is written twice,
so one with another content is.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...config import Config
from ...store import Store
from ..sandbox.filesystem.masking import ARCHIVED

_State = tuple[int, int, int, int]
"""Device, inode, size, time of change of the content in nanoseconds."""
_SUFFIX = ".parquet"


def find_archives(config: Config) -> list[Path]:
    """Give the folder of the archive, there or not; a bucket has none."""
    place = config.retention.archive
    return [place.folder.resolve()] if place is not None and place.folder is not None else []


class ArchivedFiles:
    """What was in archives before a command ran."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Look at every file of them. Blocks."""
        self._folders = {folder: _identify(folder) for folder in folders}
        self._files = {path: state for one in self._folders for path, state in _files(one)}

    def compare(self, store: Store) -> Iterator[dict[str, str]]:
        """Yield what is not as it was: `path`, and `what` in words. Blocks."""
        for folder, before in self._folders.items():
            now = _identify(folder)
            if before is None and now is not None:
                yield {"path": str(folder), "what": "the archive's folder was not there before"}
            elif before != now:
                gone = "is gone" if now is None else "is another one"
                yield {"path": str(folder), "what": f"the archive's folder {gone}"}
        files = {path: state for one in self._folders for path, state in _files(one)}
        missing = self._files.keys() - files.keys()
        # The list of runs is read only where it matters: it may be long.
        needed = {run.archived.batch for run in store.runs.all() if run.archived} if missing else ()
        for path, state in sorted(self._files.items()):
            if path in missing:
                if os.path.basename(path).removesuffix(_SUFFIX) in needed:
                    yield {"path": path, "what": "a file of the archive is gone"}
            elif files[path] != state:
                yield {"path": path, "what": "a file of the archive has another content"}


def _identify(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _files(archive: Path) -> Iterator[tuple[str, _State]]:
    """Yield the files of batches, with their state."""
    for name in ARCHIVED:
        try:
            entries = list(os.scandir(archive / name))
        except OSError:
            continue
        for entry in entries:
            if not entry.name.endswith(_SUFFIX):
                continue
            try:
                found = entry.stat()
            except OSError:
                continue
            yield entry.path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
