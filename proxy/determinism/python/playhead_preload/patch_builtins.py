"""Replacements for built-in functions."""


class Replaced:
    """A callable that is no function: stored on a class it must not become a method, as a built-in one does not."""

    def __init__(self, call, real):
        self._call = call
        self.__wrapped__ = real
        self.__doc__ = real.__doc__
        self.__name__ = self.__qualname__ = real.__name__
        self.__module__ = getattr(real, "__module__", None)

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __repr__(self):
        return repr(self.__wrapped__)

    def __reduce__(self):
        return self.__name__  # pickled as the built-in one: by its name


def replace(module, **calls):
    """Put functions into a module in place of those it has; others are left out."""
    for name, call in calls.items():
        real = getattr(module, name, None)
        if real is not None:
            setattr(module, name, Replaced(call, real))
