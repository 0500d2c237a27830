"""What differs between two manifests of one folder: what was created, changed and deleted."""

from collections.abc import Callable, Container, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from .manifest import Entry, Kind, Manifest, show_path


class Change(StrEnum):
    """What became of a path."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


class FileEffect(NamedTuple):
    """One path that a command has written, and what is there afterwards."""

    path: bytes
    change: Change
    entry: Entry
    """As it is now; of what was deleted as it was."""

    @property
    def text(self) -> str:
        """The path as text; folders end with a slash."""
        return show_path(self.path) + ("/" if self.entry.is_folder else "")


def find_changes(
    before: Mapping[bytes, Entry],
    after: Mapping[bytes, Entry],
    differs: Callable[[bytes, Entry, Entry], bool] | None = None,
) -> list[FileEffect]:
    """Find what differs in what is there, its content and its mode; times alone are no change. Sorted by path.

    differs: decides on two files of the same size whose contents are not known; without it, they differ if somebody touched
        the file.
    """
    found: list[FileEffect] = []
    for path in sorted({*before, *after}):
        was, now = before.get(path), after.get(path)
        if was is now or was == now:
            continue
        if was is not None and (now is None or was.is_folder != now.is_folder):
            found.append(FileEffect(path, Change.DELETED, was))
            was = None
        if now is None:
            continue
        if was is None:
            found.append(FileEffect(path, Change.CREATED, now))
        elif _is_other(path, was, now, differs):
            found.append(FileEffect(path, Change.CHANGED, now))
    return found


def _is_other(
    path: bytes,
    was: Entry,
    now: Entry,
    differs: Callable[[bytes, Entry, Entry], bool] | None,
) -> bool:
    if (was.kind, was.mode, was.target) != (now.kind, now.mode, now.target):
        # What a link allows is not its own mode.
        return was.kind is not Kind.LINK or (was.kind, was.target) != (now.kind, now.target)
    if was.kind is not Kind.FILE:
        return False
    if was.size != now.size:
        return True
    if was.digest and now.digest:
        return was.digest != now.digest
    if now.untouched_since(was):
        return False
    return differs(path, was, now) if differs is not None else True


def only_sure(
    before: Manifest,
    after: Manifest,
    changes: list[FileEffect],
    looked: Container[bytes] = (),
) -> list[FileEffect]:
    """Leave out what seems to have come or gone because its folder was not listed, before or after: nobody knows it.

    looked: paths that were looked at one by one, later than `before`.
    """
    return [
        one
        for one in changes
        if (one.change is not Change.DELETED or one.path in looked or after.knows(one.path))
        and (one.change is not Change.CREATED or before.knows(one.path))
    ]


def find_renamed_folders(
    before: Manifest,
    after: Manifest,
    was_there: Callable[[bytes], bool | None] = lambda _: None,
) -> int:
    """Count the folders that were there before and have another name now: an overlay may refuse that.

    The inode alone is no proof: file systems give that of a folder that was removed to the next one that is made.

    was_there: says by its time of birth whether what is at a path now was made before the command began; None where that is not
        known. Then it counts as renamed if nothing came to it or went since, or if something that was in it moved along.
    """
    inodes = {entry.inode: path for path, entry in before.entries.items() if entry.is_folder}
    count = 0
    for path, entry in after.entries.items():
        if not entry.is_folder or path in before.entries:
            continue
        was = inodes.get(entry.inode)
        if was is None or was in after.entries:
            continue
        told = was_there(path)
        if told is None:
            same = before.entries[was].modified_ns == entry.modified_ns
            told = same or _has_moved_along(before, after, was, path)
        count += told
    return count


def _has_moved_along(before: Manifest, after: Manifest, was: bytes, path: bytes) -> bool:
    above = was + b"/"
    return any(
        (now := after.entries.get(path + one[len(was) :])) is not None
        and now.kind is entry.kind
        and (
            now.inode == entry.inode
            if entry.inode  # of one that was written to right before there is none
            else (now.size, now.modified_ns) == (entry.size, entry.modified_ns)
        )
        for one, entry in before.entries.items()
        if one.startswith(above)
    )


MOST_SHOWN = 5


def say_differences(then: Manifest, now: Manifest, changes: list[FileEffect]) -> Iterator[str]:
    """Say how a folder differs from what it was when a recording began, a sentence a line; nothing where it does not."""
    if then.git is not None and now.git is not None:
        if then.git.head != now.git.head:
            yield f"commit {_short(then.git.head)} then, {_short(now.git.head)} now"
        elif then.git.branch != now.git.branch:
            yield f"branch {then.git.branch or '(none)'} then, {now.git.branch or '(none)'} now"
    elif (then.git is None) != (now.git is None):
        yield (
            "a repository now, and none then"
            if then.git is None
            else "a repository then, and none now"
        )
    words = {Change.CREATED: "new", Change.CHANGED: "changed", Change.DELETED: "gone"}
    listed = [one for one in changes if not is_of_git(one.path)]
    for one in listed[:MOST_SHOWN]:
        yield f"{words[one.change]} {one.text}"
    if len(listed) > MOST_SHOWN:
        yield f"and {len(listed) - MOST_SHOWN} more"


def is_of_git(path: bytes) -> bool:
    """Say whether a path is in a repository's own folder."""
    return b".git" in path.split(b"/")


def _short(commit: str) -> str:
    return commit[:10] or "(none)"
