"""Short sleeps: sleep a thousandth of the requested time, and advance the thread's monotonic clock by the rest.

So `while time.monotonic() < deadline: poll(); time.sleep(1)` polls as often as it did. Waits for something (locks,
queues, `select`, timeouts) stay real, and so does the clock of event loops: tasks sleep a thousandth, in their order.
"""

import time
from _thread import _local

from . import import_hooks
from .patch_builtins import replace

FACTOR = 1000
_skipped = _local()


def start():
    """Take the place of `time.sleep`, `asyncio.sleep` and the monotonic clocks."""
    _replace_time()
    import_hooks.on_import("asyncio.tasks", _change_asyncio)


def _replace_time():
    real = {name: getattr(time, name) for name in ("sleep", "monotonic", "perf_counter")}
    real_ns = {name: getattr(time, name + "_ns") for name in ("monotonic", "perf_counter")}

    def sleep(secs):
        if not isinstance(secs, (int, float)) or not secs > 0:
            return real["sleep"](secs)  # which says what is wrong with it
        real["sleep"](secs / FACTOR)
        rest = int(secs * 1_000_000_000) * (FACTOR - 1) // FACTOR
        _skipped.ns = getattr(_skipped, "ns", 0) + rest

    def monotonic():
        return real["monotonic"]() + getattr(_skipped, "ns", 0) / 1e9

    def perf_counter():
        return real["perf_counter"]() + getattr(_skipped, "ns", 0) / 1e9

    def monotonic_ns():
        return real_ns["monotonic"]() + getattr(_skipped, "ns", 0)

    def perf_counter_ns():
        return real_ns["perf_counter"]() + getattr(_skipped, "ns", 0)

    replace(
        time,
        sleep=sleep,
        monotonic=monotonic,
        monotonic_ns=monotonic_ns,
        perf_counter=perf_counter,
        perf_counter_ns=perf_counter_ns,
    )


def _change_asyncio(module):
    real = module.sleep

    async def sleep(delay, result=None, **more):
        """Coroutine that completes after a given time (in seconds)."""
        if isinstance(delay, (int, float)) and delay > 0:
            delay /= FACTOR
        return await real(delay, result, **more)

    sleep.__module__, sleep.__qualname__ = real.__module__, real.__qualname__
    module.sleep = sleep
