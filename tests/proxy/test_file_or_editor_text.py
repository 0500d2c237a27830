"""Texts that somebody gives a command: what a person makes of one, and files."""

import sys
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.file_or_editor_text import edit_text, read_file


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An editor that is a program: what it does is written into this file."""
    program = tmp_path / "an editor.py"
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' -S -E '{program}'")
    monkeypatch.delenv("VISUAL", raising=False)
    return program


def test_a_text_is_edited_in_a_file_of_its_kind(editor: Path) -> None:
    """JSON is called that, so that an editor knows; nothing of it stays."""
    editor.write_text(
        "import sys; assert sys.argv[1].endswith('answer-3.json')\n"
        "text = open(sys.argv[1]).read(); open(sys.argv[1], 'w').write(text.replace('1', '2'))"
    )
    assert edit_text(b'{"a": 1}', "answer-3") == b'{"a": 2}'


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("pass", "the text was not changed"),
        ("raise SystemExit(3)", "ended with 3"),
        ("import os, sys; os.unlink(sys.argv[1])", "cannot be read"),
    ],
)
def test_an_edit_that_comes_to_nothing_is_told(editor: Path, program: str, says: str) -> None:
    """And nothing is run."""
    editor.write_text(program)
    with pytest.raises(EngineError, match=says):
        edit_text(b"text", "answer-3")


def test_an_editor_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its words."""
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    with pytest.raises(EngineError, match="'no-such-editor --wait' cannot be started"):
        edit_text(b"text", "answer-3")


def test_a_file_has_a_size_that_is_sane(tmp_path: Path) -> None:
    """Else it is refused, not read."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate((8 << 20) + 1)
    with pytest.raises(EngineError, match="is longer than 8 MiB"):
        read_file(tmp_path / "large")
