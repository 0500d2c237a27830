"""Child processes: each gets an execution context and the preload, even if it is given another environment."""

import os
import sys
from _thread import allocate_lock, get_ident

from . import contexts, import_hooks, process_notes
from .patch_builtins import Replaced

after_fork = []
"""Called in a forked child, once it has its context."""
_NAMES = (
    "PLAYHEAD_CLOCK",
    "PLAYHEAD_SEED",
    "PLAYHEAD_NOTES",
    "PLAYHEAD_TAPE",
    "PLAYHEAD_START",
    "PLAYHEAD_SLEEPS",
    "PLAYHEAD_LIBRARY",
    "PLAYHEAD_NODE",
    "PLAYHEAD_PYTHON",
    "PYTHONHASHSEED",
)
_VALUES = {name: os.environ[name] for name in _NAMES if name in os.environ}
_PYTHON = os.environ.get("PLAYHEAD_PYTHON", "")
_LIBRARY = os.environ.get("PLAYHEAD_LIBRARY", "")
_NODE = os.environ.get("PLAYHEAD_NODE", "")
_MOST_LENGTH = 180
"""Of an execution context: a journal's name has 200 at most, with what is put behind it."""


class _Children:
    counts = {}
    forking = {}
    """The contexts of those that are being forked, by the thread that does."""


def start():
    """Watch over what is started from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_forked, after_in_child=_born)
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            setattr(os, name, Replaced(_spawning(getattr(os, name)), getattr(os, name)))
    execve = getattr(os, "execve", None)
    for name in ("execv", "execve"):
        if hasattr(os, name):
            real = getattr(os, name)
            setattr(os, name, Replaced(_executing(execve, real), real))
    if hasattr(os, "system"):
        os.system = Replaced(_shell(os.system), os.system)
    import_hooks.on_import("_posixsubprocess", _change_fork_exec)


def _child(program, paths=()):
    """Make the context of a child, from where it is started: threads and tasks count for themselves.

    paths: where the program may be; it is told of only if it is there. Many are tried before one is found.
    """
    thread, task = contexts.here()
    number = _Children.counts[thread, task] = _Children.counts.get((thread, task), 0) + 1
    context = "%s.%d" % (process_notes.context(), number)
    if thread.startswith("pool "):  # whichever process has it
        context = "0.%d-%s" % (number, contexts.digest(thread + "|" + task))
    elif thread != "MainThread" or task:
        context += "-" + contexts.digest(thread + "|" + task)
    if len(context) > _MOST_LENGTH:
        context = "0.p-" + contexts.digest(context)
    program = os.path.basename(os.fsdecode(program))
    if not paths or any(os.access(path, os.X_OK) for path in paths):
        process_notes.write("child", context, program)
    return context


def _before_fork():
    _Children.forking[get_ident()] = _child("fork")


def _forked():
    _Children.forking.pop(get_ident(), None)


def _born():
    context = _Children.forking[get_ident()]
    _Children.forking = {}
    _Children.counts = {}
    os.environ["PLAYHEAD_LANE"] = context
    try:
        process_notes.claim(context, "python", "%d.%d.%d" % sys.version_info[:3])
    except OSError:
        pass  # whoever started us is gone, and the folder with it
    for function in after_fork:
        function()


def _variables(environ, program, paths):
    """Give a child's variables with ours among them."""
    made = dict(environ)
    made.update(_VALUES)
    made["PLAYHEAD_LANE"] = _child(program, paths)
    folders = [path for path in made.get("PYTHONPATH", "").split(os.pathsep) if path]
    if _PYTHON and _PYTHON not in folders:
        made["PYTHONPATH"] = os.pathsep.join([_PYTHON, *folders])
    if _LIBRARY and _LIBRARY not in made.get("LD_PRELOAD", ""):
        rest = made.get("LD_PRELOAD", "")
        made["LD_PRELOAD"] = _LIBRARY + ":" + rest if rest else _LIBRARY
    if _NODE and _NODE not in made.get("NODE_OPTIONS", ""):
        made["NODE_OPTIONS"] = (made.get("NODE_OPTIONS", "") + " " + _NODE).strip()
    return made


def _changed(environ, program):
    """Give a child's variables with ours, or as they are where they are none: whoever is called says so."""
    try:
        given = os.environ if environ is None else environ
        text = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
        named = os.fsdecode(program)
        return _variables(text, named, [named] if os.sep in named else [])
    except Exception as error:
        process_notes.write("problem", "a child without the preload: %s" % (error,))
        return environ


def _spawning(real):
    def spawn(path, argv, env=None, **kwargs):
        return real(path, argv, _changed(env, path), **kwargs)

    return spawn


def _executing(execute, real):
    def changed(path, argv, *env, **named):
        given = env[0] if env else named.get("env")
        made = _changed(given, path) if len(env) < 2 else None
        return real(path, argv, *env, **named) if made is None else execute(path, argv, made)

    return changed


def _shell(real):
    lock = allocate_lock()

    def system(command):
        with lock:
            os.putenv("PLAYHEAD_LANE", _child("sh"))
        return real(command)

    return system


def _change_fork_exec(module):
    """`subprocess` and `multiprocessing` start what they start with this."""
    real = module.fork_exec

    def fork_exec(*args):
        try:
            environ = dict(os.environ) if args[5] is None else _split(args[5])
            # In another folder it may be there after all.
            paths = () if args[4] is not None else args[1]
            made = _variables(environ, args[0][0], paths)
            rows = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in made.items()]
        except Exception as error:
            process_notes.write("problem", "a child without the preload: %s" % (error,))
            return real(*args)
        return real(*args[:5], rows, *args[6:])

    module.fork_exec = Replaced(fork_exec, real)


def _split(rows):
    pairs = (os.fsdecode(row).partition("=") for row in rows)
    return {name: value for name, _, value in pairs}
