"""Mount the file system of a sandbox: the machine's own, except for everything that leads out of it.

1. What is mounted here stays here.
2. Folders with sockets of programs outside are empty; single sockets are nothing.
3. The resolver asks us, the machine's own names are loopback, and the system's roots hold our certificate too.
4. `/proc` shows the processes of the sandbox alone; any other is empty.
5. The kernel's settings can be read only, wherever they are mounted: a file of root's may be written by root without
   any capability, and what stands in `core_pattern` is run outside.
6. Message queues are those of the sandbox, wherever they are mounted.

Files stay as they are: what may be written outside may be written here.
"""

import os
from typing import Any

from ..kernel.syscalls import (
    MS_BIND,
    MS_NOATIME,
    MS_NODEV,
    MS_NODIRATIME,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_RELATIME,
    MS_REMOUNT,
    mount,
    unmount,
)
from .mountinfo import Mount, read_mounts

SHARED_MEMORY = "/dev/shm"
_STAGE = "/proc"
"""Where files of ours are written before they are put in the places of others: there on every machine, and hidden
by the new one afterwards."""
_PLAIN = MS_NOSUID | MS_NODEV
SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
"""Of `/proc`; what there is of them."""
_OF_THE_KERNEL = frozenset(
    (
        *("sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "bpf"),
        *("efivarfs", "pstore", "binfmt_misc", "fusectl", "selinuxfs", "smackfs", "nfsd"),
    )
)
"""Kinds of file systems that hold settings of the kernel's."""
_PRESERVED = (
    # of statvfs, of mount: what a mount from outside has, it cannot lose in here
    (os.ST_NOSUID, MS_NOSUID),
    (os.ST_NODEV, MS_NODEV),
    (os.ST_NOEXEC, MS_NOEXEC),
    (os.ST_NOATIME, MS_NOATIME),
    (os.ST_NODIRATIME, MS_NODIRATIME),
    (os.ST_RELATIME, MS_RELATIME),
)


def rearrange(plan: dict[str, Any]) -> None:
    """Change what this process and all that it makes see; in the first process of the new namespaces.

    plan: `hiding.Plan` as JSON types.
    Raises: OSError.
    """
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    for source, target in plan["bound"]:
        mount(source, target, flags=MS_BIND)
        _lock(target)
    shown = [(os.open(folder, os.O_PATH), folder) for folder in plan["shown"]]
    for folder in plan["hidden"]:
        shared = folder == SHARED_MEMORY
        mount(
            "tmpfs",
            folder,
            "tmpfs",
            _PLAIN,
            "size=50%,mode=1777" if shared else "size=64m,mode=755",
        )
    for folder in plan["made"]:
        os.makedirs(folder, 0o700, exist_ok=True)
    for path in plan["masked"]:
        mount("/dev/null", path, flags=MS_BIND)
    for held, folder in shown:
        os.makedirs(folder, 0o755, exist_ok=True)
        mount(f"/proc/self/fd/{held}", folder, flags=MS_BIND)
        _lock(folder)
        os.close(held)
    _write_files(plan["files"])
    mount("proc", "/proc", "proc", _PLAIN | MS_NOEXEC)
    if not plan[
        "wrapper"
    ]:  # it has its own, which the kernel allows where nothing is hidden in this one
        for path in (f"/proc/{name}" for name in SETTINGS):
            if os.path.exists(path):
                mount(path, path, flags=MS_BIND)
                _lock(path)
    for mounted in read_mounts():
        _defuse(mounted)


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
        _lock(target)
    unmount(_STAGE)


def _lock(target: str) -> None:
    """Have nothing be written through a mount."""
    has = os.statvfs(target).f_flag
    kept = sum(flag for seen, flag in _PRESERVED if has & seen)
    mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def _defuse(mounted: Mount) -> None:
    """Have a mount of the machine's lead to nobody outside."""
    point, kind = mounted.point, mounted.kind
    below_sys = f"{point}/".startswith("/sys/")
    if kind not in ("mqueue", "proc", *_OF_THE_KERNEL) and not below_sys:
        return
    try:
        os.stat(point)
    except OSError:  # it is hidden, or closed to this user: the command cannot see it either
        return
    if kind == "mqueue":
        mount("mqueue", point, "mqueue", _PLAIN | MS_NOEXEC)
    elif kind != "proc":
        _lock(point)
    elif not f"{point}/".startswith("/proc/"):
        mount("tmpfs", point, "tmpfs", _PLAIN | MS_RDONLY, "size=4k,mode=755")
