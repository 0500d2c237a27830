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

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FOR_COLLECTION = re.compile(r"pytest|hypothesis|coverage")
"""Requirements of development that a collection may import."""


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Collect twice at the same time: with other hashes, other folders, and a day apart."""
    running = []
    for turn in range(2):
        folder = tmp_path_factory.mktemp("collected")
        found = folder / "found.json"
        command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly"]
        given = {
            "PYTHONHASHSEED": f"{turn}",
            "TMPDIR": f"{folder}",
            "PLAYHEAD_DAYS": f"{turn}",
            "PLAYHEAD_COLLECTED": f"{found}",
            "PYTEST_ADDOPTS": "",
        }
        process = subprocess.Popen(
            [*command, "-p", "playhead.tests.support.collecting", str(TESTS)],
            cwd=ROOT,
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append((process, found))
    said = [process.communicate()[0] for process, _ in running]
    for (process, _), text in zip(running, said, strict=True):
        assert process.returncode == 0, text[-2000:]
    return [json.loads(found.read_text()) for _, found in running]


def test_the_same_tests_are_collected_each_time(collections: list[dict[str, Any]]) -> None:
    """By the same ids in the same order: processes that share the work must agree."""
    first, second = (found["ids"] for found in collections)
    assert len(first) > 1000
    assert set(first) ^ set(second) == set()
    assert first == second
    assert [name for name, count in Counter(first).items() if count > 1] == []


def test_no_client_library_is_imported_at_collection(collections: list[dict[str, Any]]) -> None:
    """What only some tests need is imported by those: each process that runs tests collects all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["dependency-groups"]["dev"], *(each for extra in extras for each in extra)]
    required = {_normal(re.match(r"[\w.-]+", each)[0]) for each in wanted}  # type: ignore[index]
    of_tests = {name for name in required if not FOR_COLLECTION.match(name)}
    imported = set(collections[0]["imported"])
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
