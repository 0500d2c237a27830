"""What a run depends on is told from what it was, and named."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from playhead.config.load import loads
from playhead.proxy.experiments.journal.inputs import Inputs, read_inputs
from playhead.proxy.experiments.journal.progress_journal import Journal

COMMAND = (sys.executable, "agent.py", "--prompt=prompt.txt")
CHECK = ("sh", "-c", "cat <elsewhere/list.txt && python3 check.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with what the words name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for name in ("agent.py", "prompt.txt", "check.py", "elsewhere/list.txt", "lib.py", "v.json"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("*.log\n")
    return tmp_path


def _read(text: str = "", known: Sequence[Path] = ()) -> Inputs:
    return read_inputs(loads(text), COMMAND, CHECK, known)


def _write(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("another")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_write("agent.py"), "agent.py changed"),
        (_write("prompt.txt"), "prompt.txt changed"),
        (_write("check.py"), "check.py changed"),
        (_write("elsewhere/list.txt"), "elsewhere/list.txt changed"),
        (_write("lib.py"), "lib.py changed"),
        (lambda folder: (folder / "lib.py").unlink(), "a file that is gone changed"),
        (lambda folder: (folder / "lib.py").chmod(0o755), "lib.py changed"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_file_that_is_another_is_named(
    folder: Path, change: Callable[[Path], object], says: str
) -> None:
    """Whether the words name it, or it is in the folder; as it was again, it counts again."""
    before = _read()
    assert before == _read()
    assert before.find_changed(before.parts) == []
    change(folder)
    after = _read()
    assert after.digest != before.digest
    assert after.say_changed(before.parts) == says


def test_only_what_the_words_name_counts_where_runs_change_the_folder(folder: Path) -> None:
    """In place, one run writes what the next one finds."""
    text = "files: {replay: in-place}\n"
    before = _read(text)
    (folder / "lib.py").write_text("another")
    assert _read(text) == before
    (folder / "agent.py").write_text("another")
    assert _read(text).say_changed(before.parts) == "agent.py changed"


@pytest.mark.parametrize("name", ["new.txt", "ignored.log", "sweep.yaml.done", ".git/index"])
def test_what_is_new_or_ignored_does_not_count(folder: Path, name: str) -> None:
    """Nor what git and Playhead write themselves."""
    (folder / ".git").mkdir()
    if name != "new.txt":
        (folder / name).write_text("old")
    before = _read()
    (folder / name).write_text("new")
    assert _read().find_changed(before.parts) == []


def test_files_that_count_in_another_way_do_not_count_here(folder: Path) -> None:
    """Also where they did not do so before."""
    for known in ([], [Path("v.json")]):
        before = _read("", known)
        (folder / "v.json").write_text(f"another {len(known)}")
        assert _read("", [folder / "v.json"]).find_changed(before.parts) == []


_CONTRACT = "{match: 'POST http://shop.test/v1/refunds', request: {type: object}}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"contracts: [{_CONTRACT}]", "contracts of the configuration changed"),
        ("faults: [{match: 'GET http://shop.test/*', inject: reset}]", "faults of the configuration changed"),
        ("limits: {calls: 7}", None),
        ("store: elsewhere", None),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_the_configuration_counts(text: str, says: str | None) -> None:
    """But for what limits it, so that a higher limit lets it go on."""
    before = _read()
    after = _read(text)
    assert bool(after.find_changed(before.parts)) == (says is not None)
    if says:
        assert after.say_changed(before.parts) == says


def test_a_journal_says_which_runs_do_not_count(folder: Path, tmp_path: Path) -> None:
    """And notes no name of a file."""
    ended = {"key": "k", "run": "r", "standing": "good"}
    notes = tmp_path / "x.done"
    with Journal(notes, "busy", "wait") as journal:
        journal.depend(_read())
        journal.add(ended)
    (folder / "agent.py").write_text("another")
    (folder / "lib.py").write_text("another")
    with Journal(notes, "busy", "wait") as journal:
        journal.add(ended)
        journal.depend(_read())
        journal.add(ended)
        assert [journal.counts(row) for row in journal.rows] == [False, False, True]
        assert list(journal.say_left(journal.rows)) == [
            "  1 earlier run does not count: agent.py and lib.py changed",
            "  1 earlier run does not count: it is not known with which files they were made",
        ]
    assert "agent" not in notes.read_text()
    assert all(json.loads(line) for line in notes.read_text().splitlines())
