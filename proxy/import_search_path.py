"""Where this process imports from: its installation, and no folder that its environment names.

A folder of `PYTHONPATH`, as `.` or `src`, is the agent's, and a command may write to it. Of what is there the interpreter imports
`sitecustomize` and its like before our first line; from here on nothing more. Imports only what every interpreter has imported by now.
"""

import os
import sys

_EARLY = frozenset(name.partition(".")[0] for name in list(sys.modules))


def _named() -> list[str]:
    given = os.environ.get("PYTHONPATH")
    if not given or sys.flags.ignore_environment:
        return []
    return list(dict.fromkeys(os.path.abspath(one or ".") for one in given.split(os.pathsep)))


SEARCHED: tuple[str, ...] = tuple(_named())
"""The folders and archives that the environment names, absolute, and there or not."""


def imported_early() -> frozenset[str]:
    """Give the names of modules that may be imported from those before, or, where we come from one of them, at any time."""
    if any(_is_ours(folder) for folder in SEARCHED):
        return _EARLY | frozenset(name.partition(".")[0] for name in list(sys.modules))
    return _EARLY


def leave_python_path() -> None:
    """Import nothing more from the folders that the environment names, unless Playhead itself is installed in one."""
    if any(_is_ours(folder) for folder in SEARCHED):
        return
    own = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    sys.path[:] = [
        path
        for path in sys.path
        if os.path.abspath(path) not in SEARCHED
        or any(f"{os.path.realpath(path)}/".startswith(f"{one}/") for one in own)
    ]


def _is_ours(folder: str) -> bool:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.realpath(os.path.dirname(package)) == os.path.realpath(folder)
