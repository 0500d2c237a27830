"""Jobs that are handed to pools of threads: which thread takes one is luck, so a job is a lane of its own.

It is named for who handed it over, and counted there. Threads that were given the same name are counted, too.
"""

import functools
from _thread import get_ident

from . import hooks

_running = {}
"""The job of a thread, by its ident."""


class _Handed:
    counts = {}


def start():
    """Change pools as they are imported."""
    hooks.on_import("threading", _change_threads)
    hooks.on_import("concurrent.futures.thread", _change_pool)
    hooks.on_import("anyio.to_thread", _change_anyio)
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget():
    _Handed.counts = {}
    mine = _running.get(get_ident())
    _running.clear()
    if mine is not None:
        _running[get_ident()] = mine


def find():
    """Give the name of the job that this thread is at, if any."""
    return _running.get(get_ident())


def _name():
    from . import lanes

    where = lanes.here()
    number = _Handed.counts[where] = _Handed.counts.get(where, 0) + 1
    thread, task = where
    if thread.startswith("job "):
        thread = "job " + lanes.digest(thread)  # jobs that hand on jobs
    return "job %s|%s#%d" % (thread, task, number)


def _do(job, function, *args, **kwargs):
    thread = get_ident()
    before = _running.get(thread)
    _running[thread] = job
    try:
        return function(*args, **kwargs)
    finally:
        if before is None:
            _running.pop(thread, None)
        else:
            _running[thread] = before


def _change_pool(module):
    item = module._WorkItem
    make, run = item.__init__, item.run

    @functools.wraps(make)
    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self._playhead_job = _name()

    @functools.wraps(run)
    def ran(self, *args, **kwargs):
        return _do(self._playhead_job, run, self, *args, **kwargs)

    item.__init__, item.run = made, ran


def _change_anyio(module):
    real = module.run_sync

    @functools.wraps(real)
    async def run_sync(func, *args, **kwargs):
        return await real(functools.partial(_do, _name(), func), *args, **kwargs)

    module.run_sync = run_sync


def _change_threads(module):
    real = module.Thread.start
    counts = {}

    @functools.wraps(real)
    def start(self):
        if self.name in counts:
            self._playhead_name = "%s#%d" % (self.name, counts[self.name] + 1)
        counts[self.name] = counts.get(self.name, 0) + 1
        real(self)

    module.Thread.start = start
