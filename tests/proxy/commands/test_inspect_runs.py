"""What `runs` says where there is no store."""

import os
from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.store import Store


@pytest.mark.parametrize("json", [False, True])
def test_a_store_that_is_not_there_is_said_to_be_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], json: bool
) -> None:
    """It may be a mistyped one; nothing is wrong before the first recording, and none is made."""
    with pytest.raises(SystemExit) as ended:
        main(["runs", "--store", str(tmp_path / "nosuch"), *(["--json"] if json else [])])
    assert ended.value.code == 0
    said = capfd.readouterr()
    assert f"no store at {tmp_path / 'nosuch'}" in (said.err if json else said.out)
    assert ("[]" in said.out) is json
    assert json or "--store" in said.out
    assert not (tmp_path / "nosuch").exists()


@pytest.mark.parametrize("words", [["runs"], ["show", "mine"], ["verify"]])
def test_the_store_in_the_folder_that_was_named_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    Store.open(tmp_path / ".playhead").close()
    with pytest.raises(SystemExit):
        main([*words, "--store", str(tmp_path)])
    said = capfd.readouterr()
    assert f"one is in it: --store {tmp_path / '.playhead'}" in said.out + said.err


@pytest.mark.parametrize("words", [["runs"], ["show", "mine"], ["verify"]])
def test_the_store_of_a_folder_above_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """Whoever is in a folder of the project means that one; another that was named is not guessed at."""
    Store.open(tmp_path / ".playhead").close()
    (tmp_path / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "src" / "deep")
    with pytest.raises(SystemExit):
        main(words)
    said = capfd.readouterr()
    assert f"one is in a folder above: --store {tmp_path / '.playhead'}" in said.out + said.err
    with pytest.raises(SystemExit):
        main([*words, "--store", "other"])
    said = capfd.readouterr()
    assert "a folder above" not in said.out + said.err


@pytest.mark.parametrize("words", [["runs"], ["show", "mine"], ["record", "--", "true"]])
def test_a_working_folder_that_is_gone_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """Not that there are no runs."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    os.rmdir(folder)
    with pytest.raises(SystemExit) as ended:
        main(words)
    monkeypatch.chdir(tmp_path)
    assert ended.value.code == 2
    assert "the folder that you are in was removed" in capfd.readouterr().err
