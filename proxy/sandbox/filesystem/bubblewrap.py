"""The part of the file system that a command sees and may write to, built by bubblewrap (`--sandbox-files`).

1. The root folder is one of our own, in which nothing is but what is named here. It can be read only.
2. The system can be read only (`system_folders`). What is seen of it is a copy (`protection`), whose named pipes lead nowhere, and devices are those that any program needs.
3. Homes and folders for temporary files are empty; they can be written to, and are gone afterwards.
4. The working folder is the real one, and so is the work tree around it.
5. What a program needs elsewhere can be read only: the command itself and its interpreter, the folders of `PATH`, environments of
   Python and Node, the scripts that are its arguments, sockets that a live rule names.
6. A folder above one of these is made anew, in memory. None can be renamed or removed: it is in the root folder, which can be read
   only, or is a mount point. The mounts that keep real folders where they are (`protection`) are hidden by those made here.

bubblewrap runs in the sandbox, before rights are given up: what it makes stands on what `mounts` has hidden. Each mount is made
after those of the folders above it. Source: bwrap(1); tried with 0.8.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .... import __path__ as package_path
from ...errors import EngineError
from .mountinfo import is_in
from .mounts import find_settings
from .system_folders import find_links, find_programs, find_system, is_partly_seen

_ROOT = Path("/")
_OF_THE_KERNEL = Path("/sys")
_TEMPORARY = ("/tmp", "/var/tmp")
_HOMES = ("/home", "/root")
_MADE = ("/dev", "/proc")
"""Folders that bubblewrap makes."""
_OFTEN_LINKS = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
_ENVIRONMENTS = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_BIN", "JAVA_HOME", "GOROOT"),
    "PLAYWRIGHT_BROWSERS_PATH",
)
_LISTS = ("PATH", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH")
_MOST_OF_LINE = 512


@dataclass(frozen=True, slots=True)
class Files:
    """What is seen of the file system; paths are absolute and hold no links, but for `visible`. What is in none is not there."""

    empty: tuple[str, ...]
    """Folders in memory."""
    visible: tuple[str, ...]
    """Files and folders that are no part of the system, and can be read only."""
    writable: tuple[str, ...]
    """Folders that are the real ones."""
    working: str
    system: tuple[str, ...] = ("/",)
    """Folders of the system, which can be read only."""

    def sees(self, path: str) -> bool:
        """Say whether a path of the machine leads to the same place inside."""
        shown = self._seen()
        return _find_holder(path, (*shown, *self.empty)) in shown

    def read_only(self) -> list[Path]:
        """Give the folders that can be read only, but for the kernel's own: those in which a named pipe may be."""
        places = {Path(place).resolve() for place in (*self.system, *self.visible)}
        return sorted(place for place in places - {_ROOT, _OF_THE_KERNEL} if place.is_dir())

    def is_real(self, path: str) -> bool:
        """Say whether what is written to a path of the machine stays there."""
        return _find_holder(path, (*self._seen(), *self.empty)) in self.writable

    def is_in_memory(self, path: str) -> bool:
        """Say whether a path, seen or not, is in a folder that is otherwise in memory."""
        return _find_holder(path, self.empty) is not None

    def _seen(self) -> tuple[str, ...]:
        return (*self.system, *self.visible, *self.writable)

    def words(self) -> list[str]:
        """Write the command line of bubblewrap, up to the command that it is to run."""
        program = shutil.which("bwrap") or "bwrap"
        words = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
        if os.geteuid() == 0:
            # The last right is what the first process gives up the others for good with.
            words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETPCAP"]
        else:
            words += ["--unshare-user"]
        made = self._made()
        for path in sorted(made, key=lambda one: Path(one).parts):
            words += made[path]
        if "/" not in self.system:
            words += ["--remount-ro", "/"]
        return [*words, "--chdir", self.working, "--"]

    def _made(self) -> dict[str, list[str]]:
        """Give the words that make each place."""
        made: dict[str, list[str]] = {}
        if "/" not in self.system:
            made |= {place: ["--dir", place] for place in ("/run", "/var")}
            made |= {
                str(path): ["--symlink", target, str(path)]
                for path, target in find_links(_ROOT)
                if _find_holder(str(path), self.writable) is None
            }
        made |= {place: ["--ro-bind", place, place] for place in self.system}
        made["/dev"] = ["--dev", "/dev", "--mqueue", "/dev/mqueue"]
        made["/proc"] = ["--proc", "/proc"]
        for path in find_settings():  # bubblewrap leaves them to root
            made["/proc"] += ["--ro-bind-try", path, path]
        made |= {place: ["--tmpfs", place] for place in (*self.empty, *self._above())}
        made |= {place: ["--ro-bind", place, place] for place in self.visible}
        made |= {place: ["--bind", place, place] for place in self.writable}
        return made

    def _above(self) -> Iterator[str]:
        """Yield the folders between an empty one and what is in it: as mount points, nobody can rename or remove them."""
        mounted = (*self.system, *self.empty, *self.visible, *self.writable)
        for place in mounted:
            for above in map(str, Path(place).parents):
                if above not in mounted and _find_holder(above, mounted) in self.empty:
                    yield above


def make_files(
    environ: Mapping[str, str],
    command: Sequence[str],
    *,
    public: Path,
    shared: Iterable[Path],
    sockets: Iterable[str] = (),
) -> Files:
    """Decide what a command sees that is run with these variables, in the folder that we are in.

    public: folder of the CA's public files.
    shared: further folders that are the real ones.
    sockets: paths that a live rule names.
    Raises: EngineError, without bubblewrap, and where nothing would be hidden.
    """
    if shutil.which("bwrap") is None:
        raise EngineError(
            "--sandbox-files needs bubblewrap (bwrap), which is not installed",
            "apt install bubblewrap, or dnf install bubblewrap; or leave the flag out",
        )
    home = Path(environ.get("HOME") or "/root").resolve()
    working = _find_working(home)
    real = dict.fromkeys(str(place.resolve()) for place in (working, *shared))
    # One mount for what is in one folder: nothing can be renamed from a mount into another.
    writable = tuple(one for one in real if _find_holder(one, real.keys() - {one}) is None)
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    places = [home, *map(Path, (*_HOMES, *_TEMPORARY, environ.get("TMPDIR") or "/tmp"))]
    if os.path.isabs(runtime):
        places.append(Path(runtime))

    def outside(places: Iterable[Path]) -> list[str]:
        """Give those that are in no real folder."""
        found = sorted({str(one) for one in places if one != _ROOT})  # some containers' home
        return [one for one in found if _find_holder(one, writable) is None]

    empty = outside(place.resolve() for place in places if os.path.isdir(place))
    system, programs = outside(find_system(_ROOT)), outside(find_programs(_ROOT))
    links = [str(path) for path, _ in find_links(_ROOT)]
    named = (
        *_of_ours(public),
        *_of_variables(environ, home),
        *_of_command(environ, command),
        *map(Path, sockets),
        *_OFTEN_LINKS,
    )
    needed = tuple(path.absolute() for path in named)
    seen = {
        place
        for place in outside(one for path in needed for one in (path, path.resolve()))
        if os.path.exists(place)
        and os.pardir not in Path(place).parts
        and place not in empty
        and not is_partly_seen(_ROOT, Path(place))
        and _find_holder(place, links) is None
        and _find_holder(place, (*system, *programs, *_MADE, *empty)) in (None, *empty)
    }
    seen |= {place for place in programs if place not in empty}
    visible = [
        one for one in seen if _find_holder(one, [*(seen - {one}), *empty]) in (None, *empty)
    ]
    # By `conf/../store` a program gets nowhere if there is no `conf`.
    empty += [
        one
        for one in outside(_before_parents(needed))
        if os.path.isdir(one) and _find_holder(one, [*system, *visible, *empty]) in (None, *empty)
    ]
    empty = sorted(set(empty))
    return Files(tuple(empty), tuple(sorted(visible)), writable, str(working), tuple(system))


def _find_working(home: Path) -> Path:
    """Give the folder that we are in. Raises: EngineError, where it is none of the agent's own."""
    try:
        working = Path.cwd()
    except FileNotFoundError as error:
        raise EngineError(
            "--sandbox-files shows the working folder, which was removed",
            "change to another folder",
        ) from error
    if working == Path("/"):
        raise EngineError(
            "--sandbox-files expects a working folder that contains the agent's files alone, and found '/': "
            "the command would see, and write to, every file that the flag hides",
            "change to the agent's own folder (in a container, set its WORKDIR), or leave the flag out",
        )
    if home.is_relative_to(working):
        raise EngineError(
            f"--sandbox-files hides the home folder, and the command would run in {str(working)!r}",
            "change to a folder of the agent's own",
        )
    return working


def _before_parents(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that paths lead through and out of again, by `..`."""
    for path in paths:
        for above in path.parents:
            if above.name == os.pardir and os.pardir not in above.parent.parts:
                yield above.parent


def _of_ours(public: Path) -> Iterator[Path]:
    yield public
    yield from map(Path, package_path)
    yield from map(Path, (sys.prefix, sys.base_prefix, *filter(os.path.isabs, sys.path)))


def _of_variables(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    for name in _ENVIRONMENTS:
        if os.path.isabs(environ.get(name, "")):
            yield Path(environ[name])
    for name in _LISTS:
        for text in environ.get(name, "").split(os.pathsep):
            if os.path.isabs(text):
                yield from _installation(Path(text))
    yield from map(Path, filter(os.path.isabs, re.split("[: ]", environ.get("LD_PRELOAD", ""))))
    yield home / ".local" / "lib"


def _installation(folder: Path) -> Iterator[Path]:
    """Yield a folder of programs, and what it is part of where that is installed as one."""
    yield folder
    above = folder.parent
    parts = ("lib", "pyvenv.cfg", "versions")
    if above.name != ".local" and any(os.path.exists(above / part) for part in parts):
        yield above


def _of_command(environ: Mapping[str, str], command: Sequence[str]) -> Iterator[Path]:
    found = shutil.which(command[0], path=environ.get("PATH"))
    if found is not None:
        path = Path(found).absolute()
        while True:
            yield path
            yield from _installation(path.parent)
            interpreter = _find_interpreter(path)
            if interpreter is not None:
                yield interpreter
                yield from _installation(interpreter.resolve().parent)
            if not os.path.islink(path):
                break
            path = path.parent / path.readlink()
    for word in command[1:]:
        path = Path(word).absolute()
        if os.sep in word and os.path.isfile(path):
            # Beside a script stand its modules.
            yield path
            yield path.parent


def _find_interpreter(script: Path) -> Path | None:
    """Give what the first line of a script names; None of a program, and of what cannot be read."""
    if not os.path.isfile(script):
        return None
    try:
        with script.open("rb") as file:
            line = file.readline(_MOST_OF_LINE)
    except OSError:
        return None
    words = os.fsdecode(line.removeprefix(b"#!")).split() if line.startswith(b"#!") else []
    return Path(words[0]) if words and os.path.isabs(words[0]) else None


def _find_holder(path: str, places: Iterable[str]) -> str | None:
    """Give the innermost of some places that a path is, or is in."""
    held = (place for place in places if is_in(path, place))
    return max(held, key=len, default=None)
