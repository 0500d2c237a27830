"""What is published: its metadata, the text of its index page, and which files it has. `just package` builds and tries it."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

from playhead.tests.support import licences
from playhead.tests.support.package import find_strangers

ROOT = Path(__file__).parents[1]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETUP["project"]
PAGE = (ROOT / str(PROJECT["readme"])).read_text("utf-8")
EXTRAS = PROJECT["optional-dependencies"]


def test_classifiers_say_what_it_is_for() -> None:
    """Interpreters, systems, audience; the licence is an expression of its own (PEP 639)."""
    listed = PROJECT["classifiers"]
    assert len(set(listed)) == len(listed)
    for start in ("Development Status", "Environment", "Intended Audience", "Topic", "Typing"):
        assert any(one.startswith(f"{start} :: ") for one in listed), start
    named = {one.rpartition(" ")[2] for one in listed if "Python :: 3." in one}
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert lowest in named
    assert (ROOT / ".python-version").read_text().strip() in named
    assert not any(one.startswith("License") for one in listed)
    assert "Operating System :: POSIX :: Linux" in listed
    assert not any("Windows" in one for one in listed)


def test_package_says_who_and_what() -> None:
    """For whoever searches."""
    assert PROJECT["authors"]
    assert len(PROJECT["keywords"]) >= 5
    assert 20 <= len(PROJECT["description"]) <= 100


def test_index_page_needs_nothing_beside_it() -> None:
    """An index shows this page alone: links to files of the repository would be dead."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [link for link in links if not link.startswith("https://")] == []
    assert "<img" not in PAGE
    assert 200 <= len(PAGE.split()) <= 800


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_documented(extra: str) -> None:
    """With what it brings, and how it is installed."""
    row = re.search(rf"^pip install 'playhead\[{extra}\]' +# (.*)$", PAGE, re.MULTILINE)
    assert row is not None
    assert len(row[1].split()) > 3


def test_no_extra_is_documented_that_is_none() -> None:
    """Among the commands that install them."""
    assert set(re.findall(r"playhead\[(\w+)\]", PAGE)) == set(EXTRAS)


@pytest.mark.parametrize("system", ["Linux", "macOS", "Windows"])
def test_every_system_is_named(system: str) -> None:
    """With what works there, in one place."""
    section = PAGE.partition("\n## Platforms\n")[2].partition("\n## ")[0]
    assert system in section


def test_data_files_are_named_by_package() -> None:
    """No pattern for all packages, by which files of the repository came along."""
    assert "*" not in SETUP["tool"]["setuptools"]["package-data"]
    assert "tests" not in " ".join(SETUP["tool"]["setuptools"]["packages"])


def test_installed_metadata_is_that_of_the_project() -> None:
    """Setuptools has understood it."""
    told = metadata("playhead")
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Description-Content-Type"] == "text/markdown"
    assert set(told.get_all("Provides-Extra") or ()) == set(EXTRAS)


@pytest.mark.parametrize(
    ("name", "belongs"),
    [
        ("playhead/__init__.py", True),
        ("playhead/py.typed", True),
        ("playhead/store/store.py", True),
        ("playhead/proxy/determinism/python/playhead_preload/__init__.py", True),
        ("playhead/config/playhead.yaml", True),
        ("playhead/web/static/page.css", True),
        ("playhead/web/templates/runs.html", True),
        ("playhead/web/page.css", False),
        ("playhead-1.dist-info/METADATA", True),
        ("playhead-1.data/data/share/man/man1/playhead.1", True),
        ("playhead/CHANGELOG.md", False),
        ("playhead/compose.yaml", False),
        ("playhead/tests/test_docs.py", False),
        ("playhead/store/notes.txt", False),
        ("tests/test_docs.py", False),
    ],
)
def test_files_of_a_wheel_are_known(name: str, belongs: bool) -> None:
    """Code and data of the packages, and what installers read."""
    assert list(find_strangers([name])) == ([] if belongs else [name])


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("BSD-3-Clause", True),
        ("Apache-2.0 OR MIT", True),
        ("Apache Software License", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("LGPL-3.0-or-later", True),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", True),
        ("GPL-3.0-only", False),
        ("GNU Affero General Public License v3", False),
        ("GPL-2.0-only OR MIT", True),
        ("SSPL-1.0", False),
        ("Proprietary", False),
        ("", False),
    ],
)
def test_licences_are_judged(licence: str, allowed: bool) -> None:
    """Permissive and weak copyleft ones are allowed; of a choice one is enough."""
    assert (licences.judge(licence) == "") == allowed


def test_licence_of_every_dependency_is_allowed() -> None:
    """Of all that is installed here for Playhead and its extras."""
    wrong = {
        package.metadata["Name"]: licences.find_licence(package)
        for package in licences.find_closure("playhead")
        if licences.judge(licences.find_licence(package))
    }
    assert wrong == {}
