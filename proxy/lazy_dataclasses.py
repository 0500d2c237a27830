"""Compile each method of a dataclass when it is called for the first time, not when its module is imported.

Nine tenths of what a dataclass costs an import is the compilation of its methods: half a millisecond for each of 350 classes, of
which a command uses a fourth, and of most of those nothing but `__init__`. Until then a class has a stand-in for each method, which
is replaced when somebody asks for it.

1. A class behaves as ever: its fields and its errors are made where they always were, and a method is compiled before anybody gets
   hold of it, be it to look at. Only a class without a docstring has a shorter one made for it.
2. Two threads may replace the same stand-in at once: both put the same there.
3. Of another version of Python than the one that this was checked against nothing is replaced: its commands start later.

Replaces: `dataclasses._FuncBuilder.add_fns_to_class`. Checked against Python 3.13. Test: tests/proxy/test_lazy_dataclasses.py.
"""

import dataclasses
import sys
from collections.abc import Callable
from copy import copy
from typing import Any

CHECKED = (3, 13)


def compile_lazily() -> None:
    """Have the dataclasses that are made from now on compile their methods late. Twice is once."""
    builder = getattr(dataclasses, "_FuncBuilder", None)
    if sys.version_info[:2] == CHECKED and builder is not None:
        builder.add_fns_to_class = _add_stand_ins


def _add_stand_ins(builder: Any, made: type) -> None:
    taken = [name for name in builder.names if name in made.__dict__]
    if any(builder.overwrite_errors.get(name) for name in taken):
        _add(builder, made)  # which says what is wrong
        return
    for name, source in zip(builder.names, builder.src, strict=True):
        if name not in taken or builder.unconditional_adds.get(name):
            setattr(made, name, _StandIn(builder, made, name, source))
    if not made.__doc__:
        made.__doc__ = f"{made.__name__}(...)"  # else the signature is read for it


class _StandIn:
    """What is found in a class in the place of a method; whoever asks for it gets the method."""

    __slots__ = ("_builder", "_made", "_method", "_name", "_source")

    def __init__(self, builder: Any, made: type, name: str, source: str) -> None:
        self._builder, self._name, self._source = builder, name, source
        self._made = made.__name__, made.__qualname__
        self._method: Any = None

    def __get__(self, given: object, used: type) -> Any:
        method, name = self._method or self._compile(), self._name
        # With slots the class is another one than that for which the method was made.
        for one in used.__mro__:
            if one.__dict__.get(name) is self:
                setattr(one, name, method)
        return method.__get__(given, used)

    def _compile(self) -> Any:
        only = copy(self._builder)
        only.names, only.src = [self._name], [self._source]
        name, qualified = self._made
        holder = type(name, (), {"__qualname__": qualified})
        _add(only, holder)
        self._method = holder.__dict__[self._name]
        return self._method


_add: Callable[[Any, type], None] = getattr(
    getattr(dataclasses, "_FuncBuilder", None), "add_fns_to_class", lambda *_: None
)
