"""Look at single paths that a listing left out: because they are ignored by now, were too many, or are in a closed folder.

And leave out of a listing what was ignored when another one was made.

No link is followed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ...tape.folders.manifest import Entry, Kind, Manifest
from .list_folder import IgnoreFilter, entry_of
from .overlay_layers import parents

_UNKNOWN = Entry(Kind.FILE, 0, 1)
"""Something that nobody can look at: its content is known to nobody."""


def look_closer(
    listed: Manifest,
    paths: Iterable[bytes],
    otherwise: Mapping[bytes, Entry] | None = None,
) -> Manifest:
    """Give a listing with those of the paths, too, that are there although they were left out. Blocks.

    otherwise: what a path is taken for that cannot be looked at; without it, for a file with a content that nobody has.
    """
    entries = dict(listed.entries)
    met: dict[bytes, Entry | None] = {}
    """What is at paths that were left out; None where nothing is."""
    for path in sorted(set(paths) - entries.keys()):
        for part in (*parents(path), path):
            try:
                entry = entries.get(part) or _meet(listed.folder, part, met)
            except PermissionError:
                entries[path] = (otherwise or {}).get(path, _UNKNOWN)
                break
            if part == path and entry is not None:
                entries[path] = entry
            elif entry is None or not entry.is_folder:
                break
    return replace(listed, entries=entries)


def _meet(folder: bytes, path: bytes, met: dict[bytes, Entry | None]) -> Entry | None:
    if path not in met:
        try:
            met[path] = _entry_at(folder + b"/" + path)
        except (FileNotFoundError, NotADirectoryError):
            met[path] = None
    return met[path]


def _entry_at(where: bytes) -> Entry:
    told = os.lstat(where)
    return entry_of(told, os.readlink(where) if stat.S_ISLNK(told.st_mode) else b"")


def list_all(folder: bytes, path: bytes) -> Iterator[tuple[bytes, Entry]]:
    """Yield all that is in a folder, ignored or not. Raises: OSError, also where another file system is mounted in it."""
    device = os.lstat(folder + b"/" + path).st_dev
    waiting = [path]
    while waiting:
        above = waiting.pop()
        for name in os.listdir(folder + b"/" + above):
            inner = above + b"/" + name
            where = folder + b"/" + inner
            if os.lstat(where).st_dev != device:
                raise OSError(errno.EBUSY, "another file system is mounted there", where)
            entry = _entry_at(where)
            yield inner, entry
            if entry.is_folder:
                waiting.append(inner)


def leave_out_ignored(
    listed: Manifest,
    target: Manifest,
    read: Callable[[bytes], bytes],
    tracked: frozenset[bytes] = frozenset(),
) -> Manifest:
    """Give a listing without what the ignore files of a manifest leave out: whether it was there then, nobody knows.

    read: gives a content by its hash; empty where it is not to be had.
    tracked: paths that count although they are ignored.
    """
    more = listed.entries.keys() - target.entries.keys()
    if not more:
        return listed

    def read_rules(path: bytes) -> bytes:
        entry = target.entries.get(path)
        return read(entry.digest) if entry is not None and entry.kind is Kind.FILE else b""

    rules = IgnoreFilter(os.fsdecode(listed.folder), tracked, read_rules)
    entries = {
        path: entry
        for path, entry in listed.entries.items()
        if path not in more or not rules.leaves_out(path, folder=entry.is_folder)
    }
    return replace(listed, entries=entries)
