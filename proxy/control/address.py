"""The address and token of a process's control API: files in `<store>/private`.

`control/<pid>.json` says where a process listens; it never holds the token. `control-token` is the token of the
store, made once, so that whoever may read the folder may ask every proxy of the store. Both are 0600.
"""

import contextlib
import json
import os
import secrets
import string
from dataclasses import dataclass
from pathlib import Path

import psutil

from ...config import Config
from ...store import make_own_folder, require_own_contents
from ...store.paths import CONTROL, CONTROL_TOKEN, PRIVATE
from ..errors import EngineError
from ..trust.atomic_files import temporary_sibling, write_new

_TOKEN_BYTES = 32
_FEWEST = 16
_MOST = 1000
_ALPHABET = frozenset(string.ascii_letters + string.digits + "-._~+/=")
"""Of a bearer token: RFC 6750 section 2.1."""
_SAME_S = 1.0
"""Start times of one process differ by less, whoever asked."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where one process can be asked."""

    pid: int
    started: float
    """Its start time, seconds since the epoch; tells a recycled pid."""
    url: str
    """Without a slash at its end."""
    cert: str = ""
    """PEM file of what it proves itself with, where it speaks TLS."""

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:  # it ended; its parent has not looked yet
                return False
            return abs(process.create_time() - self.started) < _SAME_S
        except psutil.Error:
            return False


def token_path(config: Config) -> Path:
    """Give the file of the token."""
    return config.control.token_file or config.store / PRIVATE / CONTROL_TOKEN


def open_token(config: Config) -> str:
    """Open the token, made on first use.

    Raises: EngineError, when it can be neither read nor made, or may be read by others.
    """
    path = token_path(config)
    try:
        require_own_contents(config.store / PRIVATE)
        make_own_folder(path.parent)
        if not path.exists():
            _make_token(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return read_token(path)


def read_token(path: Path) -> str:
    """Read a token.

    Raises: EngineError.
    """
    try:
        mode = path.stat().st_mode
        token = path.read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError as error:
        raise EngineError(
            f"the control API's token {str(path)!r} is not there: the file was removed while its process runs",
            "start that process again: `playhead serve` makes a new token as it starts",
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error
    if mode & 0o077:
        raise EngineError(
            f"the token {str(path)!r} may be read by others (mode {mode & 0o777:04o}); expected 0600",
            f"chmod 600 {path}",
        )
    if not (_FEWEST <= len(token) <= _MOST) or not _ALPHABET.issuperset(token):
        raise EngineError(
            f"the token {str(path)!r} is none: expected {_FEWEST} to {_MOST} letters, digits and -._~+/=",
            "Move it away: a new one is made.",
        )
    return token


def publish(store: Path, address: Address) -> Path:
    """Say where this process listens; takes away what dead processes said.

    Raises: OSError.
    """
    folder = _folder(store)
    require_own_contents(folder.parent)
    make_own_folder(folder)
    find_addresses(store, forget=True)
    path = folder / f"{address.pid}.json"
    document = {"pid": address.pid, "started": address.started, "url": address.url}
    if address.cert:
        document["cert"] = address.cert
    temporary = temporary_sibling(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    # Not flushed to the disk: after a power cut the process is gone as well.
    with open(descriptor, "w") as file:
        json.dump(document, file)
    os.replace(temporary, path)
    return path


def find_addresses(store: Path, *, forget: bool = False) -> list[Address]:
    """Give where the living processes of a store can be asked.

    forget: whether to remove what dead processes left.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(_folder(store).glob("*.json")):
            address = _read(path)
            if address is not None and address.alive:
                found.append(address)
            elif forget:
                with contextlib.suppress(OSError):
                    path.unlink()
    return found


def _folder(store: Path) -> Path:
    return store / PRIVATE / CONTROL


def _read(path: Path) -> Address | None:
    try:
        document = json.loads(path.read_bytes())
        return Address(
            int(document["pid"]),
            float(document["started"]),
            str(document["url"]),
            str(document.get("cert", "")),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _make_token(path: Path) -> None:
    temporary = temporary_sibling(path)
    write_new(temporary, secrets.token_urlsafe(_TOKEN_BYTES).encode() + b"\n", 0o600)
    try:
        # A link instead of a rename: of several processes that start at once one wins.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


def _unusable(path: Path, error: OSError) -> EngineError:
    return EngineError(
        f"cannot read or make the control API's token {str(path)!r}: {error.strerror or error}",
        "Make its folder writable, or name another file as control.token_file.",
    )
