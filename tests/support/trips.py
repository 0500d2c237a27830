"""Count the trips of a reader: `just trips` follows one request through the source, from a hook to all that it calls.

The walk is depth first, in the order of evaluation, and follows each function once, also one that is handed over to
run elsewhere. It stays in the packages that act: `tape/` and `config/` are values in, values out, and lead nowhere
else. A visit is a stretch of calls in one module, a return is a visit to a module that was visited before. Both are
counted twice: in all that acts, and where a call of the store is one visit, since its parts can be used without being read.

    just trips [FOLDER [HOOK ...]]   FOLDER has the package as `playhead`; HOOK is as `addons.decide:Decide.request`
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from mypy.build import BuildResult, build
from mypy.modulefinder import BuildSource
from mypy.nodes import (
    Block,
    CallExpr,
    Decorator,
    Expression,
    FuncDef,
    MemberExpr,
    Node,
    RefExpr,
    Statement,
    TypeInfo,
)
from mypy.options import Options
from mypy.types import FunctionLike, Instance, Type, TypeType, UnionType, get_proper_type

_NAME = "playhead."
_ENTERED = ("store", "timeline", "addons", "proxy")
_HOOKS = (
    "addons.decide:Decide.request",
    "addons.record:Record.response",
    "addons.playback:Playback.request",
)
_BESIDE = ("node", "info", "type", "def_frame", "analyzed")
"""Attributes of a syntax tree that lead elsewhere than to its parts."""


class Trip(NamedTuple):
    """What one walk met."""

    functions: int
    visits: tuple[str, ...]
    """Modules, in order."""

    @property
    def returns(self) -> int:
        """Visits to modules that were visited before."""
        return len(self.visits) - len(set(self.visits))

    @property
    def returned_to(self) -> str:
        """The modules that a reader returns to, each with how often, the most frequent first."""
        counts = Counter(self.visits).most_common()
        return ", ".join(f"{module} {count - 1}" for module, count in counts if count > 1)


def read(folder: Path) -> BuildResult:
    """Read the package in a folder with its types. Takes half a minute of CPU."""
    options = Options()
    options.incremental = False
    options.export_types = options.preserve_asts = True
    options.ignore_missing_imports = options.explicit_package_bases = True
    options.python_executable = sys.executable
    options.mypy_path = [str(folder)]
    sources = [
        BuildSource(
            str(path),
            ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"),
            None,
        )
        for part in ("config", "tape", "store", "timeline", "addons")
        for path in sorted((folder / "playhead" / part).rglob("*.py"))
    ]
    return build(sources, options)


class Walk:
    """One walk through a package that was read."""

    def __init__(self, package: BuildResult, *, into_store: bool = True) -> None:
        """Begin with nothing met.

        into_store: whether calls of the store are followed.
        """
        self._package = package
        self._into_store = into_store
        self._met: set[FuncDef] = set()
        self._modules: list[str] = []

    def run(self, hook: str) -> Trip:
        """Follow a hook."""
        module, _, path = hook.partition(":")
        node: Any = self._package.files[_NAME + module]
        for name in path.split("."):
            node = node.names[name].node
        self._follow(node)
        return Trip(len(self._met), tuple(module for module, _ in groupby(self._modules)))

    def _follow(self, node: Node) -> None:
        function = _body_of(node)
        if function is None:
            return
        module = self._module(function)
        if module.split(".", 1)[0] not in _ENTERED:
            return
        self._modules.append(module)
        followed = self._into_store or not module.startswith("store.")
        if followed and function not in self._met:
            self._met.add(function)
            for call in _calls(function):
                for target in self._targets(call):
                    self._follow(target)

    def _module(self, function: FuncDef) -> str:
        name = function.fullname
        while name not in self._package.files:
            name = name.rpartition(".")[0]
        return name.removeprefix(_NAME)

    def _targets(self, call: CallExpr) -> Iterator[Node]:
        yield from self._resolve(call.callee)
        for given in call.args:  # as a thread's function
            for found in self._resolve(given):
                if not isinstance(found, TypeInfo) and not _is_value(found):
                    yield found

    def _resolve(self, one: Expression) -> Iterator[Node]:
        if isinstance(one, RefExpr) and isinstance(one.node, FuncDef | Decorator | TypeInfo):
            yield one.node
        elif isinstance(one, MemberExpr) and one.expr in self._package.types:
            yield from _members(self._package.types[one.expr], one.name)
        elif isinstance(one, RefExpr) and one in self._package.types:
            yield from _members(self._package.types[one], "__call__")


def _members(kind: Type, name: str) -> Iterator[Node]:
    kind = get_proper_type(kind)
    if isinstance(kind, UnionType):
        for one in kind.items:
            yield from _members(one, name)
    elif isinstance(kind, TypeType):
        yield from _members(kind.item, name)
    elif isinstance(kind, Instance) or (isinstance(kind, FunctionLike) and kind.is_type_obj()):
        info = kind.type if isinstance(kind, Instance) else kind.type_object()
        found = info.get(name)
        if found is not None and isinstance(found.node, FuncDef | Decorator):
            yield found.node


def _is_value(node: Node) -> bool:
    """Say whether a name that is handed over is a property: then its value is."""
    return isinstance(node, Decorator) and node.var.is_property


def _body_of(node: Node) -> FuncDef | None:
    """Give what runs when a node is called; None where that is not of this package, or was generated."""
    if isinstance(node, TypeInfo):
        found = node.get("__init__")
        if found is not None and found.node is not None and not found.plugin_generated:
            node = found.node
    if isinstance(node, Decorator):
        node = node.func
    own = isinstance(node, FuncDef) and node.fullname.startswith(_NAME) and bool(node.body.body)
    return node if isinstance(node, FuncDef) and own else None


def _calls(function: FuncDef) -> list[CallExpr]:
    """Give the calls in a function, in the order in which they end."""
    found: list[CallExpr] = []
    seen: set[int] = set()

    def visit(node: object) -> None:
        if isinstance(node, list | tuple):
            for one in node:
                visit(one)
        elif isinstance(node, Statement | Expression | Block) and id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, CallExpr):
                found.append(node)
            for kind in type(node).__mro__:
                for name in getattr(kind, "__mypyc_attrs__", ()):
                    if name not in _BESIDE:
                        visit(getattr(node, name, None))

    visit(function.body)
    return sorted(found, key=lambda call: (call.end_line or 0, call.end_column or 0))


def main(arguments: list[str]) -> None:
    """Print the trips of a package."""
    with tempfile.TemporaryDirectory() as made:
        # A clone may have any name; the package is found by its own.
        (Path(made) / "playhead").symlink_to(Path(__file__).resolve().parents[2])
        package = read(Path(arguments[0]) if arguments else Path(made))
    for hook in arguments[1:] or _HOOKS:
        for into_store in (True, False):
            trip = Walk(package, into_store=into_store).run(hook)
            print(
                f"{hook}{'' if into_store else ', store not entered'}: {len(set(trip.visits))} modules,"
                f" {trip.functions} functions, {len(trip.visits)} visits, {trip.returns} returns"
            )
            print(f"    returns to {trip.returned_to}")


if __name__ == "__main__":
    main(sys.argv[1:])
