"""When the interpreter looks for garbage: not while a command is being imported, and seldom after that.

Modules, classes and functions are made by the hundred thousand then, and none of them is garbage: to look for some is a
fifteenth of the time in which `playhead record` starts.
"""

import gc

_IMPORTING = 2_000_000
_MANY_OBJECTS = 50_000
"""New objects after which some is looked for; for each 2000, as by default, a proxy spends a fifteenth of its time on it."""


def wait_for_imports() -> None:
    """Look for none; `look` ends that."""
    gc.set_threshold(_IMPORTING, *gc.get_threshold()[1:])


def look() -> None:
    """Look for some from now on, and never at what there is now."""
    if gc.get_threshold()[0] == _IMPORTING:
        gc.freeze()
        gc.set_threshold(_MANY_OBJECTS, *gc.get_threshold()[1:])
