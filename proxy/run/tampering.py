"""Whether what a run rests on is after it what it was before: store, configuration and Playhead itself.

Nothing in a sandbox can change these; where something did all the same, or the command ran outside of one, nobody knows
what the run was answered with. Compared are device and inode of a path as it was given, links followed, and the hash of
what is not written to meanwhile.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ... import __path__ as package_path
from ...config import Config
from ...store.paths import CA_KEY, DATA, LOG, PRIVATE, RECEIPT_KEY, REDACTION_KEY
from ..sandbox.filesystem.playhead_startup_paths import find_startup_places
from ..sandbox.filesystem.protection import SYSTEM, find_rewritten, loaded_files
from ..trust.ca import CERTIFICATE_FILE
from .installed_file_changes import InstalledFiles

_MOST_BYTES = 64 << 20
MOST_TOLD = 20
_LEFT_OUT = ("__pycache__", "node_modules", "tests", "benchmarks", "docs", "examples", "build")

_ROOT = "/"
_OF_THE_SYSTEM = frozenset(path.removeprefix("/") for path in SYSTEM)


@dataclass(frozen=True, slots=True)
class _Place:
    """What stood at a path: None for nothing."""

    device: int
    inode: int
    digest: bytes | None
    """None where what it holds may change."""
    links: int = field(default=0, compare=False)


_Loaded = tuple[int, int, int, int, int, int]
"""Device, inode, size, links, time of change of the content and of anything, in nanoseconds."""


class Baseline:
    """What was there before a command ran."""

    def __init__(
        self, config: Config, *, config_file: Path | None, folders: Iterable[Path]
    ) -> None:
        """Look at everything. Blocks, some 30 ms.

        config_file: None where there is none; then none may appear at this place.
        folders: others that must stay where they are.
        """
        config_file_path = config_file.absolute() if config_file is not None else None
        self._fixed = dict(_fixed_files(config, config_file))
        self._folders = {path: name for name, path in _folders(config, config_file)}
        self._folders |= dict.fromkeys(folders, "the receipt's folder")
        self._log = config.store.absolute() / LOG / DATA
        self._files = {path: _look(path, content=True) for path in self._fixed}
        for path in [path for path, found in self._files.items() if found is None]:
            if path != config_file_path:  # it is ours to make, as the control API's token
                del self._files[path], self._fixed[path]
        self._places = {path: _look(path, content=False) for path in (*self._folders, self._log)}
        self._package = {path: _look(path, content=True) for path in _package_files()}
        self._loaded = dict(_states(set(loaded_files())))
        self._environ = dict(os.environ)
        self._searched = dict(_states(find_startup_places(self._environ)))
        self._root = dict(_names_in_root())
        self._rewritten = dict(_states(set(find_rewritten())))
        known = self._loaded | self._searched | self._rewritten
        self._installed = InstalledFiles(name for name, found in known.items() if found[3] > 1)

    def compare(self) -> list[dict[str, str]]:
        """Give what is not as it was: `path`, and `what` in words. Blocks."""
        return list(self._compare())[:MOST_TOLD]

    def _compare(self) -> Iterator[dict[str, str]]:
        for path, name in self._folders.items():
            yield from _differ(path, name, self._places[path], _look(path, content=False))
        before = self._places[self._log]
        yield from _differ(self._log, "the store's log", before, _look(self._log, content=False))
        for path, name in self._fixed.items():
            yield from _differ(path, name, self._files[path], _look(path, content=True))
        package = {path: _look(path, content=True) for path in _package_files()}
        changed = {path for path, _ in self._package.items() ^ package.items()}
        for own in sorted(changed):
            old, new = self._package.get(own), package.get(own)
            yield from _differ(Path(own), "Playhead's own file", old, new)
        for name, found in _states(set(loaded_files())):
            was = self._loaded.get(name)
            if name not in package and was is not None and self._differs(name, was, found):
                yield {"path": name, "what": "a file that Playhead runs from was changed"}
        for name, found in _states(sorted(self._rewritten)):
            if self._differs(name, self._rewritten[name], found):
                yield {
                    "path": name,
                    "what": "a file that the next start of Playhead would load was changed",
                }
        yield from self._compare_root()
        yield from self._compare_searched(set(package) | set(self._loaded))

    def _differs(self, name: str, was: "_Loaded", now: "_Loaded") -> bool:
        if not _was_changed(was, now):
            return False
        # Of a file with several names one was removed and another one made, perhaps, and nothing was written to it.
        in_doubt = was[:3] == now[:3] and was[4] == now[4] and min(was[3], now[3]) > 1
        return not (in_doubt and self._installed.has(name))

    def _compare_root(self) -> Iterator[dict[str, str]]:
        """Yield the names in the root folder that lead elsewhere than before."""
        now = dict(_names_in_root())
        for path in sorted({path for path, _ in self._root.items() ^ now.items()}):
            yield {"path": path, "what": _say_root(self._root.get(path), now.get(path))}

    def _compare_searched(self, said: set[str]) -> Iterator[dict[str, str]]:
        """Yield what is new, other or gone where the next start looks for its files; but for what was compared."""
        now = dict(_states({*find_startup_places(self._environ), *self._searched}))
        for name in sorted({*now, *self._searched} - said):
            was, found = self._searched.get(name), now.get(name)
            if was is None:
                yield {"path": name, "what": "the next start of Playhead would load it"}
            elif found is None or self._differs(name, was, found):
                yield {"path": name, "what": "a place that Playhead loads from was changed"}


def _folders(config: Config, config_file: Path | None) -> Iterator[tuple[str, Path]]:
    store = config.store.absolute()
    yield "the store's folder", store
    yield "the store's folder of keys", store / PRIVATE
    yield "the store's log", store / LOG
    if config_file is not None and os.path.exists(config_file):
        yield "the configuration's folder", config_file.absolute().parent


def _fixed_files(config: Config, config_file: Path | None) -> Iterator[tuple[Path, str]]:
    if config_file is not None:
        yield config_file.absolute(), "the configuration"
    for path in named_files(config):
        yield path.absolute(), "a file that the configuration names"
    for name in (CA_KEY, REDACTION_KEY, RECEIPT_KEY):
        yield config.store.absolute() / PRIVATE / name, "a key of the store"
    yield config.public_ca_dir.absolute() / CERTIFICATE_FILE, "the CA's certificate"
    yield Path(sys.executable), "the interpreter"


def named_files(config: Config) -> Iterator[Path]:
    """Yield the files that a configuration names, and the proxy reads."""
    control = config.control
    given = (
        config.upstream_ca,
        config.encrypt.key_file,
        control.token_file,
        config.upstream_proxy.credentials_file,
        *(path for one in config.client_certificates for path in (one.cert, one.key)),
    )
    yield from (path for path in given if path is not None)


def _package_files() -> Iterator[str]:
    for root in package_path:
        for entry in os.scandir(root):
            if entry.name.endswith(".py") and entry.is_file():
                yield entry.path
            elif entry.name not in _LEFT_OUT and os.path.isfile(f"{entry.path}/__init__.py"):
                yield from _files_below(entry.path)


def _files_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield from (os.path.join(place, name) for name in names)


_Named = tuple[int, int, int, str]
"""Kind, device and inode of a name in the root folder, and where it leads if it is a link."""


def _names_in_root() -> Iterator[tuple[str, _Named]]:
    """Yield the links in the root folder, and the names that programs and libraries are loaded by; no link is followed.

    Where `/lib` and its like are links into `/usr`, whoever can write to the root folder can have them lead elsewhere.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(_ROOT):
            path = os.path.join(_ROOT, name)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                is_link = stat.S_ISLNK(found.st_mode)
                if is_link or name in _OF_THE_SYSTEM or name.startswith("lib"):
                    target = os.readlink(path) if is_link else ""
                    yield path, (stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino, target)


def _say_root(was: _Named | None, now: _Named | None) -> str:
    if was is None:
        return "programs would be loaded by this name, which was not there before"
    if now is None:
        return "a name that programs are loaded by is gone"
    if was[3] != now[3]:
        return f"the link led to {was[3] or 'nothing'!r} before, and leads to {now[3] or 'nothing'!r} now"
    return "a name that programs are loaded by is another file"


def _look(path: Path | str, *, content: bool) -> _Place | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        # It may be made in this very moment, as the control API's token is: then it was not there.
        return None
    except OSError:
        # What may not be read is not hashed either.
        try:
            found = os.stat(path)
        except OSError:
            return None
        return _Place(found.st_dev, found.st_ino, None, found.st_nlink)
    try:
        found = os.fstat(descriptor)
        digest = None
        if content and stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES:
            digest = _hash(descriptor)
        return _Place(found.st_dev, found.st_ino, digest, found.st_nlink)
    finally:
        os.close(descriptor)


def _hash(descriptor: int) -> bytes:
    made = sha256()
    while piece := os.read(descriptor, 1 << 20):
        made.update(piece)
    return made.digest()


def _was_separated(before: _Place | None, now: _Place | None) -> bool:
    """Say whether a file was given an inode of its own and is the same else, as the first run in a sandbox does; see `_was_changed`."""
    return (
        before is not None
        and now is not None
        and before.digest is not None
        and before.links > 1
        and now.links == 1
        and (before.device, before.digest) == (now.device, now.digest)
    )


def _differ(
    path: Path, name: str, before: _Place | None, now: _Place | None
) -> Iterator[dict[str, str]]:
    if before == now or _was_separated(before, now):
        return
    if before is None:
        what = f"{name} was not there before"
    elif now is None:
        what = f"{name} is gone"
    elif before.digest != now.digest:
        what = f"{name} has another content"
    else:
        pair = f"device {before.device} inode {before.inode}"
        what = f"{name} is another one: {pair} before, device {now.device} inode {now.inode} now"
    yield {"path": str(path), "what": what}


def _states(paths: Iterable[str]) -> Iterator[tuple[str, _Loaded]]:
    """Yield those of some paths that are there, with their state; of a folder it is device and inode."""
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield path, (found.st_dev, found.st_ino, 0, 0, 0, 0)
            continue
        yield (
            path,
            (
                found.st_dev,
                found.st_ino,
                found.st_size,
                found.st_nlink,
                found.st_mtime_ns,
                found.st_ctime_ns,
            ),
        )


def _was_changed(was: _Loaded, now: _Loaded) -> bool:
    """Say whether a file has another content.

    Installers link files of one environment into the next, which changes the count of links and the last time alone. The
    first run in a sandbox gives such a file an inode of its own (`break_hard_links.py`), perhaps beside this one; what is in a
    sandbox finds only files that have one.
    """
    if was[3] > 1 and now[3] == 1 and (was[0], was[2], was[4]) == (now[0], now[2], now[4]):
        return False
    if was[:3] != now[:3] or was[4] != now[4]:
        return True
    return was[5] != now[5] and was[3] == now[3]
