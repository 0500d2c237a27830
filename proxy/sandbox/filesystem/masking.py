"""Plan the masking of files and folders: what is hidden from the command, and its replacement.

A network namespace does not cover sockets that are reached by a path: behind `/run/docker.sock` there is a program
with a network. What is known to hold such sockets is hidden: `/run`, the user's runtime folder, the SSH and GPG
agents, Docker, D-Bus, X11, tmux and editors, which run what they are told. So is shared memory, which programs
outside may read, and the store with its archive: a tape that a command can write to proves nothing. A folder that the command needs
for other things (it holds the working folder, the home folder, the program) stays, and the sockets that stand in it
are hidden one by one. What is mounted at several places is hidden at all of them.

Sockets at which somebody listens wherever else are nothing too, and named pipes that somebody has open or that are where the command
works, but for those that a live rule names.
"""

import contextlib
import glob
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ....store.paths import BODIES, LOG, PRIVATE
from .mountinfo import find_again, read_mounts
from .mounts import SHARED_MEMORY
from .protection import Protection, make_protection
from .socket_reachability import find_pipes, find_reachable

RESOLVER = "127.0.0.53"
"""Any address would do: all lead to the proxy's answers."""
_RESOLV_CONF = f"nameserver {RESOLVER}\noptions timeout:2 attempts:2\n"
ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/lib/ssl/cert.pem",
)
"""Where systems keep their roots, for clients that read no variable."""
_FOLDERS = ("/run", "/var/run", "/tmp/.X11-unix", SHARED_MEMORY)
_OF_A_USER = ("/tmp/ssh-*", "/tmp/tmux-{uid}", "/tmp/emacs{uid}", "/tmp/nvim.*")
"""Folders that hold nothing but sockets; those of other users stay, and cannot be entered."""
_OF_A_HOME = (".ssh", ".ssh/agent", ".docker", ".docker/*", ".colima/*", ".rd", ".lima/*/sock")
"""Folders with sockets among other things; SSH keeps those of open connections to other machines there."""
_OF_CONTAINERS = (
    *("/var/lib/docker.sock", "/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket"),
    "/var/snap/lxd/common/lxd/unix.socket",
)
_PATHS = ("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "TMUX", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE")
"""Variables that hold a path, some with more behind it."""
_URLS = ("DOCKER_HOST", "CONTAINER_HOST", "KITTY_LISTEN_ON")
"""Variables that hold `unix:` and a path, or something else."""
ARCHIVED = ("steps", "exchanges", "runs", "events", "messages", "bodies", "folders", "contents")
"""The folders of an archive (`store/archive/schema.py`, which needs pyarrow)."""
_MOST_LOOKS = 20_000
"""Entries that are looked at for sockets in a folder that cannot be hidden."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to mount; paths are absolute and hold no links."""

    hidden: tuple[str, ...]
    """Folders to be empty, each before what is in it."""
    shown: tuple[str, ...]
    """Folders in those, or elsewhere, that are seen as they are, and cannot be written to."""
    made: tuple[str, ...]
    """Folders in those that are there nevertheless, and empty."""
    masked: tuple[str, ...]
    """Sockets and named pipes to be nothing; those that are not there any more do not matter."""
    bound: tuple[tuple[str, str], ...]
    """Files of ours, and those in whose place they stand."""
    files: Mapping[str, str]
    """Texts by the file in whose place they stand."""
    let_in: tuple[str, ...] = ()
    """Sockets that a live rule names: they stand where they did."""
    protection: Protection = field(default_factory=Protection)
    """What the proxy itself depends on."""
    copies: tuple[Mapping[str, Any], ...] = ()
    """Mounts that put copies in the place of working folders."""


def make_plan(
    environ: Mapping[str, str],
    command: str,
    *,
    bundle: Path,
    store: Path,
    public: Path,
    archives: Iterable[Path] = (),
    files: Iterable[Path] = (),
    shared: Iterable[Path] = (),
    fixed: Iterable[Path] = (),
    let_in: Iterable[str] = (),
    pipes: Iterable[str] = (),
    copied: Iterable[Path] = (),
    copies: Iterable[Mapping[str, Any]] = (),
    closed: Iterable[str] = (),
) -> Plan:
    """Decide what to hide from a command that is run with these variables, and what to protect from it.

    bundle: roots with ours among them, in place of the system's.
    public: folder of the CA's public files, in the store or elsewhere.
    archives: folders of archived runs, there or not.
    files: those of the configuration.
    shared: folders that the command writes to for us.
    fixed: folders that may be written to, and have to stay where they are.
    let_in: path sockets that a live rule names.
    pipes: named pipes that a program outside may open, besides those that one has open.
    copied: folders that it is to see as copies, and cannot write to.
    copies: mounts that put copies in the place of working folders.
    closed: further folders to be hidden.
    """
    let_in = tuple(dict.fromkeys(map(os.path.realpath, let_in)))
    used = [public, bundle, *_used(environ, command)]
    kept = {*used, *(path.resolve() for path in used)}
    hidden: list[Path] = []
    masked: list[Path] = []
    for folder in _everywhere(_folders(environ)):
        if any(one.is_relative_to(folder) for one in kept):
            masked += _sockets_in(folder)
        elif not _below(folder, hidden):
            hidden.append(folder)
    masked += _everywhere(_socket_paths(environ))
    archives = list(archives)
    recorded = [*_store(store, public, kept), *_archived(archives, kept)]
    hidden += [folder for folder in _everywhere(recorded) if not _below(folder, hidden)]
    hidden += [path for path in map(Path, closed) if not _below(path, hidden) and _stays(path)]
    runtime = [path.resolve() for path in _runtime_folders(environ)]
    named = tuple(map(str, hidden)), tuple(map(str, masked))
    masked += map(Path, find_reachable(*named))
    masked += _everywhere(map(Path, {*pipes, *map(os.path.realpath, find_pipes())}))
    working = [*shared, *_working(environ)]
    folders = [store, public, *archives]
    protection = make_protection(working, files=files, folders=folders, fixed=fixed, copied=copied)
    return Plan(
        hidden=tuple(map(str, hidden)),
        shown=(str(public.resolve()),) if os.path.isdir(public) else (),
        made=tuple(str(path) for path in runtime if _below(path, hidden)),
        masked=tuple(
            str(path)
            for path in dict.fromkeys(masked)
            if os.path.exists(path) and not _below(path, hidden) and str(path) not in let_in
        ),
        bound=tuple((str(bundle.resolve()), target) for target in _system_roots(hidden)),
        files=dict(_files(hidden)),
        let_in=let_in,
        protection=protection,
        copies=tuple(copies),
    )


def _stays(path: Path) -> bool:
    """Say whether a folder is none of those that are made anew: there it is hidden already."""
    return not path.is_relative_to("/dev") and not path.is_relative_to("/proc")


def _working(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that the command keeps its own files in."""
    with contextlib.suppress(FileNotFoundError):  # it was removed
        yield Path.cwd()
    yield Path(environ.get("HOME") or "/root")
    yield Path(environ.get("TMPDIR") or "/tmp")
    yield Path(tempfile.gettempdir())


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that hold sockets and nothing that is needed."""
    yield from map(Path, _FOLDERS)
    yield from _runtime_folders(environ)
    for pattern in _OF_A_USER:
        for found in glob.iglob(pattern.format(uid=os.getuid())):
            if os.access(found, os.X_OK):
                yield Path(found)


def _everywhere(paths: Iterable[Path]) -> list[Path]:
    """Give what there is of these, and wherever it is mounted again; what holds others first."""
    mounts = read_mounts()
    found: set[str] = set()
    for path in {path.resolve() for path in paths if os.path.exists(path)}:
        places = [str(path)]
        # File systems in memory that stand in it, which are mounted again on their own.
        places += [m.point for m in mounts if m.kind == "tmpfs" and path in Path(m.point).parents]
        found.add(str(path))
        for place in places:
            found.update(find_again(place, mounts))
    return sorted(path for path in map(Path, found) if os.path.exists(path))


def _store(store: Path, public: Path, kept: set[Path]) -> list[Path]:
    """Give what of the store is to be hidden: all of it, where the command needs nothing else of it."""
    store, public = store.resolve(), public.resolve()
    needed = {one for one in kept if not one.is_relative_to(public)}
    if not any(one.is_relative_to(store) for one in needed):
        return [store]
    return [
        path
        for path in store.glob("*/")
        if path.name in (PRIVATE, LOG) or path.name.startswith(BODIES)
    ]


def _archived(archives: Iterable[Path], kept: set[Path]) -> Iterator[Path]:
    """Yield what of archives is to be hidden: all of each, or its own folders where the command needs what else is there."""

    def is_needed(folder: Path) -> bool:
        return any(one.is_relative_to(folder) for one in kept)

    for folder in (archive.resolve() for archive in archives):
        inner = [folder / name for name in ARCHIVED]
        yield from (one for one in (inner if is_needed(folder) else [folder]) if not is_needed(one))


def _below(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder in path.parents for folder in folders)


def _used(environ: Mapping[str, str], command: str) -> Iterator[Path]:
    """Yield places that no command can do without."""
    yield from _working(environ)
    yield Path(sys.executable)
    # Some systems keep their programs below /run.
    for folder in (environ.get("PATH") or os.defpath).split(os.pathsep):
        if os.path.isabs(folder):
            yield Path(folder)
    found = shutil.which(command, path=environ.get("PATH"))
    if found is not None:
        yield Path(found).absolute()


def _runtime_folders(environ: Mapping[str, str]) -> list[Path]:
    given = environ.get("XDG_RUNTIME_DIR", "")
    return [Path(given)] if os.path.isabs(given) else []


def _socket_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the sockets that variables name."""
    for name in _PATHS:
        if path := re.split("[:,]", environ.get(name, ""), maxsplit=1)[0]:
            yield Path(path)
    for name in _URLS:
        url = urlsplit(environ.get(name, ""))
        if url.scheme == "unix":
            yield Path(url.path)
    for address in environ.get("DBUS_SESSION_BUS_ADDRESS", "").split(";"):
        path = address.partition("path=")[2].partition(",")[0]
        if path:
            yield Path(path)
    yield from map(Path, _OF_CONTAINERS)
    home = environ.get("HOME") or "/root"
    folders = [environ.get("GNUPGHOME") or f"{home}/.gnupg"]
    for pattern in _OF_A_HOME:
        folders += glob.glob(pattern, root_dir=home)
    for folder in folders:
        yield from _sockets_in(Path(home, folder), deep=False)


def _sockets_in(folder: Path, *, deep: bool = True) -> list[Path]:
    """List the sockets in a folder, as far as can be seen."""
    found: list[Path] = []
    looks = 0
    for place, folders, names in os.walk(folder):
        if not deep:
            folders.clear()
        for name in names:
            looks += 1
            path = Path(place, name)
            try:
                if stat.S_ISSOCK(path.lstat().st_mode):
                    found.append(path)
            except OSError:
                continue
        if looks > _MOST_LOOKS:
            break
    return found


def _system_roots(hidden: list[Path]) -> list[str]:
    real = (Path(path).resolve() for path in ROOTS if os.path.isfile(path))
    return list(dict.fromkeys(str(path) for path in real if not _below(path, hidden)))


def _files(hidden: list[Path]) -> Iterator[tuple[str, str]]:
    hosts = f"127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 {socket.gethostname()}\n"
    for path, text in (("/etc/resolv.conf", _RESOLV_CONF), ("/etc/hosts", hosts)):
        target = Path(path).resolve()
        # A file that is missing is not made on the machine; in a hidden folder it is.
        if os.path.exists(target) or _below(target, hidden):
            yield str(target), text
