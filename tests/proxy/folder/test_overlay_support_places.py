"""Wherever a working folder is, a command works on a copy of it, or is told why not: the rows of `folder_cases.PLACES`."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.folder_cases import PLACES, Place
from playhead.tests.support.needs import need

MODES = {"copy": ("a copy",), "in-place": ("root folder",)}
"""What is made of a place whose name has these words; of any other an overlay."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each place."""
    need("private mounts")
    folder = tmp_path_factory.mktemp("places")
    words = ["unshare", "--mount", "--map-root-user", sys.executable, "-m"]
    done = prepared.run(
        [*words, "playhead.tests.support.folder_places", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {**dict(rows), "stderr": done.stderr}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_command_works_on_a_copy(told: dict[str, Any], place: Place) -> None:
    """The folder, and the repository that git would write to, are as before; what was done is listed."""
    if "overlayfs" in place.name and Path(sys.prefix).is_relative_to("/var/tmp"):
        pytest.skip("this place covers /var/tmp, where this interpreter is")
    assert place.name in told, told["stderr"]
    row = told[place.name]
    modes = [mode for mode, words in MODES.items() if any(one in place.name for one in words)]
    assert row["mode"] == (modes or ["overlay"])[0]
    assert row["untouched"]
    assert bool(row["effects"]) == (place.covered != "nothing")
    assert len(row["said"]) == bool(place.otherwise)
    assert all(place.otherwise in text for text in row["said"])
    if row["mode"] == "copy":
        assert re.search(r"works on a copy, (more than )?5 files, 0 MB, about 1 s", row["said"][0])
