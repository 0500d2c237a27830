"""The tests themselves: what they are called, what they import, and what they take for granted."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.collecting import COLLECTED

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FOR_COLLECTION = re.compile(r"pytest|hypothesis|coverage")
"""Requirements of development that a collection may import."""


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Collect in a process with other hashes, another folder, and a day later."""
    return _collect(tmp_path_factory.mktemp("collected"), days=1)


def _collect(folder: Path, days: int) -> dict[str, Any]:
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
    read: dict[str, Any] = json.loads(found.read_text())
    return read


@pytest.fixture(scope="module")
def once_more(
    request: pytest.FixtureRequest,
    collected: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[str]:
    """What this process has collected itself, if that was everything, in that order; else another process."""
    own: list[str] = request.config.stash[COLLECTED]
    if len(own) == len(collected["ids"]) and not request.config.pluginmanager.has_plugin(
        "randomly"
    ):
        return own
    again: list[str] = _collect(tmp_path_factory.mktemp("again"), days=0)["ids"]
    return again


def test_the_same_tests_are_collected_each_time(
    collected: dict[str, Any], once_more: list[str]
) -> None:
    """By the same ids in the same order: processes that share the work must agree."""
    first, second = collected["ids"], once_more
    assert len(first) > 1000
    assert set(first) ^ set(second) == set()
    assert first == second
    assert [name for name, count in Counter(first).items() if count > 1] == []


def test_no_client_library_is_imported_at_collection(collected: dict[str, Any]) -> None:
    """What only some tests need is imported by those: each process that runs tests collects all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["dependency-groups"]["dev"], *(each for extra in extras for each in extra)]
    required = {_normal(re.match(r"[\w.-]+", each)[0]) for each in wanted}  # type: ignore[index]
    of_tests = {name for name in required if not FOR_COLLECTION.match(name)}
    imported = set(collected["imported"])
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
