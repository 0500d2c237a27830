"""Print messages for a person on stderr; a stderr that is closed, or that nobody reads, never causes a failure.

A reader of stderr that goes away or falls asleep, or a process started without one, is no reason to lose a run, a mode
that was switched, or an exit code, or to keep clients waiting.
"""

import contextlib
import logging
import os
import queue
import sys
import threading
from typing import TextIO

LOG_FORMAT = "playhead: %(message)s"
_MOST_LINES = 10_000
"""Messages that wait for a reader of stderr; further ones are dropped, and counted."""
_LAST_S = 1.0
"""Longest wait for that reader once we stop."""


def print_status(text: str) -> None:
    """Print a line on stderr, where there is one."""
    # A ValueError is what a closed file gives; with no stderr at all `print` would take stdout.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal that can do more than print lines."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def wants_colour(stream: TextIO | None) -> bool:
    """Say whether text on a stream may be coloured: at a terminal, unless `NO_COLOR` is set and not empty (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def write_all(number: int, data: bytes) -> None:
    """Write all of a text to a file, by its number; waits for its reader.

    Raises: OSError.
    """
    while data:
        data = data[os.write(number, data) :]


def empty_stderr() -> None:
    """Write the text that stderr still buffers, or drop the text if nobody reads it.

    At its own exit, the interpreter would fail to write the text, and replace the exit code with 120.
    """
    if sys.stderr is not None:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def fill_standard_files() -> None:
    """Open what stands for stdin, stdout and stderr where we were started without.

    Else the next file opened, as the store's, would get their number, and whatever a child or library prints.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is taken; those below are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


class BackgroundStderr(logging.Handler):
    """Write messages to stderr on a thread, so that a pipe that is full keeps no client waiting."""

    def __init__(self) -> None:
        """Start the thread."""
        super().__init__()
        self._lines: queue.Queue[str | threading.Event] = queue.Queue(_MOST_LINES)
        self._dropped = 0
        threading.Thread(target=self._write, name="playhead-stderr", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a message written, or dropped where too many wait."""
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a moment for the messages to be written."""
        written = threading.Event()
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(written)
            written.wait(_LAST_S)
        super().close()

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                line += f"\nplayhead: {dropped} messages were dropped: stderr was not read"
            # Not through `sys.stderr`, whose lock a thread that waits would keep for ever.
            data = line.encode(errors="backslashreplace") + b"\n"
            with contextlib.suppress(OSError):
                write_all(2, data)
