"""Which test files start no process: `pytest --fast` collects those alone, and refuses every start while they run.

A file may start one if it imports `subprocess` or `multiprocessing`, or a module of the tests that does, at any depth,
if it tests a module of Playhead whose own source starts some, or if it forks. Journeys, attacks and containers are left
out whatever they import.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
_PACKAGE = "playhead.tests"
_LEFT_OUT = ("adversary", "journeys", "docker")
_STARTERS = frozenset(["subprocess", "multiprocessing"])
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)|import[ \t]+(?P<whole>[^\n]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"(?:^|,)\s*([\w.]+)")
_STARTS_ITSELF = re.compile(
    r"^[ \t]*import subprocess|\bcreate_subprocess_|\bos\.fork\(", re.MULTILINE
)
_STARTS = re.compile(r"subprocess\.Popen|os\.(?:fork|forkpty|posix_spawn|exec|system)$")
"""Audit events. Source: Python's documentation, table of audit events."""


@cache
def is_fast(path: Path) -> bool:
    """Say whether a test file starts no process."""
    parts = path.resolve().relative_to(TESTS).parts
    return parts[0] not in _LEFT_OUT and not starts_processes(path.read_text("utf-8"), parts[:-1])


def starts_processes(source: str, folder: tuple[str, ...] = ()) -> bool:
    """Say whether a file of some folder of the tests imports what starts processes."""
    if _STARTS_ITSELF.search(source):
        return True
    names = set(_imported(source, ".".join((_PACKAGE, *folder))))
    return any(_is_starter(name) or _starts_itself(name) for name in names)


@cache
def _starts_itself(name: str) -> bool:
    """Say whether the source of a module of Playhead starts processes; what it imports does not count."""
    path = TESTS.parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    return (
        name.startswith("playhead.")
        and path.is_file()
        and _STARTS_ITSELF.search(path.read_text("utf-8")) is not None
    )


@cache
def _is_starter(name: str) -> bool:
    if name in _STARTERS:
        return True
    reached, waiting = {name}, [name]
    while waiting:
        for found in _imported_by(waiting.pop()) - reached:
            if found in _STARTERS:
                return True
            reached.add(found)
            waiting.append(found)
    return False


@cache
def _imported_by(name: str) -> frozenset[str]:
    """Give what a module of the tests imports; nothing for a module of others, or what is no module."""
    path = TESTS.joinpath(*name.removeprefix(_PACKAGE).split(".")).with_suffix(".py")
    if not name.startswith(f"{_PACKAGE}.") or not path.is_file():
        return frozenset()
    return frozenset(_imported(path.read_text("utf-8"), name.rpartition(".")[0]))


def _imported(source: str, package: str) -> Iterator[str]:
    """Yield the names that a source imports, and each name with what it is taken from."""
    for found in _IMPORT.finditer(source):
        if found["whole"]:
            yield from _NAME.findall(found["whole"])
            continue
        base = found["base"]
        if dots := len(base) - len(base.lstrip(".")):
            above = package.split(".")[: len(package.split(".")) - dots + 1]
            base = ".".join(filter(None, [*above, base.lstrip(".")]))
        yield base
        yield from (f"{base}.{name}" for name in _NAME.findall(found["names"].strip("()")))


def refuse_processes(event: str, _: tuple[Any, ...]) -> None:
    """Refuse the start of a process, as an audit hook."""
    if _STARTS.match(event):
        raise AssertionError(f"{event}: with --fast no test starts a process; see {__name__}")
