"""Servers of the machine for `capture_checks`: a database and a server of SSH, as any user runs them; none where the machine lacks it."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from . import machine
from .needs import has

_PATIENCE_S = 30.0
_SSHD = "/usr/sbin/sshd"


class Servers(NamedTuple):
    """Their ports; 0 of one that is not there."""

    database: int = 0
    ssh: int = 0


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Run them meanwhile; what they need is in a folder."""
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_database(folder)) if has("initdb") else 0
        ssh = stack.enter_context(_ssh(folder)) if os.access(_SSHD, os.X_OK) else 0
        yield Servers(database, ssh)


@contextlib.contextmanager
def _database(folder: Path) -> Iterator[int]:
    data, port = folder / "database", _free_port()
    data.mkdir(mode=0o700)
    # A database of root's refuses to begin.
    who = {"user": machine.SOMEBODY, "group": machine.SOMEBODY} if os.geteuid() == 0 else {}
    if who:
        os.chown(data, machine.SOMEBODY, machine.SOMEBODY)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    made = ["initdb", "-D", str(data), "-A", "trust", "-U", "agent", "--no-sync"]
    subprocess.run(made, check=True, env=_plain(data), **who, **quiet)  # type: ignore[call-overload]
    words = ["postgres", "-D", str(data), "-k", str(data), "-p", str(port), "-h", "127.0.0.1"]
    with _running([*words, "-F"], port, _plain(data), who):
        yield port


def _plain(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C"}


@contextlib.contextmanager
def _ssh(folder: Path) -> Iterator[int]:
    place, port = folder / "ssh", _free_port()
    place.mkdir(mode=0o700)
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(words, check=True)
    shutil.copy(place / "user.pub", place / "authorized")
    settings = place / "settings"
    settings.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\n"
        f"PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"
    )
    with contextlib.suppress(OSError):
        os.makedirs("/run/sshd", exist_ok=True)
    with _running([_SSHD, "-D", "-e", "-f", str(settings)], port, dict(os.environ), {}):
        yield port


@contextlib.contextmanager
def _running(
    words: list[str], port: int, environ: dict[str, str], who: dict[str, int]
) -> Iterator[None]:
    """Run a server, from when it listens."""
    started = subprocess.Popen(
        words,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **who,  # type: ignore[call-overload]
    )
    try:
        until = time.monotonic() + _PATIENCE_S
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if started.poll() is not None or time.monotonic() > until:
                raise OSError(f"{words[0]} does not begin: {started.communicate(None, 5)[1]!r}")
            time.sleep(0.02)
        yield
    finally:
        started.terminate()
        started.communicate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def user_name() -> str:
    """Give the name of this user; its number where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
