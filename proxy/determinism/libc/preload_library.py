"""The preload library for dynamically linked programs: compiled on first use, cached for the user.

Its name has the hash of what it was made from, so another version of ours makes another one. Only its owner may
be able to write it: it is loaded into every program of a command.
"""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from hashlib import blake2b
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "clock.c"
_FLAGS = (
    *("-std=gnu11", "-O2", "-fPIC", "-shared", "-nostdlib"),
    *("-fvisibility=hidden", "-fno-stack-protector", "-U_FORTIFY_SOURCE"),
    "-Wl,-z,now",  # what it lacks is seen when it is tried, and not in the middle of a program
)
_OLD_GLIBC = ("-Wl,--no-as-needed", "-l:libdl.so.2")
"""Where it keeps `dlsym`; later ones and musl have an empty one, or take the name for themselves."""
_COMPILERS = ("cc", "gcc", "clang")
_OF_COMPILERS = ("as", "ld", "ld.bfd", "ld.gold", "ld.lld", "collect2")
PROGRAMS = (*_COMPILERS, *_OF_COMPILERS)
"""Those that are looked for on `PATH`: ours, and those of compilers."""
_PATIENCE_S = 60


class NoLibrary(Exception):
    """There is none; the text says why."""


def get_library() -> Path:
    """Give the library, compiled now where it was not before. Blocks.

    Raises: NoLibrary.
    """
    if sys.platform != "linux":
        raise NoLibrary("it is for Linux only")
    try:
        made = blake2b(
            SOURCE.read_bytes() + repr((_FLAGS, _OLD_GLIBC)).encode(), digest_size=8
        ).hexdigest()
        folder = _cache()
        library = folder / f"clock-{os.uname().machine}-{made}.so"
        if not library.exists():
            _compile(library)
        _check(library)
    except OSError as error:
        raise NoLibrary(f"{error.filename or SOURCE}: {error.strerror}") from error
    return library


def place_library(folder: Path) -> Path:
    """Give a copy of the library in a folder of ours. Blocks.

    Raises: NoLibrary.
    """
    found, placed = get_library(), folder / "clock.so"
    if any(character in str(placed) for character in " :"):  # what separates them
        raise NoLibrary(f"LD_PRELOAD takes no path with a blank or a colon: {str(placed)!r}")
    try:
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise NoLibrary(f"nothing can be executed in {str(folder.parent)!r}; set TMPDIR")
        shutil.copyfile(found, placed)
        placed.chmod(0o500)
    except OSError as error:
        raise NoLibrary(f"{placed}: {error.strerror}") from error
    return placed


def find_cache() -> Path:
    """Give the folder that the library is kept in, there or not; links are not followed.

    Raises: NoLibrary.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        place = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError as error:
        raise NoLibrary(
            "this user has no home; set XDG_CACHE_HOME to a folder of theirs"
        ) from error
    return place / "playhead"


def make_cache() -> None:
    """Make that folder where it is missing and can be made, so that it is there to be protected."""
    with contextlib.suppress(OSError, NoLibrary):
        _cache()


def _cache() -> Path:
    folder = find_cache().resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(folder)
    return folder


def _check(path: Path) -> None:
    """Make sure that nobody else could have written it.

    Raises: NoLibrary.
    """
    found = path.lstat()
    if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
        raise NoLibrary(f"{str(path)!r} is not this user's own")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NoLibrary(f"others can write {str(path)!r}; take that from them: chmod go-w")


def _compile(library: Path) -> None:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise NoLibrary(f"there is no C compiler here ({', '.join(_COMPILERS)})")
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="making-") as folder:
        made = os.path.join(folder, library.name)
        command = [compiler, *_FLAGS, "-o", made, str(SOURCE)]
        try:
            _run([*command, *_OLD_GLIBC], "it cannot be compiled")
        except NoLibrary:  # no such file here
            _run(command, "it cannot be compiled")
        # Tried before it is used: where it cannot be loaded, every program would complain of it.
        _run(["/bin/sh", "-c", ":"], "it cannot be loaded", LD_PRELOAD=made)
        os.chmod(made, 0o500)
        os.replace(made, library)


def _run(command: list[str], wrong: str, **environ: str) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoLibrary(f"{wrong}: {command[0]} took more than {_PATIENCE_S} s") from error
    if done.returncode or (environ and done.stderr):
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NoLibrary(f"{wrong}: {said[0][:200]}")
