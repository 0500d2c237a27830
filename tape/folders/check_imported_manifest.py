"""Check a manifest that came out of a file: whoever made the file may have chosen every path in it.

A folder is made by a manifest path by path, so the rules are: a path stays within the folder, and what stands above it in the
manifest is a folder, never a link. What holds for one machine alone (inodes), or gives rights (set-uid), is taken away.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..records.codec import BadRecord
from .manifest import (
    DIGEST_BYTES,
    Entry,
    GitState,
    Kind,
    Manifest,
    pack_manifest,
    pack_step,
    show_path,
    unpack_manifest,
    unpack_step,
)

_MOST_PATH_BYTES = 4096
_MODE = 0o1777
_FIELDS = (int, int, int, bytes, bytes, int, int, str, tuple)
"""Of an entry, from its mode on."""
_MOST_NUMBER = 1 << 64


class ImportedFolder:
    """The manifest of one run and its savepoints, in order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._number = -1
        self._now: Manifest | None = None

    def take(self, number: int, packed: bytes) -> tuple[Mapping[bytes, Entry], bytes]:
        """Check the next row; give its entries whose contents are saved, if any are, and what is to be stored.

        number: 0 of the manifest, then one higher for each savepoint.
        Raises: BadRecord.
        """
        if number != self._number + 1:
            raise BadRecord(f"savepoint {number} where {self._number + 1} belongs")
        self._number = number
        if number == 0:
            return self._take_manifest(unpack_manifest(packed))
        step = unpack_step(packed)
        _require(type(step.seq) is int and 0 <= step.seq < _MOST_NUMBER, "a savepoint", step.seq)
        _check_cut(step.unlisted or (), step.omitted, step.cut_by)
        made = step._replace(written=_entries(step.written))
        assert self._now is not None
        for path in made.gone:
            _check_path(path)
        before, self._now = self._now, made.apply(self._now)
        lost = {path for path in made.gone if _is_folder(before, path)}
        lost |= {path for path in made.written if _is_folder(before, path)}
        lost = {path for path in lost if not _is_folder(self._now, path)}
        # What was below a folder that is none any more is gone as well.
        _check_above(self._now, self._now.entries if lost else made.written)
        return (made.written if self._now.saved else {}), pack_step(made)

    def _take_manifest(self, told: Manifest) -> tuple[Mapping[bytes, Entry], bytes]:
        git = told.git
        _require(type(told.folder) is bytes and told.folder[:1] == b"/", "a folder", told.folder)
        _require(b"\0" not in told.folder, "a folder", told.folder)
        for path, why in told.left_out.items():
            _require(type(path) is bytes and type(why) is str, "a path that is left out", path)
        _check_cut(told.unlisted, told.omitted, told.cut_by)
        numbers = (told.left_out_count, told.renamed, told.seq)
        for one in numbers:
            _require(type(one) is int and 0 <= one < _MOST_NUMBER, "a count", one)
        _require(type(told.saved) is bool and type(told.rules) is bytes, "a manifest", told.saved)
        if git is not None:
            _check_git(git)
        self._now = replace(told, entries=_entries(told.entries), imported=True)
        _check_above(self._now, self._now.entries)
        return (self._now.entries if self._now.saved else {}), pack_manifest(self._now)


def _require(fits: bool, what: str, found: object) -> None:
    if not fits:
        raise BadRecord(f"{what} of a manifest is {found!r:.60}")


def _check_cut(unlisted: Iterable[object], omitted: object, cut_by: object) -> None:
    for path in unlisted:
        _require(type(path) is bytes, "a path that is not listed", path)
    _require(type(omitted) is int and 0 <= omitted < _MOST_NUMBER, "a count", omitted)
    _require(type(cut_by) is str, "a reason", cut_by)


def _check_git(git: GitState) -> None:
    dirty = git.dirty or ()
    _require(type(git.head) is str and type(git.branch) is str, "the commit", git.head)
    _require(all(type(one) is str for one in dirty), "a changed file", dirty)
    _require(type(git.dirty_count) is int, "a count", git.dirty_count)


def _check_path(path: object) -> None:
    parts = path.split(b"/") if type(path) is bytes else [b""]
    if len(b"/".join(parts)) > _MOST_PATH_BYTES or any(
        one in (b"", b".", b"..") or b"\0" in one for one in parts
    ):
        raise BadRecord(f"{path!r:.60} is no path of a file in a folder")


def _entries(told: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """Give entries of the types that they are to have, without what holds for one machine alone."""
    found = {}
    for path, entry in told.items():
        _check_path(path)
        for value, kind in zip(entry[1:], _FIELDS, strict=True):
            _require(type(value) is kind, f"an entry ({show_path(path)})", value)
        numbers = (entry.mode, entry.size, entry.modified_ns)
        _require(
            all(abs(one) < 1 << 63 for one in numbers) and entry.size >= 0, "a number", numbers
        )
        for at, size in entry.placeholders:
            _require(0 <= at <= at + size <= entry.size, "a placeholder", (at, size))
        _require(len(entry.digest) in (0, DIGEST_BYTES), "a hash", entry.digest)
        is_link = entry.kind is Kind.LINK
        _require(
            bool(entry.target) == is_link and b"\0" not in entry.target, "a link", entry.target
        )
        found[path] = entry._replace(mode=entry.mode & _MODE, inode=0, changed_ns=0)
    return found


def _check_above(manifest: Manifest, paths: Mapping[bytes, Entry]) -> None:
    for path in paths:
        above = path.rpartition(b"/")[0]
        if above and not _is_folder(manifest, above):
            raise BadRecord(f"{show_path(path)} is in what is no folder of the manifest")


def _is_folder(manifest: Manifest, path: bytes) -> bool:
    entry = manifest.entries.get(path)
    return entry is not None and entry.is_folder
