"""The variables of the environment that name folders and files from which programs load code.

A command that may write to such a place decides on the code of whatever program reads the variable next. Playhead itself starts an interpreter,
a C compiler, bubblewrap and docker, any of which may be a script of a shell: what these read is compared after each run. The folders of all
of them are copied in a sandbox, unless the command works in them. `PATH`, `LD_LIBRARY_PATH`, `PYTHONPATH` and
`PYTHONPYCACHEPREFIX` have rules of their own (`playhead_startup_paths.py`, `protection.py`).

Source: gcc's manual, "Environment variables"; ld.so(8), bash(1), perlrun(1), ruby(1), git(1); the manuals
of Node.js, Java, PHP, R, Julia, Guile, Tcl, docker.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Loading(NamedTuple):
    """One variable."""

    program: str
    """That reads it."""
    compared: bool = False
    """Whether a start of Playhead may run that program."""
    inner: str = ""
    """The folder in each that code is loaded from, if that is not the folder itself."""
    is_prefix: bool = False
    """Whether its value is the beginning of paths, and no list."""


VARIABLES: Mapping[str, Loading] = {
    **dict.fromkeys(
        ("COMPILER_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "OBJC_INCLUDE_PATH"),
        Loading("C compilers", compared=True),
    ),
    "CPLUS_INCLUDE_PATH": Loading("C compilers"),
    "GCC_EXEC_PREFIX": Loading("gcc", compared=True, is_prefix=True),
    "DOCKER_CONFIG": Loading("docker", compared=True, inner="cli-plugins"),
    "PERL5LIB": Loading("perl"),
    "PERLLIB": Loading("perl"),
    "RUBYLIB": Loading("ruby"),
    "GEM_PATH": Loading("ruby"),
    "GEM_HOME": Loading("ruby"),
    "NODE_PATH": Loading("node"),
    "CLASSPATH": Loading("java"),
    "GIT_EXEC_PATH": Loading("git"),
    "GIT_TEMPLATE_DIR": Loading("git"),
    "PHP_INI_SCAN_DIR": Loading("php"),
    "R_LIBS": Loading("R"),
    "R_LIBS_USER": Loading("R"),
    "JULIA_DEPOT_PATH": Loading("julia"),
    "GUILE_LOAD_PATH": Loading("guile"),
    "GUILE_LOAD_COMPILED_PATH": Loading("guile"),
    "TCLLIBPATH": Loading("tcl"),
    "GTK_PATH": Loading("GTK"),
    "GIO_EXTRA_MODULES": Loading("GLib"),
    "QT_PLUGIN_PATH": Loading("Qt"),
    "ZDOTDIR": Loading("zsh"),
}
"""By name; the values are lists of folders."""
FILES = ("BASH_ENV", "ENV")
"""Variables that name a file which shells run before a script: programs that Playhead starts may be scripts."""


def find_folders(environ: Mapping[str, str], *, compared: bool = False) -> Iterator[str]:
    """Yield the absolute folders that are there now. compared: only those whose files are compared."""
    for name, variable in VARIABLES.items():
        if compared and not variable.compared:
            continue
        value = environ.get(name, "")
        for part in (value,) if variable.is_prefix else value.split(os.pathsep):
            if os.path.isabs(part):
                folder = os.path.dirname(part) if variable.is_prefix else part
                folder = os.path.normpath(os.path.join(folder, variable.inner))
                if os.path.isdir(folder):
                    yield folder


def find_missing(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the absolute paths of compared variables that are not there: what appears is loaded."""
    for name, variable in VARIABLES.items():
        if variable.compared and not variable.is_prefix:
            for part in environ.get(name, "").split(os.pathsep):
                path = os.path.normpath(os.path.join(part, variable.inner)) if part else ""
                if os.path.isabs(path) and not os.path.exists(path):
                    yield path


def is_apart(folder: Path, working: Path) -> bool:
    """Say whether a command that works in a folder does not work in this one: neither is in the other."""
    return not folder.is_relative_to(working) and not working.is_relative_to(folder)
