"""Execution contexts: names, equal in every run, for the code that reads the clock or asks for randomness.

An execution context is thread, asyncio task and calling module. Threads and tasks are named by counters, in the order in which
they are made; so a clock read by a library or by another task changes nothing for the one that reads the clock.
"""

import sys
from _thread import get_ident

_OURS = frozenset(
    "playhead_preload." + name
    for name in (
        "contexts",
        "clock",
        "entropy",
        "import_hooks",
        "processes",
        "sleeps",
        "other_clocks_and_randomness",
        "patch_builtins",
        "thread_pools",
        "process_pools",
    )
)
_CARRIERS = _OURS | {
    "os",
    "random",
    "secrets",
    "uuid",
    "tempfile",
    "numpy.random",
    "numpy.random.bit_generator",
}
"""Modules that ask for randomness for somebody else."""
MOST = 100_000
"""Contexts that are told apart: each is remembered as long as its process lives."""
_modules = sys.modules
_frame = sys._getframe


_STANDARD = sys.modules["os"].__file__[: -len("os.py")]
_own = {}
"""By the path of a file: whether it is the program's own."""
RUNNING = {}
"""The job that a thread is at, by the thread's ident."""


class _Tasks:
    """Tasks that have a name from elsewhere; several may have the same."""

    names = None
    counts = {}


def start():
    """Forget the parent's tasks after a fork."""
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget():
    _Tasks.names = None
    _Tasks.counts = {}


def here():
    """Give thread and task."""
    threading = _modules.get("threading")
    job = RUNNING.get(get_ident())
    if job is not None:
        thread = job
    elif threading is None:
        thread = "MainThread"
    else:
        found = getattr(threading, "_active", {}).get(get_ident())
        thread = "MainThread" if found is None else getattr(found, "_playhead_name", found.name)
    asyncio = _modules.get("_asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        events = _modules.get("asyncio.tasks")
        try:
            task = None if events is None else events.current_task()
            if task is not None:
                name = task.get_name()
                return thread, name if name.startswith("Task-") else _numbered(task, name)
        except Exception:
            pass  # a task of somebody else's making: those of a thread share an execution context
    return thread, ""


def _numbered(task, name):
    if _Tasks.names is None:
        from weakref import WeakKeyDictionary

        _Tasks.names = WeakKeyDictionary()
    found = _Tasks.names.get(task)
    if found is None:
        number = _Tasks.counts[name] = _Tasks.counts.get(name, 0) + 1
        found = _Tasks.names[task] = "%s#%d" % (name, number)
    return found


def for_clock():
    """Give the context of a clock read."""
    frame = _frame(1)
    name = frame.f_globals.get("__name__")
    while name in _OURS and frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_globals.get("__name__")
    return (*here(), name)


def for_randomness():
    """Give the context of a question for randomness: with the module that asks, and the one on whose behalf."""
    frame = _frame(1)
    name = frame.f_globals.get("__name__")
    while name in _OURS and frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_globals.get("__name__")
    via = name
    while name in _CARRIERS and frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_globals.get("__name__")
    return (*here(), via, name)


def is_own():
    """Say whether the program's own code asks, and no library: what is neither installed nor Python's."""
    frame = _frame(1)
    while frame.f_globals.get("__name__") in _OURS and frame.f_back is not None:
        frame = frame.f_back
    path = frame.f_code.co_filename
    found = _own.get(path)
    if found is None:
        found = not (
            path.startswith("<frozen ")
            or path.startswith(_STANDARD)
            or "site-packages" in path
            or "dist-packages" in path
        )
        if len(_own) < MOST:
            _own[path] = found
    return found


def digest(text):
    """Give a short word that stands for a text."""
    from _blake2 import blake2b

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def text(context):
    """Write an execution context as one text."""
    return "|".join(map(str, context))
