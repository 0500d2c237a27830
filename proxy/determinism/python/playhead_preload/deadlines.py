"""Deadlines that a library passes to its C core as wall time: both ends use the real clock.

By the clock of the tape they would be over before they began, or never.
"""

import time

from . import clock, import_hooks
from .patch_builtins import Replaced

_MODULES = ("grpc._channel", "grpc._common", "grpc._utilities", "grpc._server", "grpc.aio._utils")


def _seconds():
    return clock.real_ns() / 1e9


class _RealTime:
    """The module `time`, whose clock is the real one."""

    time = Replaced(_seconds, getattr(time.time, "__wrapped__", time.time))

    def __getattr__(self, name):
        return getattr(time, name)


def start():
    """Change them as they are imported."""
    for name in _MODULES:
        import_hooks.on_import(name, _change)


def _change(module):
    module.time = _RealTime()
