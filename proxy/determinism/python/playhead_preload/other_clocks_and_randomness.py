"""What else a program finds of time and chance: monotonic clocks, files of the kernel's randomness, SQLite, process ids.

Monotonic clocks are recorded for the program's own code. Libraries keep the real ones: they wait by them, and a wait on a
recorded clock would be over before it began, or never. What cannot be repeated and is used by the program's own code is noted as a
source; a replay of such a program is not called whole.
"""

import os
import time

from . import contexts, import_hooks, process_notes
from .patch_builtins import Replaced, replace

_CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time")
_UUID = "/proc/sys/kernel/random/uuid"
_FILES = frozenset(["/dev/urandom", "/dev/random", _UUID])
_NANO = 1_000_000_000
_told = set()


def start():
    """Take the place of what can be repeated, and watch what cannot."""
    if os.environ.get("PLAYHEAD_CLOCK", "off") != "off":
        _replace_clocks()
    if os.environ.get("PLAYHEAD_SEED"):
        _replace_open()
        import_hooks.on_import("sqlite3", _change_sqlite)
    _watch(os, "getpid", "getppid", "times")


def _note(name):
    """Note a source that cannot be repeated, once."""
    if name not in _told:
        _told.add(name)
        process_notes.write("source", name)


# ---- clocks that only go on


def _replace_clocks():
    from . import clock

    def of(name):
        real, real_ns = getattr(time, name), getattr(time, name + "_ns")

        def seconds():
            return clock.read(name, real_ns) / _NANO if contexts.is_own() else real()

        def nanoseconds():
            return clock.read(name, real_ns) if contexts.is_own() else real_ns()

        replace(time, **{name: seconds, name + "_ns": nanoseconds})

    for name in _CLOCKS:
        if hasattr(time, name + "_ns"):
            of(name)
    if not hasattr(time, "clock_gettime_ns"):
        return
    told, told_ns = time.clock_gettime, time.clock_gettime_ns
    wall = {getattr(time, name, None) for name in ("CLOCK_REALTIME", "CLOCK_TAI")}

    def clock_gettime(which):
        if which in wall or not contexts.is_own():
            return told(which)
        return clock.read("clock %r" % (which,), lambda: told_ns(which)) / _NANO

    def clock_gettime_ns(which):
        if which in wall or not contexts.is_own():
            return told_ns(which)
        return clock.read("clock %r" % (which,), lambda: told_ns(which))

    replace(time, clock_gettime=clock_gettime, clock_gettime_ns=clock_gettime_ns)


# ---- files of the kernel's randomness


def _replace_open():
    import builtins
    import io

    real, real_os = builtins.open, os.open

    class Drawn(io.RawIOBase):
        name = "/dev/urandom"

        def readable(self):
            return True

        def readinto(self, target):
            target[:] = os.urandom(len(target))
            return len(target)

    def made(mode, buffering):
        if "b" not in mode:
            return io.TextIOWrapper(io.BufferedReader(Drawn()))
        return Drawn() if buffering == 0 else io.BufferedReader(Drawn())

    def uuid(mode):
        from uuid import UUID

        text = "%s\n" % (UUID(bytes=os.urandom(16), version=4),)
        return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)

    def open(file, mode="r", buffering=-1, *args, **kwargs):
        path = _path(file)
        if path in _FILES and isinstance(mode, str) and not set(mode) & set("wax+"):
            return uuid(mode) if path == _UUID else made(mode, buffering)
        return real(file, mode, buffering, *args, **kwargs)

    def os_open(path, *args, **kwargs):
        if _path(path) in _FILES:
            _note("%s by a descriptor" % (_path(path),))
        return real_os(path, *args, **kwargs)

    replace(builtins, open=open)
    io.open = builtins.open
    replace(os, open=os_open)


def _path(file):
    try:
        return os.fsdecode(file)
    except TypeError:  # a descriptor
        return ""


# ---- SQLite


def _change_sqlite(module):
    """Have connections draw from us: SQLite reads the kernel's randomness once, and counts on from that."""
    real = module.connect

    def connect(*args, **kwargs):
        made = real(*args, **kwargs)
        try:
            made.create_function("random", 0, _draw_number)
            made.create_function("randomblob", 1, _draw_blob)
        except Exception:
            _note("random() of SQLite")
        return made

    module.connect = Replaced(connect, real)
    if hasattr(module, "dbapi2"):
        module.dbapi2.connect = module.connect


def _draw_number():
    return int.from_bytes(os.urandom(8), "little", signed=True)


def _draw_blob(size):
    return os.urandom(max(1, int(size or 0)))


# ---- what cannot be repeated


def _watch(module, *names):
    for name in names:
        real = getattr(module, name, None)
        if real is not None:
            setattr(module, name, Replaced(_watched(real, "%s.%s" % (module.__name__, name)), real))


def _watched(real, name):
    def call(*args, **kwargs):
        if contexts.is_own():
            _note(name)
        return real(*args, **kwargs)

    return call
