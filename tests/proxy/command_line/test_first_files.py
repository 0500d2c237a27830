"""`playhead init` writes a configuration with comments, and keeps the store out of git."""

import subprocess
from pathlib import Path

import pytest

from playhead.config import Config, load
from playhead.proxy.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(["init", *words])
    return ended.value.code


def test_configuration_is_whole_and_says_nothing_new(folder: Path) -> None:
    """Each key is a comment or has its default."""
    assert init() == 0
    text = (folder / "playhead.yaml").read_text()
    config = load(folder / "playhead.yaml")
    plain = Config()
    assert (config.mode, config.listen, config.redact) == (plain.mode, plain.listen, plain.redact)
    assert config.store.resolve() == (folder / ".playhead").resolve()
    assert sum(line.lstrip().startswith("#") for line in text.splitlines()) > 10
    assert len(text.splitlines()) < 60


def test_commented_keys_can_be_switched_on(folder: Path) -> None:
    """Each example in a comment is right."""
    assert init() == 0
    file = folder / "playhead.yaml"
    lines = file.read_text().splitlines()
    on = [line.removeprefix("#: ") if line.startswith("#: ") else line for line in lines]
    assert on != lines
    file.write_text("\n".join(on))
    load(file)


def test_store_is_not_committed(folder: Path) -> None:
    """It holds keys: git sees nothing of it."""
    assert init() == 0
    assert (folder / ".playhead" / ".gitignore").read_text().splitlines()[-1] == "*"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".playhead" / "anything").write_text("x")
    seen = subprocess.run(
        ["git", "-C", str(folder), "status", "--porcelain", "-uall"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert seen.splitlines() == ["?? playhead.yaml"]


def test_what_is_there_is_left_alone(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The files of somebody are not overwritten, and that is said."""
    (folder / "playhead.yaml").write_text("mode: record\n")
    assert init() == 0
    assert (folder / "playhead.yaml").read_text() == "mode: record\n"
    assert "playhead.yaml is there already" in capfd.readouterr().out
    assert (folder / ".playhead" / ".gitignore").exists()
    assert init() == 0


def test_store_of_the_configuration_is_the_one_that_is_ignored(folder: Path) -> None:
    """Where it says another."""
    (folder / "playhead.yaml").write_text("store: tapes\n")
    assert init() == 0
    assert (folder / "tapes" / ".gitignore").exists()
    assert not (folder / ".playhead").exists()


def test_store_can_be_named(folder: Path) -> None:
    """And is named in the file then."""
    assert init("--store", "tapes") == 0
    assert load(folder / "playhead.yaml").store.resolve() == (folder / "tapes").resolve()
    assert (folder / "tapes" / ".gitignore").exists()


def test_store_is_used_as_before(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder with nothing but that file is no broken store."""
    assert init() == 0
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["runs"])
    assert ended.value.code == 0, capfd.readouterr().err


def test_folder_that_cannot_be_written_is_an_error(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With what to do, and no traceback."""
    (folder / ".playhead").write_text("a file")
    assert init() == 2
    said = capfd.readouterr().err
    assert ".playhead" in said
    assert "hint: " in said
