"""What a branch declares: a text that a person edits, and the hosts of a class."""

import sys
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.run_again.declare import Asked, edit_text, find_hosts, read_file
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.recordings import ask, record_run


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


def test_the_hosts_of_a_class_are_those_of_the_tape(tmp_path: Path) -> None:
    """Each once, in the order of their first request."""
    with Store.open(tmp_path) as store:
        asked = [ask(b"", url=f"https://{name}.test/x") for name in ("b", "a", "b")]
        run = record_run(store, "tape", asked)
        assert find_hosts(store, run, RequestClass.INFERENCE) == ["b.test", "a.test"]
        assert find_hosts(store, run, RequestClass.READ) == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(1, edit=True, system=Path("x")), "--edit and --system change the same exchange"),
        (Asked(1, live=("inference",)), "need a --reason"),
        (Asked(1, routes=("x",)), "need a --reason"),
        (Asked(1, reason="r"), "--reason goes with"),
        (Asked(1, request_change=Path("x")), "add --live inference"),
    ],
)
def test_words_that_do_not_go_together_are_told(asked: Asked, says: str) -> None:
    """Before a store is opened."""
    with pytest.raises(ValueError, match=says):
        asked.check()
