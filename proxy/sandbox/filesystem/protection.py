"""What of the file system the proxy itself depends on, and how a sandbox is kept from changing it.

The proxy runs outside and goes on loading files while the command runs: modules, shared libraries, certificates. Of root,
and of anybody whose environment Playhead was installed into, the command may write all of them. So each is one of:

1. *overlaid*: the environment that Playhead runs from, and of root the system. The command sees it as it is and writes
   to a copy in memory, so `pip install` works, and what it wrote is gone afterwards. So is what is given as `copied`.
2. *locked*: the configuration and what it names can be read only, with their folder where the command does not work in it; so can
   the files by which the next proxy trusts its upstreams, without their folder.
3. *pinned*: a folder above the store, the configuration or one of the above. It is a mount point, which nobody can
   rename or remove; a file in it can be written as ever.

Folders in which the command works stay real where they are inside of an overlaid one.

Of root the root folder is locked, and each folder in it is a mount of its own: `/lib` and `/bin` are links there on most systems,
over which nothing can be mounted, and by which every program is loaded.
"""

import contextlib
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path

from .... import __path__ as package_path
from ...determinism.libc.preload_library import NoLibrary, find_cache, make_cache
from ...trust.client_root_certificates import find_named
from .code_path_variables import find_folders, is_apart
from .mountinfo import Mount, find_again, read_mounts

SYSTEM = (
    *("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot"),
    "/var/spool",  # of cron and at, which run outside whatever is put there
)
"""Folders that no command keeps anything of its own in; programs and libraries are loaded from there."""
_LISTS = ("LD_LIBRARY_PATH", "PYTHONPATH")
_DEVICES = Path("/dev")
"""A folder of our own in a sandbox, with empty shared memory."""
_MAPS = "/proc/self/maps"


@dataclass(frozen=True, slots=True)
class Protection:
    """Paths are absolute, hold no links, and come with each folder before what is in it."""

    pinned: tuple[str, ...] = ()
    overlaid: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Folders in those that stay real."""
    locked: tuple[str, ...] = ()
    """Files and folders that can be read only."""
    root_locked: bool = False
    """In the root folder nothing can be made, renamed or removed; what is in its folders is not affected."""


def make_protection(
    working: Iterable[Path],
    *,
    files: Iterable[Path],
    folders: Iterable[Path],
    fixed: Iterable[Path] = (),
    copied: Iterable[Path] = (),
) -> Protection:
    """Decide what to protect from a command of this user.

    working: folders that the command writes to: these stay real where nothing is loaded from them.
    files: files and folders of the configuration, to be locked.
    folders: those that are hidden or closed by somebody else, above which all is to be pinned, as the store.
    fixed: folders to be pinned themselves.
    copied: further folders to be overlaid, whoever can write to them: a named pipe in a copy leads to nobody outside.
    """
    mounts = read_mounts()
    loaded = _resolved(_loaded_from())
    broad = _resolved(map(Path, (*_prefixes(), *SYSTEM, *_of_lists(os.environ), *_caches())))
    exact, single = _split_files(loaded, broad, _resolved(working))
    overlaid = _outermost([one for one in {*exact, *broad} if one != Path("/") and _writable(one)])
    also = _resolved(copied)
    overlaid = _outermost([*overlaid, *also - {*overlaid}])
    kept = [
        one
        for one in sorted(_resolved(working))
        if any(_is_below(one, place) for place in (*overlaid, _DEVICES))
        and not any(one.is_relative_to(place) for place in exact)
    ]
    # What is loaded from a folder that stays real is a copy once more.
    inner = [one for one in exact if _writable(one)] + [*also]
    overlaid = sorted({*overlaid, *(one for one in inner if _is_in_any(one, kept))})
    given = _resolved(files)
    alone = [one.parent for one in given if _is_apart(one.parent, _resolved(working))]
    roots = [
        one
        for one in _resolved(find_named(os.environ))
        if not _is_covered(one, overlaid, kept)
        and (not one.is_dir() or _is_apart(one, _resolved(working)))
    ]
    locked = [one for one in {*given, *alone, *single, *roots} if _writable(one)]
    anchors = {*overlaid, *locked, *_resolved(folders)}
    points = {mount.point for mount in mounts}
    pinned = {
        above
        for one in (*anchors, *(place / "in it" for place in _resolved(fixed)))
        for above in one.parents
        if above not in anchors
        and str(above) not in points
        and _writable(above.parent)
        and not _is_covered(above, overlaid, kept)
    }
    root_locked = _writable(Path("/")) and Path("/") not in _resolved(working)
    if root_locked:
        pinned |= {
            one for one in _folders_in_root() if one not in anchors and str(one) not in points
        }
    # What is copied for its pipes alone may be the command's own at another place.
    aliases = _aliases({*overlaid, *locked} - {*filterfalse(_writable, also)}, mounts)
    return Protection(
        pinned=tuple(map(str, sorted(pinned - {Path("/")}))),
        overlaid=tuple(map(str, overlaid)),
        kept=tuple(map(str, kept)),
        locked=tuple(map(str, sorted({*locked, *aliases}))),
        root_locked=root_locked,
    )


def find_depended(files: Iterable[Path]) -> tuple[str, ...]:
    """Give what the proxy depends on, for whoever can hide none of it: nothing is in anything else that is given.

    files: those of the configuration.
    """
    broad = _resolved(map(Path, (*_prefixes(), *SYSTEM, *_caches())))
    given = _resolved((*files, *find_named(os.environ)))
    found = {*given, *_resolved(_loaded_from()), *broad} - {Path("/")}
    return tuple(map(str, _outermost(list(found))))


def find_copied() -> tuple[str, ...]:
    """Give the folders of which a command sees copies; a copy's pipes lead to nobody outside.

    A folder that this user cannot write to is seen as it is.
    """
    found = _resolved(map(Path, (*_prefixes(), *SYSTEM, *_caches()))) - {Path("/")}
    return tuple(str(folder) for folder in found if _writable(folder))


def find_unsearched(store: Path) -> tuple[str, ...]:
    """Give the folders in which no named pipe leads from a command to a program outside: copies, and what is hidden."""
    return (*find_copied(), str(store), "/proc", "/sys", "/dev", "/run", "/var/run")


def make_loaded_folders() -> None:
    """Make the folders of this user that the next start of Playhead loads from, and that are missing.

    So they are there to be copied: a `pip install --user` in the sandbox writes to the copy. Made in there, they would be what the
    next start loads. Where one cannot be made, the command cannot make it either.
    """
    make_cache()
    folders = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    for folder in (*folders, *_bytecode_folder()):
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)


def find_rewritten() -> Iterator[str]:
    """Yield files that this or another start of Playhead writes and the next one loads: bytecode of modules, preload libraries.

    Any of them may appear while a command runs; none changes once it is there.
    """
    for module in list(sys.modules.values()) if sys.pycache_prefix else ():
        path = getattr(module, "__cached__", None)
        if isinstance(path, str):
            yield os.path.abspath(path)
    for folder in _library_folder():
        with contextlib.suppress(OSError):
            yield folder
            yield from (entry.path for entry in os.scandir(folder) if entry.name.endswith(".so"))


def _bytecode_folder() -> Iterator[str]:
    """Yield the folder of `PYTHONPYCACHEPREFIX`, from which bytecode is loaded in the place of sources."""
    if sys.pycache_prefix:
        yield os.path.abspath(sys.pycache_prefix)


def _library_folder() -> Iterator[str]:
    with contextlib.suppress(NoLibrary):
        yield str(find_cache())


def restrict_imports() -> None:
    """Have this process import from where modules came from so far, and from its environment alone.

    Started as `python -m` it would look for what it imports later in the working folder, which the command writes to.
    """
    trusted = {os.path.realpath(path) for path in (*_prefixes(), *package_path)}
    kept = []
    for path in filter(os.path.isabs, sys.path):
        real = os.path.realpath(path)
        inside = any(real == one or real.startswith(f"{one}/") for one in trusted)
        if inside or any(used.startswith(f"{real}/") for used in _real_module_files()):
            kept.append(path)
    sys.path[:] = kept
    sys.path_importer_cache.pop("", None)


def loaded_files() -> Iterator[str]:
    """Yield the files that this process has loaded: sources of modules, extensions and libraries."""
    yield from _module_files()
    yield from _mapped()


def _prefixes() -> tuple[str, ...]:
    return tuple({sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix})


def _loaded_from() -> Iterator[Path]:
    """Yield folders that modules are loaded from, and files beside those that were."""
    folders = [*package_path, *sysconfig.get_paths().values()]
    folders += [path for path in sys.path if os.path.isabs(path)]
    folders += [*_bytecode_folder(), *_library_folder()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    yield from map(Path, folders)
    yield Path(sys.executable)
    known = tuple(f"{os.path.realpath(folder)}/" for folder in (*folders, *_prefixes()))
    # Most files are in those: a thousand paths are looked at as texts.
    yield from (Path(path) for path in set(loaded_files()) if not path.startswith(known))


def _module_files() -> Iterator[str]:
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.startswith("/"):
            yield path


def _real_module_files() -> Iterator[str]:
    """Yield the files of modules, links followed; of each folder they are followed once."""
    folders: dict[str, str] = {}
    for path in _module_files():
        folder, name = os.path.split(path)
        if os.path.islink(path):
            yield os.path.realpath(path)
            continue
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        yield os.path.join(folders[folder], name)


def _mapped() -> Iterator[str]:
    """Yield the files whose code this process has mapped. Source: proc_pid_maps(5)."""
    with contextlib.suppress(OSError), open(_MAPS, errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                yield fields[5]


def _folders_in_root() -> Iterator[Path]:
    with os.scandir("/") as entries:
        yield from (Path(one.path) for one in entries if one.is_dir(follow_symlinks=False))


def _of_lists(environ: Mapping[str, str]) -> Iterator[str]:
    for name in _LISTS:
        for path in environ.get(name, "").split(os.pathsep):
            if os.path.isabs(path) and path in sys.path + environ.get(_LISTS[0], "").split(":"):
                yield path


def _of_variables() -> Iterator[str]:
    """Yield the folders that programs load code from for a variable, but for those that the user keeps other things in."""
    own = _resolved(map(Path, (os.getcwd(), tempfile.gettempdir(), os.path.expanduser("~"))))
    working = Path.cwd()
    for folder in find_folders(os.environ):
        path = Path(folder).resolve()
        if is_apart(path, working) and not any(one.is_relative_to(path) for one in own):
            yield folder


def _caches() -> Iterator[str]:
    """Yield where installers keep files that those of an environment are links to: writing to one changes both.

    And where Playhead keeps what it made itself, and loads again, and folders that variables have other programs load code from.
    """
    yield from _of_variables()
    yield from (*_bytecode_folder(), *_library_folder())
    given = os.environ.get("UV_CACHE_DIR", "")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    for folder in (given, cache and f"{cache}/uv", home and f"{home}/.cache/uv"):
        if os.path.isabs(folder):
            yield folder


def _split_files(
    loaded: set[Path], broad: set[Path], working: set[Path]
) -> tuple[set[Path], set[Path]]:
    """Give the folders that are loaded from, and the single files whose folder is the command's.

    loaded: folders, and files of which none is in those.
    """
    folders = {one for one in loaded if os.path.isdir(one)}
    single: set[Path] = set()
    for file in loaded - folders:
        folder = file.parent
        if any(one.is_relative_to(folder) for one in working):
            single.add(file)
        elif not any(_is_below(file, place) for place in broad):
            folders.add(folder)
    # From the working folder itself nothing is loaded any more: see `restrict_imports`.
    package = {Path(path).resolve() for path in package_path}
    return {one for one in folders if one in package or one not in working}, single


def _resolved(paths: Iterable[Path]) -> set[Path]:
    found = set()
    for path in paths:
        with contextlib.suppress(OSError, RuntimeError):
            found.add(path.resolve(strict=True))
    return found


def _is_apart(folder: Path, working: set[Path]) -> bool:
    """Say whether a folder is none that a command works in, and holds none."""
    return folder.parent != folder and not any(one.is_relative_to(folder) for one in working)


def _outermost(paths: list[Path]) -> list[Path]:
    return sorted(one for one in paths if not any(_is_below(one, other) for other in paths))


def _is_below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _is_in_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(_is_below(path, folder) for folder in folders)


def _is_covered(path: Path, overlaid: list[Path], kept: list[Path]) -> bool:
    """Say whether a folder is seen as a copy alone."""
    holders = [one for one in (*overlaid, *kept) if path.is_relative_to(one)]
    return bool(holders) and max(holders, key=lambda one: len(one.parts)) in overlaid


def _writable(path: Path) -> bool:
    """Say whether this user could change it, or give itself the right to."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() or os.access(path, os.W_OK)


def _aliases(paths: Iterable[Path], mounts: list[Mount]) -> set[Path]:
    found = {Path(again) for path in paths for again in find_again(str(path), mounts)}
    return {one for one in found if os.path.exists(one)}
