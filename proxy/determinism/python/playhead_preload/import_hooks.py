"""Patch a module right after the program imports it; the preload itself imports nothing for that."""

import sys

_WAITING = {}
"""Functions by module: one before it runs, one after."""


def on_import(name, after, before=None):
    """Have `after(module)` called once the module is there, `before()` before it runs."""
    if name in sys.modules:
        _call(name, after, sys.modules[name])
    else:
        _WAITING[name] = (before, after)


def start():
    """Watch imports from now on."""
    sys.meta_path.insert(0, _Finder())


def _call(name, function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        from . import process_notes

        process_notes.write("problem", "%s: %s" % (name, error))


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in _WAITING:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(name, spec.loader)
        return spec


class _Loader:
    def __init__(self, name, real):
        self._name, self._real = name, real

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        # The module shall not see who loaded it.
        module.__spec__.loader = module.__loader__ = self._real
        # Only now: many look for a module and do not import it, or not yet.
        before, after = _WAITING.pop(self._name, (None, None))
        if before is not None:
            _call(self._name, before)
        self._real.exec_module(module)
        if after is not None:
            _call(self._name, after, module)

    def __getattr__(self, name):
        return getattr(self._real, name)
