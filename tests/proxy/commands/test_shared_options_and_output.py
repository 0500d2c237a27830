"""Where a store cannot be, every command says so before it does anything."""

from pathlib import Path

import pytest

from playhead.proxy.cli import main


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("runs", 2),
        ("show mine", 2),
        ("record -- true", 2),
        ("serve --listen 127.0.0.1:0", 2),
        ("env", 2),
        ("gc", 2),
        ("replay mine -- true", 125),
    ],
)
@pytest.mark.parametrize("below", ["", "below", "below/deeper"])
def test_a_store_that_is_a_file_is_told_as_one(
    line: str,
    code: int,
    below: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not as a file of the CA, or a database, that cannot be read; also where a folder above it is one."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "afile"
    file.write_text("kept")
    command, *words = line.split()
    with pytest.raises(SystemExit) as ended:
        main([command, "--store", str(file / below), *words])
    assert ended.value.code == code
    said = capfd.readouterr().err
    assert f"{str(file)!r} is a file; expected a folder" in said
    assert "hint: name a folder with --store" in said
    assert file.read_text() == "kept"


@pytest.mark.parametrize("name", ["playhead.yml", "Playhead.yaml", ".playhead.yaml"])
@pytest.mark.parametrize(("line", "code"), [("runs", 2), ("record -- true", 2), ("gc", 2)])
def test_a_configuration_under_another_name_is_not_passed_over(
    line: str,
    code: int,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its rules of redaction would not be followed, and nobody would know."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("redact: [{json: email}]\n")
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == code
    told = capfd.readouterr().err
    assert f"{name} is not read: the configuration is called playhead.yaml" in told
    assert f"-c {name}" in told
