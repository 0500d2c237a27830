"""Jobs of thread pools: each job is an execution context, because the choice of the thread is random.

It is named for who handed it over, and counted there. Threads that were given the same name are counted, too.
"""

import functools
from _thread import get_ident

from . import contexts, import_hooks, process_notes


class _Handed:
    counts = {}


def start():
    """Change pools as they are imported."""
    import_hooks.on_import("threading", _change_threads)
    import_hooks.on_import("concurrent.futures.thread", _change_pool)
    import_hooks.on_import("anyio.to_thread", _change_anyio)
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget():
    _Handed.counts = {}
    mine = contexts.RUNNING.get(get_ident())
    contexts.RUNNING.clear()
    if mine is not None:
        contexts.RUNNING[get_ident()] = mine


def name(prefix="job ", number=None):
    """Name a job after who hands it over, counted there unless it has a number.

    prefix: `pool ` where another process may take it: then that of this process is part of the name.
    """
    if number is not None:
        return "%s%s|%s" % (prefix, process_notes.context(), number)
    thread, task = where = contexts.here()
    _Handed.counts[where] = _Handed.counts.get(where, 0) + 1
    if thread.startswith(("job ", "pool ")):  # jobs that hand on jobs
        prefix = thread[: thread.index(" ") + 1] if prefix == "job " else prefix
        thread = contexts.digest(thread)
    elif prefix != "job ":
        thread = "%s|%s" % (process_notes.context(), thread)
    return "%s%s|%s#%d" % (prefix, thread, task, _Handed.counts[where])


def do(job, function, *args, **kwargs):
    """Call a function as that job."""
    thread = get_ident()
    before = contexts.RUNNING.get(thread)
    contexts.RUNNING[thread] = job
    try:
        return function(*args, **kwargs)
    finally:
        if before is None:
            contexts.RUNNING.pop(thread, None)
        else:
            contexts.RUNNING[thread] = before


def _change_pool(module):
    item = module._WorkItem
    make, run = item.__init__, item.run

    @functools.wraps(make)
    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self._playhead_job = name()

    @functools.wraps(run)
    def ran(self, *args, **kwargs):
        return do(self._playhead_job, run, self, *args, **kwargs)

    item.__init__, item.run = made, ran


def _change_anyio(module):
    real = module.run_sync

    @functools.wraps(real)
    async def run_sync(func, *args, **kwargs):
        return await real(functools.partial(do, name(), func), *args, **kwargs)

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
