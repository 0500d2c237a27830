"""Run a command outside of a sandbox on copies of its folders: a process that mounts them, and then becomes the command.

The launcher starts this file as a process; it is also how an overlay is tried. Only modules that are quick to import are used here.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..processes.unstartable_command import find_cause, name_program
from .channel import read_variables
from .filesystem.mount_folder_copies import PLAIN, mount_copies
from .filesystem.protective_mounts import lock
from .kernel.syscalls import MS_PRIVATE, MS_REC, mount

START = (
    "-IS",
    "-c",
    "import sys; package = sys.modules['playhead'] = type(sys)('playhead'); package.__path__ = sys.argv[1:2];"
    "from playhead.proxy.sandbox.run_on_folder_copies import main; sys.exit(main(sys.argv))",
)
"""What an interpreter is to run, with the folder of the package, then what `main` takes."""
_NOT_MADE = 125
_NOT_FOUND = 127


def main(arguments: list[str]) -> int:
    """Enter namespaces of our own and mount copies; then run a command, or end.

    arguments: `-c`, the folder of the package, `user` or `root`, JSON of `mounts` and `hidden`, the descriptor of the command's
        variables as `channel.write_variables` gave it, or -1 for those that are inherited, then the command.
    Writes what failed to stderr, as an error number and a text.
    """
    of_user = arguments[2] == "user"
    given = json.loads(arguments[3])
    variables, command = int(arguments[4]), arguments[5:]
    try:
        _enter(of_user=of_user)
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        working = os.getcwd()
        mount_copies(given["mounts"], of_user=of_user)
        for folder in given["hidden"]:
            mount("tmpfs", folder, "tmpfs", PLAIN, "size=4k,mode=700")
            lock(folder)
        os.chdir(working)
        if not command:
            _try_writing(given["mounts"])
            return 0
    except OSError as error:
        text = os.strerror(error.errno) if error.errno else str(error)
        sys.stderr.write(f"{error.errno} {text}\n")
        return _NOT_MADE
    return _execute(command, os.environb if variables < 0 else read_variables(variables))


def _execute(command: list[str], environ: Mapping[bytes, bytes]) -> int:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environ)
    except OSError as error:
        told = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
        why, hint = find_cause(command, error.errno or 0, error.strerror or str(error), told)
        sys.stderr.write(f"playhead: cannot start {name_program(command)!r}: {why}\n")
        sys.stderr.write(f"  hint: {hint}\n" if hint else "")
        return _NOT_FOUND


def _enter(*, of_user: bool) -> None:
    if not of_user:
        os.unshare(os.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    # Source: user_namespaces(7).
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _try_writing(rows: Iterable[Mapping[str, Any]]) -> None:
    """Find what only shows at the first write: a layer that can be mounted, and not written to."""
    for row in rows:
        if not os.access(row["target"], os.W_OK):  # nor could it be written to without us
            continue
        place = os.path.join(row["target"], ".playhead-try")
        os.mkdir(place)
        os.rmdir(place)
