"""Ctrl-C while Playhead is being imported: the process ends with 130, and prints no traceback of the import.

From `main` on an interrupt is an exception, as everywhere in Python. Imports only what every interpreter has built in.
"""

import _signal  # `signal` would import `enum`
import os
from typing import Any

_INTERRUPTED = 130


def _leave(_number: int, _frame: Any) -> None:
    os._exit(_INTERRUPTED)


def end_on_interrupt() -> None:
    """End without a word on Ctrl-C, unless somebody has decided otherwise; `raise_on_interrupt` ends that."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _set(_leave)


def raise_on_interrupt() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _set(_signal.default_int_handler)


def _set(handler: Any) -> None:
    try:
        _signal.signal(_signal.SIGINT, handler)
    except ValueError:  # only the main thread may, and only there an interrupt is raised
        return
