"""What was not searched for named pipes is within reach: such a run is not plainly contained."""

import json
import sys
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

ASK = """
import urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with many folders in it, more than a search of a millisecond gets through."""
    for number in range(3000):
        (tmp_path / "many" / str(number)).mkdir(parents=True)
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    (tmp_path / "playhead.yaml").write_text("store: store\nsandbox: {pipe_search: 1ms}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
def test_a_search_that_was_not_complete_is_in_the_verdict() -> None:
    """In the line that says how far the run was contained, and under a key of its own."""
    need("a sandbox")
    done = playhead(
        "replay", "tape", "--receipt", "receipt.json", "--", sys.executable, "-S", "-c", ASK
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(Path("receipt.json").read_text())
    assert told["sandbox"]["pipes_unsearched"]
    assert "folders that were not searched for named pipes" in told["contained_but_for"]
    assert "; not plainly contained: folders that were not searched for named pipes" in done.stderr


@pytest.mark.usefixtures("place")
def test_folders_that_a_command_does_not_see_need_no_search() -> None:
    """With `--sandbox-files` the home folder and `/tmp` are empty."""
    need("a sandbox")
    need("bubblewrap")
    words = ["replay", "tape", "--receipt", "receipt.json", "--sandbox-files", "--"]
    done = playhead(*words, sys.executable, "-S", "-c", ASK)
    assert done.returncode == 0, done.stderr
    told = json.loads(Path("receipt.json").read_text())["sandbox"]
    hidden = [one for one in told["files"]["empty"] if one != "/tmp"]
    assert not any(
        path.startswith(f"{folder}/")
        for path in told["pipes_unsearched"]
        for folder in hidden
        if not any(path.startswith(seen) for seen in told["files"]["visible"])
    )
