"""Print messages for a person on stderr; a closed stderr never causes a failure.

A reader of stderr that goes away, or a process started without one, is no reason to lose a run, a mode that
was switched, or an exit code.
"""

import contextlib
import os
import sys


def print_status(text: str) -> None:
    """Print a line on stderr, where there is one."""
    # A ValueError is what a closed file gives; with no stderr at all `print` would take stdout.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


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
