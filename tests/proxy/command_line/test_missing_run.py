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
    missing = "two recordings are needed" if name == "bisect" else "no recording is named"
    assert f"{missing} before `--`" in said
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("replay true agent.py", "playhead replay RUN -- true agent.py."),
        ("replay ./agent.py", "playhead replay RUN -- ./agent.py."),
        ("replay -q true agent.py", "playhead replay RUN -q -- true agent.py."),
        ("branch --at 1 true agent.py", "playhead branch RUN --at 1 -- true agent.py."),
        ("resume true", "playhead resume RUN -- true."),
        ("explore true", "playhead explore RUN -- true."),
        ("bisect mine -- true", "playhead bisect mine GOOD -- true."),
        ("bisect mine true", "playhead bisect mine GOOD -- true."),
        ("bisect true agent.py", "playhead bisect RUN GOOD -- true agent.py."),
    ],
)
def test_a_program_in_the_place_of_a_run_is_told_as_one(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Where no run is named so: the run was forgotten, and what is expected has all that was given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").touch()
    with Store.open(tmp_path / ".playhead") as opened:
        record_run(opened, "mine", [ask()])
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == (125 if line.startswith("replay") else 2)
    shown = capfd.readouterr().err
    assert f"expected: {said} The newest recording is 'mine'" in shown


@pytest.mark.parametrize("name", ["true", "tr"])
def test_a_run_that_is_named_like_a_program_is_that_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also by the beginning of its name."""
    monkeypatch.chdir(tmp_path)
    with Store.open(tmp_path / ".playhead") as opened:
        record_run(opened, "true", [ask()])
    with pytest.raises(SystemExit):
        main(["replay", name])
    assert "Missing argument '-- COMMAND...'" in capfd.readouterr().err
