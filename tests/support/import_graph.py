"""The imports inside the package as a graph: read from the source, at run time and for type checkers apart."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import playhead

from .statements import parsed, statements

ROOT = Path(playhead.__file__).resolve().parent
PARTS = ("config", "tape", "store", "timeline", "addons", "proxy", "web")
"""Top-level packages, the lowest first."""
PRELOADS = Path("proxy/determinism/python")
"""Files that run under an agent's own interpreter: shipped, but no part of the package."""


class Arrow(NamedTuple):
    """One imported name."""

    source: str
    """Dotted name of the importing module, without `playhead`."""
    target: str
    line: int
    typing_only: bool
    """Whether only type checkers follow it."""


def modules() -> list[Path]:
    """Give the Python files of the package, relative to its root, sorted."""
    return sorted(
        path.relative_to(ROOT)
        for part in PARTS
        for path in (ROOT / part).rglob("*.py")
        if "__pycache__" not in path.parts and PRELOADS not in path.relative_to(ROOT).parents
    )


def name_of(path: Path) -> str:
    """Give the dotted name of a module, without `playhead`."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def arrows() -> tuple[Arrow, ...]:
    """Give every relative import of the package, also those inside functions."""
    names = {name_of(path) for path in modules()}
    return tuple(found for path in modules() for found in _arrows_of(path, names))


def _arrows_of(path: Path, names: set[str]) -> Iterator[Arrow]:
    found = list(statements(parsed(ROOT / path)))
    typing_only = {
        id(inner)
        for node in found
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in statements(node)
    }
    package = path.parent.parts
    for node in found:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
        target = ".".join(part for part in base if part)
        for alias in node.names:
            full = f"{target}.{alias.name}" if target else alias.name
            if full in names or target in names:
                reached = full if full in names else target
                yield Arrow(name_of(path), reached, node.lineno, id(node) in typing_only)


def cycles(
    found: Iterable[Arrow], unit: Callable[[str], str | None] = lambda name: name
) -> list[list[str]]:
    """Give the groups of units that import each other in a circle.

    unit: gives the unit that a module belongs to, or None to leave it out.
    """
    graph: dict[str, set[str]] = {}
    for arrow in found:
        source, target = unit(arrow.source), unit(arrow.target)
        if source and target and source != target:
            graph.setdefault(source, set()).add(target)
            graph.setdefault(target, set())
    return [sorted(group) for group in _components(graph) if len(group) > 1]


def _components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Give the strongly connected components. Source: Kosaraju, with explicit stacks."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(graph):
        stack = [(start, iter(sorted(graph[start])))] if start not in seen else []
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(graph[following]))))
    back: dict[str, set[str]] = {node: set() for node in graph}
    for source, targets in graph.items():
        for target in targets:
            back[target].add(source)
    groups: list[list[str]] = []
    placed: set[str] = set()
    for start in reversed(order):
        if start in placed:
            continue
        placed.add(start)
        group, todo = [], [start]
        while todo:
            node = todo.pop()
            group.append(node)
            todo += (fresh := back[node] - placed)
            placed |= fresh
        groups.append(group)
    return groups


def climbs(found: Iterable[Arrow], folder: str, order: tuple[str, ...]) -> list[str]:
    """Give the imports inside a folder that go against its order.

    folder: dotted, as `proxy.engine`.
    order: its modules and subpackages, the lowest first.
    """
    prefix, place = f"{folder}.", {name: number for number, name in enumerate(order)}
    wrong = []
    for arrow in found:
        if not (arrow.source.startswith(prefix) and arrow.target.startswith(prefix)):
            continue
        source = arrow.source.removeprefix(prefix).split(".")[0]
        target = arrow.target.removeprefix(prefix).split(".")[0]
        if place.get(source, -1) < place.get(target, -1):
            wrong.append(f"{arrow.source}:{arrow.line} imports {arrow.target}")
    return wrong
