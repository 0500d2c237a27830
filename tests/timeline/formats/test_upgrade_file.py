"""An upgrade of a tape or of a file of an archive: the new one whole in its place, the old one beside it."""

from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.store import StoreError, StoreTooNew, StoreUnwritable, archive
from playhead.tape.records import tape_file
from playhead.tape.records.codec import BadRecord
from playhead.tests.golden.make import golden, unpack
from playhead.timeline.formats import upgrade_file as module
from playhead.timeline.formats.upgrade_file import upgrade_file

TAPE = golden("tape", tape_file.VERSION)
ARCHIVE = golden("archive", archive.VERSION)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A tape of the current version."""
    file = tmp_path / "run.tape"
    file.write_bytes(TAPE.read_bytes())
    return file


def _step(source: Path, target: Path) -> None:
    """Write the next version: the same, but for its number."""
    data = source.read_bytes()
    at = tape_file.HEAD_BYTES
    version = int.from_bytes(data[at - 2 : at], "big") + 1
    target.write_bytes(data[: at - 2] + version.to_bytes(2, "big") + data[at:])


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Playhead whose tapes are two versions ahead."""
    monkeypatch.setattr(tape_file, "VERSION", tape_file.VERSION + 2)
    steps = {tape_file.VERSION - 2: _step, tape_file.VERSION - 1: _step}
    monkeypatch.setattr(module, "TAPE_STEPS", steps)
    return monkeypatch


def test_there_is_a_step_for_every_version_that_was_released() -> None:
    """Whoever raises a version adds the step that leads to it."""
    assert sorted(module.TAPE_STEPS) == list(range(1, tape_file.VERSION))
    assert sorted(module.ARCHIVE_STEPS) == list(range(1, archive.VERSION))


def test_a_current_file_stays_as_it_is(tape: Path, tmp_path: Path) -> None:
    """A tape, and each file of an archive."""
    assert upgrade_file(tape) == ("tape", tape_file.VERSION, tape_file.VERSION, None)
    for file in unpack(ARCHIVE.name, tmp_path / "archive").rglob("*.parquet"):
        version = archive.VERSION if file.parent.name == "steps" else archive.FILE_VERSION
        assert upgrade_file(file) == ("archive", version, version, None)
    assert tape.read_bytes() == TAPE.read_bytes()


def test_a_file_goes_through_every_step(tape: Path, ahead: pytest.MonkeyPatch) -> None:
    """What it was is kept beside it; nothing else is."""
    del ahead
    done = upgrade_file(tape)
    version = tape_file.VERSION
    kept = tape.with_name(f"run.tape.version-{version - 2}")
    assert done == ("tape", version - 2, version, kept)
    assert kept.read_bytes() == TAPE.read_bytes()
    assert tape_file.read_version(tape.read_bytes()) == version
    assert sorted(tape.parent.iterdir()) == sorted([tape, kept])
    assert upgrade_file(tape).backup is None


def test_a_step_that_fails_leaves_the_file(tape: Path, ahead: pytest.MonkeyPatch) -> None:
    """Whether the tape is bad or the disk is full; a second attempt works."""
    for error, expected in ((BadRecord("x"), StoreError), (OSError(28, "full"), StoreUnwritable)):

        def fail(source: Path, target: Path, error: Exception = error) -> None:
            target.write_bytes(b"half")
            raise error

        with ahead.context() as broken:
            broken.setattr(module, "TAPE_STEPS", {**module.TAPE_STEPS, tape_file.VERSION - 1: fail})
            with pytest.raises(expected) as caught:
                upgrade_file(tape)
        assert str(tape) in str(caught.value)
        assert tape.read_bytes() == TAPE.read_bytes()
        assert list(tape.parent.iterdir()) == [tape]
    upgrade_file(tape)


def test_a_file_that_would_be_lost_is_left_alone(tape: Path, ahead: pytest.MonkeyPatch) -> None:
    """One that has the name of the backup."""
    del ahead
    other = tape.with_name(f"run.tape.version-{tape_file.VERSION - 2}")
    other.write_bytes(b"theirs")
    with pytest.raises(StoreError, match="there is a file") as caught:
        upgrade_file(tape)
    assert "move it away" in caught.value.hint
    assert other.read_bytes() == b"theirs"
    assert tape.read_bytes() == TAPE.read_bytes()


def test_what_cannot_be_upgraded_says_why(tape: Path, tmp_path: Path) -> None:
    """A newer tape or archive, what is neither, and what is not there."""
    data = tape.read_bytes()
    version = (tape_file.VERSION + 1).to_bytes(2, "big")
    tape.write_bytes(data[: tape_file.HEAD_BYTES - 2] + version + data[tape_file.HEAD_BYTES :])
    with pytest.raises(StoreTooNew, match=r"run\.tape: a tape of format 2; this version reads"):
        upgrade_file(tape)
    tape.write_bytes(b"hello")
    with pytest.raises(StoreError, match="does not begin as a tape"):
        upgrade_file(tape)
    tape.write_bytes(b"PAR1 and so on")
    with pytest.raises(StoreError, match="no Parquet file"):
        upgrade_file(tape)
    with pytest.raises(StoreUnwritable, match="No such file"):
        upgrade_file(tmp_path / "none")


def test_a_newer_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With both versions; an earlier one without a step is refused too."""
    (file,) = (unpack(ARCHIVE.name, tmp_path) / "steps").iterdir()
    version = archive.VERSION
    with monkeypatch.context() as behind:
        behind.setattr("playhead.store.archive.reading.VERSION", version - 1)
        with pytest.raises(StoreTooNew, match=f"{version}; this version reads up to {version - 1}"):
            upgrade_file(file)
    monkeypatch.setattr("playhead.store.archive.reading.VERSION", version + 1)
    with pytest.raises(StoreError, match=f"has version {version} of its format"):
        upgrade_file(file)


def test_an_archive_is_upgraded_with_all_its_files(tmp_path: Path) -> None:
    """The index is sealed over files that are there and as long as they were; else it stays as it is."""
    folder = unpack(golden("archive", 1).name, tmp_path)
    (index,) = (folder / "steps").iterdir()
    (events,) = (folder / "events").iterdir()
    written, sound = index.read_bytes(), events.read_bytes()
    events.write_bytes(sound[:-1])
    with pytest.raises(StoreError, match=r"events/.* bytes long; expected"):
        upgrade_file(index)
    events.unlink()
    with pytest.raises(StoreError, match="is not there; an archive is upgraded in one folder"):
        upgrade_file(index)
    assert index.read_bytes() == written
    events.write_bytes(sound)
    kept = index.with_name(f"{index.name}.version-1")
    assert upgrade_file(index) == ("archive", 1, 2, kept)
    assert kept.read_bytes() == written


def test_the_command_takes_files(tape: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each; flags of a store do not go with them."""
    with pytest.raises(SystemExit) as ended:
        main(["upgrade", str(tape), str(tape)])
    assert not ended.value.code
    line = f"{tape}: tape of version {tape_file.VERSION}, the current one; nothing to do\n"
    assert capsys.readouterr().out == line * 2
    with pytest.raises(SystemExit) as ended:
        main(["upgrade", "--store", "x", str(tape)])
    assert ended.value.code == 2
    assert "--store and --no-backup are about a store" in capsys.readouterr().err
