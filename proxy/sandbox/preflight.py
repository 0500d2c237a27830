"""Explain why a sandbox cannot be created on this machine, and the remedies."""

import errno
import platform
import subprocess
import sys
from pathlib import Path

from ..errors import EngineError
from .kernel.namespaces import ALL
from .kernel.seccomp import MACHINES

_PATIENCE_S = 20.0
_WAYS = "or run in Docker (docs/sandbox.md), or outside a sandbox with --no-sandbox"

_SWITCHES = (
    # file, its value where it is off, what turns it on
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def require_system(system: str = sys.platform, machine: str = platform.machine()) -> None:
    """Raise EngineError on a system that has no namespaces, or whose system calls we do not know."""
    if system != "linux":
        raise EngineError(
            f"no sandbox can be made: it needs Linux, and this is {system}",
            _WAYS.removeprefix("or "),
        )
    if machine not in MACHINES:
        raise EngineError(
            f"no sandbox can be made: the system calls of {machine} are not known, only those of"
            f" {' and '.join(MACHINES)}",
            _WAYS.removeprefix("or "),
        )


def works() -> bool:
    """Say whether namespaces can be made here, by making some; takes 20 ms."""
    try:
        require_system()
    except EngineError:
        return False
    code = f"import os; os.unshare({ALL})"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    return done.returncode == 0


def explain(step: str, number: int, text: str) -> EngineError:
    """Make an error of what failed inside.

    step: as `init` names it.
    number: the error's, as in `errno`.
    """
    if step != "user namespaces" or number not in (errno.EPERM, errno.ENOSPC, errno.EACCES):
        return EngineError(
            f"the sandbox cannot be made: {text}",
            "look for restrictions of this machine or container, " + _WAYS,
        )
    switch = find_switch()
    if switch is None:
        return EngineError(
            f"no sandbox can be made: user namespaces are refused here ({text})",
            "in a chroot the kernel refuses them: start outside of it, or change the root with pivot_root; where a "
            f"container's seccomp or AppArmor profile forbids them, allow them there, {_WAYS}",
        )
    file, command = switch
    return EngineError(
        f"no sandbox can be made: user namespaces are off ({file})", f"`{command}` as root, {_WAYS}"
    )


def find_switch(root: Path = Path("/")) -> tuple[str, str] | None:
    """Find the setting that turns user namespaces off: its file, and the command that turns them on."""
    for file, off, command in _SWITCHES:
        try:
            value = (root / file.lstrip("/")).read_text().strip()
        except OSError:
            continue
        if value == off:
            return file, command
    return None
