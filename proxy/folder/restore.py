"""Make a folder what a manifest says, writing only what differs; nothing is lost that nobody has kept, unless that is asked for.

A file is written beside its place and renamed into it, so it is there whole or as before. Folders are gone through from the
outside in: what is to be a folder is one, and no link, before anything is written in it.
"""

import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...store import StoreError
from ...tape.folders.changes import Change, FileEffect, find_changes
from ...tape.folders.manifest import Entry, Kind, Manifest, show_path
from .contents import hash_file
from .layers import parents, write_file
from .look import entry_of

_MOST_NAMED = 5
_INDEX = b".git/index"
"""Written anew by any look at a repository; what is staged is among its objects."""
_TEMPORARY = b".playhead-restoring-"


class Restored(NamedTuple):
    """What was done."""

    written: int
    removed: int
    skipped: list[bytes]
    """Paths whose content was not saved: left as they are."""


class Plan(NamedTuple):
    """What has to be done to a folder."""

    folder: bytes
    target: Manifest
    changes: list[FileEffect]
    """From what is there to the manifest."""
    retimed: list[tuple[bytes, Entry]]
    """Files that are the same but for their times."""
    losses: list[bytes]
    """Files that would be gone, and that the store does not hold."""
    missing: list[bytes]
    """Files that differ, and whose content was not saved."""


def make_plan(
    target: Manifest,
    present: Manifest,
    holds: Callable[[bytes], bool],
    has: Callable[[bytes], bool],
) -> Plan:
    """Find what has to be done to the folder of `present`. Blocks: hashes files that were touched.

    holds: whether the store has a content, by its hash; what it has is not lost.
    has: whether a content can be had at all.
    """
    folder = present.folder
    hashed: dict[bytes, bytes] = {}

    def hash_once(path: bytes) -> bytes:
        if path not in hashed:
            hashed[path] = hash_file(folder + b"/" + path)
        return hashed[path]

    def differs(path: bytes, was: Entry, now: Entry) -> bool:
        return not now.digest or (was.digest or hash_once(path)) != now.digest

    changes = find_changes(present.entries, target.entries, differs)
    changed = {one.path for one in changes}
    retimed = [
        (path, entry)
        for path, entry in target.entries.items()
        if entry.kind is Kind.FILE
        and path not in changed
        and present.entries[path].modified_ns != entry.modified_ns
    ]
    losses = [
        one.path
        for one in changes
        if (was := present.entries.get(one.path)) is not None
        and was.kind is Kind.FILE
        and not one.path.endswith(_INDEX)
        and was.size
        and not holds(was.digest or hash_once(one.path))
    ]
    missing = [
        one.path
        for one in changes
        if one.change is not Change.DELETED
        and one.entry.kind is Kind.FILE
        and not (one.entry.digest and has(one.entry.digest))
        and not _is_mode_alone(present.entries.get(one.path), one.entry, hash_once, one.path)
    ]
    return Plan(folder, target, changes, retimed, list(dict.fromkeys(losses)), missing)


def _is_mode_alone(
    was: Entry | None, now: Entry, hash_once: Callable[[bytes], bytes], path: bytes
) -> bool:
    return (
        was is not None
        and was.kind is now.kind
        and bool(now.digest)
        and hash_once(path) == now.digest
    )


def require_harmless(plan: Plan) -> None:
    """Refuse a plan by which work would be lost, or that cannot be done whole. Raises: StoreError."""
    if plan.losses:
        raise StoreError(
            f"{_count(plan.losses)} in {show_path(plan.folder)} would be lost, for no savepoint has them: {_named(plan.losses)}",
            "keep them elsewhere, or commit and copy them; --force overwrites them",
        )
    if plan.missing:
        raise StoreError(
            f"{_count(plan.missing)} cannot be restored, for their content was not saved: {_named(plan.missing)}",
            "--force restores the rest and leaves these as they are",
        )


def _count(paths: list[bytes]) -> str:
    return f"{len(paths)} files" if len(paths) > 1 else "a file"


def _named(paths: Iterable[bytes]) -> str:
    paths = list(paths)
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(show_path, paths[:_MOST_NAMED])) + more


def apply_plan(plan: Plan, read: Callable[[bytes], bytes]) -> Restored:
    """Do what a plan says. Blocks.

    read: gives a content by its hash; it raises StoreError, and LogCorrupt for one that does not fit its hash.
    Raises: OSError.
    """
    folder, target = plan.folder, plan.target
    skipped = set(plan.missing)
    opened: dict[bytes, int] = {}
    removed = written = 0
    try:
        for one in reversed(plan.changes):
            if one.change is Change.DELETED:
                _open_up(folder, one.path, opened)
                removed += _remove(folder + b"/" + one.path)
        for one in plan.changes:
            if one.change is Change.DELETED or one.path in skipped:
                continue
            _open_up(folder, one.path, opened)
            _put(folder, one.path, one.entry, read)
            written += 1
        for path, entry in plan.retimed:
            times = entry.modified_ns, entry.modified_ns
            os.utime(folder + b"/" + path, ns=times, follow_symlinks=False)
    finally:
        for path, mode in reversed(opened.items()):
            if os.path.isdir(folder + b"/" + path):
                os.chmod(folder + b"/" + path, mode)
    for path, entry in sorted(target.entries.items(), reverse=True):
        if entry.is_folder:
            _finish_folder(folder + b"/" + path, entry)
    return Restored(written, removed, sorted(skipped))


def _open_up(folder: bytes, path: bytes, opened: dict[bytes, int]) -> None:
    """Make the folders above a path writable, and note what they were."""
    for above in parents(path):
        where = folder + b"/" + above
        told = os.lstat(where)
        if stat.S_ISDIR(told.st_mode) and told.st_mode & 0o300 != 0o300:
            opened.setdefault(above, stat.S_IMODE(told.st_mode))
            os.chmod(where, stat.S_IMODE(told.st_mode) | 0o700)


def _remove(path: bytes) -> int:
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.rmdir(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return 0
    except OSError:
        # Something that is left out is in it: it stays.
        if not os.path.isdir(path):
            raise
        return 0
    return 1


def _put(folder: bytes, path: bytes, entry: Entry, read: Callable[[bytes], bytes]) -> None:
    """Make a path what an entry says."""
    where = folder + b"/" + path
    if entry.is_folder:
        if not os.path.isdir(where) or os.path.islink(where):
            os.mkdir(where, 0o700)
        return
    if entry.kind is Kind.FILE:
        try:
            now = entry_of(os.lstat(where))
            same = now.kind is Kind.FILE and now.size == entry.size
        except FileNotFoundError:
            same = False
        if same and hash_file(where) == entry.digest:
            os.chmod(where, entry.mode)
            os.utime(where, ns=(entry.modified_ns, entry.modified_ns))
            return
    beside = os.path.dirname(where) + b"/" + _TEMPORARY + b"%d" % os.getpid()
    match entry.kind:
        case Kind.FILE:
            write_file(beside, read(entry.digest), entry)
        case Kind.LINK:
            os.symlink(entry.target, beside)
        case Kind.PIPE:
            os.mkfifo(beside, entry.mode)
        case _:
            return
    try:
        os.utime(beside, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)
        os.rename(beside, where)
    except OSError:
        os.unlink(beside)
        raise


def _finish_folder(path: bytes, entry: Entry) -> None:
    """Give a folder the mode and time that it is to have."""
    try:
        told = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(told.st_mode):
        return
    if stat.S_IMODE(told.st_mode) != entry.mode:
        os.chmod(path, entry.mode)
    if told.st_mtime_ns != entry.modified_ns:
        os.utime(path, ns=(entry.modified_ns, entry.modified_ns))
