"""Ctrl-C while Playhead is being imported: the process ends with 130, and prints no traceback of the import.

From `main` on an interrupt is an exception, as everywhere in Python. Imports only what every interpreter has built in.
"""

import _signal  # type: ignore[import-not-found]  # built in; `signal` would import `enum` first
import os

_INTERRUPTED = 130


def _leave(_number: int, _frame: object) -> None:
    os._exit(_INTERRUPTED)


def end_on_interrupt() -> None:
    """End without a word on Ctrl-C, unless somebody has decided otherwise; `raise_on_interrupt` ends that."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _set(_leave)


def raise_on_interrupt() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _set(_signal.default_int_handler)


def _set(handler: object) -> None:
    try:
        _signal.signal(_signal.SIGINT, handler)
    except ValueError:  # only the main thread may, and only there an interrupt is raised
        return
