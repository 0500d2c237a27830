"""Watching a configuration file: what it says now, if that is not what it said before.

The caller polls; nothing here waits or runs on its own. Rules:

1. Unchanged is decided by the file's time, size and inode. A file written again within the tick of its
   clock keeps all three, so what was read within `RACY_NS` of its time is told by its content, until a
   read comes later than that (git's rule for its index: "racy-git" in git's technical documentation).
2. A file that is gone, or has no bytes, is in the middle of being saved: editors rename, and shells
   truncate before they write. Only at the third poll in a row it is taken at its word. An empty file
   would otherwise mean every default, and so `mode: record`, for a moment.
3. The same broken content is reported once. The caller keeps the old settings.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from .errors import ConfigError
from .load import decode, override, read, unreadable
from .schema import Config

RACY_NS = 2_000_000_000
"""Two seconds: the coarsest clock of a file system in use (FAT)."""
_PATIENCE = 3
"""Polls after which a missing or empty file is meant."""


class Watcher:
    """Say when the meaning of a configuration file, with a command's flags over it, has changed."""

    def __init__(
        self,
        path: Path,
        flags: Mapping[str, object],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Watch a file that nothing is known of yet: the first poll reads it.

        clock: nanoseconds since the epoch, as the times of files are.
        """
        self._path = path
        self._flags = dict(flags)
        self._clock = clock
        self._stat: tuple[int, int, int] | None = None
        """Of what was read last; None where its content has to be looked at again."""
        self._reported: bytes | str = b""
        """Digest of the content that was reported last, or the words of what kept it from being read."""
        self._unsettled = 0
        """Polls in a row that found no file, or an empty one."""

    @classmethod
    def start(
        cls,
        path: Path,
        flags: Mapping[str, object],
        clock: Callable[[], int] = time.time_ns,
    ) -> tuple[Self, Config]:
        """Load a file and watch it from then on.

        Raises: ConfigError, also where there is no such file.
        """
        watcher = cls(path, flags, clock)
        # What is missing or empty at the start is meant to be.
        watcher._unsettled = _PATIENCE - 1
        loaded = watcher.poll()
        if isinstance(loaded, ConfigError):
            raise loaded
        assert loaded is not None
        return watcher, loaded

    def poll(self) -> Config | ConfigError | None:
        """Give the new configuration, or what is wrong with it; None where nothing changed.

        Costs one `stat` while the file is unchanged and older than `RACY_NS`.
        """
        content: bytes | ConfigError
        stat = None
        gone = False
        try:
            found = self._path.stat()
            if self._stat == (found.st_mtime_ns, found.st_size, found.st_ino):
                self._unsettled = 0
                return None
            content = read(self._path)
            gone = not content
            if self._clock() - found.st_mtime_ns >= RACY_NS:
                stat = (found.st_mtime_ns, found.st_size, found.st_ino)
        except (OSError, ValueError) as error:
            # Without a stat the next poll reads again: a permission given later does not show in one.
            content = unreadable(self._path, error)
            gone = isinstance(error, FileNotFoundError)
        self._unsettled = self._unsettled + 1 if gone else 0
        if 0 < self._unsettled < _PATIENCE:
            self._stat = None
            return None
        self._unsettled = 0
        self._stat = stat
        return self._report(content)

    def _report(self, content: bytes | ConfigError) -> Config | ConfigError | None:
        """Give what a content means, unless it is what was reported last."""
        reported = sha256(content).digest() if isinstance(content, bytes) else str(content)
        if reported == self._reported:
            return None
        self._reported = reported
        if isinstance(content, ConfigError):
            return content
        try:
            return override(decode(content, self._path), self._flags)
        except ConfigError as error:
            return error
