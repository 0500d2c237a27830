"""The devices of a sandbox: those that any program needs, and no others.

A list of what is dangerous is never whole (consoles, virtual machines, FUSE, what a driver brings); so `/dev` is a folder
of our own. Devices of the machine that are elsewhere cannot be opened: no mount but this one has any.
"""

import contextlib
import glob
import os
import stat
from collections.abc import Iterator

from ..kernel.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, mount
from .mountinfo import is_in_reach, read_mounts
from .protective_mounts import restrict

FOLDER = "/dev"
CLOSED = "/dev/.closed"
"""A socket that nobody will ever listen at, and nobody can open: it stands in the place of named pipes."""
_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_COMPUTING = ("dri/renderD*", "kfd", "nvidia[0-9]*", "nvidiactl", "nvidia-uvm*", "nvidia-caps/*")
"""Graphics cards as far as programs compute with them: a local model is no way out."""
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_WITHOUT = frozenset(
    ("proc", "sysfs", "cgroup", "cgroup2", "mqueue", "securityfs", "debugfs", "tracefs")
)
"""Kinds of file systems that hold no device, or are dealt with elsewhere. Terminals are devices: another machine's are
mounted in the folders of containers."""


def make_devices() -> None:
    """Mount a folder of devices of our own; terminals that are opened in it are the sandbox's. Raises: OSError."""
    held = {name: os.open(path, os.O_PATH | os.O_CLOEXEC) for name, path in _wanted()}
    terminal = _find_terminal()
    mount("tmpfs", FOLDER, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,nr_inodes=1024,mode=755")
    for name, descriptor in held.items():
        _place(name, descriptor)
        os.close(descriptor)
    for folder in ("shm", "mqueue", "pts"):
        os.mkdir(f"{FOLDER}/{folder}")
    mount("tmpfs", f"{FOLDER}/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=50%,mode=1777")
    options = "newinstance,ptmxmode=0666,mode=620"
    mount("devpts", f"{FOLDER}/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
    os.mknod(CLOSED, stat.S_IFSOCK | 0o600)
    for name, target in _LINKS.items():
        os.symlink(target, f"{FOLDER}/{name}")
    if terminal is not None:
        # The command's own terminal, which is another machine's here, by a name that programs look for.
        _place("console", terminal)
        os.close(terminal)


def close_others() -> None:
    """Have no device of the machine be opened anywhere else. Raises: OSError."""
    for mounted in read_mounts():
        point = mounted.point
        if mounted.kind in _WITHOUT or f"{point}/".startswith(f"{FOLDER}/") or mounted.no_devices:
            continue
        if is_in_reach(mounted):
            restrict(point, MS_NODEV)


def _wanted() -> Iterator[tuple[str, str]]:
    for name in _NODES:
        if os.path.exists(f"{FOLDER}/{name}"):
            yield name, f"{FOLDER}/{name}"
    for pattern in _COMPUTING:
        for path in glob.iglob(f"{FOLDER}/{pattern}"):
            yield os.path.relpath(path, FOLDER), path


def _place(name: str, descriptor: int) -> None:
    path = f"{FOLDER}/{name}"
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    with open(path, "x"):
        pass
    mount(f"/proc/self/fd/{descriptor}", path, flags=MS_BIND)


def _find_terminal() -> int | None:
    """Open the terminal that the command was started at, if any."""
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            return os.open(os.ttyname(descriptor), os.O_PATH | os.O_CLOEXEC)
    return None
