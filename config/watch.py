"""Watching a configuration file: what it says now, if that is not what it said before.

The caller polls; nothing here waits or runs on its own. Rules:

1. Unchanged is decided by the file's time, size and inode. A file written again within the tick of its
   clock keeps all three, so what was read within `RACY_NS` of its time is told by its content, until a
   read comes later than that (git's rule for its index: "racy-git" in git's technical documentation).
2. The first part of a configuration is mostly a configuration, which opens what the rest would have
   closed. So a file that is written in place counts once it has not changed for `SETTLED_NS`, but for one
   that says `mode: playback`: of that nothing is waited for. One that was renamed to its place is whole at once.
3. A file that is gone is in the middle of being saved: only at the third poll in a row that is reported.
   One without bytes is never taken for all the defaults.
4. A proxy that plays back goes on to record only if a file says so: `mode` has to be in it.
5. The same broken content is reported once. The caller keeps the old settings.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from .errors import ConfigError, Fault
from .load import FIRST_FILE, decode, override, read, says_mode, unreadable
from .schema import Config, Mode

RACY_NS = 2_000_000_000
"""Two seconds: the coarsest clock of a file system in use (FAT)."""
SETTLED_NS = 1_000_000_000
_PATIENCE = 3
"""Polls after which a missing file is meant."""

_Stat = tuple[int, int, int]
"""Time, size and inode."""


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
        self._stat: _Stat | None = None
        """Of what was read last; None where its content has to be looked at again."""
        self._writing: tuple[_Stat, int] | None = None
        """Of a file that may be being written, and when it was first found so."""
        self._inode = 0
        """Of what was read last; 0 where it is unknown."""
        self._mode: Mode | None = None
        """That of the settings in use; None before the first."""
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
            stat = (found.st_mtime_ns, found.st_size, found.st_ino)
            if self._stat == stat:
                self._unsettled = 0
                return None
            settled = self._settled(stat)
            content = read(self._path)
            if not settled and not self._closes(content):
                return None
            self._inode = found.st_ino
            if self._clock() - found.st_mtime_ns < RACY_NS:
                stat = None
        except (OSError, ValueError) as error:
            # Without a stat the next poll reads again: a permission given later does not show in one.
            advice = FIRST_FILE if self._mode is None else ""
            content, stat = unreadable(self._path, error, advice), None
            gone = isinstance(error, FileNotFoundError)
        self._unsettled = self._unsettled + 1 if gone else 0
        if 0 < self._unsettled < _PATIENCE:
            self._stat = None
            return None
        self._unsettled = 0
        self._stat = stat
        return self._report(content)

    def _settled(self, stat: _Stat) -> bool:
        """Say whether a file is as a whole what somebody wrote."""
        now = self._clock()
        if self._mode is None or stat[2] != self._inode or now - stat[0] >= SETTLED_NS:
            self._writing = None
            return True
        if self._writing is None or self._writing[0] != stat:
            self._writing = (stat, now)
        return now - self._writing[1] >= SETTLED_NS

    def _decode(self, content: bytes) -> Config:
        """Read a configuration, with the flags over it. Raises: ConfigError."""
        return override(decode(content, self._path), self._flags)

    def _closes(self, content: bytes) -> bool:
        """Say whether a content, however much of it is there, lets out no more than what a playback lets out."""
        try:
            return self._decode(content).mode is Mode.PLAYBACK
        except ConfigError:
            return False

    def _report(self, content: bytes | ConfigError) -> Config | ConfigError | None:
        """Give what a content means, unless it is what was reported last."""
        reported = sha256(content).digest() if isinstance(content, bytes) else str(content)
        if reported == self._reported:
            return None
        self._reported = reported
        if isinstance(content, ConfigError):
            return content
        try:
            config = self._decode(content)
            self._require_meant(content, config)
        except ConfigError as error:
            return error
        self._mode = config.mode
        return config

    def _require_meant(self, content: bytes, config: Config) -> None:
        """Refuse what a file says by being short, where a proxy is in use. Raises: ConfigError."""
        if self._mode is None:
            return
        if not content.strip():
            wrong = (
                "has no content; expected a configuration, with `mode`: the settings in use stay"
            )
            raise ConfigError((Fault(str(self._path), "", wrong),))
        opens = self._mode is not config.mode and config.mode is not Mode.PLAYBACK
        if opens and not says_mode(content.decode()):
            wrong = f"missing; expected it in the file, because the proxy is in mode {self._mode.value}, which stays"
            raise ConfigError((Fault(str(self._path), "mode", wrong),))
