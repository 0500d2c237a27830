"""The map of the house holds: imports run one way, everything is shipped, nothing lies around."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import playhead
from playhead.tests.support.statements import statements

ROOT = Path(playhead.__file__).resolve().parent

ORDER = ("config", "tape", "store", "timeline", "addons", "proxy", "web")
"""Each may import what stands before it."""
BESIDE = {"proxy": "web", "web": "proxy"}
PRELOADS = Path("proxy/determinism/python")
"""Runs in agents, under interpreters of theirs: shipped as files, not as a package."""
OUTSIDE = ("tests", "examples", "benchmarks", "docs")
"""These import the package by its name, as anybody does."""

PURE = ("config", "tape")
FORBIDDEN_IN_TAPE = frozenset(
    [
        "mitmproxy",
        "lmdb",
        "asyncio",
        "socket",
        "ssl",
        "subprocess",
        "threading",
        "multiprocessing",
        "selectors",
        "os",
        "io",
        "pathlib",
        "tempfile",
        "shutil",
        "time",
        "datetime",
        "random",
        "secrets",
        "psutil",
        "aiohttp",
        "uvloop",
        "sqlite3",
        "urllib.request",
        "http.client",
        "logging",
        "concurrent",
    ]
)
"""Neither I/O nor clock nor chance: what is decided follows from the values."""
_IO_BUILTINS = ("open", "print", "input", "exec", "eval", "__import__")

TOP = {
    # What the repository is.
    *(*ORDER, *OUTSIDE, "__init__.py", "py.typed"),
    # What it is made with.
    *("Dockerfile", "README.md", "CHANGELOG.md", "LICENSE", "compose.yaml", "justfile", "mkdocs.yml", "pyproject.toml"),
    *("MANIFEST.in", "CONTRIBUTING.md", "SECURITY.md"),
    # What tools look for.
    *(".ci", ".dockerignore", ".gitignore", ".python-version"),
}  # fmt: skip


class Import(NamedTuple):
    """One import in a source file."""

    module: str
    """Absolute, a relative one resolved against the package."""
    relative: bool
    line: int


def tracked() -> list[Path]:
    """What git keeps, and what it would keep: a file that was just made counts too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("no git, or no clone: an archive has no list of what is kept")
    names = listed.stdout.decode().split("\0")
    return sorted(Path(name) for name in set(names) if name and (ROOT / name).is_file())


def sources(*folders: str) -> list[Path]:
    """Python files, from the root."""
    return sorted(
        path.relative_to(ROOT)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "__pycache__" not in path.parts
    )


class Source(NamedTuple):
    """What is asked of a source file; its syntax tree is not kept."""

    docstring: str | None
    imports: tuple[Import, ...]
    """Also inside functions."""


@cache
def read(path: Path) -> Source:
    """Read a file, once."""
    module = ast.parse((ROOT / path).read_text(), str(path))
    found: list[Import] = []
    for node in statements(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += _imported(path, node)
    return Source(ast.get_docstring(module), tuple(found))


def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file."""
    return read(path).imports


def _imported(path: Path, node: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, False, node.lineno)
        return
    if not node.level:
        yield Import(node.module or "", False, node.lineno)
        return
    package = ("playhead", *path.parent.parts)
    base = ".".join(package[: len(package) - node.level + 1])
    assert base.startswith("playhead"), f"{path}:{node.lineno} leaves the package"
    if node.module:
        yield Import(f"{base}.{node.module}", True, node.lineno)
    else:
        for alias in node.names:
            yield Import(f"{base}.{alias.name}", True, node.lineno)


@pytest.mark.parametrize("part", ORDER)
def test_imports_run_one_way(part: str) -> None:
    """proxy, web > addons > timeline > store > tape > config, and the package root for all."""
    allowed = {*ORDER[: ORDER.index(part) + 1], BESIDE.get(part, part)}
    wrong = []
    for path in sources(part):
        for found in imports(path):
            parts = found.module.split(".")
            inside = parts[0] == "playhead" and len(parts) > 1 and (ROOT / parts[1]).is_dir()
            if inside and parts[1] not in allowed and not _demo(path, parts[1]):
                wrong.append(f"{path}:{found.line} imports {found.module}")
    assert wrong == []


def _demo(path: Path, part: str) -> bool:
    # `playhead demo` runs the example, which is shipped.
    return path == Path("proxy/commands/demo.py") and part == "examples"


def test_inside_the_house_imports_are_relative() -> None:
    """Only what stands outside names the package."""
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in [*sources(*ORDER), Path("__init__.py")]
        for found in imports(path)
        if not found.relative and found.module.split(".")[0] == "playhead"
    ]
    assert wrong == []


def test_outside_of_it_they_name_the_package() -> None:
    """An example that imports relatively cannot be copied; a test neither."""
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in sources(*(folder for folder in OUTSIDE if (ROOT / folder).is_dir()))
        if _may_leave(path)
        for found in imports(path)
        if found.relative and found.module.split(".")[1] in ORDER
    ]
    assert wrong == []


def _may_leave(path: Path) -> bool:
    """Say whether a file may import relatively from above its top-level folder; most need not be parsed."""
    dots = re.findall(r"\bfrom[\s\\]+(\.+)", (ROOT / path).read_text())
    return max(map(len, dots), default=0) > len(path.parent.parts)


def test_a_file_that_leaves_its_folder_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is written."""
    monkeypatch.setitem(_may_leave.__globals__, "ROOT", tmp_path)
    (tmp_path / "tests" / "tape").mkdir(parents=True)
    path = Path("tests/tape/test_it.py")
    for line, leaves in (
        ("from ...store import Store", True),
        ("def f():\n    from ... \\\n        import store", True),
        ("from \\\n    ...store import Store", True),
        ("from ..support import needs", False),
        ("from playhead.store import Store", False),
        ("pass", False),
    ):
        (tmp_path / path).write_text(line)
        assert _may_leave(path) is leaves, line


@pytest.mark.parametrize("part", PURE)
def test_the_lower_parts_do_not_know_mitmproxy(part: str) -> None:
    """Nor the database, nor the loop."""
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in sources(part)
        for found in imports(path)
        if found.module.split(".")[0] in ("mitmproxy", "lmdb", "asyncio", "aiohttp")
    ]
    assert wrong == []


def test_tape_does_no_io() -> None:
    """Values in, values out: no file, no socket, no thread, no clock, no chance."""
    wrong = []
    for path in sources("tape"):
        for found in imports(path):
            if found.module in FORBIDDEN_IN_TAPE or found.module.split(".")[0] in FORBIDDEN_IN_TAPE:
                wrong.append(f"{path}:{found.line} imports {found.module}")
        wrong += [
            f"{path}:{node.lineno} uses {node.id}"
            for node in ast.walk(ast.parse((ROOT / path).read_text()))
            if isinstance(node, ast.Name) and node.id in _IO_BUILTINS
        ]
    assert wrong == []


@pytest.mark.parametrize("part", ["config", "tape", "store", "timeline"])
def test_mitmproxy_is_known_to_addons_and_proxy_alone(part: str) -> None:
    """Reading a tape needs no proxy."""
    known = {found.module.split(".")[0] for path in sources(part) for found in imports(path)}
    assert "mitmproxy" not in known


def test_every_package_is_shipped() -> None:
    """The list in pyproject.toml and the folders with an __init__.py are the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    found = {
        ".".join(("playhead", *path.parent.parts))
        for path in tracked()
        if path.name == "__init__.py"
        and path.parts[0] not in ("tests", "benchmarks")
        and not path.is_relative_to(PRELOADS)
    }
    assert set(listed) == found


def test_every_preload_is_shipped() -> None:
    """By the patterns for data files of the package beside them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["playhead.proxy.determinism"]
    folder = ROOT / PRELOADS.parent
    shipped = {path for pattern in patterns for path in folder.glob(pattern)}
    folders = (PRELOADS, *map(PRELOADS.with_name, ("node", "bun", "libc")))
    kept = {
        ROOT / path
        for path in tracked()
        if any(folder in path.parents for folder in folders)
        and (path.suffix != ".py" or path.is_relative_to(PRELOADS))
    }
    assert kept
    assert kept <= shipped


def test_every_module_stands_in_a_package() -> None:
    """A folder without __init__.py would be left out of what is shipped."""
    for path in sources(*ORDER):
        if not path.is_relative_to(PRELOADS):
            assert (ROOT / path.parent / "__init__.py").exists(), path


def test_every_part_says_what_it_is_for() -> None:
    """In the docstring of its face, and of each module."""
    for path in sources(*ORDER):
        assert read(path).docstring, path


def test_the_top_level_holds_what_belongs_there() -> None:
    """Nothing else is kept in the repository."""
    assert {path.parts[0] for path in tracked()} - TOP == set()
    assert {"pyproject.toml", "proxy", "addons", "store", "config", "tests"} <= TOP


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Every machine has its own, set outside of the repository."""
    # Put together here, so that this file does not hold them either.
    hosts = (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("npmjs", "(org|com)"),
        ("yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("registry-1", "docker", "io"),
        ("repo1?", "maven", "(org|apache)"),
    )
    pattern = re.compile("|".join(r"\.".join(host) for host in hosts), re.IGNORECASE)
    wrong = []
    for path in tracked():
        text = (ROOT / path).read_bytes().decode("utf-8", "replace")
        found = pattern.search(text)
        if found is not None:
            wrong.append(f"{path}:{text.count(chr(10), 0, found.start()) + 1} names {found[0]}")
    assert wrong == []


def test_no_file_that_a_machine_makes_is_kept() -> None:
    """What .gitignore leaves out was not added all the same."""
    kept = subprocess.run(
        ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if kept.returncode:
        pytest.skip("no git, or no clone")
    assert kept.stdout.split() == []


def test_the_version_stands_in_one_place() -> None:
    """And what pyproject.toml says is that, or read from there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    if "version" in project["project"]:
        assert project["project"]["version"] == playhead.__version__
    else:
        assert "version" in project["project"]["dynamic"]
        assert project["tool"]["setuptools"]["dynamic"]["version"] == {
            "attr": "playhead.__version__"
        }
    said = re.compile(rf"(?<![\d.]){re.escape(playhead.__version__)}(?![\d.]*\d)")
    places = {
        str(path)
        for path in tracked()
        if path.suffix in (".py", ".toml", ".yaml", ".md")
        and said.search((ROOT / path).read_text())
    }
    assert places <= {"__init__.py", "pyproject.toml", "CHANGELOG.md"}


def test_tests_stand_beside_what_they_test() -> None:
    """`tests/store/` tests `store/`; journeys go through all of it, agents with those that people run, docker in containers, adversary by force; golden has files of all formats."""
    folders = {path.parts[1] for path in sources("tests") if path.name.startswith("test_")}
    parts = {name for name in folders if (ROOT / "tests" / name).is_dir()}
    assert parts <= {*ORDER, "agents", "examples", "journeys", "docker", "golden", "adversary"}


@pytest.mark.parametrize("path", sorted((ROOT / "store").glob("*.py")), ids=lambda path: path.name)
def test_no_read_transaction_outlives_a_step(path: Path) -> None:
    """Nothing is awaited or yielded in one: while it lasts no page that it sees is used again."""
    suspends = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)
    for block in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(block, ast.With) and any("reading()" in ast.unparse(i) for i in block.items):
            found = [node for node in ast.walk(block) if isinstance(node, suspends)]
            assert not found, f"{path.name}:{block.lineno}"


def test_processes_of_the_event_loop_are_given_a_dict_of_variables() -> None:
    """uvloop takes no other mapping, and `os.environ` is one."""
    wrong = []
    for path in sources(*ORDER):
        text = (ROOT / path).read_text("utf-8")
        if "create_subprocess_" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and "create_subprocess_" in ast.unparse(node.func):
                given = [word.value for word in node.keywords if word.arg == "env"]
                is_dict = all(
                    isinstance(one, ast.Dict) or ast.unparse(one).startswith("dict(")
                    for one in given
                )
                wrong += [] if is_dict else [f"{path}:{node.lineno}"]
    assert wrong == []
