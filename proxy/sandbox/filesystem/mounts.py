"""Mount the file system of a sandbox: the machine's own, except for everything that leads out of it.

1. What is mounted here stays here. Copies take the place of working folders (`mount_folder_copies`).
2. What the proxy itself depends on is a copy, can be read only, or cannot be moved (`layers`).
3. Devices are those that any program needs (`devices`).
4. Folders with sockets of programs outside are empty; single sockets are nothing.
5. The resolver asks us, the machine's own names are loopback, and the system's roots hold our certificate too.
6. `/proc` shows the processes of the sandbox alone; any other is empty.
7. The kernel's settings can be read only, wherever they are mounted: a file of root's may be written by root without
   any capability, and what stands in `core_pattern` is run outside.
8. Message queues are those of the sandbox, wherever they are mounted.

All other files stay as they are: what may be written outside may be written here.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any

from ..kernel.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    mount,
    unmount,
)
from .devices import CLOSED, close_others, make_devices
from .mount_folder_copies import mount_copies
from .mountinfo import Mount, is_in_reach, read_mounts
from .protective_mounts import cover, hold, lock, lock_all, pin

SHARED_MEMORY = "/dev/shm"
_STAGE = "/proc"
"""Where files of ours are written before they are put in the places of others: there on every machine, and hidden
by the new one afterwards."""
_PLAIN = MS_NOSUID | MS_NODEV
_OF_THE_KERNEL = frozenset(
    (
        *("sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "bpf"),
        *("efivarfs", "pstore", "binfmt_misc", "fusectl", "selinuxfs", "smackfs", "nfsd"),
    )
)
"""Kinds of file systems that hold settings of the kernel's."""


def rearrange(plan: dict[str, Any]) -> list[str]:
    """Change what this process and all that it makes see; in the first process of the new namespaces.

    plan: `masking.Plan` as JSON types.
    Gives the folders that were to be copies, and can be read only.
    Raises: OSError.
    """
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    protection = plan["protection"]
    # What is real stays so where copies take the place of folders; what is hidden and protected below is so on the copies.
    let_in = hold(filter(os.path.exists, plan["let_in"]))
    shown = hold(plan["shown"])
    bound = hold(dict.fromkeys(source for source, _ in plan["bound"]))
    mount_copies(plan["copies"])
    pin(protection["pinned"])
    kept = hold(protection["kept"])
    make_devices()
    locked = cover(protection["overlaid"], kept)
    for path in protection["locked"]:
        mount(path, path, flags=MS_BIND | MS_REC)
        lock_all(path)
    for source, target in plan["bound"]:
        mount(f"/proc/self/fd/{bound[source]}", target, flags=MS_BIND)
        lock(target)
    for held in bound.values():
        os.close(held)
    for folder in plan["hidden"]:
        size = "50%" if folder == SHARED_MEMORY else "64m"
        # tmux, SSH and others refuse a folder for their sockets that is open to more than its user.
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        mount("tmpfs", folder, "tmpfs", _PLAIN, f"size={size},mode={mode:o}")
    for folder in plan["made"]:
        os.makedirs(folder, 0o700, exist_ok=True)
    for path in plan["masked"]:
        # It went away meanwhile, or stands in a folder of somebody's that is closed to all of this user namespace. So no
        # user can keep others from a sandbox by what is put into a folder of their own.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
            mount(CLOSED if is_pipe else "/dev/null", path, flags=MS_BIND)
    os.unlink(CLOSED)
    for folder, held in shown.items():
        os.makedirs(folder, 0o755, exist_ok=True)
        mount(f"/proc/self/fd/{held}", folder, flags=MS_BIND)
        lock(folder)
        os.close(held)
    _let_in(let_in)
    _write_files(plan["files"])
    mount("proc", "/proc", "proc", _PLAIN | MS_NOEXEC)
    # bubblewrap has its own, which the kernel allows where nothing is hidden in this one.
    if not plan["wrapper"]:
        for path in find_settings():
            mount(path, path, flags=MS_BIND)
            lock(path)
    close_others()
    for mounted in read_mounts():
        _defuse(mounted)
    if protection["root_locked"]:
        # In the root folder of a chroot nothing is mounted: what is changed there is compared afterwards.
        with contextlib.suppress(OSError):
            lock("/")
    return locked


def find_settings() -> Iterator[str]:
    """Yield what of `/proc` is the kernel's, and may be written by anybody."""
    for name in sorted(os.listdir("/proc")):
        path = f"/proc/{name}"
        if name.isdigit() or os.path.islink(path):
            continue
        with contextlib.suppress(OSError):
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode) or mode & 0o222:
                yield path


def _let_in(sockets: dict[str, int]) -> None:
    """Have sockets stand where they did, whatever is hidden or masked there."""
    for path, held in sockets.items():
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(path, "x"):
            pass
        mount(f"/proc/self/fd/{held}", path, flags=MS_BIND)
        os.close(held)


def _write_files(files: dict[str, str]) -> None:
    mount("tmpfs", _STAGE, "tmpfs", _PLAIN, "size=1m,mode=755")
    for index, (target, text) in enumerate(files.items()):
        source = f"{_STAGE}/{index}"
        with open(source, "x") as file:
            file.write(text)
        os.chmod(source, 0o644)
        if not os.path.exists(target):
            # A link into a folder that is hidden now.
            os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
            with open(target, "x"):
                pass
        try:
            mount(source, target, flags=MS_BIND)
        except FileNotFoundError:
            # A file that is gone is mounted there, over which nothing can be. Whatever resolver or address it names
            # leads to us all the same.
            continue
        lock(target)
    unmount(_STAGE)


def _defuse(mounted: Mount) -> None:
    """Have a mount of the machine's lead to nobody outside."""
    point, kind = mounted.point, mounted.kind
    below_sys = f"{point}/".startswith("/sys/")
    if kind not in ("mqueue", "proc", *_OF_THE_KERNEL) and not below_sys:
        return
    if not is_in_reach(mounted):  # the command cannot reach it either
        return
    if kind == "mqueue":
        mount("mqueue", point, "mqueue", _PLAIN | MS_NOEXEC)
    elif kind != "proc":
        lock(point)
    elif not f"{point}/".startswith("/proc/"):
        mount("tmpfs", point, "tmpfs", _PLAIN | MS_RDONLY, "size=4k,mode=755")
