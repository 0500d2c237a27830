"""What secrets are searched with, compiled once for a store and not by each process: a quarter of a second of CPU.

A file in the store's private folder, which no command in a sandbox sees. It holds machine code of a kind, so each is
authenticated with the store's redaction key: what was changed, or is of another store, is compiled anew.
"""

import contextlib
import hmac
import platform
import threading
from hashlib import blake2b
from pathlib import Path

from ... import PlayheadError
from ...store.paths import PRIVATE
from .atomic_files import write_public

PREFIX = "search-"
"""Begins the names of the files, in `PRIVATE`."""
_MAC_BYTES = 32
_MOST_BYTES = 16 << 20
_CPU = Path("/proc/cpuinfo")


class KeptSearches:
    """The compiled searches of a store."""

    def __init__(self, store: Path, key: bytes) -> None:
        """Keep them in a store.

        key: the store's redaction key.
        """
        self._folder = store / PRIVATE
        self._key = key
        self._compiling = threading.Lock()
        self._used: set[Path] = set()
        """Files of this process, which are several where it searches with several."""

    def alone(self) -> contextlib.AbstractContextManager[object]:
        """Give what keeps other threads of this process from looking for a search, and compiling it, at the same time."""
        return self._compiling

    def find(self, name: str) -> bytes | None:
        """Give what was kept under a name, as it was kept; None where it was not, or was changed."""
        try:
            with self._path(name).open("rb") as file:
                data = file.read(_MOST_BYTES)
        except OSError:
            return None
        kept = data[_MAC_BYTES:]
        if not hmac.compare_digest(data[:_MAC_BYTES], self._mac(kept)):
            return None
        self._used.add(self._path(name))
        return kept

    def keep(self, name: str, compiled: bytes) -> None:
        """Keep something in the place of what others kept before; where that cannot be, nothing is."""
        path = self._path(name)
        self._used.add(path)
        with contextlib.suppress(OSError, PlayheadError):
            write_public(path, self._mac(compiled) + compiled, 0o600)
            for other in self._folder.glob(f"{PREFIX}*"):
                if other not in self._used:
                    other.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{PREFIX}{name}-{_machine()}"

    def _mac(self, data: bytes) -> bytes:
        return blake2b(data, key=self._key, digest_size=_MAC_BYTES, person=b"search").digest()


def _machine() -> str:
    """Name the kind of this machine: what is compiled uses what its processor can do."""
    can = platform.machine().encode()
    with contextlib.suppress(OSError), _CPU.open("rb") as file:
        can += next(
            (line for line in file if line.lower().startswith((b"flags", b"features"))), b""
        )
    return blake2b(can, digest_size=6).hexdigest()
