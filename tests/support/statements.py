"""Statements of Python sources: a tenth of their nodes, and all that many checks ask for."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_WITHIN = ("body", "cases", "handlers", "orelse", "finalbody")
"""Fields of a node that contain statements. Source: Python's documentation, `ast`, abstract grammar."""


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a file, once in a process."""
    return ast.parse(path.read_text("utf-8"), str(path))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement in a node, at any depth, and the handlers and cases between them, as they are written."""
    fields = node.__dict__
    for name in _WITHIN:
        inner = fields.get(name)
        if isinstance(inner, list):  # that of a lambda or of `x if y else z` is an expression
            for one in inner:
                yield one
                yield from statements(one)
