"""Compile a regular expression of a module when it is used for the first time, not when the module is imported.

A command imports some 600 of them and uses a third: most are asked only where a search has found something. Compiling them takes a
tenth of the time of its imports.

1. Lazy are those that a module of `_MODULES` compiles while it is imported, for itself or for a class; what a function compiles is
   compiled at once.
2. What stands for one is a `re.Pattern` to whoever asks for its class, and gives all that one has. Once it was used it is as quick as one.
3. A mistake in one comes up when it is used: the test compiles all of them.

Replaces: `re.compile`. Checked against Python 3.12 and 3.13. Test: tests/proxy/test_lazy_regexes.py.
"""

import copyreg
import re
import sys
from inspect import CO_OPTIMIZED
from typing import Any, TypeGuard

_MODULES = ("playhead.", "cryptography.", "yaml.")
"""Beginnings of their names: ours, and those of which a single expression takes milliseconds."""
_compile = re.compile
_Pattern = re.Pattern


def compile_lazily() -> None:
    """Have the expressions of modules that are imported from now on be compiled late. Twice is once."""
    re.compile = _compile_late


def _compile_late(pattern: Any, flags: Any = 0) -> Any:
    caller = sys._getframe(1)
    by_function = caller.f_code.co_flags & CO_OPTIMIZED
    if (
        not by_function
        and type(pattern) in (str, bytes)
        and caller.f_globals.get("__name__", "").startswith(_MODULES)
    ):
        return LatePattern(pattern, flags)
    return _compile(pattern, flags)


class _Stand:
    """What stands for an expression that is there."""

    _compiled: Any

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return _Pattern

    def __eq__(self, other: object) -> bool:
        return bool(self._compiled == (other._compiled if _is_stand(other) else other))

    def __hash__(self) -> int:
        return hash(self._compiled)

    def __repr__(self) -> str:
        return repr(self._compiled)

    def __copy__(self) -> Any:
        return self._compiled

    def __deepcopy__(self, _: Any) -> Any:
        return self._compiled

    def __reduce__(self) -> Any:
        return copyreg.dispatch_table[_Pattern](self._compiled)


class LatePattern(_Stand):
    """What stands for one that nobody has used so far."""

    def __init__(self, pattern: Any, flags: Any) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        made = _compile(*self._given)
        self.__dict__["_compiled"] = made
        self.__dict__.update((one, getattr(made, one)) for one in _HAS)
        _CLASS.__set__(self, _Stand)  # without `__getattr__`, which slows down each access
        return getattr(self, name)


_CLASS: Any = object.__dict__["__class__"]
_HAS = tuple(name for name in dir(_Pattern) if not name.startswith("_"))


def _is_stand(given: object) -> TypeGuard[_Stand]:
    return issubclass(type(given), _Stand)
