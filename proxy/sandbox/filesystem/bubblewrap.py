"""The part of the file system that a command sees and may write to, built by bubblewrap (`--sandbox-files`).

1. The whole system can be read only, and devices are those that any program needs.
2. Homes and folders for temporary files are empty; they can be written to, and are gone afterwards.
3. The working folder is the real one.
4. What a program needs in a home stands there, read only: the command itself, the folders of `PATH`, environments of
   Python and Node, the scripts that are its arguments.

bubblewrap runs in the sandbox, before rights are given up: what it makes stands on what `mounts` has hidden. Source:
bwrap(1); tried with 0.8.
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
from .mounts import find_settings

_TEMPORARY = ("/tmp", "/var/tmp")
_HOMES = ("/home", "/root")
_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_BIN")
_LISTS = ("PATH", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Files:
    """What is seen of the file system; paths are absolute and hold no links, but for `visible`."""

    empty: tuple[str, ...]
    """Folders in memory, each before what is in it."""
    visible: tuple[str, ...]
    """What stands in those nevertheless, read only."""
    writable: tuple[str, ...]
    """Folders that are the real ones."""
    working: str

    def sees(self, path: str) -> bool:
        """Say whether a path of the machine leads to the same place inside."""
        if any(_is_in(path, place) for place in (*self.visible, *self.writable)):
            return True
        return not any(_is_in(path, place) for place in self.empty)

    def words(self) -> list[str]:
        """Write the command line of bubblewrap, up to the command that it is to run."""
        program = shutil.which("bwrap") or "bwrap"
        words = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
        if os.geteuid() == 0:
            # The last right is what the first process gives up the others for good with.
            words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETPCAP"]
        else:
            words += ["--unshare-user"]
        words += ["--ro-bind", "/", "/", "--dev", "/dev", "--mqueue", "/dev/mqueue"]
        words += ["--proc", "/proc"]
        for path in find_settings():  # bubblewrap leaves them to root
            words += ["--ro-bind-try", path, path]
        for place in self.empty:
            words += ["--tmpfs", place]
        for place in self.visible:
            words += ["--ro-bind", place, place]
        for place in self.writable:
            words += ["--bind", place, place]
        return [*words, "--chdir", self.working, "--"]


def make_files(
    environ: Mapping[str, str], command: Sequence[str], *, public: Path, shared: Iterable[Path]
) -> Files:
    """Decide what a command sees that is run with these variables, in the folder that we are in.

    public: folder of the CA's public files.
    shared: folders that are written to for us.
    Raises: EngineError, without bubblewrap, and where nothing would be hidden.
    """
    if shutil.which("bwrap") is None:
        raise EngineError(
            "--sandbox-files needs bubblewrap (bwrap), which is not installed",
            "apt install bubblewrap, or dnf install bubblewrap; or leave the flag out",
        )
    home = Path(environ.get("HOME") or "/root").resolve()
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
    if working == home or working in home.parents:
        raise EngineError(
            f"--sandbox-files hides the home folder, and the command would run in {str(working)!r}",
            "change to a folder of the agent's own",
        )
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    places = [home, *map(Path, (*_HOMES, *_TEMPORARY, environ.get("TMPDIR") or "/tmp"))]
    if os.path.isabs(runtime):
        places.append(Path(runtime))
    there = {place.resolve() for place in places if os.path.isdir(place)}
    empty = sorted(str(place) for place in there if place != Path("/"))  # some containers' home
    hidden = {Path(place) for place in empty}
    writable = [str(place.resolve()) for place in (working, *shared)]
    needed = (*_of_ours(public), *_of_variables(environ, home), *_of_command(environ, command))
    seen = {
        str(place)
        for path in needed
        for place in dict.fromkeys((path, path.resolve()))
        if any(one in place.parents for one in hidden)
        and place not in hidden
        and not any(place in one.parents for one in hidden)
        and os.path.exists(place)
        and not any(_is_in(str(place), one) for one in writable)
    }
    visible = [one for one in seen if not any(one != it and _is_in(one, it) for it in seen)]
    return Files(
        empty=tuple(empty),
        visible=tuple(sorted(visible)),
        writable=tuple(dict.fromkeys(writable)),
        working=str(working),
    )


def _of_ours(public: Path) -> Iterator[Path]:
    yield public
    yield from map(Path, package_path)
    yield from map(Path, (sys.prefix, sys.base_prefix))


def _of_variables(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    for name in _ENVIRONMENTS:
        if os.path.isabs(environ.get(name, "")):
            yield Path(environ[name])
    for name in _LISTS:
        for text in environ.get(name, "").split(os.pathsep):
            if os.path.isabs(text):
                yield from _installation(Path(text))
    yield from map(Path, re.split("[: ]", environ.get("LD_PRELOAD", "")))
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
            if not os.path.islink(path):
                break
            path = path.parent / path.readlink()
    for word in command[1:]:
        path = Path(word).absolute()
        if os.sep in word and os.path.isfile(path):
            # Beside a script stand its modules.
            yield path
            yield path.parent


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
