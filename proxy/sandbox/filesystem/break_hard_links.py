"""Give the files that the proxy runs from an inode of their own.

Protection goes by path, and a file with a second name can be written to by that name: installers link the files of an
environment into their cache and into other environments. Whoever writes there changes code that the proxy has mapped.
So a file with several names is replaced by a copy before anything runs, and the process starts again from the copies.

Looked at are, each time, all files that this process has loaded; and once per installation whatever Playhead and the
packages that it requires may load later. A stamp in the package's folder of compiled files, which is protected as the package is,
says for which state of the installation that was done.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .... import __path__ as package_path
from ....store.paths import BACKUP, BODIES, LOG, PRIVATE
from ...errors import EngineError
from .mountinfo import read_mounts
from .protection import loaded_files

_STAMP = "__pycache__/own-inodes.json"
_AGAIN = "_PLAYHEAD_STARTED_AGAIN"
"""Set for a process that was started again: it does not do so once more."""
_NEVER_LOADED = ("test", "tests", "idlelib", "node_modules", "docs", "examples", "benchmarks")
_REQUIRES = re.compile(r"^Requires-Dist: ([\w.-]+)(?!.*\bextra *==)", re.MULTILINE)
_OUR_EXTRAS = re.compile(r"^Requires-Dist: ([\w.-]+)", re.MULTILINE)
_PIECE = 1 << 24
_DELETED = " (deleted)"
_MAPS = "/proc/self/maps"

Report = Callable[[int, int], None]
"""Is called with how many files are done, of how many."""


def use_own_inodes(report: Report = lambda _done, _of: None) -> None:
    """Replace each file with several names that this user could write to, by a copy; then start this process again.

    Returns where there was none, and in a process that was started again.
    Raises: EngineError, where a file cannot be replaced.
    """
    is_second = os.environ.pop(_AGAIN, None) is not None
    if (separate(report) or _is_stale()) and not is_second:
        _start_again()


def separate(report: Report = lambda _done, _of: None) -> int:
    """Replace each file with several names by a copy; give how many. Raises: EngineError."""
    found = {os.path.realpath(path) for path in _loaded() if _is_shared(path)}
    known = not found and _read_stamp() == _describe_installation()
    if not known:
        found.update(os.path.realpath(path) for path in _installed() if _is_shared(path))
    with _one_at_a_time() if found else contextlib.nullcontext():
        for done, path in enumerate(sorted(found)):
            report(done, len(found))
            if _is_shared(path):  # still: another process may have been here first
                _replace(path)
    if not known:
        _write_stamp()
    return len(found)


def _start_again() -> None:
    words = sys.argv[1:]
    if sys.orig_argv[len(sys.orig_argv) - len(words) :] == words:
        arguments = sys.orig_argv[1:]
    else:  # a process that another program made
        code = "from playhead.proxy.cli import main; main()"
        arguments = ["-P", "-c", code, *words]
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, _AGAIN: "1"})


def find_second_names(store: Path) -> list[str]:
    """List the files of a store that have a second name outside of it: keys, log and bodies.

    Bodies have second names in the store's own backups.
    """
    root = store.absolute()
    found = [
        path
        for name in (PRIVATE, LOG)
        for path in _files_below(str(root / name))
        if _is_shared(path, anybody=True)
    ]
    names: dict[tuple[int, int], list[str]] = {}
    for folder in (*root.glob(f"{BODIES}*/"), *root.glob(f"{BACKUP}*/")):
        for path in _files_below(str(folder)):
            with contextlib.suppress(OSError):  # removed meanwhile
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    names.setdefault((status.st_dev, status.st_ino), []).append(path)
    return found + [paths[0] for paths in names.values() if _links(paths[0]) > len(paths)]


def _links(path: str) -> int:
    """Give how many names a file has; 0 if it is gone."""
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return 0


def _loaded() -> Iterator[str]:
    yield from set(loaded_files())
    yield sys.executable


def _site_folders() -> list[str]:
    """Give the folders that packages are installed into."""
    given = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    given += [path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))]
    return list(filter(os.path.isdir, dict.fromkeys(map(os.path.realpath, given))))


def _installed() -> Iterator[str]:
    """Yield the files of Playhead, of the packages that it requires, and of the interpreter's own modules."""
    sites = _site_folders()
    parts = {name.partition(".")[0] for name in list(sys.modules)} | _required(sites)
    for site in sites:
        with os.scandir(site) as entries:
            for entry in entries:
                if not entry.is_dir():
                    yield entry.path
                elif entry.name in parts:
                    yield from _files_below(entry.path)
    for folder in package_path:
        yield from _files_below(os.path.realpath(folder))
    for name in ("stdlib", "platstdlib"):
        yield from _files_below(os.path.realpath(sysconfig.get_path(name)), without=sites)
    for folder in {sysconfig.get_path("scripts"), sys.prefix}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            yield from (entry.path for entry in entries if not entry.is_dir())


def _required(sites: Iterable[str]) -> set[str]:
    """Give the entries of folders of packages that belong to Playhead or to what it requires, as far as that is known.

    Source: packaging.python.org, recording installed projects.
    """
    kept = {
        _normal(name.partition("-")[0]): f"{site}/{name}"
        for site in sites
        for name in os.listdir(site)
        if name.endswith(".dist-info")
    }
    wanted, parts = ["playhead"], {"__pycache__"}
    while wanted:
        name = wanted.pop()
        folder = kept.pop(name, None)
        if folder is None:  # it was looked at, or is not installed
            continue
        with contextlib.suppress(OSError):
            record = Path(folder, "RECORD").read_text(errors="surrogateescape")
            parts.update(line.partition("/")[0] for line in record.splitlines())
        with contextlib.suppress(OSError):
            required = Path(folder, "METADATA").read_text(errors="surrogateescape")
            pattern = _OUR_EXTRAS if name == "playhead" else _REQUIRES
            wanted += map(_normal, pattern.findall(required))
    return parts


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files_below(folder: str, without: Iterable[str] = ()) -> Iterator[str]:
    left = [folder]
    while left:
        try:
            entries = os.scandir(left.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.path
                elif not (
                    entry.name in _NEVER_LOADED
                    or entry.name.startswith(".")
                    or entry.path in without
                ):
                    left.append(entry.path)


def _is_shared(path: str, *, anybody: bool = False) -> bool:
    """Say whether a file has another name by which this user could write to it, or make itself able to."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
        return False
    return anybody or found.st_uid == os.geteuid() or os.access(path, os.W_OK)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait until no other process replaces files.

    A file that is replaced a second time would be another one for a run that began between the two.
    """
    descriptor = os.open(package_path[0], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: str) -> None:
    """Put a copy in the place of a file: the same content, owner, mode and times. Raises: EngineError."""
    made = f"{path}.playhead-{os.getpid()}"
    try:
        before = _copy(path, made)
        now = os.lstat(path)
        if (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns):
            os.rename(made, path)
        else:  # somebody installs something at this moment
            os.unlink(made)
    except OSError as error:
        if error.errno == errno.EROFS and not _is_mounted_writable(path):
            return
        _remove(made)
        raise EngineError(
            f"{path} has a second name, by which a command in a sandbox could change Playhead's own files, "
            f"and it cannot be replaced by a copy: {error.strerror}",
            "make its folder writable, or install Playhead without hard links, as with UV_LINK_MODE=copy",
        ) from error


def _copy(path: str, made: str) -> os.stat_result:
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(source)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        target = os.open(made, flags, 0o600)
        try:
            while piece := os.sendfile(target, source, None, _PIECE):
                del piece
            if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(target, found.st_uid, found.st_gid)
            os.fchmod(target, stat.S_IMODE(found.st_mode))
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(target)
        return found
    finally:
        os.close(source)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _is_mounted_writable(path: str) -> bool:
    """Say whether the file system of a file can be written to anywhere."""
    device = os.lstat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(
        mount.device == number and "ro" not in mount.options.split(",") for mount in read_mounts()
    )


def _is_stale() -> bool:
    """Say whether this process has mapped code of files that were replaced. Source: proc_pid_maps(5)."""
    ours = tuple(map(os.path.realpath, (sys.prefix, sys.base_prefix, *package_path)))
    try:
        with open(_MAPS, errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file if line.endswith(f"{_DELETED}\n")]
    except OSError:
        return False
    paths = (line.split(maxsplit=5)[5].removesuffix(_DELETED) for line in lines if " /" in line)
    return any(path.startswith(ours) and os.path.exists(path) for path in paths)


def _describe_installation() -> list[list[object]]:
    """Give what differs once something was installed."""
    described: list[list[object]] = []
    for folder in (*_site_folders(), os.path.realpath(sysconfig.get_path("stdlib"))):
        with contextlib.suppress(OSError):
            described.append([folder, os.stat(folder).st_mtime_ns])
    return described


def _stamp() -> Path:
    return Path(os.path.realpath(package_path[0]), _STAMP)


def _read_stamp() -> object:
    try:
        return json.loads(_stamp().read_text())
    except (OSError, ValueError):
        return None


def _write_stamp() -> None:
    """Say that the installation was looked at as it is; where that cannot be written it is looked at each time."""
    path = _stamp()
    made = f"{path}.{os.getpid()}"
    try:
        path.parent.mkdir(exist_ok=True)
        state = json.dumps(_describe_installation())
        with open(made, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(state)
        os.replace(made, path)
    except OSError:
        _remove(made)
