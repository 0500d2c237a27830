"""Files that an installer has put there, and whether they still are what it put there.

Installers link files of one environment into the next: as another one is made or removed, the count of links and the last time of a
file change, and what it holds does not. Where that leaves doubt, the list that comes with a package tells: it has the hash of each file,
and is itself compared.

Source: the specification "Recording installed projects" (`RECORD` in `*.dist-info`).
"""

import base64
import csv
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

_PLACES = ("site-packages", "dist-packages")
_LIST = "RECORD"


class InstalledFiles:
    """The lists of packages as they were before a command ran."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Look at the lists beside some files. Blocks."""
        self._lists: dict[Path, bytes] = {}
        for place in {found for path in paths if (found := _find_place(path))}:
            for file in Path(place).glob(f"*.dist-info/{_LIST}"):
                data = _read(file)
                if data is not None:
                    self._lists[file] = sha256(data).digest()
        self._hashes: dict[str, str] | None = None

    def has(self, path: str) -> bool:
        """Say whether a file holds what its package has there, by a list that is as it was. Blocks."""
        if self._hashes is None:
            self._hashes = dict(self._read_lists())
        expected, data = self._hashes.get(path), _read(Path(path))
        if expected is None or data is None:
            return False
        found = base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
        return f"sha256={found}" == expected

    def _read_lists(self) -> Iterable[tuple[str, str]]:
        for file, digest in self._lists.items():
            data = _read(file)
            if data is None or sha256(data).digest() != digest:
                continue
            place = str(file.parent.parent)
            for row in csv.reader(data.decode("utf-8", "surrogateescape").splitlines()):
                if len(row) > 1 and row[1]:
                    yield os.path.normpath(os.path.join(place, row[0])), row[1]


def _find_place(path: str) -> str:
    """Give the folder of packages that a file is in; empty where it is in none."""
    for name in _PLACES:
        before, found, _ = path.partition(f"/{name}/")
        if found:
            return f"{before}/{name}"
    return ""


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
