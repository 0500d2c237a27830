"""The wall clock: real and recorded, or replayed. Sleeps stay real; for monotonic clocks see `other_clocks_and_randomness.py`.

A record of the journal: number of the context (4 bytes), nanoseconds since 1970 (8), little-endian. What contexts the
numbers stand for is among the notes. It is written through a mapping of the file: quick, there after a kill, and
no descriptor that the program could close or take for its own.

The journal to read is sorted by execution context: for each context the length of its text (4), how many values (4), text, values.
If the clock is read more often than recorded: the last value told goes on by a microsecond a read, and the notes say so.
"""

import gc
import mmap
import os
import sys
import time
from _functools import partial
from _struct import Struct
from itertools import count

from . import contexts, import_hooks, process_notes
from .patch_builtins import Replaced, replace

_RECORD = Struct("<IQ")
_VALUE = Struct("<Q")
_HEAD = Struct("<II")
_PIECE = 16384
"""Records of one mapping: a multiple of any page in bytes."""
_MOST = 1 << 22
"""Records of one process: 48 MiB."""
_REAL = 0x706C6179
"""The clock by which the library for C tells the real time (`../../libc/clock.c`); without it there is no such."""
_real_ns = time.time_ns
_NANO = 1_000_000_000
# As they were at the start: a program may clear its variables, and fork.
_WRITES = os.environ.get("PLAYHEAD_CLOCK") == "write"
_NOTES = os.environ["PLAYHEAD_NOTES"]
_TAPE = os.environ.get("PLAYHEAD_TAPE", "")
_START_NS = int(os.environ.get("PLAYHEAD_START", "0"))


class _Writer:
    """Real time, written down."""

    def __init__(self):
        self._path = os.path.join(_NOTES, process_notes.context() + ".looks")
        self._pieces = {}
        self._numbers = {}
        self._contexts = count(1)
        self._records = count()

    def read(self, context, real_ns):
        now = real_ns()
        number = self._numbers.get(context)
        if number is None:
            if len(self._numbers) >= contexts.MOST:
                return now  # the notes say so
            number = self._numbers[context] = next(self._contexts)
            process_notes.write("lane", str(number), contexts.text(context))
        # Counted in one step, so that neither threads nor signals need a lock.
        place = next(self._records)
        piece = self._pieces.get(place // _PIECE)
        if piece is None:
            piece = self._map(place // _PIECE)
        if piece is not False:
            _RECORD.pack_into(piece, place % _PIECE * _RECORD.size, number, now)
        return now

    def _map(self, which):
        piece = False
        if which < _MOST // _PIECE:
            size = _PIECE * _RECORD.size
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    if os.fstat(descriptor).st_size < (which + 1) * size:
                        # Taken now: a page for which there is no room kills the program (SIGBUS).
                        if hasattr(os, "posix_fallocate"):
                            os.posix_fallocate(descriptor, which * size, size)
                        else:
                            os.ftruncate(descriptor, (which + 1) * size)
                    piece = mmap.mmap(descriptor, size, offset=which * size)
                finally:
                    os.close(descriptor)
            except OSError as error:
                process_notes.write(
                    "problem", "the journal cannot be written: %s" % (error.strerror,)
                )
        else:
            if which == _MOST // _PIECE:
                process_notes.write("problem", "the journal is full: %d clock reads" % (_MOST,))
        self._pieces[which] = piece
        self._pieces.pop(which - 2, None)
        return piece


class _Reader:
    """What was written down, context by context."""

    def __init__(self):
        self._values = {}
        self._last = _START_NS
        self._missing = {}
        self._monotonic = {}
        self._pools_read = False
        self._load(process_notes.context())

    def _load(self, name):
        path = os.path.join(_TAPE, name + ".journal")
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        place = 0
        while place < len(data):
            length, number = _HEAD.unpack_from(data, place)
            begin = place + _HEAD.size + length
            place = begin + number * _VALUE.size
            text = data[begin - length : begin].decode("utf-8", "surrogatepass")
            self._values[text] = _VALUE.iter_unpack(data[begin:place])

    def read(self, context, real_ns):
        values = self._values.get(context)
        if values is None:
            text = contexts.text(context)
            if text.startswith("pool ") and not self._pools_read:
                # Threads that come here at the same time each read it: that is harmless, and locks in signals are not.
                self._load("pools")
                self._pools_read = True
            values = self._values[context] = self._values.pop(text, iter(()))
        found = next(values, None)
        wall = real_ns is _real_ns
        if found is not None:
            if wall:
                self._last = found[0]
            else:
                self._monotonic[context] = found[0]
            return found[0]
        real = 0 if wall else real_ns()
        if context not in self._missing:
            self._missing[context] = real
            process_notes.write("exhausted", contexts.text(context))
        if wall:
            self._last += 1000
            return self._last
        # It goes on as the real one does: somebody may wait by it.
        begun = self._missing[context]
        return self._monotonic.get(context, begun) + real - begun


class _Now:
    clock = None
    methods = before = {}
    """Of `datetime`: as they are, and those that we replaced."""


def _now_ns():
    try:
        return _Now.clock.read(contexts.for_clock(), _real_ns)
    except Exception as error:
        process_notes.write("problem", "a read of the real clock: %s" % (error,))
        return _real_ns()


def read(name, real_ns):
    """Give nanoseconds of a clock that only goes on, which has contexts of its own.

    real_ns: reads it.
    """
    try:
        return _Now.clock.read((*contexts.for_clock(), name), real_ns)
    except Exception as error:
        process_notes.write("problem", "a read of the real clock: %s" % (error,))
        return real_ns()


def real_ns():
    """Give the real time."""
    return _real_ns()


def find_real():
    """Have reads of the real clock go past the library for C, which is to know that this process has a preload."""
    global _real_ns
    try:
        time.clock_gettime_ns(_REAL)
        _real_ns = partial(time.clock_gettime_ns, _REAL)
    except (AttributeError, OSError):
        pass  # it is not there


def _begin():
    _Now.clock = _Writer() if _WRITES else _Reader()


def start():
    """Take the place of the wall clock in this process and those it forks."""
    _begin()
    if hasattr(os, "register_at_fork"):
        from . import processes

        processes.after_fork.append(_begin)
    _replace_time()
    _replace_datetime()
    import_hooks.on_import("time_machine", _stepped_aside, _step_aside)


def _replace_time():
    real = {name: getattr(time, name, None) for name in dir(time)}
    wall = {getattr(time, name, None) for name in ("CLOCK_REALTIME", "CLOCK_TAI")} - {None}

    def seconds():
        return _now_ns() / _NANO

    def given(secs):
        return seconds() if secs is None else secs

    def localtime(secs=None):
        return real["localtime"](given(secs))

    def gmtime(secs=None):
        return real["gmtime"](given(secs))

    def ctime(secs=None):
        return real["ctime"](given(secs))

    def asctime(tuple=None):
        return real["asctime"](localtime() if tuple is None else tuple)

    def strftime(format, tuple=None):
        return real["strftime"](format, localtime() if tuple is None else tuple)

    def clock_gettime(clock):
        return seconds() if clock in wall else real["clock_gettime"](clock)

    def clock_gettime_ns(clock):
        return _now_ns() if clock in wall else real["clock_gettime_ns"](clock)

    replace(
        time,
        time=seconds,
        time_ns=_now_ns,
        localtime=localtime,
        gmtime=gmtime,
        ctime=ctime,
        asctime=asctime,
        strftime=strftime,
        clock_gettime=clock_gettime,
        clock_gettime_ns=clock_gettime_ns,
    )


def _replace_datetime():
    """Give the real type other methods: its name, its subclasses and its pickles stay what they are.

    `today` of `date` and `datetime` asks `time.time`.
    """
    try:
        from _datetime import datetime, timedelta
    except ImportError:
        return  # the one in Python asks `time.time`

    def now(cls, tz=None):
        """Returns new datetime object representing current time local to tz."""
        micro = _now_ns() // 1000
        made = cls.fromtimestamp(micro // 1_000_000, tz)
        return made.replace(microsecond=micro % 1_000_000)

    def utcnow(cls):
        """Return a new datetime representing UTC day and time."""
        return cls(1970, 1, 1) + timedelta(microseconds=_now_ns() // 1000)

    methods = gc.get_referents(datetime.__dict__)[0]
    if type(methods) is not dict:
        raise TypeError("datetime cannot be changed")
    _Now.methods, _Now.before = methods, {name: methods[name] for name in ("now", "utcnow")}
    for function in (now, utcnow):
        function.__qualname__ = "datetime." + function.__name__
        methods[function.__name__] = classmethod(function)
    _forget_methods()


def _step_aside():
    """Put all back: `time_machine` writes into what it takes for the interpreter's own functions."""
    for name, value in list(vars(time).items()):
        if isinstance(value, Replaced):
            setattr(time, name, value.__wrapped__)
    _Now.methods.update(_Now.before)
    _forget_methods()


def _stepped_aside(_module):
    process_notes.write(
        "problem", "time_machine needs the real clock, and has it from its import on"
    )


def _forget_methods():
    # The interpreter may remember the methods from before.
    forget = getattr(sys, "_clear_internal_caches", None) or getattr(sys, "_clear_type_cache", None)
    if forget is not None:
        forget()
