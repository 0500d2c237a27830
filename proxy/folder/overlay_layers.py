"""What layers of overlayfs hold: what a command has written, and layers that make a folder what a manifest says.

Rules. Source: Linux, filesystems/overlayfs.rst.

1. In an upper layer a character device 0:0 is a *whiteout*: nothing is at that path any more.
2. A folder marked *opaque* hides all that lower layers have at its path; else both are seen as one.
3. A folder marked *redirect* was renamed: what lower layers have is at the old path.
4. A file in an upper layer need not have changed: it is copied there when it is opened to be written to.

Layers are read once the command has ended, or by a process that only reads. What is in them is the command's: no link is
followed.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...tape.folders.changes import Change, FileEffect
from ...tape.folders.manifest import Entry, Kind, Manifest
from .file_contents import hash_file
from .list_folder import entry_of

_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
_REDIRECT = ("user.overlay.redirect", "trusted.overlay.redirect")
_MOST_HASHED = 5000
_MOST_BYTES = 512 << 20
"""Of files that are hashed to tell whether they changed, and what they hold."""


class Node(NamedTuple):
    """What is at a path, seen through layers."""

    place: bytes
    """Of its uppermost part."""
    told: os.stat_result
    layers: tuple[bytes, ...] = ()
    """Of a folder: where its parts are, the uppermost first."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.told.st_mode)

    def entry(self) -> Entry:
        """Give it as manifests have it, without a content."""
        link = stat.S_ISLNK(self.told.st_mode)
        return entry_of(self.told, os.readlink(self.place) if link else b"")


class Written(NamedTuple):
    """What an upper layer holds against those below it."""

    effects: list[FileEffect]
    """Sorted by path."""
    touched: dict[bytes, bytes]
    """Files that were written, changed by that or not: their path, and where they are."""
    omitted: int
    """Files that were too many or too large to be hashed."""
    cut: str = ""
    """Which folders were not listed, as a sentence: what was written there is not known. Empty where all were."""


def list_written(upper: str, lowers: Sequence[str]) -> Written:
    """List what was written into an upper layer. Blocks.

    lowers: the layers below, the uppermost first.
    """
    found = _Comparison(tuple(map(os.fsencode, lowers)))
    below = tuple(os.fsencode(one) for one in lowers)
    found.compare(b"", os.fsencode(upper), below, below)
    effects = sorted(found.effects, key=lambda one: (one.path, one.change is not Change.DELETED))
    return Written(effects, found.touched, found.omitted)


class _Comparison:
    """One comparison."""

    def __init__(self, lowers: tuple[bytes, ...]) -> None:
        self.effects: list[FileEffect] = []
        self.touched: dict[bytes, bytes] = {}
        self.omitted = 0
        self._lowers = lowers
        self._hashed = 0
        self._bytes = 0

    def compare(
        self, above: bytes, upper: bytes, before: tuple[bytes, ...], shown: tuple[bytes, ...]
    ) -> None:
        """Compare a folder of the upper layer with what was at its path.

        above: its path, which is empty or ends with a slash.
        before: where the parts of the folder are that was there.
        shown: where those are that are still seen through it.
        """
        names = set()
        with os.scandir(upper) as scanned:
            listed = list(scanned)
        for one in listed:
            names.add(one.name)
            self._compare_one(above + one.name, one, find(before, one.name), shown)
        if shown != before:
            was, now = children(before), children(shown)
            for name in {*was, *now} - names:
                self._compare_nodes(above + name, was.get(name), now.get(name))

    def _compare_one(
        self, path: bytes, one: "os.DirEntry[bytes]", was: Node | None, shown: tuple[bytes, ...]
    ) -> None:
        told = one.stat(follow_symlinks=False)
        if is_whiteout(told):
            self._compare_nodes(path, was, None)
        elif stat.S_ISDIR(told.st_mode):
            now = Node(one.path, told, self._find_shown(one.path, one.name, shown))
            before = self._note_folder(path, was, now)
            self.compare(path + b"/", one.path, before, now.layers)
        else:
            self._compare_nodes(path, was, Node(one.path, told))

    def _find_shown(
        self, folder: bytes, name: bytes, shown: tuple[bytes, ...]
    ) -> tuple[bytes, ...]:
        """Give what lower layers show through a folder of the upper one."""
        if _has(folder, _OPAQUE, b"y"):
            return ()
        redirect = _read_mark(folder, _REDIRECT)
        if redirect is None or not redirect.startswith(b"/"):
            # Else it is a name alone: the folder was renamed where it is.
            below = find(shown, redirect or name)
            return below.layers if below is not None else ()
        layers = self._lowers
        for name in filter(None, redirect.split(b"/")):
            node = find(layers, name)
            layers = node.layers if node is not None else ()
        return layers

    def _note_folder(self, path: bytes, was: Node | None, now: Node) -> tuple[bytes, ...]:
        """Note what became of a folder itself; give what was in it."""
        if was is not None and was.is_folder:
            if stat.S_IMODE(was.told.st_mode) != stat.S_IMODE(now.told.st_mode):
                self._note(path, Change.CHANGED, now.entry())
            return was.layers
        if was is not None:
            self._note(path, Change.DELETED, was.entry())
        self._note(path, Change.CREATED, now.entry())
        return ()

    def _compare_nodes(self, path: bytes, was: Node | None, now: Node | None) -> None:
        """Compare what was at a path with what is there now, and all that is in it."""
        if was is not None and (now is None or was.is_folder != now.is_folder):
            self._note(path, Change.DELETED, was.entry())
            for name, inner in children(was.layers).items() if was.is_folder else ():
                self._compare_nodes(path + b"/" + name, inner, None)
            was = None
        if now is None:
            return
        if now.is_folder:
            before = self._note_folder(path, was, now)
            had, has = children(before), children(now.layers)
            for name in {*had, *has}:
                self._compare_nodes(path + b"/" + name, had.get(name), has.get(name))
            return
        self._compare_files(path, was, now)

    def _compare_files(self, path: bytes, was: Node | None, now: Node) -> None:
        entry = now.entry()
        if was is None:
            self._note(path, Change.CREATED, self._hashed_entry(now, entry))
            self._touch(path, now, entry)
            return
        old = was.entry()
        times = (old.size, old.modified_ns, old.mode) == (entry.size, entry.modified_ns, entry.mode)
        if old.kind is not entry.kind or old.target != entry.target or old.size != entry.size:
            self._note(path, Change.CHANGED, self._hashed_entry(now, entry))
            self._touch(path, now, entry)
            return
        if entry.kind is not Kind.FILE or (was.told.st_dev, was.told.st_ino) == (
            now.told.st_dev,
            now.told.st_ino,
        ):
            return
        made = self._hashed_entry(now, entry)
        same = bool(made.digest) and made.digest == hash_file(was.place)
        if not same or old.mode != entry.mode:
            self._note(path, Change.CHANGED, made)
        if not same or not times:
            self._touch(path, now, entry)

    def _touch(self, path: bytes, now: Node, entry: Entry) -> None:
        if entry.kind is Kind.FILE:
            self.touched[path] = now.place

    def _hashed_entry(self, now: Node, entry: Entry) -> Entry:
        if entry.kind is not Kind.FILE:
            return entry
        self._hashed += 1
        self._bytes += entry.size
        if self._hashed > _MOST_HASHED or self._bytes > _MOST_BYTES:
            self.omitted += 1
            return entry
        return entry._replace(digest=hash_file(now.place))

    def _note(self, path: bytes, change: Change, entry: Entry) -> None:
        self.effects.append(FileEffect(path, change, entry))


def is_whiteout(told: os.stat_result) -> bool:
    """Say whether this hides what is below it."""
    return stat.S_ISCHR(told.st_mode) and told.st_rdev == 0


def find(layers: tuple[bytes, ...], name: bytes) -> Node | None:
    """Find what is seen at a name in a folder that is in layers."""
    found: Node | None = None
    for layer in layers:
        place = layer + b"/" + name
        try:
            told = os.lstat(place)
        except OSError:
            continue
        is_folder = stat.S_ISDIR(told.st_mode)
        if found is None:
            if is_whiteout(told):
                return None
            found = Node(place, told, (place,) if is_folder else ())
        elif not is_folder:
            break
        else:
            found = found._replace(layers=(*found.layers, place))
        if not is_folder or _has(place, _OPAQUE, b"y"):
            break
    return found


def children(layers: tuple[bytes, ...]) -> dict[bytes, Node]:
    """Give all that is seen in a folder that is in layers."""
    names: set[bytes] = set()
    for layer in layers:
        try:
            names.update(os.listdir(layer))
        except OSError:
            continue
    found = ((name, find(layers, name)) for name in names)
    return {name: node for name, node in found if node is not None}


def _has(place: bytes, names: Sequence[str], value: bytes) -> bool:
    return _read_mark(place, names) == value


def _read_mark(place: bytes, names: Sequence[str]) -> bytes | None:
    for name in names:
        try:
            return os.getxattr(place, name, follow_symlinks=False)
        except OSError:
            continue
    return None


class Base(NamedTuple):
    """A layer that makes a folder what a manifest says."""

    missing: list[bytes]
    """Files whose content was not saved: they are as the folder has them, or are not there."""


def make_base(
    place: str,
    target: Manifest,
    changes: Sequence[FileEffect],
    read: Callable[[bytes], bytes],
) -> Base:
    """Fill an empty folder so that as a layer over another it makes that one what a manifest says. Blocks.

    changes: how the folder has to change, as `find_changes` of what it holds and the manifest gives it.
    read: gives a content by its hash. Raises: StoreError; OSError.
    """
    missing = []
    base = os.fsencode(place)
    gone = {one.path for one in changes if one.change is Change.DELETED}
    made: dict[bytes, Entry] = {}
    for one in changes:
        path = base + b"/" + one.path
        if one.change is Change.DELETED:
            if not _is_below_any(one.path, gone):
                _make_above(base, one.path, target, made)
                _remove_whiteout(path)
                os.mknod(path, stat.S_IFCHR | 0o000, 0)
            continue
        entry = one.entry
        if entry.kind is Kind.SOCKET or (entry.kind is Kind.FILE and entry.unsaved):
            missing.append(one.path)
            continue
        _make_above(base, one.path, target, made)
        _remove_whiteout(path)
        _make(path, entry, read)
        if entry.is_folder:
            made[one.path] = entry
            if one.path in gone:  # it was a file, which nothing is seen of
                continue
    for folder, entry in sorted(made.items(), reverse=True):
        where = base + b"/" + folder
        os.chmod(where, entry.mode)
        os.utime(where, ns=(entry.modified_ns, entry.modified_ns))
    return Base(missing)


def _is_below_any(path: bytes, folders: set[bytes]) -> bool:
    return any(above in folders for above in parents(path))


def parents(path: bytes) -> Iterator[bytes]:
    """Yield the folders above a path, the outermost first."""
    parts = path.split(b"/")[:-1]
    for at in range(1, len(parts) + 1):
        yield b"/".join(parts[:at])


def _make_above(base: bytes, path: bytes, target: Manifest, made: dict[bytes, Entry]) -> None:
    for above in parents(path):
        if above in made:
            continue
        where = base + b"/" + above
        _remove_whiteout(where)
        if not os.path.isdir(where):
            os.mkdir(where, 0o700)
        made[above] = target.entries.get(above, Entry(Kind.FOLDER, 0o755))


def _remove_whiteout(path: bytes) -> None:
    try:
        if is_whiteout(os.lstat(path)):
            os.unlink(path)
    except FileNotFoundError:
        pass


def _make(path: bytes, entry: Entry, read: Callable[[bytes], bytes]) -> None:
    """Make what an entry says at a path at which nothing is; of a folder the mode is for later. Raises: OSError; StoreError."""
    match entry.kind:
        case Kind.FOLDER:
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
            return
        case Kind.LINK:
            os.symlink(entry.target, path)
        case Kind.PIPE:
            os.mkfifo(path, entry.mode)
        case Kind.FILE:
            write_file(path, read(entry.digest), entry)
        case _:
            return
    os.utime(path, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)


def write_file(path: bytes, data: bytes, entry: Entry) -> None:
    """Write a file at a path at which nothing is, with its mode. Raises: OSError."""
    held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(held, view) :]
        os.fchmod(held, entry.mode)
    finally:
        os.close(held)
