"""A command line without the recording says that it is missing, and which there are."""

from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.store import Store
from playhead.tests.support.recordings import ask, record_run

COMMANDS = {
    "replay": ((), 125),
    "branch": (("--at", "1"), 2),
    "resume": ((), 2),
    "bisect": ((), 2),
    "explore": ((), 2),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("recorded", [True, False], ids=["a recording", "none"])
def test_run_is_named_as_what_is_missing(
    name: str,
    recorded: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not the command, which is there."""
    monkeypatch.chdir(tmp_path)
    if recorded:
        with Store.open(tmp_path / ".playhead") as opened:
            record_run(opened, "mine", [ask()])
    flags, code = COMMANDS[name]
    with pytest.raises(SystemExit) as ended:
        main([name, *flags, "--", "python", "agent.py"])
    assert ended.value.code == code
    said = capfd.readouterr().err
    assert "no recording is named before `--`" in said
    assert f"playhead {name} " in said
    assert "-- python agent.py" in said
    assert ("latest" in said and "'mine'" in said) == recorded
    assert ("playhead record" in said) != recorded


def test_without_anything_the_form_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """As before."""
    with pytest.raises(SystemExit) as ended:
        main(["replay"])
    assert ended.value.code == 125
    assert "Missing argument 'RUN'" in capfd.readouterr().err


def test_without_a_command_the_command_is_missing(capfd: pytest.CaptureFixture[str]) -> None:
    """A name alone is a run."""
    with pytest.raises(SystemExit) as ended:
        main(["replay", "mine"])
    assert ended.value.code == 125
    assert "'-- COMMAND...'" in capfd.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_before_the_command_is_taken_for_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also behind flags that take a word."""
    monkeypatch.chdir(tmp_path)
    flags, _ = COMMANDS[name]
    names = ["mine", "other"] if name == "bisect" else ["mine"]
    with pytest.raises(SystemExit) as ended:
        main([name, "--store", "nowhere", *flags, *names, "--", "true"])
    assert ended.value.code in (2, 125)
    said = capfd.readouterr().err
    assert "no recording is named" not in said
    assert "no store at" in said
