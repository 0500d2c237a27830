"""Jobs of process pools: each job is an execution context, whichever process runs it.

Its name begins with `pool`, and stands for itself: no context of a process goes with it.
"""

import functools

from . import import_hooks, thread_pools

PREFIX = "pool "


def start():
    """Change pools as they are imported."""
    import_hooks.on_import("multiprocessing.pool", _change_pool)
    import_hooks.on_import("concurrent.futures.process", _change_executor)


class Handed:
    """A function as it travels to the process that takes it."""

    def __init__(self, job, function):
        self.job = job
        self.function = function

    def __call__(self, *args, **kwargs):
        return thread_pools.do(self.job, self.function, *args, **kwargs)

    def __repr__(self):
        return repr(self.function)


def _change_pool(module):
    pool = module.Pool
    generate, apply = pool._guarded_task_generation, pool.apply_async

    @functools.wraps(generate)
    def generation(self, result_job, func, iterable):
        # A thread of the pool's runs this: who handed it over is not to be seen, but the job was counted there.
        for job, number, function, args, kwargs in generate(self, result_job, func, iterable):
            name = thread_pools.name(PREFIX, "%s.%s" % (job, number))
            yield job, number, Handed(name, function), args, kwargs

    @functools.wraps(apply)
    def apply_async(self, func, *args, **kwargs):
        return apply(self, Handed(thread_pools.name(PREFIX), func), *args, **kwargs)

    pool._guarded_task_generation, pool.apply_async = generation, apply_async


def _change_executor(module):
    executor = module.ProcessPoolExecutor
    real = executor.submit

    @functools.wraps(real)
    def submit(self, fn, *args, **kwargs):
        return real(self, Handed(thread_pools.name(PREFIX), fn), *args, **kwargs)

    executor.submit = submit
