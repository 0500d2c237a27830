"""Files that have several names in a folder (hard links). On an overlay a write to one name is not seen at the others: a copy keeps them together.

Source: link(2); Linux, filesystems/overlayfs.rst, "Non-standard behavior".
"""

import contextlib
import os
import stat
from collections.abc import Container, Mapping, Sequence

from ...tape.folders.git_objects import is_in_objects
from ...tape.folders.manifest import Entry, Kind, Manifest, show_path
from .file_contents import hash_file

_TEMPORARY = b".playhead-joining-"
_MOST_NAMED = 2


def find_linked(entries: Mapping[bytes, Entry]) -> list[list[bytes]]:
    """Group the names of files that have several. Objects of git do not count: git never writes to one again."""
    files = [(entry[6], path) for path, entry in entries.items() if entry[0] is Kind.FILE]
    if len({inode for inode, _ in files}) == len(files):
        return []
    groups: dict[int, list[bytes]] = {}
    for inode, path in files:
        if inode and not is_in_objects(path):
            groups.setdefault(inode, []).append(path)
    return [names for names in groups.values() if len(names) > 1]


def find_linked_then(then: Manifest, now: Manifest) -> list[list[bytes]]:
    """Group the names of one file in a recording.

    The number of a file that was young at the time is not known: names are one file if they are that now, and had one content.
    """
    found = find_linked(then.entries)
    for names in find_linked(now.entries):
        were = [then.entries[one] for one in names if one in then.entries]
        contents = {(entry.digest, entry.mode) for entry in were}
        if len(were) == len(names) and len(contents) == 1 and not all(one.inode for one in were):
            found.append(names)
    return found


def join_names(
    folder: bytes, groups: Sequence[Sequence[bytes]], replaced: Container[bytes] | None = None
) -> None:
    """Make names one file again, where they hold the same. Blocks.

    replaced: the only names that may become names of another file; without it, all.
    """
    for names in groups:
        may = [one for one in names if replaced is None or one in replaced]
        first, *rest = [one for one in names if one not in may] + may
        for name in rest:
            if name in may:
                with contextlib.suppress(OSError):
                    _join(folder + b"/" + first, folder + b"/" + name)


def _join(first: bytes, second: bytes) -> None:
    one, other = os.lstat(first), os.lstat(second)
    if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino):
        return  # rename(2) of one name of a file to another does nothing
    if not stat.S_ISREG(one.st_mode) or (one.st_mode, one.st_size) != (
        other.st_mode,
        other.st_size,
    ):
        return
    digest = hash_file(first)
    if not digest or digest != hash_file(second):
        return
    beside = os.path.dirname(second) + b"/" + _TEMPORARY + b"%d" % os.getpid()
    os.link(first, beside, follow_symlinks=False)
    try:
        os.rename(beside, second)
    except OSError:
        os.unlink(beside)
        raise


def say_linked(groups: Sequence[Sequence[bytes]]) -> str:
    """Name the names of one file, and say how many more there are."""
    names = " and ".join(map(show_path, sorted(groups[0])[:_MOST_NAMED]))
    more = f" (and {len(groups) - 1} more such files)" if len(groups) > 1 else ""
    return f"{names} are one file{more}"
