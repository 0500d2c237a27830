"""The file of a schedule takes the place of nothing."""

from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.experiments.save_faulted_run import keep_schedule

TEXT = "run: refund\n"


def test_what_is_there_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file, nor what a link leads to, nor where a link leads that leads nowhere."""
    monkeypatch.chdir(tmp_path)
    precious, nowhere = tmp_path / "precious.txt", tmp_path / "nowhere.txt"
    precious.write_text("mine")
    Path("r-seed-1.yaml").write_text("my own text")
    Path("r-seed-1~2.yaml").symlink_to(precious)
    Path("r-seed-1~3.yaml").symlink_to(nowhere)
    Path("r-seed-1~4.yaml").mkdir()
    assert keep_schedule("r-seed-1", TEXT) == Path("r-seed-1~5.yaml")
    assert Path("r-seed-1~5.yaml").read_text() == TEXT
    assert (Path("r-seed-1.yaml").read_text(), precious.read_text()) == ("my own text", "mine")
    assert not nowhere.exists()
    assert keep_schedule("r-seed-1", TEXT) == Path("r-seed-1~5.yaml")
    assert keep_schedule("team/r", TEXT) == Path("team-r.yaml")


def test_a_folder_that_takes_no_file_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(EngineError, match=r"r\.yaml cannot be written: No such file"):
        keep_schedule("r", TEXT)
