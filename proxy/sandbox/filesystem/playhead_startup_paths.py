"""The places that a start of Playhead looks at, besides its own folders: what appears there runs in the next start.

Missing places count as much as files that are there. They follow from how each part looks for its files:

1. the interpreter, for its prefix: landmarks beside its program and its library, and in every folder above these;
2. imports before our first line runs: modules by name in the folders of `PYTHONPATH`, and the user's own folder of packages;
3. the loader of libraries: the folders of `LD_LIBRARY_PATH`, and those that libraries and programs name themselves;
4. OpenSSL, both that of the interpreter and that of `cryptography`: configuration, modules, roots;
5. files that variables name, the roots that the proxy trusts its upstreams by among them (`trust/client_root_certificates.py`), and what is in the
   folders that C compilers and docker load code from (`code_path_variables.py`);
6. programs on `PATH` that we run, and `playhead` itself.

A list by tracing a start would miss the second: imports read folders, and look for no single file. It agrees with such a trace in
tests/proxy/sandbox/filesystem/test_playhead_startup_paths.py.
"""

import contextlib
import os
import platform
import re
import site
import ssl
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from OpenSSL import SSL

from ...determinism.libc.preload_library import PROGRAMS
from ...import_search_path import SEARCHED, imported_early
from ...trust.client_root_certificates import find_read
from .code_path_variables import FILES, find_folders, find_missing
from .protection import loaded_files

_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_ABOVE = (
    # Source: CPython, Modules/getpath.py.
    f"lib/python{_VERSION.replace('.', '')}.zip",
    f"lib/python{_VERSION}/os.py",
    f"lib/python{_VERSION}/os.pyc",
    f"lib/python{_VERSION}/lib-dynload",
)
_BESIDE = ("pyvenv.cfg", "../pyvenv.cfg", "pybuilddir.txt", "Modules/Setup.local")
_PATHS = ("python._pth", f"python{_VERSION}._pth")
_OPENSSL_DIRECTORY, _OPENSSL_MODULES = 4, 8
"""Of OpenSSL_version(3)."""
_NAMED = (
    *("OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES"),
    *("LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES"),
    *("PYTHONHOME", "PYTHONUSERBASE"),
)
_OURS = ("playhead", "bwrap", "docker", "podman", "git", *PROGRAMS)
_SYSTEM = ("/etc/ld.so.preload", "/etc/ld.so.cache")
_MOST_FILES = 2000
"""Of one folder of modules that is searched before ours."""
_NEEDED, _STRINGS, _RPATH, _RUNPATH, _LOAD, _DYNAMIC = 1, 5, 15, 29, 1, 2


def find_startup_places(environ: Mapping[str, str]) -> set[str]:
    """Give every path, there or not; absolute. Blocks, some 20 ms."""
    places = {*_SYSTEM, *_of_the_interpreter(), *_of_imports(), *_of_openssl()}
    places.update(_of_the_loader(environ))
    for name in _NAMED:
        places.update(_absolute(one) for one in re.split("[: ]", environ.get(name, "")) if one)
    places.update(_absolute(environ[name]) for name in FILES if environ.get(name))
    places.update(find_read(environ))
    places.update(find_missing(environ))
    for folder in find_folders(environ, compared=True):
        places.update(_and_below(folder))
    for folder in (environ.get("PATH") or os.defpath).split(os.pathsep):
        places.update(_absolute(os.path.join(folder, name)) for name in _OURS)
    return places


def _absolute(path: str) -> str:
    return os.path.abspath(path or ".")


# ---- the interpreter --------------------------------------------------------------------------------


def _of_the_interpreter() -> Iterator[str]:
    programs = [*_hops(sys.executable), *_hops(getattr(sys, "_base_executable", sys.executable))]
    libraries = [path for path in loaded_files() if "/libpython" in path]
    beside = {os.path.dirname(path) for path in (*programs, *libraries)}
    for folder in beside:
        yield from (os.path.normpath(f"{folder}/{name}") for name in (*_BESIDE, *_PATHS))
    above = {one for folder in beside for one in _and_above(folder)}
    yield from (f"{folder.rstrip('/')}/{name}" for folder in above for name in _ABOVE)


def _hops(path: str) -> Iterator[str]:
    """Yield a program, and each link on the way to it."""
    for _ in range(40):
        yield path
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        except OSError:
            break
    yield os.path.realpath(path)


def _and_above(folder: str) -> Iterator[str]:
    yield folder
    while folder != "/":
        folder = os.path.dirname(folder)
        yield folder


# ---- imports ----------------------------------------------------------------------------------------


def _of_imports() -> Iterator[str]:
    names = {*imported_early(), "sitecustomize", "usercustomize", "playhead"}
    for folder in SEARCHED:
        yield from _modules_in(folder, names)
    if site.ENABLE_USER_SITE:
        user = site.getusersitepackages()
        yield user
        with contextlib.suppress(OSError):
            yield from (f"{user}/{name}" for name in os.listdir(user) if name.endswith(".pth"))


def _modules_in(folder: str, names: set[str]) -> Iterator[str]:
    """Yield the folder where it is missing or an archive, and in it what has one of these names."""
    yield folder
    for place in (folder, f"{folder}/__pycache__"):
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                if name.partition(".")[0] in names:
                    yield from _and_below(f"{place}/{name}")


def _and_below(path: str) -> Iterator[str]:
    yield path
    left = _MOST_FILES
    for place, _, names in os.walk(path):
        yield from (f"{place}/{name}" for name in names)
        left -= len(names)
        if left < 0:
            break


# ---- the loader of libraries ------------------------------------------------------------------------


def _of_the_loader(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield where libraries are looked for that are mapped now. Source: ld.so(8)."""
    mapped = {path for path in loaded_files() if ".so" in os.path.basename(path)}
    folders = {_absolute(one) for one in _split(environ.get("LD_LIBRARY_PATH", ""))}
    names = {os.path.basename(path) for path in mapped}
    for path in {*mapped, os.path.realpath(sys.executable)}:
        found, needed = _read_dynamic(path)
        origin = os.path.dirname(path)
        for text in found:
            text = re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _, here=origin: here, text)  # type: ignore[misc]
            folders.update(_absolute(one) for one in _split(text))
        names.update(needed)
    machine = platform.machine()
    inner = ("", "/tls", f"/{machine}", f"/tls/{machine}")
    for folder in folders:
        yield folder
        yield f"{folder}/glibc-hwcaps"
        with contextlib.suppress(OSError):
            kinds = os.listdir(f"{folder}/glibc-hwcaps")
            yield from (f"{folder}/glibc-hwcaps/{one}/{name}" for one in kinds for name in names)
        there = [one for one in inner if os.path.isdir(f"{folder}{one}")]
        yield from (f"{folder}{one}" for one in inner)
        yield from (f"{folder}{one}/{name}" for one in there for name in names)


def _split(text: str) -> list[str]:
    """Give the folders of a list, of which an empty one is the working folder."""
    return re.split("[:;]", text) if text else []


@cache
def _read_dynamic(path: str) -> tuple[list[str], list[str]]:
    """Give the folders that an ELF file names for its libraries, and the names of these. Source: elf(5).

    It is read once: it is one that this process has mapped, and whether it was changed is found out by others.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return [], []
            at, size, count = (
                struct.unpack_from(form, head, place)[0]
                for form, place in (("<Q", 32), ("<H", 54), ("<H", 56))
            )
            file.seek(at)
            table = file.read(size * count)
            segments = [struct.unpack_from("<IIQQQQ", table, size * n) for n in range(count)]
            dynamic = next(one for one in segments if one[0] == _DYNAMIC)
            file.seek(dynamic[2])
            entries = list(struct.iter_unpack("<QQ", file.read(dynamic[5] // 16 * 16)))
            strings = next(value for tag, value in entries if tag == _STRINGS)
            offset = next(
                one[2] + strings - one[3]
                for one in segments
                if one[0] == _LOAD and one[3] <= strings < one[3] + one[5]
            )
            found: dict[int, list[str]] = {_NEEDED: [], _RPATH: [], _RUNPATH: []}
            for tag, value in entries:
                if tag in found:
                    file.seek(offset + value)
                    found[tag].append(os.fsdecode(file.read(4096).partition(b"\0")[0]))
            return found[_RPATH] + found[_RUNPATH], found[_NEEDED]
    except (OSError, StopIteration, struct.error):
        return [], []


# ---- OpenSSL ----------------------------------------------------------------------------------------


def _of_openssl() -> Iterator[str]:
    paths = ssl.get_default_verify_paths()
    yield from (paths.openssl_cafile, paths.openssl_capath)
    for folder in {os.path.dirname(paths.openssl_cafile), _ask_openssl(_OPENSSL_DIRECTORY)}:
        if folder:
            yield f"{folder}/openssl.cnf"
    if modules := _ask_openssl(_OPENSSL_MODULES):
        yield from (f"{modules}/{name}.so" for name in ("legacy", "fips"))


def _ask_openssl(what: int) -> str:
    """Give a folder that `cryptography`'s OpenSSL was built with."""
    said = SSL.SSLeay_version(what).decode(errors="surrogateescape")
    found = re.search(r'"(/.*)"', said)
    return found[1] if found else ""
