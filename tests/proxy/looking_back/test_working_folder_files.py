"""What `playhead files` says of savepoints that a run does not have."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, override
from playhead.proxy.folder import recording as recording_module
from playhead.proxy.folder.command_folders import Area
from playhead.proxy.folder.list_folder import Limits, look
from playhead.proxy.folder.recording import FolderRecording
from playhead.proxy.folder.savepoints import END, Savepoints
from playhead.proxy.looking_back.working_folder_files import FilesOptions, show_files
from playhead.store import Store, StoreError
from playhead.tape.folders.manifest import Manifest

_CUT = "because the folder has more than 3 paths"
AT_END = (
    FilesOptions(at="end"),
    FilesOptions(diff=("start", "end")),
    FilesOptions(diff=("end", "start")),
)


async def _record(folder: Path, *savepoints: int) -> Config:
    """Record a run `r` whose command writes to a file before each savepoint."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    config = override(Config(), {"save_files": "true", "store": str(folder / "store")})
    with Store.open(folder / "store") as store:
        recording = FolderRecording(store, Area(str(work)), config, bytes, frozenset())
        recording.begin()
        run = await store.runs.create("r", mode="record", at_ns=1)
        recording.adopt(run.number)
        steps = Savepoints(recording, store)
        for seq in savepoints:
            (work / "f").write_text(str(seq))
            steps.take(run.number, seq)
        await store.runs.seal(run, reason="it ended", at_ns=2)
    return config


@pytest.mark.parametrize("options", [*AT_END, FilesOptions(at="end", restore=Path("made"))])
@pytest.mark.parametrize(
    ("savepoints", "says"),
    [
        ((1, 2), "run 'r' has no savepoint at its end: the last one is 2"),
        ((), "run 'r' has no savepoint"),
    ],
)
async def test_a_run_that_did_not_come_to_its_end_has_no_folder_of_then(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: FilesOptions,
    savepoints: tuple[int, ...],
    says: str,
) -> None:
    """What the folder was when it was killed nobody knows; the last savepoint is named, and not given for it."""
    monkeypatch.chdir(tmp_path)
    config = await _record(tmp_path, *savepoints)
    with pytest.raises(StoreError, match=says):
        show_files(config, "r", options)
    assert not (tmp_path / "made").exists()


async def test_a_savepoint_at_the_end_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a word beside."""
    config = await _record(tmp_path, 1, END)
    for options in AT_END:
        assert show_files(config, "r", options) == 0
    assert capsys.readouterr() == ("created f\ncreated f\ndeleted f\n", "")


@pytest.mark.parametrize(("resumes", "did"), [(True, "resumes"), (False, "plays")])
async def test_of_what_goes_on_with_a_recording_the_recording_has_the_folder(
    tmp_path: Path, resumes: bool, did: str
) -> None:
    """Nobody is told to record it again, which would do it again."""
    config = await _record(tmp_path)
    with Store.open(tmp_path / "store") as store:
        recorded = store.runs.get("r")
        await store.runs.create("r", mode="playback", at_ns=3, parent=recorded, resumes=resumes)
    with pytest.raises(StoreError, match=f"run 'r@1' {did} 'r', and has no manifest") as told:
        show_files(config, "r@1", FilesOptions())
    assert told.value.hint.endswith("playhead files r")


SHOWN = (FilesOptions(), FilesOptions(at="end"), FilesOptions(diff=("start", "end")))


@pytest.mark.parametrize("at_start", [True, False])
async def test_a_listing_that_was_cut_is_not_told_as_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    at_start: bool,
) -> None:
    """Neither in text nor in JSON, nor where it is restored; whether the start was cut or a savepoint alone."""

    def look_at_little(folder: str, **given: Any) -> Manifest:
        given["limits"] = Limits(entries=3 if at_start or given["known"] else 100)
        return look(folder, **given)

    monkeypatch.setattr(recording_module, "look", look_at_little)
    for at in range(3):
        (tmp_path / "work" / f"d{at}").mkdir(parents=True)
        (tmp_path / "work" / f"d{at}/x").write_text("x")
    config = await _record(tmp_path, 1, END)
    for options in SHOWN:
        assert show_files(config, "r", options) == 0
        assert _CUT in "".join(capsys.readouterr())
        assert show_files(config, "r", options._replace(as_json=True)) == 0
        told = json.loads(capsys.readouterr().out)
        assert _CUT in (told["savepoints"][-1] if "savepoints" in told else told)["not_listed"]
    for as_json in (False, True):
        made = FilesOptions(at="end", restore=tmp_path / f"made{as_json}", as_json=as_json)
        assert show_files(config, "r", made) == 0
        assert _CUT in capsys.readouterr().out
