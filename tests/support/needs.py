"""What tests need of the machine: each tool is tried for exactly as much as they ask of it.

A test calls `need` before it uses a tool, and is skipped where the tool is missing; the reason names the tool. A test
that can do less without a tool asks `has`. No other module of the tests looks for a program.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from playhead.proxy.sandbox import preflight
from playhead.proxy.sandbox.kernel.seccomp_notifications import can_watch

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Tool:
    """A program, and the part of it that tests use.

    programs: names, of which the first that is found is the tool.
    trial: arguments with which the program ends with 0 where it can do its part; none where to be found is enough.
    stdin: the text that the trial reads.
    prints: a text that the trial has to print.
    hint: how the tool is installed.
    """

    programs: tuple[str, ...]
    trial: tuple[str, ...] = ()
    stdin: str = ""
    prints: str = ""
    hint: str = ""


_COMPILERS = ("cc", "gcc", "clang")
_COMPILE = ("-x", "c", "-pthread", "-o", "/dev/null", "-")
_C = "#include <pthread.h>\n#include <stdio.h>\nint main(void) { return 0; }\n"
_INSTALL_C = "apt-get install gcc libc6-dev"
_UNSHARE = ("--map-root-user", "--fork", "--kill-child")

TOOLS = {
    "bubblewrap": Tool(("bwrap",), ("--bind", "/", "/", "true"), hint="apt-get install bubblewrap"),
    "a C compiler": Tool(_COMPILERS, _COMPILE, _C, hint=_INSTALL_C),
    "a C compiler that links statically": Tool(_COMPILERS, ("-static", *_COMPILE), _C),
    "a C compiler with the address sanitizer": Tool(
        _COMPILERS, ("-fsanitize=address", *_COMPILE), _C
    ),
    "Chromium": Tool(
        ("chromium", "chromium-browser"), ("--version",), hint="apt-get install chromium"
    ),
    "strace": Tool(("strace",), ("true",), hint="apt-get install strace"),
    "curl": Tool(
        ("curl",),
        ("--http2", "--suppress-connect-headers", "--version"),
        hint="apt-get install curl",
    ),
    "nginx": Tool(("nginx",), ("-V",), prints="http_v2_module", hint="apt-get install nginx-light"),
    "node": Tool(("node",), ("-e", "fetch.name"), hint="apt-get install nodejs"),
    "a node that reads .env files": Tool(("node",), ("-e", "require('util').parseEnv('')")),
    "playwright-core": Tool(
        ("node",),
        ("-e", "require('playwright-core')"),
        hint="npm install playwright-core, NODE_PATH",
    ),
    "axe-core": Tool(
        ("node",), ("-e", "require('axe-core')"), hint="npm install axe-core, NODE_PATH"
    ),
    "a docker daemon": Tool(("docker",), ("image", "inspect", "busybox")),
    "Node 20": Tool(("node",), ("--version",), prints="v20."),
    "perl with LWP": Tool(
        ("perl",), ("-MLWP::UserAgent", "-e", "1"), hint="apt-get install libwww-perl"
    ),
    "tinyproxy": Tool(("tinyproxy",), hint="apt-get install tinyproxy-bin"),
    "private mounts": Tool(
        ("unshare",), ("--mount", *_UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt")
    ),
    "private process ids": Tool(("unshare",), ("--pid", "--mount-proc", *_UNSHARE, "true")),
}
"""Tools of which more is asked than to be found; any other name is that of a program."""


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def _has_route() -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(("192.0.2.1", 9)) == 0


def _has_filter() -> bool:
    """Say whether a process may have a filter that reports its calls, and be looked into."""
    code = "from playhead.proxy.capture.connect_filter import install; install(may_forbid=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if done.returncode or not can_watch():
        return False
    with contextlib.suppress(OSError), open("/proc/sys/kernel/yama/ptrace_scope") as file:
        return os.geteuid() == 0 or file.read().strip() == "0"
    return True


FEATURES: dict[str, Callable[[], bool]] = {
    "a filter of connect": _has_filter,
    "a route off this machine": _has_route,
    "a sandbox": preflight.works,
    "IPv6": _has_ipv6,
    "root": lambda: os.geteuid() == 0,
    "a server of SSH": lambda: os.access("/usr/sbin/sshd", os.X_OK),
}
"""What no program stands for."""


def need(*names: str) -> str:
    """Skip the test unless this machine has all of these; give the path of the first one's program.

    names: of `TOOLS`, of `FEATURES`, or of programs.
    """
    for name in names:
        if not has(name):
            hint = TOOLS[name].hint if name in TOOLS else ""
            pytest.skip(f"needs {name}, which this machine does not have{hint and f' ({hint})'}")
    return _find(names[0]) if names and names[0] not in FEATURES else ""


@cache
def has(name: str) -> bool:
    """Say whether this machine has a tool, a feature or a program; as in `need`."""
    if name in FEATURES:
        return FEATURES[name]()
    tool, program = TOOLS.get(name, Tool((name,))), _find(name)
    if not program or not tool.trial:
        return bool(program)
    try:
        done = subprocess.run(
            [program, *tool.trial],
            input=tool.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and tool.prints in done.stdout


class Outcomes[Outcome](dict[str, Outcome]):
    """What came of clients, by name; a test that looks for one whose tool is missing is skipped."""

    def __init__(self, outcomes: Mapping[str, Outcome], tool: str) -> None:
        """Take what there is.

        tool: as in `need`; without it there is nothing of the clients that use it.
        """
        super().__init__(outcomes)
        self._tool = tool

    def __missing__(self, name: str) -> Outcome:
        need(self._tool)
        raise KeyError(name)


@cache
def _find(name: str) -> str:
    # What is in these folders is not on the path of an ordinary user.
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"))
    programs = TOOLS[name].programs if name in TOOLS else (name,)
    return next(filter(None, (shutil.which(program, path=path) for program in programs)), "")
