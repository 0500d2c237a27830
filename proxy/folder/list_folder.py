"""List what is in a folder: every path with its kind, mode, size and times, by ignore files and within limits.

No link is followed, no file but ignore files is opened, and no folder is entered that is ignored, Playhead's own or on
another file system. 20,000 entries take some 40 ms.
"""

import ctypes
import os
import stat
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...tape.folders.ignore_files import IGNORE_FILE, IGNORED, USUAL, Ignored
from ...tape.folders.manifest import MOST_LEFT_OUT, Entry, Kind, Manifest
from ..determinism.read_untrusted_file import read_agent_file

_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.FOLDER,
    stat.S_IFLNK: Kind.LINK,
    stat.S_IFIFO: Kind.PIPE,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.DEVICE,
    stat.S_IFBLK: Kind.DEVICE,
}
_FOLDER = Kind.FOLDER
_GIT = b".git"
_OBJECTS = b"/objects/"
_MOST_RULES_BYTES = 1 << 20
_TICK_NS = 20_000_000
"""Times of folders are up to a tick of the kernel behind the clock."""
_AT_FDCWD, _NO_FOLLOW, _NO_AUTOMOUNT = -100, 0x100, 0x800
_BIRTH_MASK, _BIRTH_AT, _STATX_BYTES = 0x800, 80, 256
"""Of `struct statx`: the bit of the time of birth, its place, and the size of all."""
OWN = "Playhead's own"
UNLISTED = "cannot be listed"
ELSEWHERE = "another file system"
BEYOND = "beyond the limit"


_LEAST_WALL_S = 10.0


class Limits(NamedTuple):
    """How much is looked at."""

    entries: int = 50_000
    time_s: float = 2.0
    """Of processor time of the thread: how busy the machine is does not decide what is listed."""

    @property
    def wall_s(self) -> float:
        """Longest time on the clock, for folders on disks that answer slowly."""
        return max(_LEAST_WALL_S, self.time_s)


_LIMITS = Limits()


class Listing(NamedTuple):
    """What was in a folder; as long as nothing came to it or went, its names need not be read again."""

    inode: int
    changed_ns: int
    rules: Ignored | None
    """Of the folders above it."""
    inner: Ignored | None
    """With those of its own ignore file."""
    has_rules: bool
    files: list[tuple[bytes, bytes]]
    """What is no folder: path, and where it is."""
    folders: list[tuple[bytes, bytes]]
    left_out: list[tuple[bytes, str]]


def entry_of(told: os.stat_result, target: bytes = b"") -> Entry:
    """Give the entry of what stands at a path, without its content."""
    kind = _KINDS.get(stat.S_IFMT(told.st_mode), Kind.DEVICE)
    return Entry(
        kind,
        stat.S_IMODE(told.st_mode),
        told.st_size if kind is Kind.FILE else 0,
        told.st_mtime_ns,
        b"",
        target,
        told.st_ino,
        told.st_ctime_ns,
    )


def find_birth_ns(path: bytes) -> int | None:
    """Give the time at which what is at a path was made; None where the file system does not know. No link is followed.

    Source: statx(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "statx"):
        return None
    told = ctypes.create_string_buffer(_STATX_BYTES)
    flags = _NO_FOLLOW | _NO_AUTOMOUNT
    if libc.statx(_AT_FDCWD, ctypes.c_char_p(path), flags, _BIRTH_MASK, told) != 0:
        return None
    (known,) = struct.unpack_from("=I", told)
    if not known & _BIRTH_MASK:
        return None
    seconds, ns = struct.unpack_from("=qI", told, _BIRTH_AT)
    return int(seconds * 10**9 + ns)


def look(
    folder: str,
    *,
    left_out: frozenset[str] = frozenset(),
    tracked: frozenset[bytes] = frozenset(),
    known: Mapping[bytes, Entry] | None = None,
    fresh: dict[bytes, Entry] | None = None,
    objects: dict[bytes, dict[bytes, Entry]] | None = None,
    listings: dict[bytes, Listing] | None = None,
    everything: bool = False,
    limits: Limits = _LIMITS,
    work_clock: Callable[[], float] = time.thread_time,
    clock: Callable[[], float] = time.monotonic,
) -> Manifest:
    """List a folder; git's state is not known, and contents as far as `known` has them. Blocks.

    left_out: folders that are not the command's, as the store.
    tracked: paths that count although they are ignored, with the folders above them.
    known: entries of an earlier look: what nobody has touched since is taken from there, and an object of git in a folder
        that is as it was is not looked at again, for git never writes one anew.
    fresh: gets the entries that are not taken from there.
    objects: what `known` has of objects of git by their folder, and then what this look has; for whoever looks again and again
        with the same `left_out` and `tracked`.
    listings: the same for what is in other folders.
    everything: list what is ignored, too.
    work_clock, clock: give seconds: of this thread's work, and on the wall.
    Raises: OSError, where there is no such folder.
    """
    own = {os.fsencode(one) for one in left_out}
    if objects is None:
        objects = {}
    if known and not objects and not everything:
        objects.update(_group_objects(known))
    fresh = {} if fresh is None else fresh
    found = _Look(os.fsencode(folder), own, tracked, known or {}, fresh, objects, listings)
    if everything:
        found.folders = [(b"", None)]
    work_until, until = work_clock() + limits.time_s, clock() + limits.wall_s
    cut_by = ""
    while found.folders:
        if len(found.entries) > limits.entries:
            cut_by = f"the folder has more than {limits.entries:,} paths"
        elif work_clock() > work_until:
            cut_by = f"that would take more than {limits.time_s:g} s of processor time"
        elif clock() > until:
            cut_by = f"that would take more than {limits.wall_s:g} s"
        if cut_by:
            found.give_up()
            break
        found.enter()
    return Manifest(
        os.fsencode(folder),
        found.entries,
        found.left_out,
        found.left_out_count,
        found.omitted,
        unlisted=frozenset(above.rstrip(b"/") for above, _ in found.folders),
        cut_by=cut_by,
    )


class _Look:
    """One look at a folder."""

    def __init__(
        self,
        folder: bytes,
        own: set[bytes],
        tracked: frozenset[bytes],
        known: Mapping[bytes, Entry],
        fresh: dict[bytes, Entry],
        objects: dict[bytes, dict[bytes, Entry]],
        listings: dict[bytes, Listing] | None,
    ) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.left_out: dict[bytes, str] = {}
        self.left_out_count = 0
        self.omitted = 0
        self.folders: list[tuple[bytes, Ignored | None]] = [
            (b"", _rules_above(_reads_rules_in(folder)))
        ]
        """Paths that are empty or end with a slash, with their rules; None inside of a repository's own folder."""
        self._folder = folder.rstrip(b"/")
        self._own = own
        self._tracked = tracked
        self._known = known
        self._fresh = fresh
        self._objects = objects
        self._listings = listings
        self._left_here: list[tuple[bytes, str]] = []
        """Of the folder at hand."""
        self._device = os.stat(folder or b"/").st_dev

    def enter(self) -> None:
        """List the next folder."""
        above, rules = self.folders.pop()
        if rules is None and above in self._objects and self._is_untouched(above):
            self.entries.update(self._objects[above])
            return
        place = self._folder + b"/" + above
        if self._enter_again(above, place, rules):
            return
        outer, self._left_here = rules, []
        before_ns = time.time_ns()
        try:
            with os.scandir(place) as scanned:
                listed = list(scanned)
        except OSError:  # closed to this user, or gone
            self._leave_out(above.rstrip(b"/"), UNLISTED)
            return
        has_rules = rules is not None and any(one.name == IGNORE_FILE for one in listed)
        if rules is not None and has_rules:
            rules = rules.within(above, _read_rules(place + IGNORE_FILE))
        entries, known = self.entries, self._known
        # Who looks again and again comes here where names or rules have changed: then rules are asked of each.
        anew = self._listings is not None
        for one in listed:
            path = above + one.name
            try:
                told = one.stat(follow_symlinks=False)
                was = known.get(path)
                # Nearly all of a second look: as short as can be.
                if (
                    was is None
                    or anew
                    or was[7] != told.st_ctime_ns
                    or was[6] != told.st_ino
                    or was[0] is _FOLDER
                ):
                    self._take(one, path, rules, told)
                else:
                    entries[path] = was
            except FileNotFoundError:  # it went meanwhile
                continue

        if rules is None and _is_of_objects(above):
            found = (above + one.name for one in listed)
            self._objects[above] = {path: entries[path] for path in found if path in entries}
        elif self._listings is not None:
            names = [above + one.name for one in listed]
            self._keep_listing(above, names, outer, rules, has_rules=has_rules, at_ns=before_ns)

    def _keep_listing(
        self,
        above: bytes,
        names: list[bytes],
        outer: Ignored | None,
        inner: Ignored | None,
        *,
        has_rules: bool,
        at_ns: int,
    ) -> None:
        """Keep the names in a folder, unless it was changed so shortly before that a further change would not show."""
        assert self._listings is not None
        own = self.entries.get(above[:-1])
        if own is None or own.changed_ns > at_ns - _TICK_NS:
            self._listings.pop(above, None)
            return
        files: list[tuple[bytes, bytes]] = []
        folders: list[tuple[bytes, bytes]] = []
        for path in names:
            entry = self.entries.get(path)
            if entry is not None:
                place = path, self._folder + b"/" + path
                (folders if entry.is_folder else files).append(place)
        self._listings[above] = Listing(
            own.inode,
            own.changed_ns,
            outer,
            inner,
            has_rules,
            files,
            folders,
            self._left_here,
        )

    def _enter_again(self, above: bytes, place: bytes, rules: Ignored | None) -> bool:
        """Look at what was in a folder before, if nothing came or went since; say whether that is so."""
        listing = self._listings.get(above) if self._listings is not None else None
        own = self.entries.get(above[:-1])
        if listing is None or own is None:
            return False
        if (own.inode, own.changed_ns) != (listing.inode, listing.changed_ns):
            return False
        if rules != listing.rules:
            return False
        if rules is not None and listing.has_rules:
            inner = rules.within(above, _read_rules(place + IGNORE_FILE))
            if inner != listing.inner:
                return False
        try:
            inside = [(path, os.lstat(where)) for path, where in listing.folders]
        except FileNotFoundError:
            return False
        for _, told in inside:
            if not stat.S_ISDIR(told.st_mode) or told.st_dev != self._device:
                return False
        entries, known, lstat = self.entries, self._known, os.lstat
        for path, where in listing.files:
            try:
                told = lstat(where)
            except FileNotFoundError:  # it went meanwhile
                continue
            was = known.get(path)
            # Nearly all of a second look: as short as can be.
            if was is None or was[7] != told.st_ctime_ns or was[6] != told.st_ino:
                target = os.readlink(where) if stat.S_ISLNK(told.st_mode) else b""
                was = self._fresh[path] = entry_of(told, target)
            entries[path] = was
        for path, told in inside:
            self._take_entry(path, told, b"")
            git = path.endswith(b"/.git") or path == _GIT
            self.folders.append((path + b"/", None if git else listing.inner))
        for path, why in listing.left_out:
            self._leave_out(path, why)
        return True

    def _is_untouched(self, folder: bytes) -> bool:
        path = folder[:-1]
        return path not in self._fresh and path in self._known

    def _take(
        self,
        one: "os.DirEntry[bytes]",
        path: bytes,
        rules: Ignored | None,
        told: os.stat_result,
    ) -> None:
        is_folder = stat.S_ISDIR(told.st_mode)
        if why := self._find_why(one, path, rules, told, is_folder=is_folder):
            self._left_here.append((path, why))
            self._leave_out(path, why)
            return
        target = os.readlink(one.path) if stat.S_ISLNK(told.st_mode) else b""
        self._take_entry(path, told, target)
        if is_folder:
            inside = None if one.name == _GIT else rules
            self.folders.append((path + b"/", inside))

    def _take_entry(self, path: bytes, told: os.stat_result, target: bytes) -> None:
        was = self._known.get(path)
        if was is None or (was.changed_ns, was.inode) != (told.st_ctime_ns, told.st_ino):
            was = self._fresh[path] = entry_of(told, target)
        self.entries[path] = was

    def _find_why(
        self,
        one: "os.DirEntry[bytes]",
        path: bytes,
        rules: Ignored | None,
        told: os.stat_result,
        *,
        is_folder: bool,
    ) -> str:
        """Say why a path is left out; empty where it is not."""
        if is_folder and one.path in self._own:
            return OWN
        if is_folder and told.st_dev != self._device:
            return ELSEWHERE
        if rules is None or path in self._tracked or one.name == _GIT:
            return ""
        if is_folder and one.name in USUAL:
            return IGNORED
        return IGNORED if rules.leaves_out(path, folder=is_folder) else ""

    def give_up(self) -> None:
        """Name the folders that were not entered any more."""
        self.omitted = len(self.folders)
        for above, _ in self.folders:
            self._leave_out(above.rstrip(b"/"), BEYOND)

    def _leave_out(self, path: bytes, why: str) -> None:
        self.left_out_count += 1
        if len(self.left_out) < MOST_LEFT_OUT:
            self.left_out[path] = why


def _is_of_objects(folder: bytes) -> bool:
    """Say whether a path, which ends with a slash, is that of a folder with loose objects of git: two hexadecimal digits."""
    return folder[-4:-3] == b"/" and _OBJECTS in folder


def _group_objects(known: Mapping[bytes, Entry]) -> dict[bytes, dict[bytes, Entry]]:
    """Group the objects of git by the folder that they are in."""
    found: dict[bytes, dict[bytes, Entry]] = {}
    for path, entry in known.items():
        if _OBJECTS in path and entry[0] is Kind.FILE:
            above = path[: path.rindex(b"/") + 1]
            if _is_of_objects(above):
                found.setdefault(above, {})[path] = entry
    return found


def _rules_above(read: Callable[[bytes], bytes]) -> Ignored:
    """Give the rules that are in no ignore file of the folder itself. Source: gitignore(5).

    read: gives a file of the folder by its path.
    """
    home = os.fsencode(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    rules = Ignored().within(b"", _read_rules(os.path.join(home, b"git", b"ignore")))
    return rules.within(b"", read(b".git/info/exclude"))


def _reads_rules_in(folder: bytes) -> Callable[[bytes], bytes]:
    return lambda path: _read_rules(folder + b"/" + path)


def _read_rules(file: bytes) -> bytes:
    return read_agent_file(Path(os.fsdecode(file)), _MOST_RULES_BYTES)


class IgnoreFilter:
    """Says of single paths whether ignore files leave them out."""

    def __init__(
        self,
        folder: str,
        tracked: frozenset[bytes] = frozenset(),
        read: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Begin with a folder.

        tracked: paths that count although they are ignored.
        read: gives an ignore file by its path in the folder; without it, as it is there now.
        """
        self._read_file = read or _reads_rules_in(os.fsencode(folder).rstrip(b"/"))
        self._tracked = tracked
        self._rules: dict[bytes, Ignored | None] = {
            b"": self._read(b"", _rules_above(self._read_file))
        }
        """By folder, which is empty or ends with a slash; None where everything in it is left out."""

    def leaves_out(self, path: bytes, *, folder: bool) -> bool:
        """Say whether a path is left out, or a folder above it."""
        if path in self._tracked or b".git" in path.split(b"/"):
            return False
        above, name = _split(path)
        rules = self._within(above)
        return rules is None or _is_out(rules, path, name, folder=folder)

    def _within(self, folder: bytes) -> Ignored | None:
        if folder not in self._rules:
            path = folder[:-1]
            above, name = _split(path)
            rules = self._within(above)
            if rules is not None and _is_out(rules, path, name, folder=True):
                rules = None
            self._rules[folder] = self._read(folder, rules) if rules is not None else None
        return self._rules[folder]

    def _read(self, folder: bytes, rules: Ignored) -> Ignored:
        return rules.within(folder, self._read_file(folder + IGNORE_FILE))


def _split(path: bytes) -> tuple[bytes, bytes]:
    above, _, name = path.rpartition(b"/")
    return (above + b"/" if above else b""), name


def _is_out(rules: Ignored, path: bytes, name: bytes, *, folder: bool) -> bool:
    return (folder and name in USUAL) or rules.leaves_out(path, folder=folder)
