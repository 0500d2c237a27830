"""Which folders of the machine are the system's, and which links lead to them.

A command with `--sandbox-files` gets a root folder of its own, in which nothing is but what is named: so a folder that nobody has
thought of is not there. Source: hier(7), Filesystem Hierarchy Standard 3.0; the manuals of Nix, Guix and snapd.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_SYSTEM = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32", "libexec", "usr", "etc", "sys"),
    *("var/cache", "var/lib"),
)
"""Of `/var` these alone: what is beside them is mail, logs, web sites and the like."""
_PROGRAMS = ("opt", "nix", "gnu", "snap", "run/current-system", "run/opengl-driver")
"""Folders in which further programs are installed, by the user, too."""
_PARTLY = ("", "var", "run")
"""Folders that are never seen whole."""


def find_system(root: Path) -> list[Path]:
    """Give the folders of the system; none of them is a link, or in another one."""
    return _real(root / name for name in _SYSTEM)


def find_programs(root: Path) -> list[Path]:
    """Give the folders in which further programs are installed; none of them is a link, or in another one."""
    return _real(root / name for name in _PROGRAMS)


def find_links(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the links in folders that are seen in part, and where they lead."""
    for folder in (root / name for name in _PARTLY[:2]):
        if not folder.is_symlink():
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                yield from (
                    (Path(entry.path), os.readlink(entry.path))
                    for entry in entries
                    if entry.is_symlink()
                )
    for path in (root / name for name in _PROGRAMS):
        if path.parent != root and path.is_symlink():
            yield path, os.readlink(path)


def is_partly_seen(root: Path, place: Path) -> bool:
    """Say whether a folder cannot be shown as one."""
    return place in [root / name for name in _PARTLY]


def _real(places: Iterable[Path]) -> list[Path]:
    found = {place.resolve() for place in places if os.path.isdir(place)}
    return sorted(one for one in found if not any(other in one.parents for other in found))
