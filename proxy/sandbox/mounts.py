"""The file system as a sandbox sees it: the machine's own, but for what leads out of it.

1. What is mounted here stays here.
2. Folders with sockets of programs outside are empty; single sockets are nothing.
3. The resolver asks us, the machine's own names are loopback, and the system's roots hold our certificate too.
4. `/proc` shows the processes of the sandbox alone.

Files stay as they are: what may be written outside may be written here.
"""

import os
from typing import Any

from .kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    unmount,
)

_STAGE = "/proc"
"""Where files of ours are written before they are put in the places of others: there on every machine, and hidden
by the new one afterwards."""
_PLAIN = MS_NOSUID | MS_NODEV


def rearrange(plan: dict[str, Any]) -> None:
    """Change what this process and all that it makes see; in the first process of the new namespaces.

    plan: `hiding.Plan` as JSON types.
    Raises: OSError.
    """
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    for folder in plan["hidden"]:
        mount("tmpfs", folder, "tmpfs", _PLAIN, "size=64m,mode=755")
    for folder in plan["made"]:
        os.makedirs(folder, 0o700, exist_ok=True)
    for path in plan["masked"]:
        mount("/dev/null", path, flags=MS_BIND)
    for source, target in plan["bound"]:
        mount(source, target, flags=MS_BIND)
        _lock(target)
    _write_files(plan["files"])
    mount("proc", "/proc", "proc", _PLAIN | MS_NOEXEC)


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
        mount(source, target, flags=MS_BIND)
        _lock(target)
    unmount(_STAGE)


def _lock(target: str) -> None:
    mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | _PLAIN)
