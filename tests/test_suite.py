"""The tests themselves: what they are called, what they import, and what they take for granted."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, OrderedDict
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tests.support.collecting import COLLECTED, Collected
from playhead.tests.support.counts import sample
from playhead.tests.support.scheduling import FileScheduling

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FOR_COLLECTION = re.compile(r"pytest|hypothesis|coverage")
"""Requirements of development that a collection may import."""


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest) -> Collected | None:
    """What this process has collected, if that was everything and in that order."""
    found = request.config.stash[COLLECTED]
    files = {name.partition("::")[0] for name in found.ids}
    is_all = len(files) == len(list(TESTS.rglob("test_*.py")))
    return found if is_all and not request.config.pluginmanager.has_plugin("randomly") else None


@pytest.fixture(scope="module")
def collected(own: Collected | None, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """What another worker has collected, or else a process with other hashes, another folder, and a day later."""
    if own is not None and own.is_compared:
        return own
    return _collect(tmp_path_factory.mktemp("collected"), days=1)


def _collect(folder: Path, days: int) -> Collected:
    found = folder / "found.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0"]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly"]
    given = {
        "PYTHONHASHSEED": f"{days}",
        "TMPDIR": f"{folder}",
        "PLAYHEAD_DAYS": f"{days}",
        "PLAYHEAD_COLLECTED": f"{found}",
        "PYTEST_ADDOPTS": "",
    }
    done = subprocess.run(
        [*command, "-p", "playhead.tests.support.collecting", str(TESTS)],
        cwd=ROOT,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return Collected(**json.loads(found.read_text()))


def test_the_same_tests_are_collected_each_time(
    own: Collected | None, collected: Collected, tmp_path: Path
) -> None:
    """By the same ids in the same order: processes that share the work must agree."""
    first, second = collected.ids, (own or _collect(tmp_path, days=0)).ids
    assert len(first) > 1000
    assert set(first) ^ set(second) == set()
    assert first == second
    assert [name for name, count in Counter(first).items() if count > 1] == []


def test_no_client_library_is_imported_at_collection(collected: Collected) -> None:
    """What only some tests need is imported by those: each process that runs tests collects all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["dependency-groups"]["dev"], *(each for extra in extras for each in extra)]
    required = {_normal(re.match(r"[\w.-]+", each)[0]) for each in wanted}  # type: ignore[index]
    of_tests = {name for name in required if not FOR_COLLECTION.match(name)}
    imported = set(collected.imported)
    found = {
        package
        for package, distributions in packages_distributions().items()
        if package in imported and of_tests & set(map(_normal, distributions))
    }
    assert found == set()


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def test_programs_are_looked_for_in_one_place() -> None:
    """By `support/needs.py`, which tries each for what tests ask of it."""
    looks = re.compile(r"shutil\.which\(|from shutil import .*which")
    found = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if looks.search(path.read_text()) and path != Path(__file__)
    ]
    assert found == ["support/needs.py"]


class _Node:
    """A worker that is given tests."""

    shutting_down = False

    def __init__(self) -> None:
        self.given: list[list[int]] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given.append(places)

    def shutdown(self) -> None:
        self.shutting_down = True


def test_a_worker_is_given_whole_files_and_what_is_done_is_forgotten() -> None:
    """The next file once two tests are left, by the places of its tests in what was collected."""
    node, names = _Node(), ["a::1", "a::2", "a::3", "b::1", "a::4"]
    scheduling = FileScheduling.__new__(FileScheduling)
    scheduling.log = lambda *_: None
    scheduling.collection, scheduling.registered_collections = names, {node: names}
    scheduling.assigned_work = {node: {}}
    scheduling.workqueue = OrderedDict(
        a=dict.fromkeys(("a::1", "a::2", "a::3", "a::4"), False), b={"b::1": False}
    )
    scheduling._reschedule(node)
    assert node.given == [[0, 1, 2, 4]]
    scheduling.mark_test_complete(node, 0)
    assert len(node.given) == 1
    scheduling.mark_test_complete(node, 1)
    assert node.given[1:] == [[3]]
    for place in (2, 4, 3):
        scheduling.mark_test_complete(node, place)
    assert scheduling.assigned_work == {node: {}}
    assert node.shutting_down


@dataclass(frozen=True)
class _Item:
    nodeid: str


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(2, 12))
def test_a_long_table_is_run_in_part(sizes: list[int], most: int) -> None:
    """Of each function at most so many cases, with its first and its last, in their order; nothing is lost."""
    names = [f"test_{at}.py::test[{case}]" for at, size in enumerate(sizes) for case in range(size)]
    items = cast("list[pytest.Item]", [_Item(name) for name in names])
    run, left_out = ([one.nodeid for one in some] for some in sample(items, lambda _: most))
    assert sorted([*run, *left_out]) == sorted(names)
    assert run == [name for name in names if name in run]
    for at, size in enumerate(sizes):
        own = [name for name in run if name.startswith(f"test_{at}.py")]
        assert len(own) == min(size, most)
        assert not size or {f"test_{at}.py::test[{case}]" for case in (0, size - 1)} <= {*own}
