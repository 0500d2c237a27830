"""Make a folder what a manifest says, writing only what differs; nothing is lost that nobody has kept, unless that is asked for.

Only what the recording knew is ever removed: what came to the folder otherwise stays, whatever is asked for.

Files are written into a folder of their own first, and then renamed into their places: a file is there whole or as before, and where
there is no room for all of them nothing is changed. What somebody saves meanwhile stays, and is named. Folders are gone through from
the outside in: what is to be a folder is one, and no link, before anything is written in it.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...store import StoreError
from ...tape.folders.changes import Change, FileEffect, find_changes, is_of_git
from ...tape.folders.manifest import Entry, Kind, Manifest, show_path
from .file_contents import hash_file
from .left_out_paths import list_all, look_closer
from .list_folder import entry_of
from .overlay_layers import parents, write_file
from .put_and_remove_files import INDEX, TEMPORARY, Places

_MOST_NAMED = 5


class NotBegun(OSError):
    """What is to be written cannot be: nothing was changed."""


class Restored(NamedTuple):
    """What was done."""

    written: int
    removed: int
    skipped: list[bytes]
    """Paths whose content was not saved: left as they are."""
    left: list[bytes]
    """Paths that somebody changed meanwhile: left as they are."""
    blocked: tuple[bytes, ...] = ()
    """Folders that were to be something else, and stay because something in them is in no manifest of the run."""
    unknown: tuple[bytes, ...] = ()
    """What is in no manifest of the run, and stays; of a folder not what is in it."""


class Plan(NamedTuple):
    """What has to be done to a folder."""

    folder: bytes
    target: Manifest
    changes: list[FileEffect]
    """From what is there to the manifest."""
    retimed: list[tuple[bytes, Entry]]
    """Files that are the same but for their times."""
    losses: list[bytes]
    """What would be gone, and no run has."""
    missing: list[bytes]
    """Files that differ, and whose content was not saved."""
    present: Mapping[bytes, Entry] | None = None
    """What was there when the folder was looked at, with hashes as far as they are known; None where nobody else writes to it."""
    blocked: Mapping[bytes, bytes] = {}
    """Folders that cannot become something else, with a path in each that is in no manifest of the run."""
    unknown: tuple[bytes, ...] = ()
    """What is in no manifest of the run."""


def make_plan(
    target: Manifest,
    present: Manifest,
    known: Container[bytes],
    holds: Callable[[bytes], bool],
    has: Callable[[bytes], bool],
    find_unknown: Callable[[Mapping[bytes, Entry]], Collection[bytes]],
) -> Plan:
    """Find what has to be done to the folder of `present`. Blocks: hashes files that were touched.

    What a listing left out is looked at where it is in the way: rules of now may ignore what they did not ignore then.

    known: the paths of all manifests of the run: nothing else is removed.
    holds: whether the store has a content, by its hash; what it has is not lost.
    has: whether a content can be had at all.
    find_unknown: gives the paths of those links and other entries without a content that no manifest has (`unsaved_entries.py`).
    Raises: OSError.
    """
    folder = present.folder
    present = _with_all_in_the_way(target, present)
    hashed: dict[bytes, bytes] = {}

    def hash_once(path: bytes) -> bytes:
        if path not in hashed:
            hashed[path] = hash_file(folder + b"/" + path)
        return hashed[path]

    def differs(path: bytes, was: Entry, now: Entry) -> bool:
        return not now.digest or (was.digest or hash_once(path)) != now.digest

    blocked = _find_blocked(target, present, known)
    changes = [
        one
        for one in find_changes(present.entries, target.entries, differs)
        if one.path not in blocked
        and not any(above in blocked for above in parents(one.path))
        # Whether it was there then, nobody knows: its folder was not listed.
        and (one.change is not Change.DELETED or (one.path in known and target.knows(one.path)))
    ]
    changed = {one.path for one in changes}
    retimed = [
        (path, entry)
        for path, entry in target.entries.items()
        if entry.kind is Kind.FILE
        and path not in changed
        and path not in blocked
        and present.entries[path].modified_ns != entry.modified_ns
    ]
    gone = {
        one.path: was
        for one in changes
        if (was := present.entries.get(one.path)) is not None
        and _would_go(was, target.entries.get(one.path))
    }
    unheld = {
        path
        for path, was in gone.items()
        if was.kind is Kind.FILE
        and not (b"/" + path).endswith(b"/" + INDEX)
        and was.size
        and not ((digest := was.digest or hash_once(path)) and holds(digest))
    }
    folders = {above for path in present.entries for above in parents(path)}
    bare = {
        path: was
        for path, was in gone.items()
        if was.kind is not Kind.FILE
        and path not in folders
        # What is ignored in it is not listed, and keeps it.
        and not (was.is_folder and _has_something(folder + b"/" + path))
    }
    losses = sorted(unheld | set(find_unknown(bare) if bare else ()))
    missing = [
        one.path
        for one in changes
        if one.change is not Change.DELETED
        and one.entry.kind is Kind.FILE
        and not (one.entry.digest and has(one.entry.digest))
        and not _is_mode_alone(present.entries.get(one.path), one.entry, hash_once, one.path)
    ]
    seen = dict(present.entries)
    for path, digest in hashed.items():
        if path in seen:
            seen[path] = seen[path]._replace(digest=digest)
    unknown = _find_unknown_tops(present, known)
    return Plan(folder, target, changes, retimed, losses, missing, seen, blocked, unknown)


def _find_blocked(
    target: Manifest, present: Manifest, known: Container[bytes]
) -> dict[bytes, bytes]:
    """Find the folders that are to be something else although something in them is in no manifest of the run; give one such path."""
    blocked: dict[bytes, bytes] = {}
    for path in present.entries:
        if path in known:
            continue
        for above in parents(path):
            then = target.entries.get(above)
            if then is not None and not then.is_folder:
                blocked.setdefault(above, path)
    return blocked


def _find_unknown_tops(present: Manifest, known: Container[bytes]) -> tuple[bytes, ...]:
    """Find what is in no manifest of the run, without what is in such a folder, and in a repository's own."""
    return tuple(
        path
        for path in sorted(present.entries)
        if path not in known
        and not is_of_git(path)
        and ((above := path.rpartition(b"/")[0]) == b"" or above in known)
    )


def _has_something(folder: bytes) -> bool:
    try:
        with os.scandir(folder) as found:
            return next(found, None) is not None
    except OSError:
        return False  # it may be empty, and then it would go


def _would_go(was: Entry, then: Entry | None) -> bool:
    """Say whether more than a mode or a time of an entry would be gone."""
    if then is None or was.kind is not then.kind or was.kind is Kind.FILE:
        return True
    return was.target != then.target


def _with_all_in_the_way(target: Manifest, present: Manifest) -> Manifest:
    """Give what is present with what the listing left out, at paths that are to be written to, and in folders that are to be files."""
    present = look_closer(present, target.entries)
    entries = dict(present.entries)
    for path, entry in target.entries.items():
        now = present.entries.get(path)
        if now is not None and now.is_folder and not entry.is_folder:
            for inner, found in list_all(present.folder, path):
                entries.setdefault(inner, found)
    return replace(present, entries=entries)


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
        them = "them" if len(plan.losses) > 1 else "it"
        raise StoreError(
            f"{count_paths(plan.losses)} in {show_path(plan.folder)} would be lost, for no savepoint has {them}: {name_paths(plan.losses)}",
            "keep them elsewhere, or commit and copy them; --force overwrites them",
        )
    if plan.blocked:
        path, inner = min(plan.blocked.items())
        raise StoreError(
            f"{count_paths(plan.blocked)} in {show_path(plan.folder)} cannot be restored: {show_path(path)} is a folder now,"
            f" and {show_path(inner)} in it is in no manifest of the run",
            "move that elsewhere; --force restores the rest and leaves such folders as they are",
        )
    if plan.missing:
        its = "their" if len(plan.missing) > 1 else "its"
        raise StoreError(
            f"{count_paths(plan.missing)} cannot be restored, for {its} content was not saved: {name_paths(plan.missing)}",
            "--force restores the rest and leaves these as they are",
        )


def count_paths(paths: Collection[bytes]) -> str:
    """Say how many paths these are: files, links, folders."""
    return f"{len(paths)} paths" if len(paths) > 1 else "one path"


def name_paths(paths: Iterable[bytes]) -> str:
    """Name the first of some paths, and say how many more there are."""
    paths = list(paths)
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(show_path, paths[:_MOST_NAMED])) + more


def apply_plan(plan: Plan, read: Callable[[bytes], bytes]) -> Restored:
    """Do what a plan says, but for what somebody changed since the folder was looked at. Blocks.

    read: gives a content by its hash; it raises StoreError, and LogCorrupt for one that does not fit its hash.
    Raises: NotBegun, where nothing was changed; OSError.
    """
    folder, target = plan.folder, plan.target
    skipped = set(plan.missing)
    opened: dict[bytes, int] = {}
    removed = written = 0
    room = folder + b"/" + TEMPORARY + b"%d" % os.getpid()
    places = Places(folder, room, plan.present)
    try:
        _open_one(folder, b"", opened)
        staged = _stage(plan, room, skipped, read)
        for one in reversed(plan.changes):
            if one.change is Change.DELETED:
                removed += _remove(folder, one.path, opened, places)
        for one in plan.changes:
            if one.change is Change.DELETED or one.path in skipped:
                continue
            written += _put(folder, one, opened, places, staged.get(one.path), room)
        for path, entry in plan.retimed:
            places.touch(path, entry.modified_ns)
    finally:
        shutil.rmtree(room, ignore_errors=True)
        for path, mode in reversed(opened.items()):
            if _is_folder(folder + b"/" + path):
                os.chmod(folder + b"/" + path, mode)
    for path, entry in sorted(target.entries.items(), reverse=True):
        if entry.is_folder:
            _finish_folder(folder + b"/" + path, entry)
    return Restored(
        written,
        removed,
        sorted(skipped),
        sorted(places.left),
        tuple(sorted(plan.blocked)),
        plan.unknown,
    )


def _stage(
    plan: Plan, room: bytes, skipped: set[bytes], read: Callable[[bytes], bytes]
) -> dict[bytes, bytes]:
    """Write the files that differ into a folder; give where, by path. Raises: NotBegun; StoreError."""
    staged: dict[bytes, bytes] = {}
    try:
        os.mkdir(room, 0o700)
        for one in plan.changes:
            path, entry = one.path, one.entry
            if one.change is Change.DELETED or path in skipped or entry.kind is not Kind.FILE:
                continue
            if _holds(plan.folder, path, entry):
                continue
            beside = room + b"/%d" % len(staged)
            write_file(beside, read(entry.digest), entry)
            staged[path] = beside
    except OSError as error:
        raise NotBegun(error.errno, error.strerror, error.filename) from error
    return staged


def _holds(folder: bytes, path: bytes, entry: Entry) -> bool:
    """Say whether a file has the content of an entry. No link is followed, above it neither."""
    try:
        if any(not stat.S_ISDIR(os.lstat(folder + b"/" + one).st_mode) for one in parents(path)):
            return False
        now = entry_of(os.lstat(folder + b"/" + path))
    except OSError:
        return False
    same = now.kind is Kind.FILE and now.size == entry.size
    return same and hash_file(folder + b"/" + path) == entry.digest


def _open_up(folder: bytes, path: bytes, opened: dict[bytes, int]) -> None:
    """Make the folders above a path writable, and note what they were.

    Raises: NotADirectoryError, where one of them is no folder any more, as a link; FileNotFoundError.
    """
    for above in parents(path):
        _open_one(folder, above, opened)


def _open_one(folder: bytes, path: bytes, opened: dict[bytes, int]) -> None:
    where = folder + b"/" + path
    told = os.lstat(where)
    if not stat.S_ISDIR(told.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), where)
    if told.st_mode & 0o300 != 0o300:
        opened.setdefault(path, stat.S_IMODE(told.st_mode))
        os.chmod(where, stat.S_IMODE(told.st_mode) | 0o700)


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _remove(folder: bytes, path: bytes, opened: dict[bytes, int], places: Places) -> bool:
    """Have nothing be at a path; say whether something went."""
    try:
        _open_up(folder, path, opened)
        return places.take_away(path)
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return places.leave(path)


def _put(
    folder: bytes,
    one: FileEffect,
    opened: dict[bytes, int],
    places: Places,
    staged: bytes | None,
    room: bytes,
) -> bool:
    """Make a path what an entry says; say whether it is.

    staged: where its content is; None where it has that, or is no file.
    """
    path, entry = one.path, one.entry
    try:
        _open_up(folder, path, opened)
    except (FileNotFoundError, NotADirectoryError):
        return places.leave(path)
    made = staged or room + b"/other"
    match entry.kind:
        case Kind.FOLDER:
            return places.make_folder(path)
        case Kind.FILE if staged is None:
            return places.touch(path, entry.modified_ns, entry.mode)
        case Kind.FILE:
            pass
        case Kind.LINK:
            os.symlink(entry.target, made)
        case Kind.PIPE:
            os.mkfifo(made, entry.mode)
        case _:
            return True
    os.utime(made, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)
    return places.put(path, made)


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
