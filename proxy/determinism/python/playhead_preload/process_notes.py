"""Notes of this process: a file of lines, `word TAB word`, which only one process writes.

No descriptor is held: a program that closes all of them, and opens others, must not find ours among its own.
"""

import os

_FOLDER = os.environ["PLAYHEAD_NOTES"]
_open, _write, _close = os.open, os.write, os.close
_MOST = 100_000
"""Lines, so that a program with endless tasks fills no disk."""


class _Mine:
    context = ""
    lines = 0


def claim(wanted, *words):
    """Take an execution context that no other process has, note `words` about this process, and give the context's name.

    Processes are given the same context where what started them knows nothing of contexts: a shell. They count on.
    """
    number, context = 0, wanted
    while True:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            _close(
                _open(_path(context), flags, 0o644)
            )  # in a container we may be somebody else than who reads it
            break
        except FileExistsError:
            number += 1
            context = "%s+%d" % (wanted, number)
    _Mine.context, _Mine.lines = context, 0
    write("process", *words)
    return context


def context():
    """Give the context of this process."""
    return _Mine.context


def write(*words):
    """Write a line, where that is possible."""
    _Mine.lines += 1
    if _Mine.lines > _MOST:
        return
    if _Mine.lines == _MOST:
        words = "problem", "no more than %d execution contexts are recorded" % (_MOST,)
    line = b"\t".join(word.encode("unicode_escape") for word in words) + b"\n"
    try:
        descriptor = _open(_path(_Mine.context), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            _write(descriptor, line)
        finally:
            _close(descriptor)
    except OSError:
        pass  # then it is missing from the receipt, and the program goes on


def _path(name):
    return os.path.join(_FOLDER, name + ".notes")
