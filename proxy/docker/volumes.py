"""Folders of this machine in an agent's container: what the proxy depends on is not the agent's to change there.

The store and its archive are empty for it, the configuration and what Playhead is loaded from can be read only, and so is no folder above
them that could be renamed. Sockets at which a program outside listens, and pipes that one has open, are nothing. Docker
lets nobody look at what is connected to, so an agent with volumes gets no Unix sockets at all, unless a live rule names
one of them.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import EngineError
from ..sandbox.filesystem.socket_reachability import find_paths, find_pipes


@dataclass(frozen=True, slots=True)
class Depended:
    """What the proxy depends on; paths are absolute and hold no links."""

    hidden: tuple[str, ...] = ()
    """The store, then its archive."""
    locked: tuple[str, ...] = ()
    """The configuration, Playhead and its environment, the system."""
    let_in: tuple[str, ...] = ()
    """Sockets that a live rule names."""


@dataclass(frozen=True, slots=True)
class _Volume:
    """What of this machine is mounted where."""

    source: str
    target: PurePosixPath
    read_only: bool

    def find(self, path: str) -> str | None:
        """Give where a path is in the container; None where it is not."""
        if not Path(path).is_relative_to(self.source):
            return None
        return str(self.target / Path(path).relative_to(self.source))


def parse(volume: str) -> _Volume | None:
    """Read Docker's flag; None for a volume of Docker's own. A path is looked up as Docker does."""
    source, mark, rest = volume.partition(":")
    target, _, options = rest.partition(":")
    if not mark or not source.startswith(("/", ".")):
        return None
    return _Volume(os.path.realpath(source), PurePosixPath(target), "ro" in options.split(","))


def guard(volumes: Sequence[str], depended: Depended) -> list[str]:
    """Write Docker's flags for what stands in volumes in place of what an agent must not have.

    Raises: EngineError, where a volume is nothing else.
    """
    words: list[str] = []
    for volume in filter(None, map(parse, volumes)):
        words += _hide(volume, depended.hidden)
        words += _lock(volume, depended.locked)
        words += _mask(volume, depended.let_in)
        words += _pin(volume, (*depended.hidden, *depended.locked))
    return words


def find_reached(volumes: Sequence[str], let_in: Iterable[str] = ()) -> list[str]:
    """List the path sockets and named pipes in volumes that somebody outside has open, but for those that are let in."""
    return _listening_in([one for one in map(parse, volumes) if one is not None], let_in)


def _listening_in(volumes: list[_Volume], let_in: Iterable[str]) -> list[str]:
    if not volumes:
        return []
    known = set(let_in)
    found = sorted(set(map(os.path.realpath, (*find_paths(), *find_pipes()))) - known)
    return [path for path in found if any(one.find(path) is not None for one in volumes)]


def bind(source: str, target: str, *, writable: bool = False) -> list[str]:
    """Write Docker's flag for a file or folder of this machine."""
    read_only = [] if writable else ["readonly"]
    return mount_flag("type=bind", f"source={source}", f"target={target}", *read_only)


def mount_flag(*fields: str) -> list[str]:
    """Write Docker's flag for a mount, which it reads as a row of CSV."""
    return ["--mount", ",".join('"' + field.replace('"', '""') + '"' for field in fields)]


def _hide(volume: _Volume, paths: Sequence[str]) -> list[str]:
    words, first = [], next(iter(paths), "")
    for path in paths:
        if Path(volume.source).is_relative_to(path):
            name = "the store" if path == first else "the archive"
            raise EngineError(
                f"--volume {volume.source!r} is {name}, or in it, which no agent sees",
                "mount the agent's own folder",
            )
        if (place := volume.find(path)) is not None:
            words += mount_flag("type=tmpfs", f"target={place}")
    return words


def _lock(volume: _Volume, paths: Iterable[str]) -> list[str]:
    words = []
    for path in paths:
        if volume.read_only:
            continue
        if Path(volume.source).is_relative_to(path):
            raise EngineError(
                f"--volume {volume.source!r} is a folder of Playhead or its configuration: {path!r}",
                "mount it read only (:ro), or the agent's own folder",
            )
        if (place := volume.find(path)) is not None:
            words += bind(path, place)
    return words


def _mask(volume: _Volume, let_in: tuple[str, ...]) -> list[str]:
    words = []
    for path in _listening_in([volume], let_in):
        if path == volume.source:
            raise EngineError(
                f"--volume {path!r} is a socket of an outside program, whose messages are on no tape",
                f"let it in by a live rule, with match: unix://{path}",
            )
        place = volume.find(path)
        assert place is not None
        words += bind("/dev/null", place, writable=True)
    return words


def _pin(volume: _Volume, paths: Iterable[str]) -> list[str]:
    """Have folders between a volume's own and what is guarded in it be mounts, which nobody can rename."""
    above = {
        str(folder)
        for path in paths
        if volume.find(path) is not None
        for folder in Path(path).parents
        if folder != Path(volume.source) and folder.is_relative_to(volume.source)
    }
    words = []
    for folder in sorted(above):
        place = volume.find(folder)
        assert place is not None
        words += bind(folder, place, writable=not volume.read_only)
    return words
